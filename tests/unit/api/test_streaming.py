"""Streams: bounded in number, exact in lines, and no event leaves its frame."""

from collections.abc import Iterator
from datetime import UTC, datetime

import anyio
import pytest

from gateway.api import streaming
from gateway.api.streaming import Slot, log_chunks, sse
from gateway.errors import Overloaded
from gateway.schemas.views import EventView


def an_event(event_id: int, kind: str = "submitted", detail: str = "") -> EventView:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return EventView(id=event_id, at=at, kind=kind, actor="anna", detail=detail)


def collected(lines: Iterator[str], *, is_live: bool) -> list[bytes]:
    async def read() -> list[bytes]:
        return [chunk async for chunk in log_chunks(lines, is_live=is_live)]

    return anyio.run(read)


def test_a_live_stream_gives_each_line_at_once() -> None:
    assert collected(iter(["one", "two"]), is_live=True) == [b"one\n", b"two\n"]


def test_a_finished_log_comes_in_large_blocks() -> None:
    blocks = collected(iter(["x" * 999] * 200), is_live=False)
    assert len(blocks) == 4
    assert b"".join(blocks) == (b"x" * 999 + b"\n") * 200


def test_half_a_character_does_not_break_the_stream() -> None:
    assert collected(iter(["a\ud800b"]), is_live=True) == [b"a?b\n"]


def test_a_place_comes_back_even_when_nobody_ever_read() -> None:
    slots = [Slot() for _ in range(streaming.MAX_STREAMS)]
    with pytest.raises(Overloaded):
        Slot()
    slots.clear()
    assert Slot()


def test_an_event_cannot_break_out_of_its_frame() -> None:
    frame = sse(an_event(1, kind="a\nid: 9", detail="two\nlines\r\n\r\ndata: {}")).decode()
    lines = frame.split("\n")
    assert lines[:2] == ["id: 1", "event: aid: 9"]
    assert lines[2].startswith("data: {")
    assert lines[3:] == ["", ""]
