"""Streams: bounded in number, exact in lines, and no event lost or told twice."""

from collections.abc import Iterator
from datetime import UTC, datetime

import anyio
import pytest

from gateway.api import streaming
from gateway.api.streaming import Slot, Unseen, log_chunks, sse
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


def test_an_event_that_becomes_visible_late_is_not_lost() -> None:
    unseen = Unseen(floor=0, settle_seconds=2.0)
    assert [event.id for event in unseen.take((an_event(1), an_event(3)), now=10.0)] == [1, 3]
    unseen.settle(now=11.0)
    assert unseen.floor == 0
    late = unseen.take((an_event(1), an_event(2), an_event(3)), now=11.0)
    assert [event.id for event in late] == [2]
    unseen.settle(now=14.0)
    assert unseen.floor == 3


def test_where_ids_come_in_order_nothing_is_read_twice() -> None:
    unseen = Unseen(floor=5, settle_seconds=0.0)
    unseen.take((an_event(6), an_event(7)), now=1.0)
    unseen.settle(now=1.0)
    assert unseen.floor == 7


def test_an_event_cannot_break_out_of_its_frame() -> None:
    frame = sse(an_event(1, kind="a\nid: 9", detail="two\nlines\r\n\r\ndata: {}")).decode()
    lines = frame.split("\n")
    assert lines[:2] == ["id: 1", "event: aid: 9"]
    assert lines[2].startswith("data: {")
    assert lines[3:] == ["", ""]
