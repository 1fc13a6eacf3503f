"""Endless answers: log lines as they come, and events with ids to resume from.

The only place, beside the intake, where coroutines are allowed. Each wait for the next line runs in
a thread of an own pool, so that a hundred followers cannot starve the other routes. A stream of
events ends by itself after a while: clients resume, and a token taken away stops working.
"""

import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import islice

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar
from starlette.responses import Response, StreamingResponse

from gateway.api.dependencies import Ask
from gateway.errors import Overloaded
from gateway.schemas.views import EventView
from gateway.service.jobs import all_events

SSE = "text/event-stream"
MAX_STREAMS = 200
MAX_STREAM_SECONDS = 600.0
POLL_SECONDS = 1.0
KEEP_ALIVE_SECONDS = 15.0
EVENT_PAGE = 500
BLOCK_BYTES = 64 * 1024
_slots = threading.BoundedSemaphore(MAX_STREAMS)
# A limiter belongs to one event loop; a plain global would break the second loop of a process.
_threads: RunVar[anyio.CapacityLimiter] = RunVar("training_gateway_stream_threads")


class Slot:
    """One of the places for streams, given back when nothing refers to it any more.

    Bound to the iterator rather than to the request: a thread may still wait for a line of a silent
    job after its client has gone, and an answer may be dropped before it began.
    """

    def __init__(self) -> None:
        """Take a place; raises Overloaded when all are taken."""
        if not _slots.acquire(blocking=False):
            raise Overloaded(f"{MAX_STREAMS} streams are open already", hint="try again later")
        # Not `__del__` or `finally`: a generator that never started runs neither its body nor its
        # end.
        weakref.finalize(self, _slots.release)


def _counted(lines: Iterator[str], _slot: Slot) -> Iterator[str]:
    yield from lines


def log_response(lines: Iterator[str], *, skip: int, is_live: bool) -> Response:
    """Give lines as an answer that streams."""
    shown = _counted(islice(lines, skip, None), Slot())
    return StreamingResponse(
        log_chunks(shown, is_live=is_live),
        media_type="text/plain; charset=utf-8",
        headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"},
    )


async def log_chunks(lines: Iterator[str], *, is_live: bool) -> AsyncIterator[bytes]:
    """Give lines as UTF-8 text: each at once when live, else in large blocks."""
    # One byte is reached by any line, so a live block is one line.
    size = 1 if is_live else BLOCK_BYTES
    while True:
        # A thread cannot be interrupted. When the client has gone it is left to wait for its line,
        # and its slot comes back only then.
        block = await to_thread.run_sync(
            _take, lines, size, limiter=_limiter(), abandon_on_cancel=True
        )
        if not block:
            return
        yield block


def _take(lines: Iterator[str], size: int) -> bytes:
    parts, length = [], 0
    for line in lines:
        parts.append((line + "\n").encode(errors="replace"))
        length += len(parts[-1])
        if length >= size:
            break
    return b"".join(parts)


def _limiter() -> anyio.CapacityLimiter:
    """Give this loop's own pool of stream threads."""
    try:
        return _threads.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_STREAMS)
        _threads.set(limiter)
        return limiter


def event_response(ask: Ask, after_id: int) -> Response:
    """Give the caller's events after this id as an answer that stays open."""
    return StreamingResponse(
        event_stream(ask, after_id, Slot()),
        media_type=SSE,
        # nginx would hold events back until a buffer is full.
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def event_stream(ask: Ask, after_id: int, _slot: Slot) -> AsyncIterator[bytes]:
    """Give the caller's events as server-sent events, from this id on; keeps its slot alive.

    They come in the order in which the database tells them, so the last one sent is the place to
    resume from, whatever its id.
    """
    position = after_id
    started = spoken = anyio.current_time()
    # Tells EventSource to come back after two seconds; its own default differs between browsers.
    yield b"retry: 2000\n\n"
    while anyio.current_time() - started < MAX_STREAM_SECONDS:
        read = partial(all_events, ask.gateway, ask.caller, position, EVENT_PAGE)
        page = await to_thread.run_sync(read, limiter=_limiter())
        for event in page.items:
            position, spoken = event.id, anyio.current_time()
            yield sse(event)
        # A full page means that more is there already, so the next one is read without a pause.
        if page.next_cursor:
            continue
        if anyio.current_time() - spoken > KEEP_ALIVE_SECONDS:
            spoken = anyio.current_time()
            # A comment of the event-stream format. Proxies cut connections that say nothing for a
            # minute.
            yield b": still here\n\n"
        await anyio.sleep(POLL_SECONDS)


def sse(event: EventView) -> bytes:
    """Give one event on the wire; JSON keeps line ends out of the frame."""
    kind = "".join(letter for letter in event.kind if letter.isprintable())
    return f"id: {event.id}\nevent: {kind}\ndata: {event.model_dump_json()}\n\n".encode()
