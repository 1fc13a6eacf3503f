"""The same answers on PostgreSQL: lists, labels, batches, events and figures."""

from collections.abc import Iterator

import pytest

from gateway.core.vocabulary import JobState
from gateway.db.engine import open_database
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served, serving
from tests.service_world import a_world


@pytest.fixture
def on_postgresql(postgresql_url: str) -> Iterator[Served]:
    """Give a server on a fresh PostgreSQL database."""
    database = open_database(postgresql_url)
    with serving(a_world(database)) as running:
        yield running
    database.close()


def test_jobs_are_submitted_listed_and_run(on_postgresql: Served) -> None:
    client = on_postgresql.sdk()
    labelled = a_manifest("labelled", gpu=1)
    labelled["metadata"]["labels"] = {"team": "vision"}
    outcomes = client.batch([labelled, a_manifest("huge", gpu=9), a_manifest("plain", gpu=1)])
    assert [outcome.error and outcome.error.code for outcome in outcomes] == [
        None,
        "never_fits",
        None,
    ]
    (found,) = client.jobs.list(label="team=vision")
    assert found.name == "labelled"
    assert not list(client.jobs.list(label="team=vision,stage=a"))
    assert [job.name for job in client.jobs.list()] == ["plain", "labelled"]

    on_postgresql.world.until(found.id, JobState.SUCCEEDED)
    kinds = [event.kind for event in found.events()]
    assert kinds[0] == "submitted"
    streamed = client.events(follow=True)
    assert [next(streamed).kind for _ in range(2)] == ["submitted", "submitted"]
    text = on_postgresql.http().get("/metrics").text
    assert 'training_gateway_devices{kind="gpu",state="free"}' in text


def test_a_repeated_key_and_a_taken_name_are_told_apart(on_postgresql: Served) -> None:
    client = on_postgresql.sdk()
    first = client.submit(a_manifest(), idempotency_key="k")
    assert client.submit(a_manifest(), idempotency_key="k").id == first.id
    answer = on_postgresql.http().post("/jobs", json=a_manifest())
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
    assert first.hold().reason == "Held"
