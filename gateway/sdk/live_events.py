"""Events as they happen: server-sent events, resumed from the last id after a break."""

from collections.abc import Iterable, Iterator

from gateway.errors import GatewayError
from gateway.schemas.views import EventPage, EventView
from gateway.sdk.log_lines import MAX_BREAKS, split_lines
from gateway.sdk.pages import pages
from gateway.sdk.transport import Call, Wire, is_transient, read_answer


def past_events(wire: Wire) -> Iterator[EventView]:
    """Give everything that happened so far, oldest first."""
    for page in pages(wire, "/events", EventPage):
        yield from page.items


def follow_events(wire: Wire, after_id: int = 0) -> Iterator[EventView]:
    """Give events after this id, for ever; the server ends streams at times, this goes on."""
    breaks = 0
    while True:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after_id)}
        call = Call(method="GET", path="/events", headers=headers)
        try:
            # The server ends a stream after ten minutes, so that a revoked token stops working.
            with wire.stream(call) as response:
                for event in read_events(split_lines(response.iter_bytes())):
                    after_id, breaks = event.id, 0
                    yield event
        except GatewayError as error:
            breaks += 1
            if not is_transient(error) or breaks > MAX_BREAKS:
                raise
        wire.pause(breaks)


def read_events(lines: Iterable[str]) -> Iterator[EventView]:
    """Give the events in a stream's lines; comments and unknown fields are skipped."""
    for line in lines:
        # The id stands in the data too, so the `id:` and `event:` fields need no reading. A comment
        # (":" first, which keeps the line alive) has an empty name here.
        name, _, value = line.partition(":")
        if name == "data":
            yield read_answer(EventView, value.strip())
