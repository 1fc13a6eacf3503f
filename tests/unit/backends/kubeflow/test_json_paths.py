"""JSON of others is read without surprise: the right kind, or empty."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.kubeflow.json_paths import (
    at,
    entry_with,
    items_at,
    mapping_at,
    text_at,
    texts_at,
    whole_at,
)
from tests.unit.backends.kubeflow.test_observation import anything

VALUES = [None, True, 0, 7, 1.5, "", "text", [], [{"a": "b"}, 3, None], {}, {"k": "v", "n": 1}]
keys = st.sampled_from(["a", "b", "metadata"])


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    ("reader", "is_fit", "empty"),
    [
        (mapping_at, lambda value: isinstance(value, dict), {}),
        (text_at, lambda value: isinstance(value, str), ""),
        (whole_at, lambda value: type(value) is int, None),
    ],
)
def test_a_value_of_another_kind_reads_as_empty(
    reader: Callable[..., Any], is_fit: Callable[[Any], bool], empty: object, value: object
) -> None:
    expected = value if is_fit(value) else empty

    assert reader({"x": {"y": value}}, "x", "y") == expected
    assert type(reader({"x": {"y": value}}, "x", "y")) is type(expected)


def test_only_objects_of_a_list_and_only_texts_of_an_object_are_given() -> None:
    assert items_at({"x": [{"a": 1}, "b", None, [], {"c": 2}]}, "x") == [{"a": 1}, {"c": 2}]
    assert texts_at({"x": {"a": "1", "b": 2, "c": None, "d": ""}}, "x") == {"a": "1", "d": ""}


@given(anything, st.lists(keys, max_size=4))
def test_no_path_into_any_document_raises(document: Any, path: list[str]) -> None:
    assert isinstance(mapping_at(document, *path), dict)
    assert all(isinstance(item, dict) for item in items_at(document, *path))
    assert isinstance(text_at(document, *path), str)
    assert all(isinstance(text, str) for text in texts_at(document, *path).values())
    assert type(whole_at(document, *path)) in {int, type(None)}


@given(anything, keys, keys)
def test_a_path_is_read_step_by_step(document: Any, first: str, second: str) -> None:
    assert at(document) == document
    assert at(document, first, second) == at(at(document, first), second)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"name": "b"}, {"name": "b", "n": "2"}),
        ({"name": "b", "n": "2"}, {"name": "b", "n": "2"}),
        ({"name": "b", "n": "3"}, {"name": "b", "n": "3"}),
        ({"name": "c"}, None),
        ({}, {"name": "a"}),
    ],
)
def test_the_first_entry_with_all_texts_is_found(wanted: dict[str, str], found: object) -> None:
    entries = [{"name": "a"}, {"name": "b", "n": "2"}, {"name": "b", "n": "3"}]

    assert entry_with(entries, **wanted) == found


def test_an_entry_whose_values_cannot_be_hashed_is_still_compared() -> None:
    entries: list[dict[str, Any]] = [{"name": [], "x": {}}, {"name": "a", "x": {"y": []}}]

    assert entry_with(entries, name="a") == entries[1]
