"""What a pipeline author writes, and what the step does with it, without a gateway."""

import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from kfp import compiler, dsl

from pipelines import run_training_job, training_step
from pipelines.component import BASE_IMAGE, DEFAULT_IMAGE

pytestmark = pytest.mark.filterwarnings("default")  # kfp's own deprecations are not ours
AT = datetime(2026, 1, 1, tzinfo=UTC)
IDENTITY = {
    "run_id": "{{$.pipeline_job_uuid}}",
    "task_id": "{{$.pipeline_task_uuid}}",
    "task_name": "{{$.pipeline_task_name}}",
}


def compiled(tmp_path: Path, **settings: Any) -> dict[str, Any]:
    """Compile a pipeline of one step and give its document."""

    @dsl.pipeline(name="one-step")
    def one_step() -> None:
        training_step("kind: PyTorchJob", **settings)

    target = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(one_step, str(target))
    found: dict[str, Any] = next(yaml.safe_load_all(target.read_text()))
    return found


def task(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["root"]["dag"]["tasks"]["run-training-job"]
    return found


def inputs(document: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value["runtimeValue"]["constant"]
        for name, value in task(document)["inputs"]["parameters"].items()
    }


def container(document: dict[str, Any]) -> dict[str, Any]:
    [executor] = document["deploymentSpec"]["executors"].values()
    found: dict[str, Any] = executor["container"]
    return found


def test_a_step_knows_who_it_is_by_whole_placeholders(tmp_path: Path) -> None:
    assert IDENTITY.items() <= inputs(compiled(tmp_path)).items()


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("queue", "team-a", ""),
        ("priority", 7, 0),
        ("gateway_url", "http://gateway:8470", ""),
        ("timeout_seconds", 90.5, 0.0),
    ],
)
def test_each_setting_of_a_step_reaches_the_component(
    tmp_path: Path, name: str, value: object, default: object
) -> None:
    assert inputs(compiled(tmp_path))[name] == default
    assert inputs(compiled(tmp_path, **{name: value}))[name] == value


def test_a_step_is_never_cached(tmp_path: Path) -> None:
    options = task(compiled(tmp_path)).get("cachingOptions", {})

    assert not options.get("enableCache", False)


@pytest.mark.parametrize(("retries", "policy"), [(0, None), (1, 1), (5, 5)])
def test_a_step_is_retried_as_often_as_its_author_says(
    tmp_path: Path, retries: int, policy: int | None
) -> None:
    found = task(compiled(tmp_path, retries=retries)).get("retryPolicy", {})

    assert found.get("maxRetryCount") == policy


def test_a_step_waits_in_a_small_pod_without_a_gpu(tmp_path: Path) -> None:
    resources = container(compiled(tmp_path))["resources"]

    assert resources["resourceCpuRequest"] == "100m"
    assert resources["resourceMemoryRequest"] == "256Mi"
    assert "accelerator" not in resources


def test_a_step_runs_in_the_image_with_the_sdk_and_installs_nothing(tmp_path: Path) -> None:
    found = container(compiled(tmp_path))

    assert found["image"] == BASE_IMAGE == DEFAULT_IMAGE
    assert "pip install" not in " ".join(found["command"])


def test_a_component_has_inputs_and_outputs_that_pipelines_rely_on(tmp_path: Path) -> None:
    [component] = compiled(tmp_path)["components"].values()
    outputs = component["outputDefinitions"]["parameters"]

    assert {name: each["parameterType"] for name, each in outputs.items()} == {
        "attempts": "NUMBER_INTEGER",
        "job_id": "STRING",
        "queue_seconds": "NUMBER_DOUBLE",
        "run_seconds": "NUMBER_DOUBLE",
        "state": "STRING",
    }
    wanted = component["inputDefinitions"]["parameters"]
    needed = {name for name, each in wanted.items() if not each.get("isOptional")}
    assert needed == {"manifest", "run_id", "task_id", "task_name"}


@dataclass
class PlayedJob:
    """A job of the SDK whose course is written."""

    state: str
    started_at: datetime | None = AT + timedelta(seconds=5)
    ended_at: datetime | None = AT + timedelta(seconds=65)
    lines: tuple[str, ...] = ("epoch 1", "done")
    calls: list[Any] = field(default_factory=list)
    id: str = "job-1"

    @property
    def view(self) -> SimpleNamespace:
        """Give what the server shows."""
        return SimpleNamespace(
            queue="default",
            state="succeeded",
            attempt=2,
            submitted_at=AT,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )

    def refresh(self) -> "PlayedJob":
        """Look again."""
        return self

    def wait(self, **wishes: Any) -> "PlayedJob":
        """Note how it is waited for."""
        self.calls.append(("wait", wishes))
        return self

    def logs(self, **wishes: Any) -> Iterator[str]:
        """Give its lines."""
        self.calls.append(("logs", wishes))
        return iter(self.lines)

    def cancel(self) -> None:
        """Note it."""
        self.calls.append("cancel")


