"""The digits: loaded, scaled and split the same way on every rank.

Source and licence of the data: DATA.md beside this file.
"""

from dataclasses import dataclass
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

CLASSES: Final = 10
PIXELS: Final = 64
DARKEST: Final = 16.0
HELD_OUT: Final = 297
"""Digits that no rank trains on."""
SPLIT_SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Digits:
    """Images (count, PIXELS) from 0 to 1 and their labels (count,)."""

    images: Floats
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, chosen: NDArray[np.int64]) -> "Digits":
        """Give some of them, by position."""
        return Digits(self.images[chosen], self.labels[chosen])


def load_digits() -> tuple[Digits, Digits]:
    """Give the digits to train on and those held out."""
    with (
        resources.files("gateway.examples.digits").joinpath("digits.npz").open("rb") as stream,
        np.load(stream) as stored,
    ):
        digits = Digits(stored["pixels"] / DARKEST, stored["labels"].astype(np.int64))
    # A fixed seed instead of an exchange: every rank comes to the same split by itself.
    # Seeded by the epoch too, so that epochs differ and a repeated run does not.
    order = np.random.default_rng(SPLIT_SEED).permutation(len(digits))
    return digits.pick(order[HELD_OUT:]), digits.pick(order[:HELD_OUT])


def batches(count: int, size: int, epoch: int) -> list[NDArray[np.int64]]:
    """Give the positions of each batch of an epoch, equal on every rank."""
    order = np.random.default_rng([SPLIT_SEED, epoch]).permutation(count)
    return [order[start : start + size] for start in range(0, count, size)]
