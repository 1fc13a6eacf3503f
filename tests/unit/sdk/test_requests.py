"""What each call of the SDK puts on the wire: method, address, body, condition."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from gateway.errors import (
    Conflict,
    GatewayError,
    GatewayUnreachable,
    NotFound,
    NotSupportedYet,
    StaleVersion,
)
from gateway.schemas.definitions import (
    CohortSpec,
    DefinitionSet,
    FlavorSpec,
    QueueSpec,
)
from gateway.sdk import Client, JobHandle, submit
from gateway.sdk.definitions import DefinitionDocument, Queues
from gateway.sdk.fleet import Nodes
from gateway.sdk.job_calls import JobCalls
from gateway.sdk.transport import Wire
from tests.unit.sdk.fake_gateway import NOW, Answer, FakeGateway, a_job, ok, problem

JOB = a_job()
AT = f"/api/v1/jobs/{JOB['id']}"
QUEUE = {"name": "research", "version": 3}
NODE = {
    "id": 1,
    "name": "n1",
    "machine_type": "m",
    "health": "healthy",
    "is_present": True,
    "labels": {},
    "gpus_total": 8,
    "gpus_free": 8,
    "rdma_total": 8,
    "rdma_free": 8,
    "cpu_millis_total": 1,
    "cpu_millis_free": 1,
    "memory_bytes_total": 1,
    "memory_bytes_free": 1,
    "version": 1,
}
DEVICE = {
    "id": 7,
    "node": "n1",
    "kind": "gpu",
    "ordinal": 0,
    "name": "gpu0",
    "health": "healthy",
    "is_present": True,
    "is_foreign": False,
    "is_free": True,
    "version": 1,
}
EXPLAINED = {
    "job_id": "1",
    "name": "train",
    "state": "pending",
    "reason": None,
    "summary": "train waits",
    "serial": 1,
}
Ask = Callable[[Client], Any]


def a_client(*answers: Answer) -> tuple[Client, FakeGateway]:
    fake = FakeGateway(list(answers))
    return Client("http://127.0.0.1:1/", "secret", transport=fake.transport()), fake


def a_handle(client: Client) -> JobHandle:
    return client.jobs.get(JOB["id"])


def page(*items: dict[str, Any]) -> dict[str, Any]:
    return {"next_cursor": "", "items": list(items)}


@pytest.mark.parametrize(
    ("ask", "answer", "sent"),
    [
        (
            lambda c: c.whoami(),
            {"name": "anna", "role": "user", "namespaces": []},
            "GET /api/v1/whoami",
        ),
        (lambda c: c.health(), {"status": "ok"}, "GET /api/v1/readyz"),
        (lambda c: c.jobs.get("a b"), JOB, "GET /api/v1/jobs/a%20b"),
        (lambda c: c.jobs.get("a/b:c"), JOB, "GET /api/v1/jobs/a%2Fb%3Ac"),
        (lambda c: c.queues.list(), page(QUEUE), "GET /api/v1/queues"),
        (lambda c: c.queues.get("research"), QUEUE, "GET /api/v1/queues/research"),
        (lambda c: c.queues.pause("a:b"), QUEUE, "POST /api/v1/queues/a%3Ab:pause"),
        (lambda c: c.queues.resume("research"), QUEUE, "POST /api/v1/queues/research:resume"),
        (lambda c: c.cohorts.list(), page(), "GET /api/v1/cohorts"),
        (lambda c: c.cohorts.get("lab"), {"name": "lab", "version": 1}, "GET /api/v1/cohorts/lab"),
        (lambda c: c.flavors.list(), page(), "GET /api/v1/flavors"),
        (lambda c: c.flavors.get("h1"), {"name": "h1", "version": 1}, "GET /api/v1/flavors/h1"),
        (lambda c: c.definitions.export(), {}, "GET /api/v1/definitions"),
        (lambda c: list(c.nodes.list()), page(NODE), "GET /api/v1/nodes?limit=500"),
        (lambda c: c.nodes.get("n/1"), NODE, "GET /api/v1/nodes/n%2F1"),
        (lambda c: c.nodes.uncordon("n1"), NODE, "POST /api/v1/nodes/n1:uncordon"),
        (lambda c: c.devices.get(7), DEVICE, "GET /api/v1/devices/7"),
        (lambda c: c.devices.types(), page(), "GET /api/v1/device-types"),
        (lambda c: list(c.devices.list()), page(DEVICE), "GET /api/v1/devices?limit=500"),
        (
            lambda c: list(c.devices.list(node="n1", kind="rdma", free=False)),
            page(DEVICE),
            "GET /api/v1/devices?limit=500&node=n1&kind=rdma&free=false",
        ),
        (
            lambda c: list(c.jobs.list(state="held", queue="", label="a=b")),
            page(JOB),
            "GET /api/v1/jobs?limit=500&state=held&label=a%3Db",
        ),
        (lambda c: list(c.events()), page(), "GET /api/v1/events?limit=500"),
    ],
)
def test_reading_asks_for_exactly_this(ask: Ask, answer: dict[str, Any], sent: str) -> None:
    client, fake = a_client(ok(answer))
    ask(client)
    (request,) = fake.seen
    assert f"{request.method} {str(request.url.raw_path, 'ascii')}" == sent
    assert request.content == b""
    assert request.headers["authorization"] == "Bearer secret"
    assert "content-type" not in request.headers


@pytest.mark.parametrize(
    ("ask", "answer", "path"),
    [
        (lambda job: job.explain(), EXPLAINED, f"GET {AT}/explain"),
        (lambda job: list(job.events()), page(), f"GET {AT}/events?limit=500"),
        (lambda job: job.attempts(), page(), f"GET {AT}/attempts"),
        (lambda job: job.assignments(), page(), f"GET {AT}/assignments"),
        (lambda job: job.assignments(2), page(), f"GET {AT}/assignments?attempt=2"),
        (lambda job: job.detail(), JOB, f"GET {AT}"),
        (lambda job: job.refresh(), JOB, f"GET {AT}"),
        (lambda job: job.cancel(), JOB, f"POST {AT}:cancel"),
        (lambda job: job.hold(), JOB, f"POST {AT}:hold"),
        (lambda job: job.release(), JOB, f"POST {AT}:release"),
        (lambda job: job.requeue(), JOB, f"POST {AT}:requeue"),
    ],
)
def test_a_handle_asks_about_its_own_job(
    ask: Callable[[JobHandle], Any], answer: dict[str, Any], path: str
) -> None:
    client, fake = a_client(ok(JOB), ok(answer))
    ask(a_handle(client))
    request = fake.seen[-1]
    assert f"{request.method} {str(request.url.raw_path, 'ascii')}" == path
    assert request.content == b""


@pytest.mark.parametrize(
    ("change", "answer", "sent", "body"),
    [
        (
            lambda c: c.cohorts.create(CohortSpec(name="lab")),
            {"name": "lab", "version": 1},
            "POST /api/v1/cohorts",
            {"name": "lab", "parent": None, "weight": 1, "quotas": [], "changes": []},
        ),
        (
            lambda c: c.flavors.create(FlavorSpec(name="h1", node_labels={"gpu": "h1"})),
            {"name": "h1", "version": 1},
            "POST /api/v1/flavors",
            {"name": "h1", "node_labels": {"gpu": "h1"}, "tolerations": []},
        ),
        (
            lambda c: c.nodes.cordon("n1", "broken fan"),
            NODE,
            "POST /api/v1/nodes/n1:cordon",
            {"reason": "broken fan"},
        ),
        (
            lambda c: a_handle(c).reprioritise(-5),
            JOB,
            f"POST {AT}:reprioritise",
            {"priority": -5},
        ),
    ],
)
def test_changing_sends_exactly_this(
    change: Ask, answer: dict[str, Any], sent: str, body: dict[str, Any]
) -> None:
    client, fake = a_client(*([ok(JOB)] if answer is JOB else []), ok(answer))
    change(client)
    request = fake.seen[-1]
    assert f"{request.method} {request.url.path}" == sent
    assert json.loads(request.content) == body
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize(("version", "condition"), [(None, None), (0, '"0"'), (7, '"7"')])
def test_a_version_travels_as_an_entity_tag(version: int | None, condition: str | None) -> None:
    client, fake = a_client(ok(QUEUE), httpx2.Response(204))
    client.queues.update(QueueSpec(name="research", weight=2), if_version=version)
    client.queues.delete("research", if_version=version)
    assert [request.headers.get("if-match") for request in fake.seen] == [condition] * 2
    assert [request.method for request in fake.seen] == ["PUT", "DELETE"]
    assert {request.url.path for request in fake.seen} == {"/api/v1/queues/research"}
    assert json.loads(fake.seen[0].content)["weight"] == 2


def test_a_failed_condition_is_a_stale_version_whatever_its_status() -> None:
    for status in (409, 412):
        client, _ = a_client(problem(status, "stale_version"))
        with pytest.raises(StaleVersion) as caught:
            client.queues.update(QueueSpec(name="research"), if_version=1)
        assert isinstance(caught.value, Conflict)


@pytest.mark.parametrize(("dry_run", "query"), [(False, b""), (True, b"dry_run=true")])
def test_definitions_are_applied_whole_and_the_changes_told(*, dry_run: bool, query: bytes) -> None:
    client, fake = a_client(ok({"changes": ["queue research created"]}))
    document = DefinitionSet(queues=(QueueSpec(name="research"),))
    assert client.definitions.apply(document, dry_run=dry_run) == ["queue research created"]
    assert fake.seen[0].url.query == query
    assert json.loads(fake.seen[0].content)["queues"][0]["name"] == "research"


@pytest.mark.parametrize(
    ("ask", "times"),
    [
        (lambda wire: Queues(wire).create(QueueSpec(name="x")), 1),
        (lambda wire: Queues(wire).update(QueueSpec(name="x")), 3),
        (lambda wire: Queues(wire).delete("x"), 3),
        (lambda wire: Queues(wire).pause("x"), 3),
        (lambda wire: Queues(wire).resume("x"), 3),
        (lambda wire: Nodes(wire).cordon("x", ""), 3),
        (lambda wire: Nodes(wire).uncordon("x"), 3),
        (lambda wire: DefinitionDocument(wire).apply(DefinitionSet()), 3),
        (lambda wire: JobCalls(wire).act("x", "hold", None), 1),
        (lambda wire: JobCalls(wire).act("x", "release", None), 1),
        (lambda wire: JobCalls(wire).act("x", "requeue", None), 1),
        (lambda wire: JobCalls(wire).act("x", "cancel", None), 3),
        (lambda wire: JobCalls(wire).act("x", "reprioritise", {"priority": 1}), 3),
    ],
)
def test_only_what_does_no_harm_twice_is_sent_again_after_a_lost_answer(
    ask: Callable[[Wire], Any], times: int
) -> None:
    fake = FakeGateway([httpx2.ReadError("cut") for _ in range(3)])
    with pytest.raises(GatewayUnreachable):
        ask(fake.wire())
    assert len(fake.seen) == times


def test_lists_of_definitions_come_as_models() -> None:
    client, _ = a_client(ok(page(QUEUE, {"name": "second", "version": 1})))
    first, second = client.queues.list()
    assert (first.name, first.version, first.state) == ("research", 3, "open")
    assert second.name == "second"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"<html>hello</html>", ": Invalid JSON"),
        (b"", ": Invalid JSON"),
        (b"[]", ": Input should be an object"),
        (b'{"status": "brand_new"}', "/status: "),
        (b'{"checks": {}}', "/status: Field required"),
    ],
)
def test_an_answer_of_another_service_or_release_is_told_in_words(body: bytes, place: str) -> None:
    client, _ = a_client(httpx2.Response(200, content=body))
    with pytest.raises(GatewayError, match="is not a Health of this release") as caught:
        client.health()
    assert place in caught.value.detail
    assert "upgrade" in caught.value.hint


def test_an_unknown_name_is_not_found_with_the_servers_words() -> None:
    client, _ = a_client(problem(404, "not_found", detail="queue 'x' does not exist", hint="ls"))
    with pytest.raises(NotFound, match="queue 'x' does not exist") as caught:
        client.queues.get("x")
    assert caught.value.hint == "ls"
    assert isinstance(caught.value, LookupError)


def test_usage_is_refused_by_name_until_it_is_built() -> None:
    client, fake = a_client()
    with pytest.raises(NotSupportedYet, match="usage reports") as caught:
        _ = client.usage
    assert (caught.value.pointer, fake.seen) == ("/usage", [])


def test_neither_text_nor_error_of_a_client_shows_its_token() -> None:
    client, _ = a_client(problem(401, "unauthenticated"))
    assert repr(client) == "<Client http://127.0.0.1:1>"
    assert client.url == "http://127.0.0.1:1"
    with pytest.raises(Exception, match="unauthenticated") as caught:
        client.whoami()
    assert "secret" not in repr(caught.value) + str(caught.value.__dict__)


def test_a_client_is_closed_at_the_end_of_its_block() -> None:
    client, _ = a_client(ok({"status": "ok"}))
    with client as same:
        assert same is client
        assert client.health().status == "ok"
    with pytest.raises(RuntimeError, match="closed"):
        client.health()


def test_the_function_submit_uses_the_client_that_it_is_given() -> None:
    client, fake = a_client(ok(JOB, 201))
    job = submit({"name": "train", "image": "x"}, client=client, queue="research", hold=True)
    assert (str(job), job.reason, job.view.submitted_at.isoformat()) == (JOB["id"], None, NOW)
    sent = json.loads(fake.seen[0].content)
    assert sent["overrides"] == {"queue": "research", "hold": True}
