"""The pipelines component: compiled by kfp and run by `kfp.local` against a running gateway."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kfp import local

from gateway.sdk import Client, JobHandle
from pipelines import run_training_job
from pipelines.examples.digits import compile_to, digits_pipeline

FAILING = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: NAME, namespace: default}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: pytorch
              image: example/none:1
              command: [python, -c, "import sys, time; print('hello from rank 0'); COMMAND"]
"""
pytestmark = [
    pytest.mark.filterwarnings("default"),  # kfp's own deprecations are not ours
    pytest.mark.timeout(180),
]


def a_manifest(name: str, command: str) -> str:
    return FAILING.replace("NAME", name).replace("COMMAND", command)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Start a real gateway that runs real processes, and point the environment at it."""
    with Client.local() as running:
        os.environ["TRAINING_GATEWAY_URL"] = running.url
        os.environ["TRAINING_GATEWAY_TOKEN"] = running._wire.credentials.token()
        yield running
        del os.environ["TRAINING_GATEWAY_URL"], os.environ["TRAINING_GATEWAY_TOKEN"]


@pytest.fixture(autouse=True)
def _local_runner(tmp_path: Path) -> None:
    """Let kfp run components as processes of this environment."""
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))


def run(manifest: str, task: str) -> dict[str, object]:
    """Run the component as a task of one pipeline run."""
    done = run_training_job(manifest=manifest, run_id="run-1", task_id="7", task_name=task)
    return dict(done.outputs)


def test_the_example_pipeline_compiles_with_caching_off(tmp_path: Path) -> None:
    target = tmp_path / "pipeline.yaml"
    compile_to(str(target))
    compiled = next(yaml.safe_load_all(target.read_text()))
    task = compiled["root"]["dag"]["tasks"]["run-training-job"]
    assert task["cachingOptions"] == {}
    identity = {"run_id", "task_id", "task_name"}
    assert identity <= set(task["inputs"]["parameters"])


def test_the_example_pipeline_trains_through_the_gateway(client: Client) -> None:
    done = digits_pipeline()
    job = client.jobs.get(str(done.output))
    assert job.state == "succeeded"
    assert any("accuracy" in line for line in job.logs())


def test_the_component_gives_state_attempts_and_seconds(client: Client) -> None:
    outputs = run(a_manifest("quick", "time.sleep(1)"), "quick")
    job = client.jobs.get(str(outputs["job_id"]))
    assert outputs["state"] == job.state == "succeeded"
    assert outputs["attempts"] == 1
    assert float(str(outputs["run_seconds"])) >= 0.9
    assert float(str(outputs["queue_seconds"])) >= 0


def test_a_manifest_is_the_same_job_by_pipeline_and_by_sdk(client: Client) -> None:
    manifest = a_manifest("same", "pass")
    by_pipeline = client.jobs.get(str(run(manifest, "same")["job_id"]))
    by_sdk = client.submit(manifest)
    by_sdk.cancel()
    assert by_pipeline.id != by_sdk.id
    assert by_pipeline.detail().spec == by_sdk.detail().spec


def test_a_step_that_runs_again_finds_its_finished_job(client: Client) -> None:
    first = run(a_manifest("again", "pass"), "again")
    second = run(a_manifest("again", "pass"), "again")
    assert first["job_id"] == second["job_id"]
    assert len(list(client.jobs.list(name="again"))) == 1


def test_the_component_fails_when_the_training_fails_and_a_retry_trains_again(
    client: Client,
) -> None:
    manifest = a_manifest("broken", "sys.exit(3)")
    with pytest.raises(RuntimeError):
        run(manifest, "broken")
    os.environ["KFP_RETRY_INDEX"] = "1"
    try:
        with pytest.raises(RuntimeError):
            run(manifest, "broken")
    finally:
        del os.environ["KFP_RETRY_INDEX"]
    jobs = list(client.jobs.list(name="broken"))
    assert [job.state for job in jobs] == ["failed", "failed"]
    assert jobs[0].id != jobs[1].id


def test_the_lines_of_rank_0_reach_the_step(
    client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    run(a_manifest("chatty", "pass"), "chatty")
    assert "[rank 0] hello from rank 0" in capfd.readouterr().out


def test_a_terminated_step_cancels_its_job(client: Client) -> None:
    program = (
        "from pipelines import run_training_job\n"
        "run_training_job.python_func(manifest=M, run_id='r', task_id='1', task_name='t')"
    )
    code = f"M = {a_manifest('stopped', 'time.sleep(120)')!r}\n{program}"
    step = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code])
    try:
        job = wait_for_running(client, "stopped")
        step.send_signal(signal.SIGTERM)
        assert step.wait(timeout=30) == 143
        job.wait(status={"cancelled"}, timeout=30)
    finally:
        step.kill()
        step.wait()


def wait_for_running(client: Client, name: str) -> JobHandle:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = next(iter(client.jobs.list(name=name)), None)
        if found is not None and found.state == "running":
            return found
        threading.Event().wait(0.2)
    raise AssertionError(f"{name} did not run in time")
