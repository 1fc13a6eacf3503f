"""Turns a scenario's plain data into a snapshot.

Short on purpose: `cpu` is in cores, instants are in seconds, a bare resource is of the flavor
`default`, and where no nodes are given four nodes hold whatever anybody asks for.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gateway.core.admission import Snapshot, Usage
from gateway.core.admission.types import Held, NodeHold, Span, UserUsage
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.columns import WaitingJobs
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import (
    Ageing,
    Budget,
    Caps,
    Cohort,
    DatedChange,
    Flavor,
    Queue,
    Quota,
)
from gateway.core.resources import amounts
from gateway.core.resources.node_rules import Taint, Toleration
from gateway.core.vocabulary import (
    UNLIMITED,
    Blocking,
    DeviceHealth,
    DeviceKind,
    OrderPolicy,
    PairRule,
    QueueState,
    WhenCanBorrow,
)
from tests.builders import a_device, a_fleet, a_node, waiting_jobs

SECOND_US = 1_000_000
Entry = Mapping[str, Any]
RESOURCES = ("cpu", "gpu", "rdma", "memory")


def scenarios_in(folder: Path) -> Iterator[tuple[str, Entry]]:
    """Give every scenario of the folder's files, with a name to call it by."""
    for file in sorted(folder.glob("*.yaml")):
        for entry in yaml.safe_load(file.read_text()):
            yield f"{file.stem}: {entry['scenario']}", entry


def snapshot_of(scenario: Entry) -> Snapshot:
    """Give the state that a scenario describes."""
    queues = tuple(_queue(each) for each in scenario.get("queues", [{"name": "q"}]))
    running = [_with_count(each) for each in scenario.get("running", ())]
    fleet = _fleet(scenario.get("nodes", [{"cpu": 1000, "count": 4}]))
    return Snapshot(
        serial=1,
        queues=queues,
        cohorts=tuple(_cohort(each) for each in scenario.get("cohorts", ())),
        flavors=tuple(_flavor(each) for each in scenario.get("flavors", [{"name": "default"}])),
        usage=tuple(_usages(running)),
        waiting=_waiting(scenario["incoming"], [queue.name for queue in queues]),
        fleet=fleet,
        held=tuple(
            Held(queue=each["queue"], user=each.get("user", "ann"), jobs=1, gpus=_gpus(each))
            for each in running
        ),
        spans=tuple(_span(each) for each in running),
        user_usage=tuple(
            UserUsage(queue=queue, user=user, usage=usage)
            for queue, users in scenario.get("used_lately", {}).items()
            for user, usage in users.items()
        ),
        node_holds=tuple(
            _hold(each, scenario["incoming"], fleet) for each in scenario.get("held", ())
        ),
    )


def seconds(scenario: Entry, name: str) -> int:
    """Give an instant of a scenario in microseconds."""
    return int(scenario.get(name, 0) * SECOND_US)


def _base(resource: str, amount: float) -> int:
    return round(amount * 1000) if resource == "cpu" else round(amount)


def _pair(name: str) -> tuple[str, str]:
    flavor, _, resource = name.rpartition("/")
    return flavor or "default", resource


def _quotas(entry: Entry) -> tuple[Quota, ...]:
    limits = entry.get("borrowing_limit", {}), entry.get("lending_limit", {})
    names = dict.fromkeys([*entry.get("nominal", {}), *limits[0], *limits[1]])

    def value(table: Entry, name: str, otherwise: int) -> int:
        return _base(_pair(name)[1], table[name]) if name in table else otherwise

    return tuple(
        Quota(
            flavor=_pair(name)[0],
            resource=_pair(name)[1],
            nominal=value(entry.get("nominal", {}), name, 0),
            borrowing_limit=value(limits[0], name, UNLIMITED),
            lending_limit=value(limits[1], name, UNLIMITED),
        )
        for name in names
    )


def _changes(entry: Entry) -> tuple[DatedChange, ...]:
    return tuple(
        DatedChange(
            at_us=seconds(change, "at"),
            flavor=_pair(change["pair"])[0],
            resource=_pair(change["pair"])[1],
            **{
                key: _base(_pair(change["pair"])[1], change[key])
                for key in ("nominal", "borrowing_limit", "lending_limit")
                if key in change
            },
        )
        for change in entry.get("changes", ())
    )


def _cohort(entry: Entry) -> Cohort:
    return Cohort(
        name=entry["name"],
        parent=entry.get("parent"),
        weight=entry.get("weight", 1),
        quotas=_quotas(entry),
        changes=_changes(entry),
    )


def _queue(entry: Entry) -> Queue:
    return Queue(
        name=entry["name"],
        cohort=entry.get("cohort"),
        weight=entry.get("weight", 1),
        state=QueueState(entry.get("state", "open")),
        quotas=_quotas(entry),
        flavors=tuple(entry.get("flavors", ())),
        changes=_changes(entry),
        order=OrderPolicy(entry.get("order", "priority")),
        ageing=Ageing(**entry.get("ageing", {})),
        blocking=Blocking(entry.get("blocking", "best_effort")),
        when_can_borrow=WhenCanBorrow(entry.get("when_can_borrow", "borrow")),
        caps=Caps(**entry.get("caps", {})),
        budget=Budget(**entry["budget"]) if "budget" in entry else None,
    )


