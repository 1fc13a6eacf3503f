"""The tables that policies are found in."""

from collections.abc import Callable

import pytest

from gateway.core.policies import named, register
from gateway.errors import InvalidInput

Measure = Callable[[list[int]], int]


def test_a_policy_is_found_by_the_name_it_was_registered_under() -> None:
    table: dict[str, Measure] = {"length": len}
    register("ordering", table, "total", sum)
    assert named("ordering", table, "total") is sum
    with pytest.raises(InvalidInput) as caught:
        named("ordering", table, "mean")
    assert caught.value.allowed == ("length", "total")


def test_a_policy_may_be_registered_again_but_not_replaced() -> None:
    table: dict[str, Measure] = {"length": len}
    register("ordering", table, "length", len)
    with pytest.raises(InvalidInput, match="another ordering policy 'length'"):
        register("ordering", table, "length", sum)
    assert table == {"length": len}


def test_what_cannot_be_called_is_no_policy() -> None:
    table: dict[str, object] = {}
    with pytest.raises(InvalidInput, match="no function"):
        register("placement", table, "answer", 42)
    assert not table
