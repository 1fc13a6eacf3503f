"""Ranks of the training example, as real programs that meet through sockets."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.examples.digits import allreduce, network
from gateway.examples.digits.allreduce import PeerLost, Place, meet
from gateway.examples.digits.data import load_digits

FOLDER = Path(allreduce.__file__).parent
GRADIENT = """
import json, sys
from gateway.examples.digits import network, train
from gateway.examples.digits.data import load_digits
from gateway.examples.digits.meeting import gather, read_place

place = read_place()
digits, _ = load_digits()
loss, gradient = train.summed(gather(place, "sockets"), network.start(), digits, place)
json.dump([loss, *gradient], sys.stdout)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def start_rank(rank: int, world: int, port: int, *command: str) -> "subprocess.Popen[str]":
    place = {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_PORT": str(port)}
    environment = {**os.environ, **place, "MASTER_ADDR": "127.0.0.1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True
    )


def a_place(rank: int, world: int, port: int) -> Place:
    return Place(rank=rank, world=world, address="127.0.0.1", port=port)


def test_four_ranks_compute_the_gradient_of_one() -> None:
    port = free_port()
    ranks = [start_rank(rank, 4, port, "-c", GRADIENT) for rank in range(4)]
    answers = [np.array(json.loads(rank.communicate(timeout=60)[0])) for rank in ranks]

    digits, _ = load_digits()
    loss, gradient = network.loss_and_gradient(network.start(), digits)
    for answer in answers:
        np.testing.assert_allclose(answer, np.concatenate([[loss], gradient]), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(answer, answers[0], "every rank has the same bits")


def test_a_rank_that_dies_ends_the_others_with_a_failure() -> None:
    port = free_port()
    command = ("-m", "gateway.examples.digits.train", "--epochs", "1000", "--pause-seconds", "0.1")
    ranks = [start_rank(rank, 3, port, *command, "--way", "sockets") for rank in range(3)]
    for rank in ranks:
        assert rank.stdout is not None
        while "epoch" not in rank.stdout.readline():
            pass
    ranks[1].kill()

    texts = [rank.communicate(timeout=30)[0] for rank in ranks]

    assert [rank.returncode for rank in ranks] == [1, -9, 1]
    assert "gives up: rank 1 is gone" in texts[0]


def test_the_stored_digits_are_those_of_scikit_learn() -> None:
    source = pytest.importorskip("sklearn.datasets").load_digits()
    with np.load(FOLDER / "digits.npz") as stored:
        np.testing.assert_array_equal(stored["pixels"], source.data)
        np.testing.assert_array_equal(stored["labels"], source.target)


def test_a_stranger_is_turned_away_and_the_gang_still_meets() -> None:
    port = free_port()
    answers: list[Any] = []

    def be_the_centre() -> None:
        gathering = meet(a_place(0, 2, port))
        answers.append(gathering.sum(np.ones(3)))
        gathering.close()

    centre = threading.Thread(target=be_the_centre)
    centre.start()
    stranger = connected(port)
    stranger.sendall(allreduce.GREETING.pack(allreduce.MAGIC, 1, 7))

    assert stranger.recv(1) == b""
    stranger.close()
    worker = meet(a_place(1, 2, port))
    assert worker.sum(np.full(3, 2.0)).tolist() == [3.0] * 3
    centre.join(timeout=10)
    assert answers[0].tolist() == [3.0] * 3
    worker.close()


def connected(port: int) -> socket.socket:
    for _ in range(1000):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        except ConnectionRefusedError:
            threading.Event().wait(0.01)
    raise AssertionError("nobody listens")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_gang_that_does_not_come_together_gives_up(
    rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allreduce, "MEET_SECONDS", 0.1)

    with pytest.raises(PeerLost, match="did not come"):
        meet(a_place(rank, 2, free_port()))