def _flavor(entry: Entry) -> Flavor:
    return Flavor(
        name=entry["name"],
        node_labels=tuple(sorted(entry.get("labels", {}).items())),
        tolerations=tuple(Toleration(**each) for each in entry.get("tolerations", ())),
    )


def _with_count(entry: Entry) -> Entry:
    return {"count": 1, "flavor": "default", **entry}


def _gpus(entry: Entry) -> int:
    return int(entry.get("gpu", 0)) * int(entry["count"])


def _usages(running: list[Entry]) -> Iterator[Usage]:
    total: Counter[tuple[str, str, str]] = Counter()
    for entry in running:
        for resource in RESOURCES:
            key = (entry["queue"], entry["flavor"], resource)
            total[key] += _base(resource, entry.get(resource, 0)) * entry["count"]
    for (queue, flavor, resource), amount in total.items():
        if amount:
            yield Usage(queue=queue, flavor=flavor, resource=resource, amount=amount)


def _span(entry: Entry) -> Span:
    return Span(queue=entry["queue"], gpus=_gpus(entry), since_us=seconds(entry, "since"))


def _hold(entry: Entry, incoming: list[Entry], fleet: Fleet) -> NodeHold:
    names = [each["name"] for each in incoming]
    node_ids = [int(fleet.node_id[fleet.names.index(name)]) for name in entry["nodes"]]
    return NodeHold(
        flavor=entry.get("flavor", "default"),
        job_id=names.index(entry["by"]) + 1,
        node_ids=tuple(sorted(node_ids)),
    )


def _waiting(incoming: list[Entry], queues: list[str]) -> WaitingJobs:
    classes = tuple(dict.fromkeys(_request(each) for each in incoming))
    users = tuple(dict.fromkeys(each.get("user", "ann") for each in incoming))
    in_turn = enumerate(incoming)
    return waiting_jobs(
        classes,
        users,
        queue=[queues.index(each.get("queue", queues[0])) for each in incoming],
        request_class=[classes.index(_request(each)) for each in incoming],
        priority=[each.get("priority", 0) for each in incoming],
        submitted_us=[seconds({"submitted": i, **each}, "submitted") for i, each in in_turn],
        user=[users.index(each.get("user", "ann")) for each in incoming],
        rank=[each.get("rank", 0) for each in incoming],
        eligible_us=[seconds(each, "not_before") for each in incoming],
        deadline_us=[seconds(each, "deadline") for each in incoming],
        expected_seconds=[each.get("expected", 0) for each in incoming],
    )


def _request(entry: Entry) -> RequestClass:
    workers = _pod_set("Worker", entry)
    if "master" not in entry:
        return RequestClass(pod_sets=(workers,))
    return RequestClass(pod_sets=(_pod_set("Master", entry["master"]), workers))


def _pod_set(name: str, entry: Entry) -> PodSetRequest:
    asks = {name: _base(name, entry[name]) for name in RESOURCES if name in entry}
    return PodSetRequest(
        name=name,
        count=entry.get("pods", 1),
        per_pod=amounts(asks),
        node_selector=tuple(sorted(entry.get("selector", {}).items())),
        tolerations=tuple(Toleration(**each) for each in entry.get("tolerations", ())),
        pair=PairRule(entry.get("pair", "node")),
        is_pair_required=entry.get("pair_required", True),
        level=entry.get("level", ""),
        is_level_required=entry.get("level_required", True),
        slices=tuple((label, size) for label, size in entry.get("slices", {}).items()),
        avoid=tuple(entry.get("avoid", ())),
        is_avoid_required=entry.get("avoid_required", True),
    )


def _fleet(nodes: list[Entry]) -> Fleet:
    copies = [_renamed(each, copy) for each in nodes for copy in range(each.get("count", 1))]
    drawn = [_node(node_id, each) for node_id, each in enumerate(copies, 1)]
    return a_fleet([row for row, _ in drawn], [device for _, each in drawn for device in each])


def _renamed(entry: Entry, copy: int) -> Entry:
    """Give one of several nodes alike a name of its own."""
    return {**entry, "name": f"{entry.get('name', 'node')}-{copy}"} if "count" in entry else entry


def _node(node_id: int, entry: Entry) -> tuple[NodeRow, list[DeviceRow]]:
    total = {
        "cpu": _base("cpu", entry.get("cpu", 1000)),
        "memory": entry.get("memory", 2**45),
        "pods": entry.get("pods", 10_000),
    }
    row = a_node(
        node_id,
        name=entry.get("name", f"node-{node_id:02d}"),
        health=DeviceHealth(entry.get("health", "healthy")),
        labels=tuple(sorted(entry.get("labels", {}).items())),
        taints=tuple(Taint(**each) for each in entry.get("taints", ())),
        total=total,
        free={**total, "cpu": _base("cpu", entry.get("free_cpu", entry.get("cpu", 1000)))},
    )
    return row, list(_devices(node_id, entry))


def _devices(node_id: int, entry: Entry) -> Iterator[DeviceRow]:
    kinds = ((DeviceKind.GPU, "gpus", "busy_gpus"), (DeviceKind.RDMA, "nics", "busy_nics"))
    for kind, count, busy in kinds:
        for ordinal in range(entry.get(count, 8)):
            units = 0 if ordinal in entry.get(busy, ()) else 100
            yield a_device(node_id, kind, ordinal, units_free=units)
