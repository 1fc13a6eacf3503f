"""Amounts of resources: canonical, exact, and readable."""

import pytest

from gateway.core.resources import amounts, minus, plus, times
from gateway.core.resources.words import in_words, listed


def test_amounts_are_sorted_and_without_zeros() -> None:
    assert amounts({"gpu": 2, "cpu": 500, "rdma": 0}) == (("cpu", 500), ("gpu", 2))


def test_amounts_add_subtract_and_multiply_resource_by_resource() -> None:
    left, right = amounts({"cpu": 3, "gpu": 1}), amounts({"gpu": 2})
    assert plus(left, right) == (("cpu", 3), ("gpu", 3))
    assert minus(left, right) == (("cpu", 3), ("gpu", -1))
    assert times(left, 2) == (("cpu", 6), ("gpu", 2))


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        ("gpu", 1, "1 GPU"),
        ("gpu", 4, "4 GPUs"),
        ("rdma", 2, "2 NICs"),
        ("pods", 3, "3 pods"),
        ("cpu", 1000, "1 CPU core"),
        ("cpu", 2500, "2.5 CPU cores"),
        ("cpu", 8000, "8 CPU cores"),
        ("memory", 16 * 2**30, "16 GiB of memory"),
        ("memory", 3 * 2**20, "3 MiB of memory"),
        ("memory", 1001, "1001 bytes of memory"),
        ("memory", 0, "0 bytes of memory"),
        ("hugepages-2Mi", 7, "7 hugepages-2Mi"),
    ],
)
def test_amounts_read_as_people_write_them(resource: str, amount: int, words: str) -> None:
    assert in_words(resource, amount) == words


def test_lists_read_as_people_write_them() -> None:
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
