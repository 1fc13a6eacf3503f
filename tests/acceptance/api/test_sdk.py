"""The SDK against a real server: from submit to result, over restarts and broken connections."""

from pathlib import Path

import pytest
import yaml

from gateway.errors import InvalidInput, JobFailed, NameTaken, TimedOut
from gateway.sdk import Client, submit
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served


def test_a_job_is_submitted_watched_and_its_result_read(served: Served) -> None:
    heard: list[str] = []
    job = served.sdk().submit(a_manifest(gpu=2, workers=1), priority=3)
    assert (str(job), job.state, job.view.priority) == (job.id, "pending", 3)
    with served.moving():
        job.wait(timeout=30, polling_interval=0.01, callbacks=[lambda it: heard.append(it.state)])
    result = job.result()
    assert (result.state, result.attempts, result.exit_code) == ("succeeded", 1, 0)
    assert result.run_seconds > 0
    assert heard[-1] == "succeeded"
    assert next(iter(job.events())).kind == "submitted"
    assert job.explain().summary.startswith("train succeeded")
    assert len(job.attempts()) == 1


def test_a_failed_job_raises_and_tells_its_exit_code(served: Served) -> None:
    job = served.sdk().submit(a_manifest(gpu=1, outcome="failed"))
    with served.moving(), pytest.raises(JobFailed):
        job.wait(timeout=30, polling_interval=0.01)
    assert job.view.exit_code not in {None, 0}


def test_waiting_too_long_leaves_the_job_alone(served: Served) -> None:
    job = served.sdk().submit(a_manifest(), hold=True)
    with pytest.raises(TimedOut, match="Held"):
        job.wait(timeout=0.05, polling_interval=0.01)
    assert job.refresh().state == "held"


def test_every_kind_of_source_is_taken(served: Served, tmp_path: Path) -> None:
    client = served.sdk()
    text = yaml.safe_dump(a_manifest(gpu=1))
    file = tmp_path / "job.yaml"
    file.write_text(text)
    short = {"name": "short", "namespace": "team-a", "image": "x", "resources": {"gpu": 1}}
    sources = (text, file, str(file), a_manifest(gpu=1))
    jobs = [client.submit(source, name=f"job-{n}") for n, source in enumerate(sources)]
    assert {job.view.gpus for job in jobs} == {1}
    assert client.submit(short).view.gpus == 1


def test_a_key_of_ones_own_finds_the_same_job_again(served: Served) -> None:
    client = served.sdk()
    first = client.submit(a_manifest(), idempotency_key="run-7")
    assert client.submit(a_manifest(), idempotency_key="run-7").id == first.id
    with pytest.raises(NameTaken):
        client.submit(a_manifest())


def test_a_plan_stores_nothing(served: Served) -> None:
    client = served.sdk()
    plan = client.plan(a_manifest(gpu=4, workers=1))
    assert (plan.queue, plan.pods, plan.gpus, plan.rdma) == ("default", 2, 8, 8)
    assert not list(client.jobs.list())


def test_a_batch_gives_a_handle_or_an_error_for_each(served: Served) -> None:
    client = served.sdk()
    sources = [a_manifest("one", gpu=1), a_manifest("two", gpu=9), a_manifest("three", gpu=1)]
    outcomes = client.batch(sources, priority=2)
    assert [outcome.index for outcome in outcomes] == [0, 1, 2]
    assert [outcome.job.name if outcome.job else None for outcome in outcomes] == [
        "one",
        None,
        "three",
    ]
    assert outcomes[1].error is not None
    assert outcomes[1].error.code == "never_fits"
    assert all(job.view.priority == 2 for job in client.jobs.list())


def test_several_documents_are_no_single_job(served: Served) -> None:
    text = yaml.safe_dump_all([a_manifest("one", gpu=1), a_manifest("two", gpu=1)])
    with pytest.raises(InvalidInput, match="2 jobs"):
        served.sdk().submit(text)
    assert len(served.sdk().batch([text])) == 2


def test_many_jobs_are_walked_through_page_by_page(served: Served) -> None:
    client = served.sdk()
    client.batch([a_manifest(f"job-{number}", gpu=1) for number in range(1100)])
    found = [job.name for job in client.jobs.list(state="pending", name="")]
    assert len(found) == len(set(found)) == 1100
    assert found[0] == "job-1099"


def test_environment_alone_is_enough(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_URL", served.url)
    monkeypatch.setenv("TRAINING_GATEWAY_TOKEN", "anna")
    job = submit(a_manifest())
    with Client() as client:
        assert client.jobs.get(job.id).name == "train"
        assert client.whoami().name == "anna"
        assert client.health().status == "ok"
    job._calls.wire.close()
