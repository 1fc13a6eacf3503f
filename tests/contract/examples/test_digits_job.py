"""The training example as a gang of the local back end: four real ranks with their devices."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.backends.base import ObjectOutcome
from gateway.examples.digits import train
from tests.contract.backends.launches import a_launch
from tests.contract.backends.local_harness import FLEET, LocalHarness, local_harness
from tests.contract.backends.steps import Run

MANIFEST = Path(train.__file__).parent / "digits.yaml"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[LocalHarness]:
    with local_harness(tmp_path) as harness:
        yield harness


def manifest(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())
    for replicas in document["spec"]["pytorchReplicaSpecs"].values():
        replicas["template"]["spec"]["containers"][0]["args"] = list(arguments)
    return document


def test_one_master_and_three_workers_train_together(harness: LocalHarness) -> None:
    run = Run(harness, a_launch(manifest("--epochs", "4"), nodes=FLEET))
    run.start()
    run.wait_for_outcome(ObjectOutcome.SUCCEEDED)
    run.wait_for_gone()

    for pod in run.launch.pods:
        first, *_, last = run.backend.logs(run.launch, pod.rank, follow=False, tail=None)
        names = [device.uuid or device.name for device in pod.devices]
        assert first == (
            f"rank {pod.rank} of 4 on node {pod.node}: GPUs {names[0]}; NICs {names[1]}"
        )
        assert last.startswith("done: accuracy 0.9")


def test_one_killed_rank_fails_the_job(harness: LocalHarness) -> None:
    run = Run(
        harness, a_launch(manifest("--epochs", "9999", "--pause-seconds", "0.1"), nodes=FLEET)
    )
    run.start()
    lines = run.backend.logs(run.launch, 2, follow=True, tail=None)
    assert any(line.startswith("epoch") for line in lines)

    status = run_status(harness, run)
    os.kill(status.replicas[2].running.pid, signal.SIGKILL)
    run.wait_for_outcome(ObjectOutcome.FAILED)
    run.wait_for_gone()

    assert not run.seen().is_lost


def run_status(harness: LocalHarness, run: Run) -> Any:
    backend = harness.make_backend()
    return backend._state.attempt(run.ref.namespace, run.ref.name).status()


def test_the_same_training_has_the_same_result_on_any_number_of_ranks(
    harness: LocalHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(harness, a_launch(manifest("--epochs", "2"), nodes=FLEET))
    run.start()
    run.wait_for_outcome(ObjectOutcome.SUCCEEDED)
    together = list(run.backend.logs(run.launch, 0, follow=False, tail=None))

    train.main(["--epochs", "2"])

    assert together[2:] == capsys.readouterr().out.splitlines()[2:]
