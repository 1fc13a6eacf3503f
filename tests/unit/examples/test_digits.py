"""The training example: its data, its network, and that ranks change nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gateway.core.vocabulary import PairRule
from gateway.examples.digits import network, train
from gateway.examples.digits.allreduce import Place
from gateway.examples.digits.data import PIXELS, batches, load_digits
from gateway.manifests import read_documents, read_job

FOLDER = Path(train.__file__).parent


def test_the_network_learns_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--epochs", "5"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "rank 0 of 1 on node none: GPUs none; NICs none"
    assert [line.split()[:2] for line in lines[2:7]] == [["epoch", f"{n}/5"] for n in range(1, 6)]
    assert float(lines[-1].split()[2]) > 0.9


def test_training_twice_gives_the_same_lines(capsys: pytest.CaptureFixture[str]) -> None:
    train.main(["--epochs", "2"])
    first = capsys.readouterr().out
    train.main(["--epochs", "2"])

    assert capsys.readouterr().out == first


def test_too_little_learned_is_a_failure() -> None:
    assert train.main(["--epochs", "1", "--accuracy", "1.0"]) == 1


def test_the_devices_of_a_rank_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_NODE", "dgx-h100-0")
    monkeypatch.setenv("TRAINING_GATEWAY_GPUS", "GPU-1,GPU-2")
    monkeypatch.setenv("TRAINING_GATEWAY_NICS", "")

    line = train.devices_line(Place(rank=2, world=4, address="127.0.0.1", port=1))

    assert line == "rank 2 of 4 on node dgx-h100-0: GPUs GPU-1,GPU-2; NICs none"


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    digits = load_digits()[0].pick(np.arange(20))
    parameters = network.start()
    _, gradient = network.loss_and_gradient(parameters, digits)

    for position in (100, PIXELS * network.HIDDEN + 3, network.COUNT - 15, -1):
        step = np.zeros_like(parameters)
        step[position] = 1e-6
        above, _ = network.loss_and_gradient(parameters + step, digits)
        below, _ = network.loss_and_gradient(parameters - step, digits)
        assert gradient[position] == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-6)


def test_no_digit_is_both_trained_on_and_held_out_and_each_is_seen_once_an_epoch() -> None:
    digits, held_out = load_digits()
    assert (len(digits), len(held_out)) == (1500, 297)

    seen = np.concatenate(batches(len(digits), 128, epoch=3))
    np.testing.assert_array_equal(np.sort(seen), np.arange(1500))


@pytest.mark.parametrize("name", ["digits.yaml", "digits-wide.yaml", "digits-late.yaml"])
def test_each_manifest_asks_for_eight_pairs_and_runs_the_example(name: str) -> None:
    manifest = yaml.safe_load((FOLDER / name).read_text())
    gpus = nics = 0
    for replicas in manifest["spec"]["pytorchReplicaSpecs"].values():
        (container,) = replicas["template"]["spec"]["containers"]
        limits = container["resources"]["limits"]
        gpus += replicas["replicas"] * limits["nvidia.com/gpu"]
        nics += replicas["replicas"] * limits["rdma/hca"]
        assert container["command"] == ["python", "-m", "gateway.examples.digits.train"]
        options(container["args"])

    assert (gpus, nics) == (8, 8)
    assert manifest["metadata"]["name"] == name.removesuffix(".yaml")


@pytest.mark.parametrize("name", ["digits.yaml", "digits-wide.yaml", "digits-late.yaml"])
def test_the_gateway_reads_each_manifest_as_eight_near_pairs(name: str) -> None:
    (document,) = read_documents(FOLDER / name)
    pod_sets = read_job(document).pod_sets

    for kind in ("gpu", "rdma"):
        assert sum(pods.count * pods.per_pod[kind] for pods in pod_sets) == 8
    assert {pods.pair for pods in pod_sets} == {PairRule.SWITCH}


options: Callable[[list[str]], Any] = train._options