class PlayedGateway:
    """A client that hands out written jobs, one a submit."""

    def __init__(self, *jobs: PlayedJob) -> None:
        self.jobs = list(jobs)
        self.submitted: list[dict[str, Any]] = []
        self.urls: list[str | None] = []

    def __call__(self, *, url: str | None) -> "PlayedGateway":
        """Stand in for the class."""
        self.urls.append(url)
        return self

    def submit(self, manifest: str, **wishes: Any) -> PlayedJob:
        """Give the next job."""
        self.submitted.append({"manifest": manifest, **wishes})
        return self.jobs[min(len(self.submitted), len(self.jobs)) - 1]


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the component's function against a gateway that is played."""
    monkeypatch.delenv("KFP_RETRY_INDEX", raising=False)

    def run(gateway: PlayedGateway, **wishes: Any) -> Any:
        module = ModuleType("gateway.sdk")
        module.__dict__["Client"] = gateway
        monkeypatch.setitem(sys.modules, "gateway.sdk", module)
        identity = {"run_id": "r", "task_id": "7", "task_name": "train"}
        return run_training_job.python_func(manifest="kind: PyTorchJob", **identity, **wishes)

    return run


def test_a_job_is_submitted_under_the_key_of_its_task_and_nothing_unasked(step: Any) -> None:
    gateway = PlayedGateway(PlayedJob("pending"))

    step(gateway)

    assert gateway.submitted == [
        {"manifest": "kind: PyTorchJob", "idempotency_key": "kfp:r:7:train"}
    ]
    assert gateway.urls == [None]


@pytest.mark.parametrize(
    ("wishes", "sent"),
    [
        ({"queue": "a"}, {"queue": "a"}),
        ({"priority": -3}, {"priority": -3}),
        ({"queue": "", "priority": 0}, {}),
        ({"queue": "a", "priority": 1}, {"queue": "a", "priority": 1}),
    ],
)
def test_only_what_was_asked_for_is_sent(
    step: Any, wishes: dict[str, Any], sent: dict[str, Any]
) -> None:
    gateway = PlayedGateway(PlayedJob("pending"))
    step(gateway, gateway_url="http://g", **wishes)

    [submitted] = gateway.submitted
    assert {
        key: submitted[key] for key in submitted.keys() - {"manifest", "idempotency_key"}
    } == sent
    assert gateway.urls == ["http://g"]


@pytest.mark.parametrize("retry", [None, "0", "1", "3"])
@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_job_that_ended_badly_is_trained_again_once_for_each_retry(
    step: Any, monkeypatch: pytest.MonkeyPatch, state: str, retry: str | None
) -> None:
    if retry is not None:
        monkeypatch.setenv("KFP_RETRY_INDEX", retry)
    gateway = PlayedGateway(PlayedJob(state), PlayedJob("pending", id="job-2"))

    outputs = step(gateway, queue="a")

    keys = [submitted["idempotency_key"] for submitted in gateway.submitted]
    assert keys == ["kfp:r:7:train", f"kfp:r:7:train:{retry or '0'}"]
    assert gateway.submitted[1]["queue"] == "a"
    assert outputs.job_id == "job-2"


@pytest.mark.parametrize("state", ["pending", "reserved", "running", "succeeded", "stopping"])
def test_a_job_that_still_goes_or_went_well_is_found_again(step: Any, state: str) -> None:
    gateway = PlayedGateway(PlayedJob(state))

    assert step(gateway).job_id == "job-1"
    assert len(gateway.submitted) == 1


@pytest.mark.parametrize(
    ("started", "ended", "queued", "ran"),
    [(5, 65, 5.0, 60.0), (None, 30, 30.0, 0.0), (None, None, 0.0, 0.0), (0, 0, 0.0, 0.0)],
)
def test_the_figures_hold_for_a_job_that_never_started_too(
    step: Any, started: float | None, ended: float | None, queued: float, ran: float
) -> None:
    def instant(seconds: float | None) -> datetime | None:
        return None if seconds is None else AT + timedelta(seconds=seconds)

    job = PlayedJob("pending", started_at=instant(started), ended_at=instant(ended))
    outputs = step(PlayedGateway(job))

    assert (outputs.queue_seconds, outputs.run_seconds) == (queued, ran)
    assert (outputs.state, outputs.attempts) == ("succeeded", 2)


@pytest.mark.parametrize(("seconds", "limit"), [(0.0, None), (90.0, 90.0)])
def test_a_step_waits_for_the_start_follows_rank_0_and_waits_for_the_end(
    step: Any, capsys: pytest.CaptureFixture[str], seconds: float, limit: float | None
) -> None:
    job = PlayedJob("pending")
    step(PlayedGateway(job), timeout_seconds=seconds)

    assert job.calls == [
        ("wait", {"status": {"running"}, "timeout": limit}),
        ("logs", {"rank": 0, "follow": True}),
        ("wait", {"timeout": limit}),
    ]
    assert capsys.readouterr().out.splitlines() == [
        "job job-1 in queue default",
        "[rank 0] epoch 1",
        "[rank 0] done",
    ]


@pytest.mark.parametrize(
    ("wish", "is_cancelled"), [({}, True), ({"cancel_on_terminate": False}, False)]
)
def test_a_terminated_step_ends_as_by_the_signal_and_cancels_unless_told_not_to(
    step: Any, wish: dict[str, bool], *, is_cancelled: bool
) -> None:
    job = PlayedJob("pending")
    step(PlayedGateway(job), **wish)
    stop: Any = signal.getsignal(signal.SIGTERM)

    with pytest.raises(SystemExit) as caught:
        stop(signal.SIGTERM, None)

    assert caught.value.code == 143
    assert ("cancel" in job.calls) is is_cancelled
