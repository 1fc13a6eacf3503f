"""Whether a later fleet offers anything that an earlier one did not."""

from dataclasses import replace

import numpy as np
import pytest

from gateway.core.devices.fleet import Fleet
from gateway.core.devices.gains import has_gained, is_alike_when_idle
from tests.builders import a_fleet, a_node, devices_of

NODES = (a_node(1), a_node(2))


def a_pair() -> Fleet:
    return a_fleet(NODES, [device for node in NODES for device in devices_of(node.node_id)])


def with_column(fleet: Fleet, name: str, change: int) -> Fleet:
    column = getattr(fleet, name).copy()
    column[0] = column[0] + change if column.ndim > 1 else change
    return replace(fleet, **{name: column})


def test_a_fleet_that_only_lost_has_gained_nothing() -> None:
    before = a_pair()
    after = with_column(with_column(before, "gpu_free", 0b1111), "free", -1)
    assert not has_gained(before, after, [0])
    assert has_gained(after, before, [0])
    assert not has_gained(before, before, [])


@pytest.mark.parametrize("name", ["gpu_free", "nic_free"])
def test_another_free_device_is_a_gain_even_where_fewer_are_free(name: str) -> None:
    before = with_column(a_pair(), name, 0b0111)
    assert has_gained(before, with_column(before, name, 0b1000), [0])
    assert not has_gained(before, with_column(before, name, 0b0011), [0])


def test_a_node_that_may_be_used_again_is_a_gain() -> None:
    after = a_pair()
    before = replace(after, is_available=np.array([False, True]))
    assert has_gained(before, after, [0])


def test_other_labels_or_nodes_count_as_a_gain_because_nobody_knows() -> None:
    before = a_pair()
    assert has_gained(before, replace(before, labels=((), ())), [0])
    assert has_gained(before, before, None)
    assert has_gained(before, replace(before, is_complete=False), [])


def test_what_is_in_use_does_not_matter_to_an_idle_fleet() -> None:
    before = a_pair()
    assert is_alike_when_idle(before, with_column(before, "gpu_free", 0))
    assert not is_alike_when_idle(before, with_column(before, "gpu_all", 0b1))
    assert not is_alike_when_idle(before, replace(before, is_complete=False))
