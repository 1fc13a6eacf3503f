"""A field of the gateway means the same as annotation, in the short form and as an override."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.errors import GatewayError, InvalidInput, NotSupportedYet
from gateway.manifests import ReadOptions, read_job
from gateway.manifests.fields import ALIASES, FIELDS, GROUPS, MAX_PRIORITY, MAX_SECONDS, from_text
from gateway.manifests.spot import Spot
from gateway.schemas.job_spec import JobSpec
from tests.unit.manifests.building import a_manifest, annotated, read_with, refusal_of

GPUS = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
ANNOTATIONS = "/metadata/annotations/training-gateway.io~1"
SECONDS = ["queue_timeout_seconds", "run_timeout_seconds", "start_timeout_seconds"]


def short(**fields: Any) -> dict[str, Any]:
    return {"name": "job", "image": "a", "resources": {"gpu": 1}, **fields}


def as_annotation(field: str, value: Any) -> JobSpec:
    text = value if isinstance(value, str) else str(value).lower()
    return read_job(a_manifest(GPUS, metadata=annotated(**{field: text})))


def as_short(field: str, value: Any) -> JobSpec:
    return read_job(short(**{field: value}))


def as_override(field: str, value: Any) -> JobSpec:
    return read_with(a_manifest(GPUS), **{field: value})


def as_dashed_override(field: str, value: Any) -> JobSpec:
    return read_with(a_manifest(GPUS), **{field.replace("_", "-"): value})


WAYS: dict[str, Callable[[str, Any], JobSpec]] = {
    "annotation": as_annotation,
    "short form": as_short,
    "override": as_override,
    "override with dashes": as_dashed_override,
}


def refusal(way: str, field: str, value: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        WAYS[way](field, value)
    return caught.value


def place_of(way: str, field: str) -> str:
    if way == "annotation":
        return ANNOTATIONS + field.replace("_", "-")
    return f"/{field}"


GOOD: list[tuple[str, Any]] = [
    ("queue", "a"),
    ("queue", "a" * 63),
    ("queue", "2024"),
    ("priority", 0),
    ("priority", MAX_PRIORITY),
    ("priority", -MAX_PRIORITY),
    ("hold", True),
    ("hold", False),
    *((field, seconds) for field in SECONDS for seconds in (1, MAX_SECONDS)),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("field", "value"), GOOD)
def test_a_field_is_read_alike_in_every_way_and_kept(way: str, field: str, value: Any) -> None:
    spec = WAYS[way](field, value)
    assert getattr(spec, field) == value
    assert type(getattr(spec, field)) is type(value)
    assert read_job(spec.manifest) == spec


BAD: list[tuple[str, Any, str]] = [
    ("queue", "A", "lower case"),
    ("queue", "a.b", "lower case"),
    ("queue", "", "lower case"),
    ("queue", "a" * 64, "lower case"),
    ("priority", MAX_PRIORITY + 1, "range"),
    ("priority", -MAX_PRIORITY - 1, "range"),
    ("priority", "high", "write a whole number"),
    ("priority", "1.5", "write a whole number"),
    ("priority", "", "write a whole number"),
    ("priority", "$PRIORITY", "unexpanded"),
    ("hold", "maybe", "write true or false"),
    ("hold", "yes", "write true or false"),
    ("hold", "True", "write true or false"),
    ("hold", "", "write true or false"),
    ("pair", "switches", "did you mean 'switch'?"),
    ("pair", "NUMA", "did you mean 'numa'?"),
    ("pair_required", "no", "write true or false"),
    ("min_available", "all", "write a whole number"),
    ("min_available", 0, "range"),
    ("idempotency_key", "k", "header Idempotency-Key"),
    *((field, value, "range") for field in SECONDS for value in (0, -1, MAX_SECONDS + 1)),
    *((field, "1h", "write a whole number") for field in SECONDS),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("field", "value", "hint"), BAD)
def test_a_wrong_value_is_refused_alike_in_every_way(
    way: str, field: str, value: Any, hint: str
) -> None:
    error = refusal(way, field, value)
    assert type(error) is InvalidInput
    assert error.pointer == place_of(way, field)
    assert hint in error.hint


@pytest.mark.parametrize("way", ["short form", "override"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue", 5),
        ("queue", True),
        ("priority", True),
        ("priority", 1.5),
        ("priority", [1]),
        ("hold", 1),
        ("hold", []),
        ("run_timeout_seconds", 0.5),
        ("pair", True),
        ("pair", ["numa"]),
    ],
)
def test_a_value_of_another_type_is_refused_and_never_converted(
    way: str, field: str, value: Any
) -> None:
    error = refusal(way, field, value)
    assert error.pointer == f"/{field}"
    assert "belongs here, not" in error.detail


@pytest.mark.parametrize("value", [5, True, None, ["a"], 0.5])
def test_an_annotation_is_text_whatever_it_stands_for(value: object) -> None:
    document = a_manifest(metadata={"annotations": {"training-gateway.io/priority": value}})
    if value is None:
        assert read_job(document).priority == 0  # Kubernetes reads null as absent
        return
    error = refusal_of(document)
    assert error.pointer == f"{ANNOTATIONS}priority"
    assert error.allowed == ("a text",)


@pytest.mark.parametrize("digits", [19, 25, 40])
def test_a_number_that_is_far_too_long_is_out_of_range_and_not_badly_quoted(digits: int) -> None:
    for way in WAYS:
        if way == "short form":
            continue  # a number of that size is refused before any field is looked at
        error = refusal(way, "priority", "9" * digits)
        assert error.hint == "choose a number in this range"
        assert error.pointer == place_of(way, "priority")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("0.5", 0.5),
        ("[]", []),
        ('["a", 1.0]', ["a", 1]),
        ('{"a": {"b": null}}', {"a": {"b": None}}),
        ("True", "True"),
        ("1e3", "1e3"),
        ("1_000", "1_000"),
        ("7\n", "7\n"),
        (" 7", " 7"),
        ("", ""),
        ("null", "null"),
        ("\u0667", "\u0667"),
    ],
)
def test_a_text_stands_for_json_or_for_itself(text: str, value: object) -> None:
    read = from_text(Spot(text, "/a"))
    assert (read.value, read.pointer) == (value, "/a")
    assert type(read.value) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "[1",
        "{a: 1}",
        "[NaN]",
        "[Infinity]",
        '{"a": 1, "a": 2}',
        '["\\ud800"]',
        '["\\u0000"]',
        "[" * 5000,
        "[" * 70 + "]" * 70,
        "[" + "9" * 30 + "]",
        "[1] x",
    ],
)
def test_json_in_a_text_is_read_as_strictly_as_a_document(text: str) -> None:
    for document in (
        a_manifest(metadata=annotated(flavors=text)),
        a_manifest(metadata=annotated(retries_on=text)),
    ):
        error = refusal_of(document)
        assert (type(error), error.hint) == (InvalidInput, "write a JSON list or mapping")
        assert error.detail.endswith(": not JSON")


@pytest.mark.parametrize("text", ["", ",", " , ", "[]"])
@pytest.mark.parametrize("field", ["flavors", "retries_on", "depends_on"])
def test_an_empty_list_asks_for_nothing_however_it_is_written(field: str, text: str) -> None:
    assert read_job(a_manifest(metadata=annotated(**{field: text}))).name == "job"
    assert read_with(a_manifest(), **{field: text}).name == "job"


@pytest.mark.parametrize("text", ["a", "a,b", '["a"]', " a , "])
def test_a_list_that_asks_for_something_is_not_built(text: str) -> None:
    error = refusal_of(a_manifest(metadata=annotated(flavors=text)))
    assert type(error) is NotSupportedYet
    assert error.hint == "use a nodeSelector"


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        ("2030-01-31T18:00:00Z", True),
        ("2030-01-31T18:00:00+02:00", True),
        ("2030-01-31 18:00:00+00:00", True),
        ("2030-01-31T18:00:00", False),
        ("2030-01-31", False),
        ("18:00", False),
        ("soon", False),
        ("", False),
        ("2030-02-30T00:00:00Z", False),
        ("9999-12-31T23:59:59-10:00", False),
        ("0001-01-01T00:00:00+10:00", False),
    ],
)
@pytest.mark.parametrize("field", ["not_before_at", "deadline_at"])
def test_a_time_needs_a_zone_and_a_year_in_every_zone(
    field: str, text: str, *, is_time: bool
) -> None:
    for way, read in WAYS.items():
        if is_time:
            assert getattr(read(field, text), field) == text
        else:
            error = refusal(way, field, text)
            assert type(error) is InvalidInput
            assert error.pointer == place_of(way, field)


@pytest.mark.parametrize(("alias", "field"), ALIASES.items())
def test_every_member_of_a_group_has_a_flat_name_of_a_field(alias: str, field: str) -> None:
    assert field in FIELDS
    group = next(name for name in GROUPS if alias.startswith(f"{name}_"))
    assert GROUPS[group][alias.removeprefix(f"{group}_")] == field


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_refuses_members_that_it_does_not_have(group: str) -> None:
    for way in ("short form", "override"):
        error = refusal(way, group, {"nothing_of_the_kind": 1})
        assert error.pointer == f"/{group}/nothing_of_the_kind"
        assert error.allowed == tuple(GROUPS[group])
        assert refusal(way, group, "text").allowed == ("a mapping",)
        assert WAYS[way](group, {}).name == WAYS[way](group, None).name == "job"


def test_a_group_member_may_be_spelled_with_dashes() -> None:
    spec = read_job(short(devices={"pair": "numa", "accept-advisory": True}))
    assert spec == read_job(short(pair="numa", accept_advisory=True))


def test_nothing_given_in_a_group_is_nothing_said() -> None:
    given = short(devices={"pair": None, "required": None}, queue=None)
    assert read_job(given) == read_job(short())


def test_the_annotation_of_a_field_is_its_name_with_dashes() -> None:
    assert FIELDS["queue_timeout_seconds"].annotation == "training-gateway.io/queue-timeout-seconds"
    assert len({field.annotation for field in FIELDS.values()}) == len(FIELDS)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("qeue", "did you mean 'queue'?"),
        ("Priority", "did you mean 'priority'?"),
        ("image", "write it into the pod template"),
        ("workers", "write it into the pod template"),
        ("resources", "write it into the pod template"),
        ("x", "remove it; the prefix is the gateway's own"),
        ("", "remove it; the prefix is the gateway's own"),
    ],
)
def test_an_unknown_annotation_under_the_prefix_is_never_ignored(key: str, hint: str) -> None:
    document = a_manifest(metadata={"annotations": {f"training-gateway.io/{key}": "1"}})
    error = refusal_of(document, ReadOptions(allow_unsafe_templates=True))
    assert type(error) is InvalidInput
    if key:
        assert error.hint == hint
        assert f"training-gateway.io/{key} is not a field of the gateway" in error.detail
        assert "training-gateway.io/queue" in error.allowed
    else:
        assert error.hint == "rename the key"
