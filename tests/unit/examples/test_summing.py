"""Ranks that sum over connections: order, bits, strangers and peers that go away."""

import importlib
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.examples.digits import meeting, network, train
from gateway.examples.digits.allreduce import (
    GREETING,
    MAGIC,
    PeerLost,
    Place,
    SocketSum,
    _greeted,
    meet,
)
from gateway.examples.digits.data import (
    CLASSES,
    HELD_OUT,
    PIXELS,
    Digits,
    Floats,
    batches,
    load_digits,
)

vectors = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3)


def a_place(rank: int = 0, world: int = 1, port: int = 1) -> Place:
    return Place(rank=rank, world=world, address="127.0.0.1", port=port)


class Star:
    """A centre and its peers, connected inside this program."""

    def __init__(self, world: int) -> None:
        pairs = [socket.socketpair() for _ in range(world - 1)]
        self.centre = SocketSum(a_place(0, world), [near for near, _ in pairs])
        self.others = [
            SocketSum(a_place(rank, world), [far]) for rank, (_, far) in enumerate(pairs, start=1)
        ]

    def summed(self, parts: list[Floats]) -> list[Floats]:
        """Give what each rank gets for its part."""
        got: dict[int, Floats] = {}

        def take_part(rank: int) -> None:
            got[rank] = self.others[rank - 1].sum(parts[rank])

        threads = [
            threading.Thread(target=take_part, args=(rank,)) for rank in range(1, len(parts))
        ]
        for thread in threads:
            thread.start()
        got[0] = self.centre.sum(parts[0])
        for thread in threads:
            thread.join(timeout=10)
        return [got[rank] for rank in range(len(parts))]

    def close(self) -> None:
        """Close every connection."""
        for each in (self.centre, *self.others):
            each.close()


@settings(max_examples=25)
@given(st.lists(vectors, min_size=1, max_size=4))
def test_every_rank_gets_the_same_bits_in_the_order_of_ranks(values: list[list[float]]) -> None:
    parts = [np.array(each) for each in values]
    star = Star(len(parts))
    got = star.summed(parts)
    star.close()

    expected = parts[0].copy()
    for part in parts[1:]:
        expected += part
    for rank, answer in enumerate(got):
        np.testing.assert_array_equal(answer, expected, f"rank {rank}")
    np.testing.assert_array_equal(parts[0], np.array(values[0]), "the caller's vector stays")


def test_a_long_vector_comes_whole_through_small_buffers() -> None:
    star = Star(2)
    parts = [np.arange(network.COUNT, dtype=np.float64), np.ones(network.COUNT)]

    first, second = star.summed(parts)
    star.close()

    np.testing.assert_array_equal(first, np.arange(network.COUNT) + 1.0)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("gone", [1, 2])
def test_a_rank_that_went_away_is_named_by_the_centre(gone: int) -> None:
    star = Star(3)
    star.others[gone - 1].close()
    for other in star.others:
        if other is not star.others[gone - 1]:
            other._peers[0].sendall(np.ones(3).tobytes())

    with pytest.raises(PeerLost, match=f"rank {gone} is gone: "):
        star.centre.sum(np.ones(3))
    star.close()


def test_a_centre_that_went_away_is_named_by_the_others() -> None:
    star = Star(2)
    star.centre.close()

    with pytest.raises(PeerLost, match="rank 0 is gone: "):
        star.others[0].sum(np.ones(3))
    star.close()


def test_half_a_vector_is_no_vector() -> None:
    near, far = socket.socketpair()
    far.sendall(np.ones(3).tobytes()[:20])
    far.close()

    with pytest.raises(PeerLost, match="rank 1 is gone: the connection was closed"):
        SocketSum(a_place(0, 2), [near]).sum(np.ones(3))
    near.close()


class Caller(socket.socket):
    """A connection inside this program that takes TCP's options for granted."""

    def setsockopt(self, *_: Any) -> None:
        """Have no Nagle to turn off."""


def greeting(said: bytes, world: int) -> int | None:
    near, far = socket.socketpair()
    with Caller(fileno=near.detach()) as centre, far:
        far.sendall(said)
        far.shutdown(socket.SHUT_WR)
        return _greeted(centre, world)


@pytest.mark.parametrize(
    ("said", "rank"),
    [
        (GREETING.pack(MAGIC, 1, 3), 1),
        (GREETING.pack(MAGIC, 2, 3), 2),
        (GREETING.pack(MAGIC, 0, 3), None),
        (GREETING.pack(MAGIC, 3, 3), None),
        (GREETING.pack(MAGIC, 1, 4), None),
        (GREETING.pack(b"digits02", 1, 3), None),
        (struct.pack("<8sII", MAGIC, 1, 3), None),
        (b"GET / HTTP/1.1\r\n\r\n", None),
        (GREETING.pack(MAGIC, 1, 3)[:-1], None),
        (b"", None),
    ],
)
def test_only_a_rank_of_this_gang_is_let_in(said: bytes, rank: int | None) -> None:
    assert greeting(said, 3) == rank


