"""Which address and token win, in every combination of places, and what is refused as one."""

import json
from itertools import product
from pathlib import Path

import pytest

from gateway.errors import InvalidInput, Unauthenticated
from gateway.sdk.credentials import context_path, find_credentials, read_context, read_token
from gateway.sdk.transport import Call
from tests.unit.sdk.fake_gateway import FakeGateway, ok

CONTEXT = {"url": "http://127.0.0.1:8470", "token": "context"}
TOKEN_PLACES = ("argument", "argument file", "variable", "variable file", "context")
"""The first of these that is there wins."""


def winner(present: frozenset[str]) -> str | None:
    return next((place for place in TOKEN_PLACES if place in present), None)


@pytest.mark.parametrize("mask", list(product([False, True], repeat=len(TOKEN_PLACES))))
def test_the_first_place_that_names_a_token_wins(tmp_path: Path, mask: tuple[bool, ...]) -> None:
    present = frozenset(place for place, there in zip(TOKEN_PLACES, mask, strict=True) if there)
    for name in ("argument file", "variable file"):
        (tmp_path / name).write_text(name.replace(" ", "-"))
    told = CONTEXT if "context" in present else {"url": CONTEXT["url"]}
    (tmp_path / "context.json").write_text(json.dumps(told))
    environment = {"TRAINING_GATEWAY_STATE_DIR": str(tmp_path)}
    if "variable" in present:
        environment["TRAINING_GATEWAY_TOKEN"] = "variable"
    if "variable file" in present:
        environment["TRAINING_GATEWAY_TOKEN_FILE"] = str(tmp_path / "variable file")
    found = find_credentials(
        token="argument" if "argument" in present else None,
        token_file=tmp_path / "argument file" if "argument file" in present else None,
        environment=environment,
    )
    expected = winner(present)
    if expected is None:
        with pytest.raises(Unauthenticated, match="no token for the gateway"):
            found.token()
    else:
        assert found.token() == expected.replace(" ", "-")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("http://gateway:8470", "http://gateway:8470"),
        ("http://gateway:8470/", "http://gateway:8470"),
        ("https://gateway.example//", "https://gateway.example"),
        ("https://gateway.example/team/", "https://gateway.example/team"),
        (" http://gateway\n", "http://gateway"),
        ("http://[::1]:8470", "http://[::1]:8470"),
        ("HTTP://gateway", "HTTP://gateway"),
    ],
)
def test_an_address_is_taken_without_what_a_shell_leaves_at_its_ends(
    tmp_path: Path, given: str, found: str
) -> None:
    environment = {"TRAINING_GATEWAY_STATE_DIR": str(tmp_path)}
    for url, variables in ((given, {}), (None, {"TRAINING_GATEWAY_URL": given})):
        assert find_credentials(url, environment={**environment, **variables}).url == found


@pytest.mark.parametrize(
    "url",
    [
        *("gateway:8470", "//gateway", "ftp://gateway", "http:/gateway", "http://:8470"),
        *("http://[::1", "http://[bad]:1", "http://gateway:port", "http://gateway:99999"),
        *("http://gateway:0", "http://gateway:-1", "http://two words", "http://a\tb", "   "),
    ],
)
def test_what_cannot_be_an_address_is_refused_by_every_way_it_comes(
    tmp_path: Path, url: str
) -> None:
    environment = {"TRAINING_GATEWAY_STATE_DIR": str(tmp_path)}
    (tmp_path / "context.json").write_text(json.dumps({"url": url}))
    ways: tuple[tuple[str | None, dict[str, str]], ...] = (
        (url, {}),
        (None, {"TRAINING_GATEWAY_URL": url}),
        (None, {}),
    )
    for argument, variables in ways:
        with pytest.raises(InvalidInput) as caught:
            find_credentials(argument, environment={**environment, **variables})
        assert caught.value.allowed == ("http://HOST:PORT", "https://HOST")
        assert "TRAINING_GATEWAY_URL" in caught.value.hint


def test_nothing_named_at_all_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^no gateway is known$") as caught:
        find_credentials(environment={"TRAINING_GATEWAY_STATE_DIR": str(tmp_path)})
    assert caught.value.hint.startswith("start one with: gateway dev")


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        ("http://127.0.0.1:1", True),
        ("http://localhost", True),
        ("http://LOCALHOST", True),
        ("http://[::1]:1", True),
        ("http://127.0.0.1.example", False),
        ("http://user@gateway", False),
        ("https://gateway/127.0.0.1", False),
    ],
)
def test_a_proxy_is_left_out_for_this_machine_alone(url: str, *, is_loopback: bool) -> None:
    assert find_credentials(url, "token", environment={}).is_loopback is is_loopback


@pytest.mark.parametrize("token", ["tökén", "a\nb", "two\u2028lines", "a\x7f", "\U0001f511"])
def test_a_token_that_no_header_can_carry_is_refused_unsaid(tmp_path: Path, token: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(token.encode())
    fake = FakeGateway([])
    wire = fake.wire()
    for found in (
        find_credentials("http://x", token, environment={}),
        find_credentials("http://x", token_file=file, environment={}),
        find_credentials("http://x", environment={"TRAINING_GATEWAY_TOKEN": token}),
    ):
        wire.credentials = found
        with pytest.raises(Unauthenticated) as caught:
            wire.send(Call(method="GET", path="/whoami"))
        assert token not in str(caught.value)
        assert caught.value.hint
    assert fake.seen == []


def test_a_token_of_the_environment_may_end_in_a_line_feed() -> None:
    found = find_credentials("http://x", environment={"TRAINING_GATEWAY_TOKEN": " secret\n"})
    assert found.token() == "secret"


def test_a_token_file_is_read_for_every_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    fake = FakeGateway([ok({}), ok({})])
    wire = fake.wire()
    wire.credentials = find_credentials("http://x", token_file=file, environment={})
    for token in ("first", "second"):
        file.write_text(token + "\n")
        wire.send(Call(method="GET", path="/whoami"))
    told = [request.headers["authorization"] for request in fake.seen]
    assert told == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("content", [b"", b" \n", b"one two", b"# comment\nsecret", b"\xff\xfe"])
def test_a_file_that_holds_no_token_is_told_by_path(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(Unauthenticated, match=str(file)) as caught:
        read_token(file)
    assert caught.value.hint


def test_a_folder_is_no_token_file(tmp_path: Path) -> None:
    with pytest.raises(Unauthenticated, match="cannot be read"):
        read_token(tmp_path)


@pytest.mark.parametrize("text", ["[]", "5", "null", '"http://x"'])
def test_a_context_that_is_no_mapping_says_nothing(tmp_path: Path, text: str) -> None:
    path = context_path({"TRAINING_GATEWAY_STATE_DIR": str(tmp_path)})
    path.write_text(text)
    assert read_context(path) == {}
    path.unlink()
    assert read_context(path) == {}
