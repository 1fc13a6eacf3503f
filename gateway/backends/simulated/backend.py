"""The launch back end protocol over the virtual cluster.

Every call brings the object up to the clock's time first. It starts nothing on this machine.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from gateway.backends.base import (
    ForeignObject,
    Launch,
    NodeSeen,
    ObjectOutcome,
    ObjectRef,
    Observation,
    ReplicaPhase,
)
from gateway.backends.simulated import life
from gateway.backends.simulated.controls import Controls, remove
from gateway.backends.simulated.ledger import Ledger
from gateway.backends.simulated.objects import (
    VirtualCluster,
    VirtualObject,
    VirtualReplica,
    assign,
    identity_of,
    key_of,
    new_object,
)
from gateway.backends.simulated.script import Outcome, Script, read_script
from gateway.core.vocabulary import BackendName, DeviceHealth, Guarantee
from gateway.errors import ClusterRejected

DEFAULT_SCRIPT = Script()


class SimulatedBackend(Controls):
    """A virtual cluster of the given nodes.

    `state_file` makes it outlive this process; `clock` gives seconds that must go on across
    processes (so not a monotonic clock); `defaults` is the script of manifests that say nothing.
    """

    name: ClassVar[BackendName] = BackendName.SIMULATED
    calls_at_once: ClassVar[int] = 1
    guarantee: Guarantee = Guarantee.ADVISORY

    def __init__(
        self,
        fleet: Sequence[NodeSeen],
        state_file: Path | None = None,
        clock: Callable[[], float] = time.time,
        *,
        defaults: Script = DEFAULT_SCRIPT,
    ) -> None:
        """Continue from the state file when it exists."""
        super().__init__(Ledger(state_file), clock)
        self._fleet = tuple(fleet)
        self._defaults = defaults

    def inventory(self) -> Sequence[NodeSeen]:
        """Give the fleet with the health that was set."""
        self._check_weather()
        with self._ledger.reading() as cluster:
            health = dict(cluster.node_health)
        if not health:
            return self._fleet
        return [
            replace(node, health=DeviceHealth(health.get(node.name, node.health)))
            for node in self._fleet
        ]

    def create(self, launch: Launch) -> ObjectRef:
        """Create the object suspended; raises ClusterRejected when the script says so."""
        self._check_weather()
        with self._ledger.changing() as cluster:
            found = _own(cluster, launch)
            if found is None:
                # Judged before it is counted and stored: a refused create leaves nothing behind.
                script = self._accepted_script(launch)
                cluster.created += 1
                found = new_object(launch, f"virtual-{cluster.created}", script)
                cluster.objects[key_of(launch.namespace, launch.object_name)] = found
        # After the ledger has stored it, as an answer is lost on its way back.
        self._maybe_lose("create")
        return _ref(found)

    def find(self, launch: Launch) -> ObjectRef | None:
        """Look for this attempt's object."""
        self._check_weather()
        with self._ledger.reading() as cluster:
            found = _own(cluster, launch)
        return _ref(found) if found else None

    def hold(self, launch: Launch, ref: ObjectRef) -> None:
        """Hold nothing: the guarantee is advisory."""
        self._check_weather()

    def unsuspend(self, launch: Launch, ref: ObjectRef) -> None:
        """Let the gated pods appear; nothing for a started, stopped or vanished object."""
        self._check_weather()
        with self._ledger.changing() as cluster:
            found = _by_uid(cluster, ref)
            # Asked once only: a repeat must not let pods appear anew, nor wake what was stopped.
            if found and found.unsuspended_at is None and found.stopped_at is None:
                found.unsuspended_at = self._clock()
                life.appear(found, self._clock())
        self._maybe_lose("unsuspend")

    def open_gates(self, launch: Launch, ref: ObjectRef) -> bool:
        """Open the whole gang at once, later each re-created replica alone."""
        self._check_weather()
        with self._ledger.changing() as cluster:
            found = _by_uid(cluster, ref)
            is_open = found is not None and self._open(launch, found)
        self._maybe_lose("open_gates")
        return is_open

    def observe(self, launch: Launch, ref: ObjectRef) -> Observation:
        """Look at the object with this uid; after its deletion at the pods that linger."""
        self._check_weather()
        now = self._clock()
        with self._ledger.reading() as cluster:
            found = _by_uid(cluster, ref)
            if found is None:
                return self._observe_leaving(cluster, ref)
            # In memory only: the course follows from stored times, so the next look comes to the
            # same, and a look needs no write.
            life.settle(found, now)
            return _observation(found, now)

    def stop(self, launch: Launch, ref: ObjectRef) -> None:
        """Terminate what runs and never start it again."""
        self._check_weather()
        with self._ledger.changing() as cluster:
            found = _by_uid(cluster, ref)
            if found and found.stopped_at is None:
                # What ended before the stop ended by itself, even when nobody has looked since.
                life.settle(found, self._clock())
                found.stopped_at = self._clock()
                life.terminate(found, self._clock())
        self._maybe_lose("stop")

    def delete(self, ref: ObjectRef) -> None:
        """Remove the object with this uid."""
        self._check_weather()
        with self._ledger.changing() as cluster:
            found = _by_uid(cluster, ref)
            if found:
                life.settle(found, self._clock())
                remove(cluster, found, self._clock())
        self._maybe_lose("delete")

    def logs(self, launch: Launch, rank: int, *, follow: bool, tail: int | None) -> Iterator[str]:
        """Give the lines so far; virtual time does not wait, so `follow` adds none."""
        self._check_weather()
        with self._ledger.reading() as cluster:
            found = cluster.objects.get(key_of(launch.namespace, launch.object_name))
            lines = _log_lines(found, rank, self._clock()) if found else []
        return iter(deque(lines, maxlen=tail))

    def is_reachable(self) -> bool:
        """Whether `set_unreachable` was not called."""
        return not self._weather.is_unreachable

    def _accepted_script(self, launch: Launch) -> Script:
        script = read_script(launch.manifest, self._defaults)
        if script.outcome is Outcome.REJECTED:
            raise ClusterRejected(
                f"the virtual cluster refuses {launch.object_name}: its script says rejected",
                hint="change the outcome annotation",
            )
        # Nobody would ever fail, and the gang would succeed against its script.
        if script.outcome is Outcome.FAILED and script.fail_index >= len(launch.pods):
            raise ClusterRejected(
                f"fail-index {script.fail_index} is beyond the gang's {len(launch.pods)} pods",
                value=script.fail_index,
                hint="name a rank of the gang",
            )
        return script

    def _open(self, launch: Launch, found: VirtualObject) -> bool:
        now = self._clock()
        life.settle(found, now)
        # What was open stays open in the answer, so that a repeat does not send the service back.
        if found.stopped_at is not None or found.outcome:
            return found.was_opened
        phases = [life.phase_of(replica, found.script, now) for replica in found.replicas]
        # Only before the first opening must all be there: a re-created pod is opened alone.
        if not found.was_opened and ReplicaPhase.ABSENT in phases:
            return False
        for replica, phase in zip(found.replicas, phases, strict=True):
            if phase is ReplicaPhase.GATED:
                assign(launch, replica, now)
        found.was_opened = True
        return ReplicaPhase.ABSENT not in phases

    def _observe_leaving(self, cluster: VirtualCluster, ref: ObjectRef) -> Observation:
        found = cluster.leaving.get(ref.uid)
        if found is None:
            return Observation(exists=False, uid=ref.uid)
        if not life.lingers(found, self._clock()):
            del cluster.leaving[ref.uid]
            return Observation(exists=False, uid=ref.uid)
        return Observation(exists=False, uid=ref.uid, replicas=life.seen(found, self._clock()))


