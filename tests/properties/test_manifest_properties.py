"""What users write survives every change of form; amounts and states obey their laws."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.jobs.machine import TRANSITIONS, next_state
from gateway.core.resources import amounts, minus, plus, times
from gateway.core.resources.words import in_words
from gateway.core.vocabulary import TERMINAL_STATES, JobEvent, JobState
from gateway.errors import InvalidInput, InvalidTransition
from gateway.manifests import ReadOptions, digest, read_job, read_jobs
from gateway.manifests.naming import is_fitting_name, longest_name
from gateway.manifests.quantities import parse_quantity

quick = settings(deadline=None, max_examples=40)
names = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
maps = st.dictionaries(st.sampled_from(["cpu", "gpu", "memory", "rdma"]), st.integers(-99, 99))
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=12)
fields = st.fixed_dictionaries(
    {"name": names, "image": st.just("a")},
    optional={
        "queue": names,
        "priority": st.integers(-(10**9), 10**9),
        "hold": st.booleans(),
        "workers": st.integers(0, 12),
        "run_timeout_seconds": st.integers(1, 10**6),
        "env": st.dictionaries(st.from_regex(r"[A-Z]{1,4}", fullmatch=True), texts, max_size=3),
        "args": st.lists(texts, max_size=3),
        "devices": st.fixed_dictionaries({"pair": st.sampled_from(["numa", "switch", "none"])}),
        "resources": st.fixed_dictionaries({"cpu": st.integers(1, 99), "gpu": st.integers(0, 8)}),
    },
)


@quick
@given(fields)
def test_a_short_form_gives_one_digest_in_every_format(document: dict[str, Any]) -> None:
    expected = digest(read_job(document))
    manifest = read_job(document).manifest
    sources: list[Any] = [json.dumps(document).encode(), yaml.safe_dump(document).encode()]
    sources += [json.dumps(manifest).encode(), yaml.safe_dump(manifest).encode(), manifest]
    for source in sources:
        (spec,) = read_jobs(source)
        assert digest(spec) == expected


@quick
@given(fields, st.data())
def test_overriding_a_field_is_writing_it(document: dict[str, Any], data: st.DataObject) -> None:
    moved = data.draw(st.sampled_from(sorted(document)))
    rest = {key: value for key, value in document.items() if key != moved}
    base = {**rest, "image": document["image"]}
    overridden = read_job(base, ReadOptions(overrides={moved: document[moved]}))
    assert digest(overridden) == digest(read_job(document))


@quick
@given(st.text(max_size=60), st.integers(0, 9999))
def test_a_suggested_name_would_be_taken(name: str, workers: int) -> None:
    if (
        is_fitting_name(name, workers)
        or "\0" in name
        or any("\ud800" <= c <= "\udfff" for c in name)
    ):
        return
    with pytest.raises(InvalidInput) as caught:
        read_job({"name": name, "image": "a", "workers": workers})
    hint = caught.value.hint
    if "'" in hint:
        assert is_fitting_name(hint.split("'")[1], workers)


@given(st.integers(0, 9999))
def test_more_workers_never_leave_more_room_for_a_name(workers: int) -> None:
    assert longest_name(workers + 1) <= longest_name(workers)


@given(st.integers(0, 10**9), st.sampled_from(["", "m", "k", "Ki", "M", "Mi"]))
def test_more_of_a_unit_is_never_less(number: int, unit: str) -> None:
    assert parse_quantity(f"{number}{unit}", "cpu") <= parse_quantity(f"{number + 1}{unit}", "cpu")
    assert parse_quantity(f" {number}{unit}\n", "cpu") == parse_quantity(f"+{number}{unit}", "cpu")


@given(st.integers(0, 2**50))
def test_memory_in_words_can_be_typed_in_again(amount: int) -> None:
    number, unit, *_ = in_words("memory", amount).split()
    suffix = "" if unit == "bytes" else unit.removesuffix("B")
    assert parse_quantity(number + suffix, "memory") == amount


@given(maps, maps, maps, st.integers(-9, 9))
def test_amounts_obey_the_laws_of_arithmetic(
    one: Mapping[str, int], two: Mapping[str, int], three: Mapping[str, int], factor: int
) -> None:
    a, b, c = amounts(one), amounts(two), amounts(three)
    assert plus(a, b) == plus(b, a)
    assert plus(plus(a, b), c) == plus(a, plus(b, c))
    assert minus(plus(a, b), b) == a
    assert times(plus(a, b), factor) == plus(times(a, factor), times(b, factor))
    assert list(a) == sorted(a)
    assert all(count for _, count in minus(a, b))


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("event", JobEvent)
def test_every_event_follows_the_table_or_is_refused_with_what_does(
    state: JobState, event: JobEvent
) -> None:
    if (state, event) in TRANSITIONS:
        assert next_state(state, event) is TRANSITIONS[state, event]
        return
    with pytest.raises(InvalidTransition) as caught:
        next_state(state, event)
    error = caught.value
    assert error.detail == f"a job in state {state} does not take {event}"
    assert error.allowed == tuple(sorted(each for origin, each in TRANSITIONS if origin is state))
    assert bool(error.allowed) is (state not in {*TERMINAL_STATES, JobState.STOPPING})
