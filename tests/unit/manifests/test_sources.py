"""Documents come out of every kind of source, and what is none is told plainly."""

import io
import os
import sys
from pathlib import Path

import pytest

from gateway.errors import BodyTooLarge, GatewayError, InvalidInput, MalformedBody
from gateway.manifests import read_documents
from gateway.manifests.reading import MAX_BYTES

SHORT = {"name": "a", "image": "b"}
TEXT = "name: a\nimage: b\n"


@pytest.mark.parametrize(
    "source",
    [
        TEXT,
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        "\ufeff" + TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\r"),
        '{"name": "a", "image": "b"}',
        "{name: a, image: b}",
        "[{name: a, image: b}]",
        b"name: a\nimage: b",
        SHORT,
        [SHORT],
        ({"name": "a", "image": "b"},),
        f"---\n{TEXT}---\n# nothing\n---\n",
        {"kind": "List", "apiVersion": "v1", "items": [SHORT]},
        {"kind": "PyTorchJobList", "items": [SHORT]},
    ],
)
def test_one_job_comes_out_of_every_form(source: object) -> None:
    assert read_documents(source) == [SHORT]


def test_a_path_is_read_as_text_or_path(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(TEXT)
    assert read_documents(path) == read_documents(str(path)) == [SHORT]


@pytest.mark.parametrize("stdin", [io.TextIOWrapper(io.BytesIO(TEXT.encode())), io.StringIO(TEXT)])
def test_a_dash_is_standard_input(stdin: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(sys), "stdin", stdin)
    assert read_documents("-") == [SHORT]


@pytest.mark.parametrize("path", ["no-such-file.yaml", ".", "a\0b", "x" * 300, "name: one-line"])
def test_a_path_that_cannot_be_read_is_told(path: str) -> None:
    with pytest.raises(InvalidInput, match="cannot read") as caught:
        read_documents(path)
    assert "more than one line" in caught.value.hint


def test_bytes_are_never_taken_for_a_path(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(TEXT)
    with pytest.raises(InvalidInput, match="a mapping belongs here"):
        read_documents(str(path).encode())


@pytest.mark.parametrize("source", [None, 5, object(), "", "# nothing\n", b"", [], [None]])
def test_nothing_to_submit_is_refused(source: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_documents(source)
    assert caught.value.hint


@pytest.mark.parametrize("source", ["a" * (MAX_BYTES + 1) + "\n", b" " * (MAX_BYTES + 1)])
def test_too_much_is_refused(source: str | bytes) -> None:
    with pytest.raises(BodyTooLarge):
        read_documents(source)


def test_a_large_file_is_refused_after_reading_no_more_than_allowed(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 1 << 40)
    with pytest.raises(BodyTooLarge):
        read_documents(path)


def test_a_large_mapping_is_refused_like_a_large_text() -> None:
    with pytest.raises(BodyTooLarge):
        read_documents({**SHORT, "annotations": {"a": "x" * MAX_BYTES}})
    assert read_documents({**SHORT, "annotations": {"a": "x" * 9}}, max_bytes=80)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(MalformedBody, match="byte 6 is not UTF-8"):
        read_documents(b"name: \xff\n")


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**70, b"x", object(), "\0", "\ud800"]
)
def test_values_without_a_form_in_json_are_refused_with_their_place(value: object) -> None:
    with pytest.raises(GatewayError) as caught:
        read_documents({"name": "a", "env": {"A": value}})
    assert caught.value.pointer == "/env/A"


def test_keys_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the key True is not a text"):
        read_documents("name: a\nenv: {on: b}\n")


def test_integral_floats_become_whole_numbers_everywhere() -> None:
    (document,) = read_documents({"name": "a", "env": {"A": [1.0, {"b": -2.0}, 1.5]}})
    assert repr(document["env"]["A"]) == "[1, {'b': -2}, 1.5]"


def test_what_is_read_shares_nothing_with_its_source() -> None:
    (first,) = read_documents("a: &a {b: 1}\nc: *a\n")
    first["a"]["b"] = 2
    assert first["c"] == {"b": 1}
