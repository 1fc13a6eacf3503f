"""Every value is read with its place, and a wrong one is refused in words that help."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.errors import InvalidInput, NotSupportedYet
from gateway.manifests.spot import MAX_INT64, Spot, is_number, is_whole

Read = Callable[[Spot], object]

READERS: dict[str, Read] = {
    "fields": lambda spot: dict(spot.fields()),
    "items": lambda spot: [item.value for item in spot.items()],
    "text": Spot.text,
    "flag": Spot.flag,
    "texts": Spot.texts,
    "text_map": Spot.text_map,
}
NOTHING = {
    "fields": {},
    "items": [],
    "text": "",
    "flag": False,
    "texts": [],
    "text_map": {},
}
WORDS = {
    "fields": "a mapping",
    "items": "a list",
    "text": "a text",
    "flag": "a boolean",
    "texts": "a list",
    "text_map": "a mapping",
}
VALUES: dict[str, Any] = {
    "a mapping": {"a": "b"},
    "a list": ["a"],
    "a text": "a",
    "a boolean": True,
    "a whole number": 7,
    "a number": 0.5,
}
WRONG = [
    (reader, found) for reader, expected in WORDS.items() for found in VALUES if found != expected
]


def at_place(value: object) -> Spot:
    return Spot({"spec": [{"a/b": value}]}).at("spec").items()[0].at("a/b")


def refusal(spot: Spot, read: Read) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read(spot)
    return caught.value


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_value_reads_as_an_empty_one(reader: str) -> None:
    spot = Spot({}).at("never", "given")
    assert spot.is_missing
    assert READERS[reader](spot) == NOTHING[reader]
    assert READERS[reader](Spot(None)) == NOTHING[reader]


@pytest.mark.parametrize(("reader", "expected"), WORDS.items())
def test_a_value_of_the_right_type_is_given(reader: str, expected: str) -> None:
    assert READERS[reader](at_place(VALUES[expected])) == VALUES[expected]


@pytest.mark.parametrize(("reader", "found"), WRONG)
def test_a_value_of_another_type_is_refused_with_both_types(reader: str, found: str) -> None:
    error = refusal(at_place(VALUES[found]), READERS[reader])
    assert error.pointer == "/spec/0/a~1b"
    assert error.detail == f"/spec/0/a~1b: {WORDS[reader]} belongs here, not {found}"
    assert error.allowed == (WORDS[reader],)
    assert error.value == VALUES[found]
    assert error.hint


@pytest.mark.parametrize(
    ("value", "read", "hint"),
    [
        ("5", lambda spot: spot.whole(1), "write it without quotes"),
        ("-5", lambda spot: spot.whole(1), "write it without quotes"),
        ("+5", lambda spot: spot.whole(1), "write it without quotes"),
        ("0", lambda spot: spot.whole(1), "write it without quotes"),
        ("08", lambda spot: spot.whole(1), "write a whole number"),
        ("--5", lambda spot: spot.whole(1), "write a whole number"),
        ("5 ", lambda spot: spot.whole(1), "write a whole number"),
        ("\u0665", lambda spot: spot.whole(1), "write a whole number"),
        ("", lambda spot: spot.whole(1), "write a whole number"),
        ("$N", lambda spot: spot.whole(1), "a variable was left unexpanded"),
        ("${N}", Spot.flag, "a variable was left unexpanded"),
        ("$LIST", Spot.items, "a variable was left unexpanded"),
        ("1", Spot.flag, "write true or false"),
        ("yes", Spot.flag, "write true or false"),
        (1, Spot.flag, "write true or false"),
        (True, Spot.text, "YAML reads true, false, yes, no, on and off as booleans"),
        (False, Spot.text, "YAML reads true, false, yes, no, on and off as booleans"),
        (8, Spot.text, 'put it into quotes: "8"'),
        (0.5, Spot.text, 'put it into quotes: "0.5"'),
        ([], Spot.text, "write a text"),
        ({}, Spot.items, "write a list"),
        (None, Spot.text_value, "give a value, or remove the key"),
        (None, lambda spot: spot.whole(1), "give a value, or remove the key"),
        (True, lambda spot: spot.whole(0), "write a whole number"),
        (1.5, lambda spot: spot.whole(0), "write a whole number"),
    ],
)
def test_the_hint_says_how_to_write_what_was_meant(value: object, read: Read, hint: str) -> None:
    assert refusal(Spot(value), read).hint.startswith(hint)


@pytest.mark.parametrize(
    ("keys", "pointer"),
    [
        ([], ""),
        (["a"], "/a"),
        ([""], "/"),
        (["a", 0, "b"], "/a/0/b"),
        (["a/b", "c~d"], "/a~1b/c~0d"),
        (["~1"], "/~01"),
        (["~/"], "/~0~1"),
        (["\u00e9", "a b"], "/\u00e9/a b"),
    ],
)
def test_pointers_are_written_as_rfc_6901_says(keys: list[str | int], pointer: str) -> None:
    spot = Spot(None)
    for key in keys:
        spot = spot.child(key, None)
    assert spot.pointer == pointer


def test_a_spot_inside_a_text_keeps_the_place_of_the_text() -> None:
    assert Spot([1], "/metadata/annotations/a").items()[0].pointer == "/metadata/annotations/a/0"


def test_the_top_is_called_the_document() -> None:
    error = refusal(Spot("a"), Spot.fields)
    assert (error.pointer, error.detail) == (
        "",
        "the document: a mapping belongs here, not a text",
    )


@pytest.mark.parametrize(
    ("value", "is_fine"),
    [(1, True), (5, True), (0, False), (6, False), (-1, False), (2**70, False)],
)
def test_whole_numbers_have_bounds_that_are_told(value: int, *, is_fine: bool) -> None:
    if is_fine:
        assert Spot(value).whole(1, 5) == value
        return
    error = refusal(Spot(value), lambda spot: spot.whole(1, 5))
    assert error.detail == f"the document: {value} is not between 1 and 5"
    assert (error.allowed, error.hint) == (("1 to 5",), "choose a number in this range")


def test_a_missing_number_takes_its_default_and_a_wrong_one_never() -> None:
    assert Spot(None).whole_or(3, 1, 5) == 3
    assert Spot(None).whole_or(99, 1, 5) == 99
    assert Spot(MAX_INT64).whole(0) == MAX_INT64
    refusal(Spot(0), lambda spot: spot.whole_or(3, 1, 5))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("nume", "did you mean 'numa'?"),
        ("NUMA", "did you mean 'numa'?"),
        ("zzz", "choose one of the allowed values"),
        ("", "choose one of the allowed values"),
        (" numa", "did you mean 'numa'?"),
    ],
)
def test_a_word_that_is_not_allowed_is_told_with_those_that_are(value: str, hint: str) -> None:
    error = refusal(Spot(value), lambda spot: spot.choice(["switch", "numa"]))
    assert error.detail == f"the document: {value!r} is not one of switch, numa"
    assert (error.allowed, error.hint) == (("switch", "numa"), hint)


def test_a_word_that_is_missing_or_empty_is_the_default() -> None:
    assert Spot(None).choice(["a", "b"], default="b") == "b"
    assert Spot("").choice(["a", "b"], default="b") == "b"
    assert Spot(None).choice(["a", "b"]) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200 + "..."),
        ("\ud800", "?"),
        ({"a": 1}, {"a": 1}),
        ({"a": "x" * 300}, "a mapping"),
        (["x" * 300], "a list"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1.5, 1.5),
        (True, True),
        (None, None),
        (b"\x00", "b'\\x00'"),
    ],
)
def test_a_refused_value_is_shown_in_short_and_always_fits_json(
    value: object, shown: object
) -> None:
    assert Spot(value).refuse("no", hint="go").value == shown


def test_a_demand_raises_its_own_kind_of_refusal_or_nothing() -> None:
    Spot(1).demand(True, "never said", "never told")
    with pytest.raises(NotSupportedYet) as caught:
        Spot(1, "/a").demand(False, "is not built", "wait", allowed=("b",), kind=NotSupportedYet)
    error = caught.value
    assert (error.detail, error.hint, error.allowed) == ("/a: is not built", "wait", ("b",))


def test_a_mapping_is_made_where_one_is_missing_and_written_to_where_it_is() -> None:
    document: dict[str, Any] = {"metadata": {"labels": None}}
    spot = Spot(document).mapping_at("metadata")
    spot.mapping_at("annotations").value["a"] = "b"
    spot.mapping_at("labels").value["c"] = "d"
    assert document == {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}}
    refusal(Spot({"a": [1]}), lambda each: each.mapping_at("a"))


def test_a_key_is_dropped_wherever_it_may_be_missing() -> None:
    document: dict[str, Any] = {"a": {"b": 1, "c": 2}}
    Spot(document).at("a").drop("b")
    Spot(document).at("a").drop("b")
    Spot(document).at("x", "y").drop("z")
    assert document == {"a": {"c": 2}}


def test_nobody_can_write_into_what_is_missing() -> None:
    empty: Any = Spot(None).fields()
    with pytest.raises(TypeError):
        empty["a"] = 1


def test_a_step_into_a_text_is_refused_at_the_text() -> None:
    assert refusal(Spot({"a": "b"}), lambda spot: spot.at("a", "c")).pointer == "/a"


def test_given_entries_skip_what_is_missing_and_keep_the_order_that_was_asked() -> None:
    given = Spot({"a": 1, "b": None, "c": False}).given(["c", "b", "d", "a"])
    assert [(key, spot.value, spot.pointer) for key, spot in given] == [
        ("c", False, "/c"),
        ("a", 1, "/a"),
    ]


@pytest.mark.parametrize(
    ("value", "whole", "number"),
    [(1, True, True), (1.0, False, True), (True, False, False), ("1", False, False)],
)
def test_booleans_are_no_numbers(value: object, *, whole: bool, number: bool) -> None:
    assert (is_whole(value), is_number(value)) == (whole, number)
