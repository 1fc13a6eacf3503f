"""Finds the other ranks: by torch.distributed where torch is installed, else by plain sockets."""

import importlib.util
import os
from datetime import timedelta
from typing import Any, Final, Protocol

import numpy as np

from gateway.examples.digits.allreduce import REPLY_SECONDS, Place, meet
from gateway.examples.digits.data import Floats

WAYS: Final = ("auto", "torch", "sockets")


class Gathering(Protocol):
    """All ranks, to sum vectors with."""

    name: str

    def sum(self, vector: Floats) -> Floats:
        """Give the sum of every rank's vector."""

    def close(self) -> None:
        """Let go of the others."""


class TorchSum:
    """The same through torch.distributed and gloo."""

    name = "torch.distributed (gloo)"

    def __init__(self) -> None:
        """Meet by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, as torch reads them."""
        # By name: the example must be importable, and typed, where torch is not installed.
        self._torch: Any = importlib.import_module("torch")
        self._ranks: Any = importlib.import_module("torch.distributed")
        self._ranks.init_process_group("gloo", timeout=timedelta(seconds=REPLY_SECONDS))

    def sum(self, vector: Floats) -> Floats:
        """Give the sum; torch raises RuntimeError when a rank went away."""
        # from_numpy shares memory and all_reduce writes in place; the caller keeps its vector.
        total = self._torch.from_numpy(vector.copy())
        self._ranks.all_reduce(total)
        return np.asarray(total.numpy(), dtype=np.float64)

    def close(self) -> None:
        """Leave the group."""
        self._ranks.destroy_process_group()


def read_place() -> Place:
    """Read the operator's variables; without them this is the only rank."""
    return Place(
        rank=int(os.environ.get("RANK", "0")),
        world=int(os.environ.get("WORLD_SIZE", "1")),
        address=os.environ.get("MASTER_ADDR", "127.0.0.1"),
        port=int(os.environ.get("MASTER_PORT", "23456")),
    )


def gather(place: Place, way: str) -> Gathering:
    """Meet every other rank."""
    # One rank alone sums nothing, so that torch's slow import is spared.
    has_torch = way != "sockets" and importlib.util.find_spec("torch") is not None
    if place.world > 1 and (has_torch or way == "torch"):
        return TorchSum()
    return meet(place)
