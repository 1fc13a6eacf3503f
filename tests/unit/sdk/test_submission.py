"""Submissions: one body a job, one key a call, batches in parts that the server takes."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import GatewayError, InvalidInput, MalformedBody, NameTaken, Unauthenticated
from gateway.sdk import jobs as sdk_jobs
from gateway.sdk.jobs import MAX_BATCH_BYTES, MAX_BATCH_JOBS, Jobs, split_batch
from gateway.sdk.submission import envelope, new_key, wrap
from tests.unit.sdk.fake_gateway import FakeGateway, a_job, ok, problem

SHORT = {"name": "train", "image": "example/train:1"}
TEXT = "name: train\nimage: example/train:1\n"
SECOND = "---\nname: second\nimage: example/train:1\n"


def bodies(fake: FakeGateway) -> list[Any]:
    return [json.loads(request.content) for request in fake.seen]


@pytest.mark.parametrize(
    ("source", "document"),
    [
        (SHORT, SHORT),
        (TEXT, SHORT),
        (TEXT.encode(), SHORT),
        (json.dumps(SHORT), SHORT),
        ("\ufeff" + TEXT, SHORT),
        (TEXT + "---\n", SHORT),
        ("name: länge\nimage: x\n", {"name": "länge", "image": "x"}),
    ],
)
def test_every_form_of_a_source_becomes_the_same_body(source: Any, document: Any) -> None:
    assert envelope(source, {}) == {"manifest": document, "overrides": {}}


def test_a_path_is_read_as_its_text_is(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(TEXT)
    for source in (path, str(path)):
        assert envelope(source, {})["manifest"] == SHORT


def test_what_was_not_said_does_not_overrule_the_manifest() -> None:
    said: dict[str, object] = {
        "queue": None,
        "priority": 0,
        "hold": False,
        "name": "",
        "labels": {},
    }
    body = wrap(SHORT, said)
    assert body["overrides"] == {"priority": 0, "hold": False, "name": "", "labels": {}}
    assert body["manifest"] == SHORT
    assert body["manifest"] is not SHORT


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        (TEXT + SECOND, InvalidInput, "this holds 2 jobs; submit takes one"),
        ("", InvalidInput, "there is no job"),
        ("---\n---\n", InvalidInput, "there is no job"),
        ([], InvalidInput, "there is no job"),
        ("name: [\n", MalformedBody, "line 2"),
        ("no-such-file.yaml", InvalidInput, "cannot read 'no-such-file.yaml'"),
        ('{"name": "a", "name": "b"}', MalformedBody, "given twice"),
        ("name: a\nname: b\n", MalformedBody, "given twice"),
        ({"name": float("nan")}, InvalidInput, "nan is no number"),
        (b"name: \xff\n", MalformedBody, "is not UTF-8"),
        (5, InvalidInput, "a int is no job"),
        (None, InvalidInput, "a NoneType is no job"),
    ],
)
def test_what_is_no_single_job_is_refused_before_anything_is_sent(
    source: Any, kind: type[GatewayError], words: str
) -> None:
    fake = FakeGateway([])
    with pytest.raises(kind, match=words) as caught:
        Jobs(fake.wire()).submit(source)
    assert caught.value.hint
    assert fake.seen == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), date(2026, 1, 1), object(), {1, 2}])
def test_an_override_that_json_cannot_say_is_refused_in_words(value: Any) -> None:
    fake = FakeGateway([])
    with pytest.raises(InvalidInput, match="cannot be sent as JSON") as caught:
        Jobs(fake.wire()).submit(SHORT, priority=value)
    assert "finite numbers" in caught.value.hint
    assert fake.seen == []


def test_a_submit_sends_document_overrides_and_a_key_of_its_own() -> None:
    fake = FakeGateway([ok(a_job(), 201), ok(a_job(), 201)])
    jobs = Jobs(fake.wire())
    for _ in range(2):
        jobs.submit(SHORT, queue="research", priority=5, labels={"team": "vision"})
    overrides = {"queue": "research", "priority": 5, "labels": {"team": "vision"}}
    assert bodies(fake) == [{"manifest": SHORT, "overrides": overrides}] * 2
    first, second = (request.headers["idempotency-key"] for request in fake.seen)
    assert len(first) == 32
    assert first != second


@pytest.mark.parametrize(
    "trouble", [httpx2.ReadError("cut"), httpx2.ConnectError("no"), problem(503, "unavailable")]
)
def test_a_lost_answer_is_asked_for_under_the_same_key(trouble: Any) -> None:
    fake = FakeGateway([trouble, ok(a_job())])
    assert Jobs(fake.wire()).submit(SHORT).name == "train"
    keys = {request.headers["idempotency-key"] for request in fake.seen}
    assert (len(keys), len(fake.seen)) == (1, 2)
    assert fake.seen[0].content == fake.seen[1].content


def test_a_refusal_is_not_repeated() -> None:
    fake = FakeGateway([problem(409, "name_taken")])
    with pytest.raises(NameTaken):
        Jobs(fake.wire()).submit(SHORT)
    assert len(fake.seen) == 1


@pytest.mark.parametrize("key", ["schlüssel", "a\nb", "a\x00b", " a", "a ", "\u2028"])
def test_a_key_that_no_header_can_carry_is_refused_by_name(key: str) -> None:
    fake = FakeGateway([])
    with pytest.raises(InvalidInput, match="Idempotency-Key holds a character") as caught:
        Jobs(fake.wire()).submit(SHORT, idempotency_key=key)
    assert caught.value.pointer == "/headers/idempotency-key"
    assert fake.seen == []


@pytest.mark.parametrize("key", ["run-7", "a b", "x" * 255, "{}"])
def test_any_other_key_travels_as_it_is(key: str) -> None:
    fake = FakeGateway([ok(a_job())])
    Jobs(fake.wire()).submit(SHORT, idempotency_key=key)
    assert fake.seen[0].headers["idempotency-key"] == key


def test_an_empty_key_is_none_and_one_is_made_up() -> None:
    fake = FakeGateway([ok(a_job())])
    Jobs(fake.wire()).submit(SHORT, idempotency_key="")
    assert len(fake.seen[0].headers["idempotency-key"]) == len(new_key())


def test_a_plan_says_so_and_carries_no_key() -> None:
    spec = {"spec": {}, "queue": "default", "pods": 1, "gpus": 0, "rdma": 0}
    fake = FakeGateway([ok(spec)])
    assert Jobs(fake.wire()).plan(SHORT, hold=True).queue == "default"
    assert fake.seen[0].url.query == b"dry_run=plan"
    assert "idempotency-key" not in fake.seen[0].headers
    assert bodies(fake)[0]["overrides"] == {"hold": True}


def outcome(index: int, **told: Any) -> dict[str, Any]:
    return {"index": index, **told}


def test_a_batch_counts_documents_and_gives_each_a_key() -> None:
    items = [outcome(0, job=a_job(), is_new=True), outcome(1, job=a_job()), outcome(2, error={})]
    fake = FakeGateway([ok({"items": items})])
    outcomes = Jobs(fake.wire()).batch([TEXT + SECOND, SHORT], queue="research")
    (body,) = bodies(fake)
    assert [entry["manifest"]["name"] for entry in body["jobs"]] == ["train", "second", "train"]
    assert len({entry["idempotency_key"] for entry in body["jobs"]}) == 3
    assert all(entry["overrides"] == {"queue": "research"} for entry in body["jobs"])
    assert [(it.index, it.is_new, it.job is None) for it in outcomes] == [
        (0, True, False),
        (1, False, False),
        (2, False, True),
    ]


def test_a_batch_of_nothing_asks_nobody() -> None:
    assert Jobs(FakeGateway([]).wire()).batch([]) == []


def test_a_refused_entry_carries_the_servers_class_and_facts() -> None:
    error = {"status": 409, "code": "name_taken", "detail": "taken", "pointer": "/name"}
    fake = FakeGateway([ok({"items": [outcome(0, error=error)]})])
    (refused,) = Jobs(fake.wire()).batch([SHORT])
    assert isinstance(refused.error, NameTaken)
    assert (refused.error.pointer, refused.error.detail, refused.job) == ("/name", "taken", None)


def test_more_than_one_request_holds_is_numbered_through() -> None:
    count = MAX_BATCH_JOBS + 2
    parts = [range(MAX_BATCH_JOBS), range(2)]
    answers = [ok({"items": [outcome(i, job=a_job()) for i in part]}) for part in parts]
    fake = FakeGateway(list(answers))
    outcomes = Jobs(fake.wire()).batch([SHORT] * count)
    assert [item.index for item in outcomes] == list(range(count))
    assert [len(body["jobs"]) for body in bodies(fake)] == [MAX_BATCH_JOBS, 2]


def test_one_bad_source_stops_a_batch_before_anything_is_sent() -> None:
    fake = FakeGateway([])
    with pytest.raises(MalformedBody):
        Jobs(fake.wire()).batch([SHORT, "name: [\n"])
    assert fake.seen == []


@given(st.lists(st.integers(0, 200), max_size=60), st.integers(1, 7), st.integers(10, 400))
@settings(deadline=None, max_examples=80)
def test_parts_hold_everything_in_order_and_stay_within_both_limits(
    sizes: list[int], most_jobs: int, most_bytes: int
) -> None:
    entries = [{"n": number, "x": "y" * size} for number, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sdk_jobs.__dict__, "MAX_BATCH_JOBS", most_jobs)
        patch.setitem(sdk_jobs.__dict__, "MAX_BATCH_BYTES", most_bytes)
        parts = list(split_batch(entries))
    assert [entry for part in parts for entry in part] == entries
    assert all(0 < len(part) <= most_jobs for part in parts)
    sent = [len(json.dumps({"jobs": part}, separators=(",", ":"))) for part in parts]
    room = len('{"jobs":[]}') + most_jobs
    assert all(
        size <= most_bytes + room or len(part) == 1 for size, part in zip(sent, parts, strict=True)
    )


def test_the_limits_are_those_of_the_server_with_room_to_spare() -> None:
    assert MAX_BATCH_JOBS == 1000
    assert MAX_BATCH_BYTES == 7 * 1024 * 1024


def test_keys_are_never_the_same() -> None:
    keys = {new_key() for _ in range(500)}
    assert len(keys) == 500
    assert all(key.isalnum() and key.isascii() for key in keys)


def test_without_a_token_nothing_is_sent(tmp_path: Path) -> None:
    fake = FakeGateway([])
    wire = fake.wire()
    object.__setattr__(wire.credentials, "_token", "")
    with pytest.raises(Unauthenticated, match="no token for the gateway") as caught:
        Jobs(wire).submit(SHORT)
    assert "TRAINING_GATEWAY_TOKEN_FILE" in caught.value.hint
    assert fake.seen == []
