"""What keeps free GPUs and NICs of a node from going together is told in words that help."""

import numpy as np
import pytest

from gateway.core.admission.alignment import misalignments
from gateway.core.devices.rows import DeviceRow
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import Room
from gateway.core.resources import amounts
from gateway.core.vocabulary import DeviceKind, PairRule
from tests.builders import a_device, a_fleet, a_node

ASKED = "no free set of 2 GPUs with 2 NICs near enough for pair rule 'switch'"
PAIR = PodSetRequest(
    name="Worker", count=1, per_pod=amounts({"gpu": 2, "rdma": 2}), pair=PairRule.SWITCH
)


def a_machine(node: int, gpus: str, nics: str, switch_of_nic: int = 0) -> list[DeviceRow]:
    """Give devices under a switch each; "." is free, "x" is not."""
    return [
        a_device(
            node, kind, ordinal, switch=ordinal + shift, numa=0, units_free=100 * (sign == ".")
        )
        for kind, signs, shift in (
            (DeviceKind.GPU, gpus, 0),
            (DeviceKind.RDMA, nics, switch_of_nic),
        )
        for ordinal, sign in enumerate(signs)
    ]


def told(*devices: list[DeviceRow]) -> list[tuple[int, str]]:
    nodes = [a_node(number) for number in range(1, len(devices) + 1)]
    room = Room(a_fleet(nodes, [row for rows in devices for row in rows]))
    everywhere = np.ones(len(nodes), dtype=np.bool_)
    return [
        (count, words.removeprefix(f"{ASKED}: "))
        for count, words in misalignments(room, PAIR, everywhere)
    ]


@pytest.mark.parametrize(
    ("gpus", "nics", "words"),
    [
        ("..", "xx..", "NICs beside its free GPUs are not free"),
        ("x.x.", "..xx", "what is free lies apart"),
        ("..xx", "xx..", "what is free lies apart"),
        ("x.x.", "..", "GPUs beside its free NICs are not free"),
    ],
)
def test_the_side_that_stands_in_the_way_is_named(gpus: str, nics: str, words: str) -> None:
    assert told(a_machine(1, gpus, nics)) == [(1, words)]


def test_a_machine_that_could_never_align_is_told_so() -> None:
    apart = a_machine(1, "....", "....", switch_of_nic=8)
    assert told(apart) == [(1, "its devices hang too far apart")]


def test_nodes_are_counted_by_what_stands_in_the_way() -> None:
    far = a_machine(1, "..", "..", switch_of_nic=8)
    busy = [a_machine(node, "..xx", "xx..") for node in (2, 3)]
    assert told(far, *busy) == [
        (1, "its devices hang too far apart"),
        (2, "what is free lies apart"),
    ]
