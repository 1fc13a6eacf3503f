"""Fleets with labels, taints and racks, and gangs with node rules and levels, drawn from a seed."""

from dataclasses import replace

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.request import PodSetRequest
from gateway.core.queues.definitions import Flavor
from gateway.core.resources.node_rules import Requirement, Taint, Toleration
from gateway.core.vocabulary import DeviceHealth
from tests.builders import a_fleet
from tests.properties.strategies import Dice, a_random_node, a_random_pod_set

Masks = dict[str, Bool]
RACK = "rack"
FLAVORS = (
    Flavor(name="b", node_labels=(("size", "l"),)),
    Flavor(name="a", node_labels=(("zone", "1"),)),
    Flavor(name="c", tolerations=(Toleration(key="gpu", operator="Exists"),)),
)
TAINTS = (
    Taint(key="gpu", value="reserved"),
    Taint(key="gpu", value="reserved", effect="PreferNoSchedule"),
    Taint(key="down", effect="NoExecute"),
)
TOLERATIONS = (
    Toleration(operator="Exists"),
    Toleration(key="gpu", value="reserved", effect="NoSchedule"),
    Toleration(key="down", operator="Exists", effect="NoExecute"),
)
REQUIREMENTS = (
    Requirement(key="zone", operator="In", values=("1", "2")),
    Requirement(key="zone", operator="NotIn", values=("1",)),
    Requirement(key="zone", operator="Gt", values=("1",)),
    Requirement(key="zone", operator="Lt", values=("2",)),
    Requirement(key="size", operator="Exists"),
    Requirement(key="size", operator="DoesNotExist"),
)


def random_labels(dice: Dice, racks: int = 3) -> tuple[tuple[str, str], ...]:
    """Give sorted pairs; some nodes lack some labels."""
    drawn = {
        RACK: dice.pick([None, *(f"r{i}" for i in range(racks)), *(f"r{i}" for i in range(racks))]),
        "size": dice.pick([None, "l", "s"]),
        "zone": dice.pick([None, "1", "2", "x"]),
    }
    return tuple((key, value) for key, value in drawn.items() if value is not None)


def a_labelled_node(dice: Dice, node_id: int) -> tuple[NodeRow, list[DeviceRow]]:
    """Give a node in some state of use with labels, and sometimes a taint."""
    node, devices = a_random_node(dice, node_id)
    taints = (dice.pick(TAINTS),) if dice.happens(30) else ()
    return node._replace(labels=random_labels(dice), taints=taints), devices


def with_node_rules(dice: Dice, pod_set: PodSetRequest) -> PodSetRequest:
    """Give the pod set with some selector, affinity and tolerations."""
    terms = [
        tuple(dice.pick(REQUIREMENTS) for _ in range(dice.number(0, 2)))
        for _ in range(dice.pick([0, 0, 1, 2]))
    ]
    return replace(
        pod_set,
        node_selector=dice.pick([(), (), (("zone", "1"),), (("size", "s"), ("zone", "2"))]),
        affinity=tuple(terms),
        tolerations=tuple(dice.pick(TOLERATIONS) for _ in range(dice.number(0, 2))),
        avoid=dice.pick([(), (), ("node-01", "node-04")]),
        is_avoid_required=dice.happens(70),
    )


def a_ruled_pod_set(dice: Dice) -> PodSetRequest:
    """Give Workers with node rules."""
    return with_node_rules(dice, a_random_pod_set(dice, "Worker", dice.number(1, 4)))


def changed_node(dice: Dice, node: NodeRow, devices: list[DeviceRow]) -> NodeRow:
    """Give the node with something else about it; devices may be changed in place."""
    for index, device in enumerate(devices):
        if dice.happens(20):
            devices[index] = device._replace(
                units_free=dice.pick([0, 100]),
                is_present=dice.happens(90),
                health=dice.pick([DeviceHealth.HEALTHY, DeviceHealth.UNHEALTHY]),
            )
    changes: list[dict[str, object]] = [
        {"labels": random_labels(dice)},
        {"taints": (dice.pick(TAINTS),)},
        {"taints": ()},
        {"health": dice.pick([DeviceHealth.HEALTHY, DeviceHealth.CORDONED])},
        {"free": {**node.free, "cpu": dice.pick([0, 3000, 64000])}},
    ]
    return node._replace(**dice.pick(changes))  # type: ignore[arg-type]  # fields by name


def avoiding(dice: Dice, pod_set: PodSetRequest) -> PodSetRequest:
    """Give the pod set with nodes to avoid, one of which is nowhere."""
    names = [f"node-{number:02}" for number in range(12) if dice.happens(30)]
    return replace(pod_set, avoid=(*names, "nowhere"), is_avoid_required=dice.happens(30))


def levelled(dice: Dice, pod_set: PodSetRequest) -> PodSetRequest:
    """Give the pod set with a level more often than not, and node rules now and then."""
    ruled = with_node_rules(dice, pod_set) if dice.happens(20) else pod_set
    if dice.happens(20):
        ruled = avoiding(dice, ruled)
    return replace(
        ruled, level=dice.pick(["", RACK, RACK, "zone"]), is_level_required=dice.happens(50)
    )


def a_levelled_gang(dice: Dice) -> tuple[PodSetRequest, ...]:
    """Give one to three pod sets; often of one level, sometimes of two."""
    counts = {"Master": 1, "Worker": dice.number(1, 5), "Reader": dice.number(1, 2)}
    names = dice.pick([("Worker",), ("Master", "Worker"), ("Master", "Reader", "Worker")])
    pod_sets = [levelled(dice, a_random_pod_set(dice, name, counts[name])) for name in names]
    if dice.happens(50):
        pod_sets = [replace(each, level=pod_sets[0].level) for each in pod_sets]
    return tuple(pod_sets)


def a_levelled_fleet(dice: Dice, count: int) -> Fleet:
    """Give nodes in racks and zones."""
    drawn = [a_labelled_node(dice, node_id) for node_id in range(count)]
    return a_fleet([node for node, _ in drawn], [each for _, devices in drawn for each in devices])


def allowed_nodes(dice: Dice, fleet: Fleet, pod_sets: tuple[PodSetRequest, ...]) -> Masks:
    """Give a mask for each pod set that leaves out some nodes."""
    share = dice.pick([100, 100, 80])
    return {
        each.name: np.array([dice.happens(share) for _ in range(len(fleet))], dtype=np.bool_)
        for each in pod_sets
    }


def sliced(dice: Dice, gang: tuple[PodSetRequest, ...]) -> tuple[PodSetRequest, ...]:
    """Give the gang in slices, now and then in slices of slices, with pods for whole slices."""
    size, inner = dice.pick([(2, 1), (2, 1), (3, 1), (4, 2)])
    label = dice.pick([RACK, RACK, "zone", "size"])
    nested = ((dice.pick(["size", "zone"]), inner),) if dice.happens(40) else ()
    slices = ((label, size), *nested)
    cut = [each for each in gang if each.name != "Reader"]
    workers = size * dice.number(1, 3) - (len(cut) - 1)
    counts = {"Worker": max(1, workers)}
    return tuple(
        replace(each, count=counts.get(each.name, each.count), slices=slices)
        if each in cut
        else each
        for each in gang
    )
