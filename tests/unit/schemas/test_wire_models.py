"""Models at the wire take exactly what they say, and errors survive the way there and back."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from gateway import errors
from gateway.errors import GatewayError, InvalidInput
from gateway.schemas.base import instant
from gateway.schemas.definitions import CohortSpec, DefinitionSet, FlavorSpec, QueueSpec, QuotaSpec
from gateway.schemas.job_spec import JobSpec, PodSet, TolerationSpec
from gateway.schemas.problems import MAX_SHOWN, error_of, problem_of, shown
from gateway.schemas.views import EventView
from gateway.settings import Settings

POD_SET: dict[str, Any] = {"name": "Master", "count": 1, "per_pod": {"cpu": 1000}}
JOB: dict[str, Any] = {
    "name": "a",
    "namespace": "b",
    "pod_sets": (PodSet(**POD_SET),),
    "manifest": {},
}
QUOTA: dict[str, Any] = {"flavor": "a", "resource": "gpu", "nominal": 1}
PACES = ["cycle_seconds", "launch_seconds", "inventory_seconds", "lease_seconds"]


@pytest.mark.parametrize("model", [FlavorSpec, CohortSpec, QueueSpec])
@pytest.mark.parametrize(
    ("name", "is_fine"),
    [
        *(("a", True), ("a-1", True), ("2024", True), ("a" * 63, True)),
        *(("", False), ("A", False), ("-a", False), ("a-", False), ("a.b", False)),
        *(("a\n", False), ("a" * 64, False), ("\u00e9", False), (5, False), (None, False)),
    ],
)
def test_definitions_are_named_like_dns_labels(model: Any, name: Any, *, is_fine: bool) -> None:
    if is_fine:
        assert model(name=name).name == name
        return
    with pytest.raises(ValidationError) as caught:
        model(name=name)
    assert caught.value.errors()[0]["loc"] == ("name",)


@pytest.mark.parametrize(
    ("model", "fields", "place"),
    [
        (QuotaSpec, {**QUOTA, "nominal": True}, "nominal"),
        (QuotaSpec, {**QUOTA, "nominal": 1.0}, "nominal"),
        (QuotaSpec, {**QUOTA, "nominal": ""}, "nominal"),
        (QuotaSpec, {**QUOTA, "nominal": "x" * 33}, "nominal"),
        (QuotaSpec, {**QUOTA, "resource": ""}, "resource"),
        (QuotaSpec, {**QUOTA, "resource": "x" * 254}, "resource"),
        (QuotaSpec, {**QUOTA, "limit": 1}, "limit"),
        (QueueSpec, {"name": "a", "weight": -1}, "weight"),
        (QueueSpec, {"name": "a", "weight": 1_000_001}, "weight"),
        (QueueSpec, {"name": "a", "weight": "1"}, "weight"),
        (QueueSpec, {"name": "a", "priority_min": -1_000_000_001}, "priority_min"),
        (QueueSpec, {"name": "a", "priority_max": 1_000_000_001}, "priority_max"),
        (QueueSpec, {"name": "a", "state": "shut"}, "state"),
        (QueueSpec, {"name": "a", "cohort": "A"}, "cohort"),
        (PodSet, {**POD_SET, "count": 0}, "count"),
        (PodSet, {**POD_SET, "count": True}, "count"),
        (PodSet, {**POD_SET, "name": "Launcher"}, "name"),
        (PodSet, {**POD_SET, "per_pod": {"cpu": 0.5}}, "per_pod"),
        (PodSet, {**POD_SET, "pair": "near"}, "pair"),
        (JobSpec, {**JOB, "priority": 1_000_000_001}, "priority"),
        (JobSpec, {**JOB, "hold": 1}, "hold"),
        (JobSpec, {**JOB, "start_timeout_seconds": 0}, "start_timeout_seconds"),
        (JobSpec, {**JOB, "queue_timeout_seconds": 0}, "queue_timeout_seconds"),
        (JobSpec, {**JOB, "nmae": "a"}, "nmae"),
        (TolerationSpec, {"operator": "exists"}, "operator"),
        (TolerationSpec, {"effect": "noexecute"}, "effect"),
        (DefinitionSet, {"kind": "List"}, "kind"),
    ],
)
def test_a_value_out_of_range_or_type_is_refused(
    model: Any, fields: dict[str, Any], place: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        model(**fields)
    assert caught.value.errors()[0]["loc"][0] == place


@pytest.mark.parametrize("amount", [0, 8, -1, "8", "64Gi", "500m"])
def test_an_amount_stays_a_number_or_a_text_as_it_was_written(amount: int | str) -> None:
    quota = QuotaSpec(**{**QUOTA, "nominal": amount})
    assert (quota.nominal, type(quota.nominal)) == (amount, type(amount))
    assert QuotaSpec.model_validate_json(quota.model_dump_json()) == quota


def test_a_view_ignores_what_a_newer_server_adds_but_a_request_does_not() -> None:
    event = {"id": 1, "at": "2030-01-31T18:00:00Z", "kind": "job.submitted", "actor": "a"}
    assert EventView.model_validate({**event, "new": 1}) == EventView.model_validate(event)
    with pytest.raises(ValidationError):
        EventView.model_validate({**event, "at": "2030-01-31T18:00:00"})  # no zone
    with pytest.raises(ValidationError):
        FlavorSpec.model_validate({"name": "a", "new": 1})


@pytest.mark.parametrize("micros", [0, 1, -1, 1_767_225_600_000_001, 253_402_300_799_999_999])
def test_an_instant_is_exact_to_the_microsecond_and_utc(micros: int) -> None:
    at = instant(micros)
    assert at.tzinfo is UTC
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    assert (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds == micros


def every_error() -> list[type[GatewayError]]:
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, GatewayError)]


@pytest.mark.parametrize("kind", every_error())
def test_every_error_comes_back_as_itself_with_all_its_facts(kind: type[GatewayError]) -> None:
    error = kind("no", pointer="/a~1b", hint="do", value=False, allowed=("b", "c"))
    document = json.loads(json.dumps(problem_of(error, "r1")))
    assert document["type"] == f"urn:training-gateway:problem:{kind.code}"
    again = error_of(document, error.status)
    assert type(again) is kind
    assert {name: getattr(again, name) for name in vars(error)} == vars(error)
    assert again.__notes__ == ["request id r1"]


@pytest.mark.parametrize(
    ("document", "detail", "allowed"),
    [
        ({}, "the gateway answered 502", ()),
        ({"detail": ""}, "the gateway answered 502", ()),
        ({"detail": None, "allowed": None}, "the gateway answered 502", ()),
        ({"detail": ["a"], "allowed": 5}, "the gateway answered 502", ()),
        ({"detail": "a", "allowed": "bcd"}, "a", ()),
        ({"detail": "a", "allowed": ["b", 1]}, "a", ("b", "1")),
        ({"code": 5, "hint": 7, "pointer": None, "detail": "a"}, "a", ()),
    ],
)
def test_a_document_that_a_proxy_wrote_is_still_an_error(
    document: dict[str, Any], detail: str, allowed: tuple[str, ...]
) -> None:
    error = error_of(document, 502)
    assert type(error) is GatewayError
    assert (error.detail, error.allowed) == (detail, allowed)
    assert (error.pointer, error.hint) == ("", "")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, None),
        (0, 0),
        (False, False),
        (1.5, 1.5),
        ("x" * MAX_SHOWN, "x" * MAX_SHOWN),
        ("x" * (MAX_SHOWN + 1), "x" * (MAX_SHOWN - 1) + "\u2026"),
        ("\ud800", "?"),
        ({"a": 1}, "{'a': 1}"),
        ([], "[]"),
    ],
)
def test_a_value_is_shown_short_and_can_always_be_sent(value: object, told: object) -> None:
    assert shown(value) == told
    document = problem_of(InvalidInput("no", value=value))
    assert json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def test_an_empty_field_is_left_out_and_a_false_value_is_not() -> None:
    assert problem_of(InvalidInput("no", value=False)) == {
        "type": "urn:training-gateway:problem:invalid",
        "title": "Invalid",
        "status": 422,
        "code": "invalid",
        "detail": "no",
        "value": False,
    }


@pytest.mark.parametrize("name", [*PACES, "cluster_call_seconds"])
@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e400", "0", "-1", "soon", ""])
def test_a_pace_is_a_finite_time(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"TRAINING_GATEWAY_{name.upper()}", value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert caught.value.errors()[0]["loc"] == (name,)


@pytest.mark.parametrize(
    ("lease", "call", "least"),
    [("9", "5", "9"), ("6", "3", "6"), ("3", "1", "3"), ("4", "2", "4.5")],
)
def test_a_lease_outlives_a_call_and_says_how_long_it_must_be(
    lease: str, call: str, least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_LEASE_SECONDS", lease)
    monkeypatch.setenv("TRAINING_GATEWAY_CLUSTER_CALL_SECONDS", call)
    with pytest.raises(ValidationError, match=rf"take more than {least} \["):
        Settings()
    monkeypatch.setenv("TRAINING_GATEWAY_LEASE_SECONDS", str(float(least) + 0.01))
    assert Settings().cluster_call_seconds == float(call)


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), (",", ()), ("a", ("a",)), (" a , b ,, c ", ("a", "b", "c")), ("a\n,b", ("a", "b"))],
)
def test_namespaces_are_a_comma_list(
    text: str, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_NAMESPACES", text)
    assert Settings().namespaces == names
