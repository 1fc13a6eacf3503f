"""Texts of one template are read once, and come out as if each had been read in full."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.api.templates import MOST_TEMPLATES, Reading, Templates
from gateway.errors import InvalidInput
from gateway.manifests import ReadOptions, read_job
from gateway.manifests.remembering import alone
from tests.unit.manifests.building import a_manifest


class Reader:
    """Reads texts in full, and counts how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, text: str) -> Reading:
        """Read in full."""
        self.count += 1
        return read_directly(text)


def read_directly(text: str) -> Reading:
    document = json.loads(text)
    key = document.get("idempotency_key")
    return Reading(alone(read_job(document.get("manifest", document), ReadOptions())), key)


def a_text(name: Any, labels: dict[str, str] | None = None, workers: int = 0) -> str:
    metadata = {"labels": labels or {}, "name": name}
    return json.dumps(a_manifest(metadata=metadata, workers=workers))


def an_entry(name: str, key: str, *, is_key_first: bool = False) -> str:
    entry = {"manifest": a_manifest(metadata={"name": name}), "idempotency_key": key}
    return json.dumps(dict(reversed(entry.items())) if is_key_first else entry)


def told(reading: Reading) -> Any:
    return reading.job.spec, reading.job.digest, reading.key


@pytest.fixture
def templates(monkeypatch: pytest.MonkeyPatch) -> Templates:
    """Give an empty memory that learns from every text."""
    monkeypatch.setattr("gateway.api.templates.LEARN_SECONDS", -1.0)
    return Templates()


def test_texts_of_one_template_are_read_once(templates: Templates) -> None:
    reader = Reader()
    for number in range(10):
        text = a_text(f"job-{number}", workers=3)
        assert told(templates.read((), text, reader)) == told(read_directly(text))
    assert reader.count == 2  # the first one, and once more to learn it


@pytest.mark.parametrize("is_key_first", [True, False])
def test_entries_may_differ_by_their_keys_too(templates: Templates, *, is_key_first: bool) -> None:
    reader = Reader()
    for name, key in (("same", "same"), ("one", "k-1"), ("two", "k-2"), ("three", "two")):
        text = an_entry(name, key, is_key_first=is_key_first)
        assert told(templates.read((), text, reader)) == told(read_directly(text))
    assert reader.count <= 5  # the first one, and each way to cut out name and key


@pytest.mark.parametrize("key", ["", "ä", 'a"b', "a\\u0062", "x" * 300])
def test_unusual_keys_come_out_as_they_were(templates: Templates, key: str) -> None:
    reader = Reader()
    for name in ("one", "two"):
        for text in (an_entry(name, "usual"), an_entry(name, key)):
            assert told(templates.read((), text, reader)) == told(read_directly(text))


def test_a_template_is_found_where_it_begins_in_a_longer_text(templates: Templates) -> None:
    templates.read((), an_entry("one", "k-1"), Reader())
    text = f"[{an_entry('two', 'k-2')}, 5]"
    found = templates.find((), text, 1)
    assert found is not None
    assert told(found[0]) == told(read_directly(an_entry("two", "k-2")))
    assert text[found[1] :] == ", 5]"
    assert templates.find((), text, 0) is None


def test_a_name_that_stands_elsewhere_too_is_changed_in_one_place(templates: Templates) -> None:
    reader = Reader()
    for name in ("train", "other", "pytorch"):
        text = a_text(name, labels={"app": "train", "tier": "other"})
        assert told(templates.read((), text, reader)) == told(read_directly(text))


def test_another_context_is_another_reading(templates: Templates) -> None:
    reader = Reader()
    for context in (("user",), ("admin",)):
        templates.read(context, a_text("one"), reader)
    assert reader.count == 4


NAMES = st.from_regex(r"[a-z0-9A\"\\-]{0,60}", fullmatch=True) | st.sampled_from(
    ["a" * 41, "a" * 49, "a\\u0062", 'x","name":"y', "pytorch"]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(NAMES, max_size=6))
def test_names_are_judged_as_if_nothing_were_remembered(names: list[str]) -> None:
    templates, reader = Templates(), Reader()
    templates.read((), a_text("first", workers=11), reader)
    for name in names:
        text = a_text("first", workers=11).replace('"first"', f'"{name}"')
        try:
            expected = told(read_directly(text))
        except (InvalidInput, json.JSONDecodeError) as error:
            expected = type(error), str(error)
        try:
            found = told(templates.read((), text, reader))
        except (InvalidInput, json.JSONDecodeError) as error:
            found = type(error), str(error)
        assert found == expected


def test_what_is_refused_is_not_learned(templates: Templates) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput):
            templates.read((), a_text("Bad_Name"), Reader())
    assert templates._known == ()


def test_memory_is_bounded(templates: Templates) -> None:
    for number in range(MOST_TEMPLATES + 5):
        templates.read((), a_text("one", labels={"n": str(number)}), Reader())
    assert len(templates._known) == MOST_TEMPLATES
    templates.read((), a_text("one", labels={"n": "x" * 63}) + " " * 20_000, Reader())
    assert all(len(each.cut.tail) < 20_000 for each in templates._known)
