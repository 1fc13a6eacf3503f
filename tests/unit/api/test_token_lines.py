"""Token files as people write them: editors' marks, other encodings, twins, and every bad line."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.api.tokens import (
    MAX_TOKEN_LENGTH,
    TokenFile,
    digest_of,
    match,
    new_token,
    read_line,
    token_line,
)
from gateway.core.vocabulary import Role
from gateway.errors import StartupRefused, Unauthenticated, Unavailable
from gateway.service.context import Caller

ANNA = Caller(name="anna", namespaces=("team-a",))
ROOT = Caller(name="root", role=Role.ADMIN, namespaces=("*",))
WORDS = st.from_regex(r"[A-Za-z0-9._@-]{1,12}", fullmatch=True)


def later(path: Path, content: bytes) -> None:
    """Write a file and give it another time, however coarse the file system counts."""
    seen = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 2_000_000_000))


@settings(deadline=None, max_examples=50)
@given(WORDS, st.sampled_from(Role), st.lists(WORDS | st.just("*"), min_size=1, max_size=4))
def test_a_written_line_reads_back_as_its_caller(name: str, role: Role, spaces: list[str]) -> None:
    caller = Caller(name=name, role=role, namespaces=tuple(spaces))
    entry = read_line(token_line("secret", caller))
    assert entry.caller == caller
    assert entry.digest == hashlib.sha256(b"secret").hexdigest().encode()


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=80))
def test_any_line_at_all_is_an_entry_or_a_told_mistake(line: str) -> None:
    try:
        entry = read_line(line)
    except ValueError as error:
        told = str(error)
    else:
        told = entry.caller.name
    assert told


@pytest.mark.parametrize(
    "line",
    [
        "anna\tuser   team-a  {digest}  ",
        "  anna user team-a {digest}",
        "anna user team-a, {upper}",
        "anna user ,team-a {digest}",
    ],
)
def test_space_case_and_spare_commas_do_not_matter(line: str) -> None:
    digest = digest_of("secret")
    entry = read_line(line.format(digest=digest, upper=digest.upper()))
    assert entry.caller == ANNA
    assert match([entry], "secret") == ANNA


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("anna user team-a", "expected NAME"),
        ("anna user team-a {digest} more", "expected NAME"),
        ("{digest}", "expected NAME"),
        ("anna User team-a {digest}", "role 'User' is not one of user, admin"),
        ("anna root team-a {digest}", "role 'root'"),
        ("anna user team-a {digest}0", "64 hex digits"),
        ("anna user team-a 0x" + "0" * 62, "64 hex digits"),
        ("anna user team-a " + "٣" * 64, "64 hex digits"),
        ("anna user ,, {digest}", r"write \* for all"),
        ("ann\ufffd user team-a {digest}", "not UTF-8"),
    ],
)
def test_each_mistake_in_a_line_has_its_own_words(
    tmp_path: Path, line: str, complaint: str
) -> None:
    text = line.format(digest=digest_of("secret"))
    with pytest.raises(ValueError, match=complaint):
        read_line(text)
    path = tmp_path / "tokens"
    path.write_text(f"# first\n\n{token_line('other', ROOT)}\n{text}\n")
    with pytest.raises(StartupRefused, match="line 4: ") as caught:
        TokenFile(path)
    assert caught.value.hint.startswith("write each line as: NAME user|admin")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_marks_and_line_ends_of_any_editor_are_fine(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "tokens"
    lines = [token_line("one", ANNA).encode(), b"# comment", token_line("two", ROOT).encode()]
    path.write_bytes(b"\xef\xbb\xbf" + (end or b"\n").join(lines) + end)
    tokens = TokenFile(path)
    assert (tokens.authenticate("one"), tokens.authenticate("two")) == (ANNA, ROOT)


def test_a_comment_in_another_encoding_keeps_nobody_out(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_bytes("# für anna\n".encode("latin-1") + token_line("one", ANNA).encode())
    assert TokenFile(path).authenticate("one") == ANNA


@pytest.mark.parametrize(
    "spoiled",
    [b"M\xfcller user team-a " + b"0" * 64, b"\xff\xfe\x00", b"anna", b"\x00" * 100],
)
def test_a_line_spoiled_while_the_server_runs_shuts_out_itself_alone(
    tmp_path: Path, spoiled: bytes
) -> None:
    path = tmp_path / "tokens"
    path.write_text(token_line("one", ANNA) + "\n")
    tokens = TokenFile(path)
    later(path, token_line("two", ROOT).encode() + b"\n" + spoiled)
    assert tokens.authenticate("two") == ROOT
    with pytest.raises(Unauthenticated):
        tokens.authenticate("one")


def test_an_emptied_file_lets_nobody_in_and_a_filled_one_does_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(token_line("one", ANNA))
    tokens = TokenFile(path)
    later(path, b"")
    with pytest.raises(Unauthenticated):
        tokens.authenticate("one")
    later(path, token_line("one", ROOT).encode())
    assert tokens.authenticate("one") == ROOT


def test_a_file_put_in_place_by_renaming_is_seen_even_with_equal_time_and_size(
    tmp_path: Path,
) -> None:
    path, fresh = tmp_path / "tokens", tmp_path / "fresh"
    path.write_text(token_line("one", ANNA))
    fresh.write_text(token_line("two", ANNA))
    seen = path.stat()
    os.utime(fresh, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    tokens = TokenFile(path)
    fresh.rename(path)
    assert tokens.authenticate("two") == ANNA


def test_a_file_that_comes_back_lets_its_owners_in_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(token_line("one", ANNA))
    tokens = TokenFile(path)
    path.rename(tmp_path / "aside")
    with pytest.raises(Unavailable, match="tokens cannot be checked now"):
        tokens.authenticate("one")
    (tmp_path / "aside").rename(path)
    assert tokens.authenticate("one") == ANNA


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o660, 0o602, 0o666])
def test_a_file_is_refused_when_anybody_may_write_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "tokens"
    path.write_text(token_line("one", ANNA))
    path.chmod(mode)
    if mode & 0o002:
        with pytest.raises(StartupRefused, match="anybody may write") as caught:
            TokenFile(path)
        assert caught.value.hint == f"chmod 600 {path}"
    else:
        assert TokenFile(path).authenticate("one") == ANNA


def test_a_folder_is_no_token_file(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match="cannot be read"):
        TokenFile(tmp_path)


@pytest.mark.parametrize("length", [0, MAX_TOKEN_LENGTH + 1, 10 * MAX_TOKEN_LENGTH])
def test_a_token_of_no_sensible_length_is_not_even_hashed(length: int) -> None:
    token = "x" * length
    with pytest.raises(Unauthenticated) as caught:
        match([read_line(token_line(token, ANNA))], token)
    assert token not in caught.value.detail or not token
    longest = "x" * MAX_TOKEN_LENGTH
    assert match([read_line(token_line(longest, ANNA))], longest) == ANNA


def test_of_equal_tokens_the_last_line_counts() -> None:
    entries = [read_line(token_line("one", caller)) for caller in (ROOT, ANNA)]
    assert match(entries, "one") == ANNA


def test_tokens_are_long_random_and_easy_to_find_where_they_must_not_be() -> None:
    tokens = {new_token() for _ in range(50)}
    assert len(tokens) == 50
    assert all(token.startswith("tgw_") and len(token) >= 40 for token in tokens)
