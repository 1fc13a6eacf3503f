"""Quantities are read exactly as Kubernetes reads them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import InvalidInput
from gateway.manifests.quantities import parse_quantity


@pytest.mark.parametrize(
    ("text", "resource", "expected"),
    [
        ("500m", "cpu", 500),
        ("2", "cpu", 2000),
        (2, "cpu", 2000),
        (0.5, "cpu", 500),
        ("0.1", "cpu", 100),
        ("1.5", "cpu", 1500),
        ("1u", "cpu", 1),
        ("100n", "cpu", 1),
        ("0", "cpu", 0),
        ("+1", "cpu", 1000),
        (".5", "cpu", 500),
        ("5.", "cpu", 5000),
        ("64Gi", "memory", 64 * 2**30),
        ("700G", "memory", 700 * 10**9),
        ("128974848", "memory", 128974848),
        ("128974848000m", "memory", 128974848),
        ("129e6", "memory", 129_000_000),
        ("129E6", "memory", 129_000_000),
        ("1.5Gi", "memory", 3 * 2**29),
        ("1E", "memory", 10**18),
        ("1Ei", "memory", 2**60),
        ("100m", "memory", 1),
        ("8", "nvidia.com/gpu", 8),
        ("1k", "nvidia.com/gpu", 1000),
        ("2000m", "nvidia.com/gpu", 2),
        (" 4 ", "gpu", 4),
        ("1Gi", "hugepages-2Mi", 2**30),
    ],
)
def test_a_quantity_is_read_in_base_units(text: str | float, resource: str, expected: int) -> None:
    assert parse_quantity(text, resource) == expected


@pytest.mark.parametrize(
    ("text", "resource", "hint"),
    [
        ("64GB", "memory", "did you mean 64G?"),
        ("64gi", "memory", "did you mean 64Gi?"),
        ("64 Gi", "memory", "write 64Gi"),
        ("", "cpu", "left unset"),
        ("$CPUS", "cpu", "envsubst"),
        ("one", "cpu", "write a number"),
        ("-1", "cpu", "0 or more"),
        ("500m", "nvidia.com/gpu", "whole number"),
        (0.5, "gpu", "whole number"),
        ("1e40", "memory", "ask for less"),
        ("9" * 70, "cpu", "write a number"),
        ("1e", "cpu", ""),
        ("1ee3", "cpu", ""),
        (True, "cpu", "write a number"),
        ("nan", "cpu", "write a number"),
    ],
)
def test_what_is_no_quantity_is_refused(text: str | float, resource: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_quantity(text, resource)
    assert hint in caught.value.hint


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi"]))
def test_units_are_exact_and_rounded_up(number: int, unit: str) -> None:
    factors = {"": 1, "k": 10**3, "M": 10**6, "Ki": 2**10, "Mi": 2**20}
    exact = Fraction(number, 1000) if unit == "m" else Fraction(number * factors[unit])
    read = parse_quantity(f"{number}{unit}", "memory")
    assert exact <= read < exact + 1


@given(st.text(max_size=20), st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]))
def test_any_text_is_read_or_refused(text: str, resource: str) -> None:
    try:
        amount = parse_quantity(text, resource)
    except InvalidInput:
        return
    assert amount >= 0
