"""Tokens: who is let in, and what a changed or broken file does."""

import os
from pathlib import Path

import pytest

from gateway.api.tokens import StaticTokens, TokenFile, new_token, read_line, token_line
from gateway.core.vocabulary import Role
from gateway.errors import StartupRefused, Unauthenticated, Unavailable
from gateway.service.context import Caller

ANNA = Caller(name="anna", role=Role.USER, namespaces=("team-a", "team-b"))
ROOT = Caller(name="root", role=Role.ADMIN, namespaces=("*",))


def a_file(folder: Path, *lines: str) -> Path:
    path = folder / "tokens"
    path.write_text("\n".join(("# who may come in", "", *lines)) + "\n")
    return path


def touch_later(path: Path) -> None:
    """Give the file another time, however coarse the file system counts."""
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 2_000_000_000))


def test_a_token_gives_its_caller_with_role_and_namespaces(tmp_path: Path) -> None:
    first, second = new_token(), new_token()
    tokens = TokenFile(a_file(tmp_path, token_line(first, ANNA), token_line(second, ROOT)))
    assert tokens.authenticate(first) == ANNA
    assert tokens.authenticate(second) == ROOT


def test_the_file_holds_digests_and_never_a_token(tmp_path: Path) -> None:
    token = new_token()
    path = a_file(tmp_path, token_line(token, ANNA))
    assert token not in path.read_text()


@pytest.mark.parametrize("token", ["", "x", "tgw_wrong", "a" * 5000, "ünïcödé"])
def test_any_other_token_is_refused(tmp_path: Path, token: str) -> None:
    tokens = TokenFile(a_file(tmp_path, token_line(new_token(), ANNA)))
    with pytest.raises(Unauthenticated):
        tokens.authenticate(token)


def test_the_digest_itself_is_no_token(tmp_path: Path) -> None:
    line = token_line(new_token(), ANNA)
    tokens = TokenFile(a_file(tmp_path, line))
    with pytest.raises(Unauthenticated):
        tokens.authenticate(line.split()[-1])


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    old, new = new_token(), new_token()
    path = a_file(tmp_path, token_line(old, ANNA))
    tokens = TokenFile(path)
    path.write_text(token_line(new, ROOT))
    touch_later(path)
    assert tokens.authenticate(new) == ROOT
    with pytest.raises(Unauthenticated):
        tokens.authenticate(old)


def test_a_line_that_turns_bad_shuts_out_only_itself(tmp_path: Path) -> None:
    kept, broken = new_token(), new_token()
    path = a_file(tmp_path, token_line(kept, ANNA), token_line(broken, ROOT))
    tokens = TokenFile(path)
    path.write_text(token_line(kept, ANNA) + "\nroot admin * abc\n")
    touch_later(path)
    assert tokens.authenticate(kept) == ANNA
    with pytest.raises(Unauthenticated):
        tokens.authenticate(broken)


def test_a_file_that_has_gone_lets_nobody_in(tmp_path: Path) -> None:
    token = new_token()
    path = a_file(tmp_path, token_line(token, ANNA))
    tokens = TokenFile(path)
    path.unlink()
    with pytest.raises(Unavailable):
        tokens.authenticate(token)


def test_a_server_does_not_start_without_a_readable_file(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match="cannot be read"):
        TokenFile(tmp_path / "missing")


def test_a_server_does_not_start_on_a_file_that_anybody_may_write(tmp_path: Path) -> None:
    path = a_file(tmp_path, token_line(new_token(), ANNA))
    path.chmod(0o666)
    with pytest.raises(StartupRefused, match="anybody may write"):
        TokenFile(path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("anna user team-a", "expected NAME"),
        (f"anna king team-a {'0' * 64}", "role 'king'"),
        ("anna user team-a 1234", "64 hex digits"),
        (f"anna user team-a {'g' * 64}", "64 hex digits"),
        (f"anna user , {'0' * 64}", r"write \* for all"),
    ],
)
def test_a_malformed_line_is_told_when_the_server_starts(
    tmp_path: Path, line: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_line(line)
    with pytest.raises(StartupRefused, match="line 3"):
        TokenFile(a_file(tmp_path, line))


def test_fixed_tokens_are_compared_like_those_of_a_file() -> None:
    tokens = StaticTokens([("secret", ANNA)])
    assert tokens.authenticate("secret") == ANNA
    with pytest.raises(Unauthenticated):
        tokens.authenticate("Secret")
