"""YAML means what kubectl takes it for; what is doubtful is refused with its line."""

from typing import Any

import pytest

from gateway.errors import BodyTooLarge, MalformedBody
from gateway.manifests.yaml_text import read_yaml


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text", "text"),
        ("1", 1),
        ("-7", -7),
        ("+7", 7),
        ("1_000", 1000),
        ("0755", 0o755),
        ("0o17", 15),
        ("-010", -8),
        ("0x1F", 31),
        ("0b101", 5),
        ("0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-1.5e-2", -0.015),
        ("yes", True),
        ("On", True),
        ("no", False),
        ("OFF", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("10:30", "10:30"),
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("0.1.0-rc1", "0.1.0-rc1"),
        ("'yes'", "yes"),
        ('"1"', "1"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("!!int 5", 5),
        ("!!float 5", 5.0),
        ("!!bool yes", True),
        ("!!null ~", None),
        ("=", "="),
        ("_", "_"),
    ],
)
def test_a_word_means_what_kubectl_takes_it_for(word: str, value: object) -> None:
    (document,) = read_yaml(f"a: {word}\n")
    assert document == {"a": value}
    assert type(document["a"]) is type(value)


@pytest.mark.parametrize("word", ["y", "Y", "n", "N", "08", "-09"])
def test_words_that_pyyaml_leaves_alone_stay_texts_though_kubectl_reads_more(word: str) -> None:
    assert read_yaml(f"a: {word}\n") == [{"a": word}]


@pytest.mark.parametrize("text", ["!!float yes", "!!float x", "!!int 1.5", "!!bool 1", "!!null 0"])
def test_a_word_that_is_not_of_its_tag_is_refused(text: str) -> None:
    with pytest.raises(MalformedBody, match=r"line 1: .* is not of the tag"):
        read_yaml(f"a: {text}\n")


@pytest.mark.parametrize(
    ("text", "detail", "hint"),
    [
        ("a:\n\tb: 1\n", "line 2, column 1: a tab", "spaces"),
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' is given twice", "one of the two"),
        ("a: {b: 1, b: 2}\n", "line 1: the key 'b'", "one of the two"),
        ("a: [1, 2\nb: 3\n", "line 2", "check"),
        ("a: b: c\n", "line 1, column 5", "check"),
        ("a: *b\n", "the alias *b has no anchor", "define the anchor"),
        ("a: &a {b: *a}\n", "the alias *a contains itself", "define the anchor"),
        ("a: .nan\n", "line 1: .nan", "finite"),
        ("a: -.inf\n", "line 1: -.inf", "finite"),
        ("a: !!int x\n", "'x' is not of the tag", "plain"),
        ("a: !!binary aGk=\n", "the tag", "plain"),
        ("a: !secret x\n", "the tag '!secret'", "plain"),
        ("a: !!set {b}\n", "the tag", "remove the tag"),
        ("? [a, b]\n: c\n", "a key must be a text", "quotes"),
        ("a:\n  <<: 5\n", "<< merges mappings only", "alias"),
        ("a: \x07\n", "not YAML", "unprintable"),
        ("a: 'b\n", "line", "check"),
        ("%YAML 9.9\n---\na: 1\n", "", ""),
        ("[" * 200, "nested deeper than 64", "flatten"),
        ("- " * 200 + "a", "nested deeper than 64", "flatten"),
    ],
)
def test_doubtful_yaml_is_refused_with_its_line(text: str, detail: str, hint: str) -> None:
    with pytest.raises(MalformedBody) as caught:
        read_yaml(text)
    assert detail in caught.value.detail
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x 1\nb: *x\n", {"a": 1, "b": 1}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}\n", {"a": {"b": 1}, "c": {"d": 2, "b": 1}}),
        ("a: &x {b: 1}\nc: {b: 2, <<: *x}\n", {"a": {"b": 1}, "c": {"b": 2}}),
        (
            "a: [&x {k: 1}, &y {k: 2, l: 3}]\nb: {<<: [*x, *y]}\n",
            {"a": [{"k": 1}, {"k": 2, "l": 3}], "b": {"k": 1, "l": 3}},
        ),
        ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
        ("&k a: 1\nb: *k\n", {"a": 1, "b": "a"}),
        ("a: '<<'\n", {"a": "<<"}),
        ("'<<': 1\n", {"<<": 1}),
        ("a: |\n  x\n  \ty\n", {"a": "x\n\ty\n"}),
        ("a: >-\n  x\n  y\n", {"a": "x y"}),
        ('a: "\\u00e9"\n', {"a": "\u00e9"}),
    ],
)
def test_anchors_merges_and_blocks_are_read(text: str, expected: Any) -> None:
    assert read_yaml(text) == [expected]


def test_documents_are_told_apart_and_empty_ones_are_none() -> None:
    assert read_yaml("a: 1\n---\n---\n# c\n---\nb: 2\n...\n") == [{"a": 1}, None, None, {"b": 2}]


def test_an_anchor_ends_with_its_document() -> None:
    with pytest.raises(MalformedBody, match="has no anchor"):
        read_yaml("a: &x 1\n---\nb: *x\n")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
        + "".join(
            f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
            for old, new in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        "a: &a " + "x" * 10_000 + "\nb: [" + ", ".join(["*a"] * 200) + "]\n",
        "- 1\n" * 60_000,
    ],
)
def test_aliases_that_multiply_are_refused_before_they_are_written_out(text: str) -> None:
    with pytest.raises(BodyTooLarge):
        read_yaml(text)
