"""Cursors: good where they were given out, refused anywhere else."""

import pytest

from gateway.api.cursors import Cursors
from gateway.errors import InvalidInput

CURSORS = Cursors("sqlite:///one")


def test_a_cursor_opens_where_it_was_given_out() -> None:
    sealed = CURSORS.seal("4711", "anna|/jobs|")
    assert CURSORS.open(sealed, "anna|/jobs|") == "4711"
    assert "4711" not in sealed


def test_no_position_is_no_cursor() -> None:
    assert CURSORS.seal("", "scope") == ""
    assert CURSORS.open("", "scope") == ""


def test_replicas_on_one_database_understand_each_other() -> None:
    sealed = CURSORS.seal("4711", "scope")
    assert Cursors("sqlite:///one").open(sealed, "scope") == "4711"


@pytest.mark.parametrize("scope", ["ben|/jobs|", "anna|/nodes|", "anna|/jobs|queue=x"])
def test_a_cursor_of_another_caller_list_or_filter_is_refused(scope: str) -> None:
    sealed = CURSORS.seal("4711", "anna|/jobs|")
    with pytest.raises(InvalidInput) as caught:
        CURSORS.open(sealed, scope)
    assert caught.value.pointer == "/cursor"


def test_every_edited_character_is_noticed() -> None:
    sealed = CURSORS.seal("4711", "scope")
    for place, letter in enumerate(sealed):
        edited = sealed[:place] + ("A" if letter != "A" else "B") + sealed[place + 1 :]
        with pytest.raises(InvalidInput):
            CURSORS.open(edited, "scope")


@pytest.mark.parametrize("cursor", ["1", "4711", "?", "äöü", "AAAA", "=" * 8, "A" * 399, "a b"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput):
        CURSORS.open(cursor, "scope")


def test_a_cursor_of_another_key_is_refused() -> None:
    with pytest.raises(InvalidInput):
        CURSORS.open(Cursors("sqlite:///two").seal("1", "scope"), "scope")