def test_one_rank_alone_meets_nobody_and_sums_itself() -> None:
    alone = meet(a_place())

    np.testing.assert_array_equal(alone.sum(np.array([1.0, 2.0])), [1.0, 2.0])
    alone.close()


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, Place(rank=0, world=1, address="127.0.0.1", port=23456)),
        (
            {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "m-0", "MASTER_PORT": "29500"},
            Place(rank=3, world=8, address="m-0", port=29500),
        ),
        ({"RANK": " 1 "}, Place(rank=1, world=1, address="127.0.0.1", port=23456)),
    ],
)
def test_the_operators_variables_say_where_a_rank_is(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], place: Place
) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert meeting.read_place() == place


TORCH = """
from . import distributed
class Tensor:
    def __init__(self, array): self.array = array
    def numpy(self): return self.array
def from_numpy(array): return Tensor(array)
"""
DISTRIBUTED = """
log = []
def init_process_group(way, timeout): log.append((way, timeout.total_seconds()))
def all_reduce(tensor): tensor.array *= 2.0
def destroy_process_group(): log.append("left")
"""


@pytest.fixture
def torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Install a stand-in for torch whose two ranks have the same vector."""
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(TORCH)
    (package / "distributed.py").write_text(DISTRIBUTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    yield importlib.import_module("torch.distributed").log
    for name in ("torch", "torch.distributed"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("way", ["auto", "torch"])
def test_torch_is_used_where_it_is_installed_and_leaves_the_callers_vector(
    torch: list[Any], way: str
) -> None:
    gathering = meeting.gather(a_place(1, 2), way)
    vector = np.array([1.0, 2.0])

    np.testing.assert_array_equal(gathering.sum(vector), [2.0, 4.0])
    gathering.close()

    assert gathering.name == "torch.distributed (gloo)"
    np.testing.assert_array_equal(vector, [1.0, 2.0])
    assert torch == [("gloo", 60.0), "left"]


@pytest.mark.parametrize("way", ["auto", "torch", "sockets"])
def test_one_rank_alone_does_not_wait_for_torch(torch: list[Any], way: str) -> None:
    assert meeting.gather(a_place(), way).name == "sockets"
    assert torch == []


def a_batch(count: int, seed: int = 0) -> Digits:
    random = np.random.default_rng(seed)
    return Digits(random.random((count, PIXELS)), random.integers(0, CLASSES, count))


@settings(max_examples=25)
@given(st.integers(0, 24), st.integers(1, 6))
def test_parts_of_a_batch_add_up_to_the_batch_for_any_world(count: int, world: int) -> None:
    batch, parameters = a_batch(count), network.start()
    loss, gradient = network.loss_and_gradient(parameters, batch)

    parts = [
        network.loss_and_gradient(parameters, batch.pick(np.arange(rank, count, world)))
        for rank in range(world)
    ]

    assert sum(part for part, _ in parts) == pytest.approx(loss, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(sum(part for _, part in parts), gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3, 1e6])
def test_the_loss_is_finite_however_sure_the_network_is(scale: float) -> None:
    loss, gradient = network.loss_and_gradient(network.start() * scale, a_batch(10))

    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()
    assert gradient.shape == (network.COUNT,)


def test_layers_are_views_of_the_one_vector() -> None:
    parameters = network.start()
    shape = network.layers(parameters)
    shape.second_bias[:] = 7.0

    np.testing.assert_array_equal(parameters[-CLASSES:], 7.0)
    sizes = [shape.first, shape.first_bias, shape.second, shape.second_bias]
    assert sum(part.size for part in sizes) == network.COUNT == parameters.size


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 5))
def test_an_epoch_shows_each_digit_once_in_batches_of_the_size(
    count: int, size: int, epoch: int
) -> None:
    found = batches(count, size, epoch)

    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(count))
    assert [len(batch) for batch in found[:-1]] == [size] * (len(found) - 1)
    for again, batch in zip(batches(count, size, epoch), found, strict=True):
        np.testing.assert_array_equal(again, batch)


def test_two_epochs_differ_and_two_starts_do_not() -> None:
    first, second = (np.concatenate(batches(1500, 100, epoch)) for epoch in (1, 2))

    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(network.start(), network.start())


def test_digits_are_scaled_and_split_without_overlap() -> None:
    digits, held_out = load_digits()

    assert (digits.images.min(), digits.images.max()) == (0.0, 1.0)
    assert len(held_out) == HELD_OUT
    assert set(digits.labels) == set(held_out.labels) == set(range(CLASSES))


@pytest.mark.parametrize("values", [{}, {"GPUS": "", "NICS": "", "NODE": ""}])
def test_a_rank_without_a_plan_says_so(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str]
) -> None:
    for name in ("NODE", "GPUS", "NICS"):
        monkeypatch.delenv(f"TRAINING_GATEWAY_{name}", raising=False)
    for name, value in values.items():
        monkeypatch.setenv(f"TRAINING_GATEWAY_{name}", value)

    assert train.devices_line(a_place(0, 1)) == "rank 0 of 1 on node none: GPUs none; NICs none"
