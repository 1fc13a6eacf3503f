"""What comes out of reading is plain JSON data of its own, bounded and storable."""

import json
from collections import OrderedDict, UserDict
from collections.abc import Callable
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from gateway.errors import BodyTooLarge, InvalidInput
from gateway.manifests.plain import MAX_DEPTH, MAX_NODES, plain, without_nulls
from gateway.manifests.spot import MAX_INT64


class Word(StrEnum):
    """A word of a closed list."""

    NUMA = "numa"


class Number(IntEnum):
    """A number with a name."""

    TWO = 2


class Text(str):
    """A text that prints as another."""

    __slots__ = ()

    def __str__(self) -> str:
        return "another text"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": Word.NUMA}, {"a": "numa"}),
        ({Word.NUMA: 1}, {"numa": 1}),
        ([Number.TWO], [2]),
        ((1, (2,)), [1, [2]]),
        (Text("a"), "a"),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (UserDict({"a": UserDict({"b": 1})}), {"a": {"b": 1}}),
        (np.float64(1.5), 1.5),
        (np.float64(4.0), 4),
        (1.0, 1),
        (-0.0, 0),
        (1e15, 10**15),
        (True, True),
        (None, None),
        ("", ""),
        ("\u00e9\U0001f600", "\u00e9\U0001f600"),
        (MAX_INT64, MAX_INT64),
        (-MAX_INT64, -MAX_INT64),
    ],
)
def test_a_value_becomes_the_json_value_that_it_stands_for(value: Any, expected: Any) -> None:
    read = plain(value)
    assert read == expected
    assert type(read) is type(expected)
    assert json.loads(json.dumps(read)) == expected


def test_the_types_of_nested_values_are_exact() -> None:
    read = plain({"list": (Number.TWO, Text("a"), 2.0, True)})
    assert [type(each) for each in read["list"]] == [int, str, int, bool]


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (float("nan"), "nan is no number"),
        (float("-inf"), "-inf is no number"),
        (MAX_INT64 + 1, "the number does not fit into 64 bits"),
        (-MAX_INT64 - 2, "the number does not fit into 64 bits"),
        (1e19, "the number does not fit into 64 bits"),
        (b"x", "a bytes has no form in JSON"),
        ({1, 2}, "a set has no form in JSON"),
        (1j, "a complex has no form in JSON"),
        (len, "a builtin_function_or_method has no form in JSON"),
        ("a\0b", "the text holds a NUL or half of a character"),
        ("\udfff", "the text holds a NUL or half of a character"),
        (np.int64(3), "a int64 has no form in JSON"),
    ],
)
@pytest.mark.parametrize(
    ("wrapped", "pointer"),
    [
        (lambda value: value, ""),
        (lambda value: {"a/b": value}, "/a~1b"),
        (lambda value: [0, {"c": [value]}], "/1/c/0"),
    ],
)
def test_a_value_without_a_form_in_json_is_refused_with_its_place(
    value: object, detail: str, wrapped: Callable[[object], object], pointer: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        plain(wrapped(value))
    assert caught.value.pointer == pointer
    assert caught.value.detail == f"{pointer or 'the document'}: {detail}"
    assert json.dumps(caught.value.value, allow_nan=False).encode()


@pytest.mark.parametrize(
    ("key", "pointer", "detail"),
    [
        (1, "/a/1", "the key 1 is not a text"),
        (True, "/a/True", "the key True is not a text"),
        (None, "/a/None", "the key None is not a text"),
        ("b\0", "/a/b?", "the text holds a NUL or half of a character"),
        ("\ud800", "/a/?", "the text holds a NUL or half of a character"),
    ],
)
def test_a_key_that_is_no_storable_text_is_refused(key: object, pointer: str, detail: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plain({"a": {key: 1}})
    assert caught.value.pointer == pointer
    assert detail in caught.value.detail


def test_a_key_that_yaml_took_for_something_else_is_shown_in_quotes() -> None:
    with pytest.raises(InvalidInput) as caught:
        plain({False: "x"})
    assert caught.value.hint == 'put the key into quotes: "False"'


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_depth_is_bounded_to_the_level(wrap: Callable[[Any], Any]) -> None:
    deepest = nested(MAX_DEPTH, wrap)
    assert plain(deepest) == deepest
    with pytest.raises(InvalidInput) as caught:
        plain(nested(MAX_DEPTH + 1, wrap))
    assert caught.value.hint == "flatten the document"
    assert f"nested deeper than {MAX_DEPTH} levels" in caught.value.detail


def test_a_value_that_holds_itself_is_refused_and_not_followed_for_ever() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidInput, match="nested deeper"):
        plain(circle)


def test_the_number_of_values_is_bounded_to_the_value() -> None:
    assert len(plain(["x"] * (MAX_NODES - 1))) == MAX_NODES - 1
    with pytest.raises(BodyTooLarge) as caught:
        plain(["x"] * MAX_NODES)
    assert caught.value.allowed == (f"at most {MAX_NODES} values",)


def test_one_list_that_is_held_many_times_counts_each_time() -> None:
    inner = ["x"] * 1000
    with pytest.raises(BodyTooLarge):
        plain([inner] * 60)


def test_the_copy_shares_nothing_with_its_source() -> None:
    inner = {"b": [1]}
    read = plain({"a": inner, "c": inner})
    inner["b"].append(2)
    read["a"]["b"].append(3)
    assert read == {"a": {"b": [1, 3]}, "c": {"b": [1]}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": None, "b": 1}, {"b": 1}),
        ({"a": {"b": None}}, {"a": {}}),
        ([None, {"a": None}], [None, {}]),
        ({"a": [{"b": None, "c": 0}]}, {"a": [{"c": 0}]}),
        ({"a": ""}, {"a": ""}),
        ({"a": False}, {"a": False}),
        (None, None),
        (5, 5),
    ],
)
def test_nulls_go_with_their_keys_but_stay_in_lists(value: Any, expected: Any) -> None:
    assert without_nulls(value) == expected
    assert without_nulls(without_nulls(value)) == expected
