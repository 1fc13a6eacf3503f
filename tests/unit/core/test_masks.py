"""Masks taken apart."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.devices.masks import ordinals_of


@given(st.sets(st.integers(0, 62)))
def test_a_mask_is_its_ordinals(ordinals: set[int]) -> None:
    assert ordinals_of(sum(1 << ordinal for ordinal in ordinals)) == sorted(ordinals)