def _own(cluster: VirtualCluster, launch: Launch) -> VirtualObject | None:
    found = cluster.objects.get(key_of(launch.namespace, launch.object_name))
    if found is not None and found.identity != identity_of(launch):
        raise ForeignObject(
            f"an object {found.namespace}/{found.name} exists that is not this attempt's",
            value=found.uid,
            hint="remove or rename it, then requeue the job",
        )
    return found


def _by_uid(cluster: VirtualCluster, ref: ObjectRef) -> VirtualObject | None:
    found = cluster.objects.get(key_of(ref.namespace, ref.name))
    return found if found is not None and found.uid == ref.uid else None


def _ref(found: VirtualObject) -> ObjectRef:
    return ObjectRef(namespace=found.namespace, name=found.name, uid=found.uid)


def _observation(found: VirtualObject, now: float) -> Observation:
    return Observation(
        exists=True,
        uid=found.uid,
        is_suspended=found.unsuspended_at is None or found.stopped_at is not None,
        outcome=ObjectOutcome(found.outcome or ObjectOutcome.UNDECIDED),
        replicas=life.seen(found, now),
        recreations=sum(replica.generation for replica in found.replicas),
        is_lost=found.is_lost,
        message=found.message,
    )


def _log_lines(found: VirtualObject, rank: int, now: float) -> list[str]:
    life.settle(found, now)
    for replica in found.replicas:
        if replica.rank == rank and replica.opened_at is not None:
            return _replica_lines(found.name, replica)
    return []


def _replica_lines(job: str, replica: VirtualReplica) -> list[str]:
    lines = [f"rank {replica.rank} of {job} on {replica.node}"]
    lines += [f"{key}={value}" for key, value in sorted(replica.environment.items())]
    if replica.ended_at is not None:
        lines.append(f"rank {replica.rank} exited with code {replica.exit_code}")
    return lines
