"""Facts of machine types that nodes do not tell, joined to the nodes that are of them."""

from dataclasses import replace

import pytest

from gateway.core.devices.building import NodeDevices, fleet_of
from gateway.core.devices.fleet import DeviceSlot, MachineType, Partition
from gateway.core.devices.known_facts import with_facts
from gateway.core.devices.partitions import partitions_of
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.devices.warm import FleetState
from gateway.core.mirror import Mirror
from gateway.core.vocabulary import DeviceHealth, DeviceKind

GPUS = tuple(DeviceSlot(ordinal=i, switch=i, numa=0, nvlink_group=0) for i in range(2))
SEEN = MachineType(name="board", gpus=GPUS)
KNOWN = MachineType(
    name="board",
    # More is known of their places than a node tells.
    gpus=tuple(replace(slot, switch_path=(slot.switch, 9), root=0) for slot in GPUS),
    partitions=(Partition(2, 0b11, 200),),
    links=((0, 1),),
    nvlinks=4,
    is_c2c=True,
)


def a_node(node_id: int, machine_type: str) -> NodeRow:
    return NodeRow(
        node_id=node_id,
        name=f"n{node_id}",
        machine_type=machine_type,
        health=DeviceHealth.HEALTHY,
        is_present=True,
        labels=(),
        taints=(),
        total={"cpu": 1},
        free={"cpu": 1},
    )


def gpus_of(node_id: int) -> list[DeviceRow]:
    return [
        DeviceRow(
            device_id=10 * node_id + slot.ordinal,
            node_id=node_id,
            kind=DeviceKind.GPU,
            ordinal=slot.ordinal,
            switch=slot.switch,
            numa=slot.numa,
            rail=slot.rail,
            nvlink_group=slot.nvlink_group,
            health=DeviceHealth.HEALTHY,
            is_present=True,
            is_foreign=False,
            units_total=100,
            units_free=100,
        )
        for slot in GPUS
    ]


def test_known_facts_are_joined_and_places_stay_as_they_were_seen() -> None:
    joined = with_facts(SEEN, KNOWN)

    assert joined == replace(KNOWN, gpus=GPUS)
    assert partitions_of(joined) == KNOWN.partitions


@pytest.mark.parametrize(
    "known",
    [
        None,
        replace(KNOWN, gpus=GPUS[:1]),
        replace(KNOWN, gpus=(GPUS[0], replace(GPUS[1], numa=1))),
    ],
)
def test_facts_of_gpus_in_other_places_are_left_out(known: MachineType | None) -> None:
    assert with_facts(SEEN, known) is SEEN


def test_nodes_alike_are_two_types_where_something_is_known_of_one_alone() -> None:
    nodes = [a_node(1, "board"), a_node(2, "other"), a_node(3, "board"), a_node(4, "third")]
    devices = {node.node_id: NodeDevices(gpus=GPUS) for node in nodes}

    fleet = fleet_of(nodes, devices, is_complete=True, known={"board": KNOWN})

    assert fleet.machine.tolist() == [0, 1, 0, 1]
    assert [each.partitions for each in fleet.machines] == [KNOWN.partitions, ()]


def test_a_fleet_that_is_kept_warm_knows_the_same() -> None:
    state = FleetState({"board": KNOWN})
    state.apply([a_node(1, "board")], gpus_of(1))

    (machine,) = state.change(is_complete=True).fleet.machines

    assert machine == with_facts(SEEN, KNOWN)


def test_a_mirror_hands_on_what_is_known() -> None:
    mirror = Mirror(known={"board": KNOWN})

    assert mirror._inventory._known == {"board": KNOWN}
