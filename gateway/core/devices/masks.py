"""Masks of devices taken apart; bit i is the device of ordinal i."""

from functools import lru_cache
from itertools import accumulate


def bits_of(mask: int) -> list[int]:
    """Give a mask's devices as masks of one each, lowest first."""
    bits = []
    while mask:
        bits.append(mask & -mask)
        mask &= mask - 1
    return bits


def ordinals_of(mask: int) -> list[int]:
    """Give the ordinals of a mask's devices, lowest first."""
    return [bit.bit_length() - 1 for bit in bits_of(mask)]


@lru_cache(maxsize=4096)
def lowest_of(mask: int) -> tuple[int, ...]:
    """Give the masks of the lowest 0, 1, 2, ... devices of a mask."""
    return tuple(accumulate(bits_of(mask), initial=0))
