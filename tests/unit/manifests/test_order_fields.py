"""What a job says for its order: class, earliest start, deadline, expected time, in every form."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from gateway.errors import InvalidInput
from gateway.manifests import digest, read_job
from gateway.manifests.reader import canonical
from gateway.schemas.base import instant, micros_of
from gateway.schemas.job_spec import LATER_FIELDS
from tests.unit.manifests.building import a_manifest, read_with, refusal_of

SAID = {
    "priority_class": "high",
    "not_before_at": "2030-01-31T18:00:00Z",
    "deadline_at": "2030-02-28T18:00:00+01:00",
    "expected_seconds": 7200,
}
PREFIX = "training-gateway.io/"


def annotated(fields: dict[str, Any]) -> dict[str, Any]:
    """Give a manifest that says these fields as annotations."""
    said = {PREFIX + name.replace("_", "-"): str(value) for name, value in fields.items()}
    return a_manifest(metadata={"annotations": said})


def in_short_form(fields: dict[str, Any]) -> dict[str, Any]:
    """Give a short form that says these fields."""
    return {"name": "job", "image": "registry.example/train:1", **fields}


@pytest.mark.parametrize(("field", "value"), SAID.items())
def test_a_field_is_the_same_wherever_it_is_written(field: str, value: object) -> None:
    said = {field: value}
    ways = (
        read_job(annotated(said)),
        read_job(in_short_form(said)),
        read_job({**in_short_form({}), field.replace("_", "-"): value}),
        read_with(a_manifest(), **said),
        read_with(a_manifest(), **{field: str(value)}),
    )
    assert [getattr(spec, field) for spec in ways] == [value] * len(ways)
    for spec in ways:
        assert read_job(spec.manifest) == spec


def test_a_job_that_says_nothing_has_the_digest_of_earlier_releases() -> None:
    plain = read_job(a_manifest())
    assert not set(LATER_FIELDS) & set(canonical(plain).replace('"', " ").split())


@pytest.mark.parametrize(("field", "value"), SAID.items())
def test_what_a_job_says_for_its_order_is_part_of_its_digest(field: str, value: object) -> None:
    assert digest(read_with(a_manifest(), **{field: value})) != digest(read_job(a_manifest()))


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [
        ("priority_class", "High", "lower case"),
        ("priority_class", "", "lower case"),
        ("priority_class", 5, "quotes"),
        ("not_before_at", "tomorrow", "2030-01-31T18:00:00Z"),
        ("deadline_at", "2030-01-31", "2030-01-31T18:00:00Z"),
        ("expected_seconds", 0, "range"),
        ("expected_seconds", -1, "range"),
        ("expected_seconds", "soon", "whole number"),
    ],
)
def test_a_wrong_value_says_what_to_write(field: str, value: object, hint: str) -> None:
    error = refusal_of(in_short_form({field: value}))
    assert (type(error), error.pointer) == (InvalidInput, f"/{field}")
    assert hint in error.hint


def test_a_class_beside_the_operators_own_place_must_agree() -> None:
    document = annotated({"priority_class": "low"})
    document["spec"]["runPolicy"] = {"schedulingPolicy": {"priorityClass": "high"}}
    assert "low" in refusal_of(document).detail
    assert read_with(document, priority_class="urgent").priority_class == "urgent"


@pytest.mark.parametrize("micros", [0, 1, -1, 1_900_000_000_123_456, 253_402_300_799_999_999])
def test_instants_become_microseconds_and_come_back(micros: int) -> None:
    at = instant(micros)
    assert micros_of(at) == micros
    assert micros_of(at.astimezone(timezone(timedelta(hours=-3)))) == micros
    assert at.tzinfo is UTC
    assert micros_of(datetime(1970, 1, 1, 1, tzinfo=UTC)) == 3_600_000_000
