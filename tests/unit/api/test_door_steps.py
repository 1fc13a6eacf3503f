"""The door, message by message: what is read, what is refused, and when nobody is answered."""

import json
from collections.abc import Iterable
from typing import Any, cast

import anyio
import pytest

from gateway.api.cursors import Cursors
from gateway.api.dependencies import ASK, Ask
from gateway.api.intake import (
    BATCH_PATH,
    MAX_BATCH_BYTES,
    MAX_BODY_BYTES,
    MAX_DRAIN_BYTES,
    OPEN_PATHS,
    Intake,
)
from gateway.api.tokens import StaticTokens
from gateway.service.context import Caller, Gateway

ANNA = Caller(name="anna", namespaces=("team-a",))
GONE = {"type": "http.disconnect"}
TOKEN = (b"authorization", b"Bearer secret")
Headers = Iterable[tuple[bytes, bytes]]


def body(*chunks: bytes) -> list[dict[str, Any]]:
    last = len(chunks) - 1
    return [
        {"type": "http.request", "body": chunk, "more_body": place < last}
        for place, chunk in enumerate(chunks)
    ]


class Door:
    """Lets one request through the door and remembers all that happened."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.sent: list[dict[str, Any]] = []
        self.left: list[dict[str, Any]] = []

    def enter(
        self,
        messages: list[dict[str, Any]],
        headers: Headers = (TOKEN,),
        path: str = "/api/v1/jobs",
    ) -> None:
        """Send these messages."""
        self.left = list(messages)
        tokens = StaticTokens([("secret", ANNA)])
        intake = Intake(self._app, cast(Gateway, None), tokens, Cursors("one"))
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": list(headers),
        }
        anyio.run(intake, scope, self._receive, self._send)

    async def _receive(self) -> Any:
        return self.left.pop(0)

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    async def _app(self, scope: Any, _receive: Any, send: Any) -> None:
        self.asks.append(scope[ASK])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    @property
    def status(self) -> int:
        """The answer's status."""
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        """The answer's headers."""
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def code(self) -> str:
        """The code of the problem that was answered."""
        return str(json.loads(self.sent[1]["body"])["code"])


@pytest.fixture
def door() -> Door:
    """Give a door that nobody has passed."""
    return Door()


@pytest.mark.parametrize("chunks", [(b"",), (b"ab",), (b"a", b"b"), (b"", b"ab", b""), (b"a",) * 9])
def test_a_body_comes_whole_however_it_was_cut(door: Door, chunks: tuple[bytes, ...]) -> None:
    door.enter(body(*chunks))
    (ask,) = door.asks
    assert (ask.body, ask.caller, ask.path) == (b"".join(chunks), ANNA, "/api/v1/jobs")
    assert door.status == 204
    assert door.headers["x-request-id"] == ask.request_id


@pytest.mark.parametrize("before", [[], body(b"a", b"b")[:1]])
def test_a_client_that_hangs_up_is_neither_answered_nor_served(
    door: Door, before: list[dict[str, Any]]
) -> None:
    door.enter([*before, GONE])
    assert (door.asks, door.sent) == ([], [])


@pytest.mark.parametrize(
    ("path", "limit"), [("/api/v1/jobs", MAX_BODY_BYTES), (BATCH_PATH, MAX_BATCH_BYTES)]
)
def test_the_last_byte_within_the_limit_is_taken_and_the_next_one_refused(
    path: str, limit: int
) -> None:
    within, beyond = Door(), Door()
    within.enter(body(b"x" * limit), path=path)
    assert len(within.asks[0].body) == limit
    beyond.enter(body(b"x" * limit, b"y"), path=path)
    assert (beyond.asks, beyond.status, beyond.code) == ([], 413, "too_large")
    assert beyond.headers["connection"] == "close"


def test_a_body_that_is_too_long_is_read_on_so_that_its_sender_hears_why(door: Door) -> None:
    door.enter(body(*[b"x" * MAX_BODY_BYTES] * 4))
    assert (door.status, door.left) == (413, [])


def test_a_body_without_end_is_not_read_for_ever(door: Door) -> None:
    chunk, count = b"x" * 1_000_000, 100
    door.enter(body(*[chunk] * count))
    assert door.status == 413
    read = count - len(door.left)
    assert MAX_DRAIN_BYTES <= read * len(chunk) <= MAX_DRAIN_BYTES + 2 * len(chunk)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", b"Bearer wrong")],
        [(b"authorization", b"Bearer Secret")],
        [(b"authorization", b"Basic secret")],
        [(b"authorization", b"secret")],
        [(b"authorization", b"Bearer\tsecret")],
        [(b"authorization", b"Bearer \xff\xfe")],
        [(b"x-authorization", b"Bearer secret")],
    ],
)
def test_a_stranger_is_refused_before_a_byte_of_the_body_is_read(
    door: Door, headers: Headers
) -> None:
    door.enter(body(b"x" * 10), headers)
    assert (door.asks, door.status, door.code) == ([], 401, "unauthenticated")
    assert len(door.left) == 1
    assert door.headers["www-authenticate"].startswith("Bearer")
    assert door.headers["connection"] == "close"


@pytest.mark.parametrize("scheme", [b"Bearer secret", b"bearer secret", b"BEARER   secret "])
def test_the_scheme_is_read_without_case_and_space(door: Door, scheme: bytes) -> None:
    door.enter(body(b""), [(b"authorization", scheme)])
    assert door.asks[0].caller == ANNA


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
def test_a_probe_is_let_in_as_nobody_even_with_a_wrong_token(door: Door, path: str) -> None:
    door.enter(body(b""), [(b"authorization", b"Bearer wrong")], path)
    caller = door.asks[0].caller
    assert (caller.name, caller.namespaces, caller.is_admin) == ("anonymous", (), False)


@pytest.mark.parametrize("path", ["/healthz/", "/HEALTHZ", "/api/v1/healthz/x", "/metrics", "/"])
def test_what_only_looks_like_a_probe_needs_a_token(door: Door, path: str) -> None:
    door.enter(body(b""), (), path)
    assert door.status == 401


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"identity, gzip", b"GZIP", b""])
def test_a_compressed_body_is_refused_unread(door: Door, encoding: bytes) -> None:
    door.enter(body(b"x"), [TOKEN, (b"content-encoding", encoding)])
    assert (door.status, door.code, len(door.left)) == (415, "unsupported_media_type", 1)


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        (b"abcdefgh", True),
        (b"a" * 64, True),
        (b"Trace.1_2-3", True),
        (b"short", False),
        (b"a" * 65, False),
        (b"with space", False),
        (b"line\nfeed", False),
        (b"abcdefgh\n", False),
        (b'quote"quote', False),
        ("ünïcödé-id".encode(), False),
    ],
)
def test_a_request_id_is_kept_only_when_logs_can_hold_it(
    door: Door, given: bytes, *, is_kept: bool
) -> None:
    door.enter(body(b""), [TOKEN, (b"x-request-id", given)])
    found = door.asks[0].request_id
    assert (found.encode() == given) is is_kept
    assert len(found) >= 8
    assert door.headers["x-request-id"] == found


def test_what_is_no_request_goes_on_untouched() -> None:
    seen: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope)

    intake = Intake(app, cast(Gateway, None), StaticTokens([]), Cursors("one"))
    lifespan = {"type": "lifespan"}
    anyio.run(intake, lifespan, cast(Any, None), cast(Any, None))
    assert seen == [lifespan]
