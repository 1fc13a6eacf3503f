"""Everything that happened in the caller's namespaces, as pages or as a live stream."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer
from gateway.api.dependencies import Ask, PageQuery, with_query
from gateway.api.openapi import described
from gateway.api.streaming import SSE, event_response
from gateway.errors import InvalidInput
from gateway.schemas.views import EventPage
from gateway.service.jobs import all_events

router = APIRouter(tags=["events"])
LONGEST_ID = 18


@router.get("/events", **described(EventPage, query=PageQuery))
def list_events(request: Request) -> Response:
    """Give a page, or with `Accept: text/event-stream` a stream that resumes by Last-Event-ID."""
    ask, query = with_query(request, PageQuery)
    # Browsers' EventSource and the SDK ask for this type; anybody else gets a page.
    if SSE in ask.headers.get("accept", ""):
        return event_response(ask, _last_event(ask))
    after = int(ask.open_cursor(query) or 0)
    page = all_events(ask.gateway, ask.caller, after, query.limit)
    return answer(page.model_copy(update={"next_cursor": ask.seal_cursor(page.next_cursor, query)}))


def _last_event(ask: Ask) -> int:
    """Give the id that the client saw last; 0 starts at the beginning."""
    # Browsers send the header only when they connect again, so the first time it is missing.
    text = ask.headers.get("last-event-id", "0").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_ID):
        raise InvalidInput(
            "Last-Event-ID is no id of an event",
            pointer="/headers/last-event-id",
            value=text,
            hint="send the id of the last event you saw",
        )
    return int(text)
