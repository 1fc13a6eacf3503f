"""A small world that the engine may be asked about at any moment: rows in, snapshot out.

`engine_steps` changes it; here only stands what its rows come down to.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.core.admission import Admit, Snapshot, Usage
from gateway.core.admission.types import Held, NodeHold, Span, UserUsage
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.columns import WaitingJobs
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Cohort, Queue
from gateway.core.resources.node_rules import Taint
from gateway.core.vocabulary import DeviceHealth, DeviceKind
from tests.builders import a_device, a_fleet, a_node, waiting_jobs
from tests.properties.engine_definitions import FLAVORS, HOUR_US, USERS


class Waiting(NamedTuple):
    """A job that waits."""

    queue: str
    gang: RequestClass
    user: str
    priority: int
    rank: int
    submitted_us: int
    eligible_us: int
    deadline_us: int
    expected_seconds: int


class Running(NamedTuple):
    """A gang that was admitted."""

    job: Waiting
    admit: Admit
    since_us: int

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang."""
        return dict(self.job.gang.total).get("gpu", 0)


class NodeFacts(NamedTuple):
    """A node as it is when nothing of ours runs there."""

    labels: tuple[tuple[str, str], ...]
    is_tainted: bool
    health: DeviceHealth
    cpu: int
    pods: int
    devices: int
    foreign: int
    """Mask of GPUs that somebody else uses."""


@dataclass(slots=True)
class World:
    """Rows that change."""

    now_us: int = 1_000 * HOUR_US
    nodes: dict[int, NodeFacts] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    cohorts: dict[str, Cohort] = field(default_factory=dict)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    running: dict[int, Running] = field(default_factory=dict)
    ended: list[Span] = field(default_factory=list)
    used_lately: dict[tuple[str, str], int] = field(default_factory=dict)
    node_holds: tuple[NodeHold, ...] = ()
    is_complete: bool = True
    next_id: int = 1

    def snapshot(self) -> Snapshot:
        """Give what a decision depends on at this moment."""
        return Snapshot(
            serial=self.next_id,
            queues=tuple(self.queues.values()),
            cohorts=tuple(self.cohorts.values()),
            flavors=FLAVORS,
            usage=usages(self.running.values()),
            waiting=self._waiting_list(),
            fleet=self._fleet(),
            held=helds(self.running.values()),
            spans=self._spans(),
            user_usage=tuple(
                UserUsage(queue=queue, user=user, usage=usage)
                for (queue, user), usage in sorted(self.used_lately.items())
            ),
            node_holds=self.node_holds,
        )

    def apply(self, admits: tuple[Admit, ...]) -> None:
        """Let what was admitted run; AssertionError where it takes what is not there."""
        for admit in admits:
            self.running[admit.job_id] = Running(self.waiting.pop(admit.job_id), admit, self.now_us)
        self.check_devices()

    def check_devices(self) -> None:
        """AssertionError when two gangs hold one device of a node that is still known."""
        held: Counter[tuple[str, int, int]] = Counter()
        for gang in self.running.values():
            for pod in gang.admit.placements:
                for kind, mask in (("gpu", pod.gpu_mask), ("nic", pod.nic_mask)):
                    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
                    held.update((kind, pod.node_id, bit) for bit in bits)
        assert not [device for device, holders in held.items() if holders > 1]

    def node_rows(self) -> list[tuple[NodeRow, list[DeviceRow]]]:
        """Give every node with its devices, as they are in use now."""
        return [self._node(node_id, facts) for node_id, facts in sorted(self.nodes.items())]

    def _waiting_list(self) -> WaitingJobs:
        jobs = list(self.waiting.values())
        classes = tuple(dict.fromkeys(job.gang for job in jobs))
        queues = list(self.queues)
        return waiting_jobs(
            classes,
            USERS,
            job_id=list(self.waiting),
            queue=[queues.index(job.queue) for job in jobs],
            request_class=[classes.index(job.gang) for job in jobs],
            user=[USERS.index(job.user) for job in jobs],
            **{name: [getattr(job, name) for job in jobs] for name in Waiting._fields[3:]},
        )

    def _spans(self) -> tuple[Span, ...]:
        live = [
            Span(queue=gang.job.queue, gpus=gang.gpus, since_us=gang.since_us)
            for gang in self.running.values()
        ]
        return tuple(
            span
            for span in (*self.ended, *live)
            if span.queue in self.queues and self.queues[span.queue].budget
        )

    def _fleet(self) -> Fleet:
        rows = self.node_rows()
        if not rows:
            rows = [(a_node(99, labels=(("size", "none"),)), [])]
        devices = [device for _, held in rows for device in held]
        return a_fleet([row for row, _ in rows], devices, complete=self.is_complete)

    def _node(self, node_id: int, facts: NodeFacts) -> tuple[NodeRow, list[DeviceRow]]:
        total = {"cpu": facts.cpu, "memory": 2**40, "pods": facts.pods}
        taken, gpus, nics = self._taken(node_id)
        row = a_node(
            node_id,
            labels=facts.labels,
            taints=(Taint(key="gpu", value="reserved"),) if facts.is_tainted else (),
            health=facts.health,
            total=total,
            free={name: amount - taken[name] for name, amount in total.items()},
        )
        masks = {DeviceKind.GPU: gpus | facts.foreign, DeviceKind.RDMA: nics}
        return row, [
            a_device(node_id, kind, ordinal, units_free=0 if mask >> ordinal & 1 else 100)
            for kind, mask in masks.items()
            for ordinal in range(facts.devices)
        ]

    def _taken(self, node_id: int) -> tuple[Counter[str], int, int]:
        """Give amounts and device masks that our gangs hold on a node."""
        taken: Counter[str] = Counter()
        gpus = nics = 0
        for gang in self.running.values():
            per_pod = {each.name: dict(each.per_pod) for each in gang.job.gang.pod_sets}
            for pod in gang.admit.placements:
                if pod.node_id == node_id:
                    taken.update({**per_pod[pod.pod_set], "pods": 1})
                    gpus, nics = gpus | pod.gpu_mask, nics | pod.nic_mask
        return taken, gpus, nics


def usages(running: Iterable[Running]) -> tuple[Usage, ...]:
    """Give what gangs use by queue and pair."""
    total: Counter[tuple[str, str, str]] = Counter()
    for gang in running:
        for charge in gang.admit.charges:
            total[gang.admit.queue, charge.flavor, charge.resource] += charge.amount
    return tuple(
        Usage(queue=queue, flavor=flavor, resource=resource, amount=amount)
        for (queue, flavor, resource), amount in total.items()
    )


def helds(running: Iterable[Running]) -> tuple[Held, ...]:
    """Give what users hold by queue."""
    jobs: Counter[tuple[str, str]] = Counter()
    gpus: Counter[tuple[str, str]] = Counter()
    for gang in running:
        jobs[gang.admit.queue, gang.job.user] += 1
        gpus[gang.admit.queue, gang.job.user] += gang.gpus
    return tuple(
        Held(queue=key[0], user=key[1], jobs=count, gpus=gpus[key]) for key, count in jobs.items()
    )
