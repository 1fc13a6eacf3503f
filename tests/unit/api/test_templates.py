"""Bodies of one template are read once, and come out as if each had been read in full."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.api.templates import MOST_TEMPLATES, Templates
from gateway.errors import InvalidInput
from gateway.manifests import ReadOptions, digest, read_job
from gateway.manifests.remembering import ReadJob
from gateway.service.prepared import Prepared, prepare
from tests.unit.manifests.building import a_manifest


class Reader:
    """Reads bodies in full, and counts how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, body: bytes) -> ReadJob:
        """Read in full."""
        self.count += 1
        spec = read_job(json.loads(body), ReadOptions())
        return ReadJob(spec, digest(spec))


def a_body(name: Any, labels: dict[str, str] | None = None, workers: int = 0) -> bytes:
    metadata = {"labels": labels or {}, "name": name}
    return json.dumps(a_manifest(metadata=metadata, workers=workers)).encode()


def read_directly(body: bytes) -> Prepared:
    return prepare(read_job(json.loads(body), ReadOptions()))


@pytest.fixture
def templates(monkeypatch: pytest.MonkeyPatch) -> Templates:
    """Give an empty memory that learns from every body."""
    monkeypatch.setattr("gateway.api.templates.LEARN_SECONDS", -1.0)
    return Templates()


def test_bodies_of_one_template_are_read_once(templates: Templates) -> None:
    reader = Reader()
    for number in range(10):
        body = a_body(f"job-{number}", workers=3)
        assert templates.read((), body, reader) == read_directly(body)
    assert reader.count == 2  # the first one, and once more to learn it


def test_a_name_that_stands_elsewhere_too_is_changed_in_one_place(templates: Templates) -> None:
    reader = Reader()
    for name in ("train", "other", "pytorch"):
        body = a_body(name, labels={"app": "train", "tier": "other"})
        assert templates.read((), body, reader) == read_directly(body)


def test_another_context_is_another_reading(templates: Templates) -> None:
    reader = Reader()
    for context in (("user",), ("admin",)):
        templates.read(context, a_body("one"), reader)
    assert reader.count == 4


NAMES = st.from_regex(r"[a-z0-9A\"\\-]{0,60}", fullmatch=True) | st.sampled_from(
    ["a" * 41, "a" * 49, "a\\u0062", 'x","name":"y', "pytorch"]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(NAMES, max_size=6))
def test_names_are_judged_as_if_nothing_were_remembered(names: list[str]) -> None:
    templates, reader = Templates(), Reader()
    templates.read((), a_body("first", workers=11), reader)
    for name in names:
        body = a_body("first", workers=11).replace(b'"first"', b'"' + name.encode() + b'"')
        try:
            expected: Any = read_directly(body)
        except (InvalidInput, json.JSONDecodeError) as error:
            expected = type(error), str(error)
        try:
            found: Any = templates.read((), body, reader)
        except (InvalidInput, json.JSONDecodeError) as error:
            found = type(error), str(error)
        assert found == expected


def test_what_is_refused_is_not_learned(templates: Templates) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput):
            templates.read((), a_body("Bad_Name"), Reader())
    assert templates._known == ()


def test_memory_is_bounded(templates: Templates) -> None:
    for number in range(MOST_TEMPLATES + 5):
        templates.read((), a_body("one", labels={"n": str(number)}), Reader())
    assert len(templates._known) == MOST_TEMPLATES
    templates.read((), a_body("one", labels={"n": "x" * 63}) + b" " * 20_000, Reader())
    assert len(templates._known[0].head + templates._known[0].tail) < 20_000
