"""The requests about one job; what a JobHandle is made of."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import quote

import httpx2

from gateway.schemas.views import (
    AssignmentPage,
    AssignmentView,
    AttemptPage,
    AttemptView,
    EventPage,
    EventView,
    ExplainView,
    JobDetail,
    JobView,
)
from gateway.sdk.pages import pages
from gateway.sdk.transport import Call, Wire, read_answer


class JobCalls:
    """Asks the gateway about jobs by id."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        self.wire = wire

    def get(self, job_id: str) -> JobDetail:
        """Give a job with what was submitted."""
        return read_answer(JobDetail, self._read(job_id).content)

    def act(self, job_id: str, verb: str, body: Mapping[str, Any] | None) -> JobView:
        """Do something to a job."""
        path = f"/jobs/{quote(job_id, safe='')}:{verb}"
        # Only these may arrive twice without harm; a second hold or release is a conflict.
        is_repeatable = verb in {"cancel", "reprioritise"}
        call = Call(method="POST", path=path, body=body, is_repeatable=is_repeatable)
        return read_answer(JobView, self.wire.send(call).content)

    def top(self, job_id: str, list_serial: int | None) -> JobView:
        """Put a job first in its queue, if the queue's list still has this number."""
        headers = {} if list_serial is None else {"If-Match": f'"{list_serial}"'}
        path = f"/jobs/{quote(job_id, safe='')}:top"
        # Twice is fine without a number; with one the first answer's change would be in the way.
        call = Call(method="POST", path=path, headers=headers, is_repeatable=not headers)
        return read_answer(JobView, self.wire.send(call).content)

    def explain(self, job_id: str) -> ExplainView:
        """Give why a job waits, or what became of it."""
        return read_answer(ExplainView, self._read(job_id, "/explain").content)

    def events(self, job_id: str) -> Iterator[EventView]:
        """Give a job's history."""
        path = f"/jobs/{quote(job_id, safe='')}/events"
        for page in pages(self.wire, path, EventPage):
            yield from page.items

    def attempts(self, job_id: str) -> Sequence[AttemptView]:
        """Give a job's attempts."""
        return read_answer(AttemptPage, self._read(job_id, "/attempts").content).items

    def assignments(self, job_id: str, attempt: int | None) -> Sequence[AssignmentView]:
        """Give the places of an attempt."""
        found = self._read(job_id, "/assignments", {"attempt": attempt})
        return read_answer(AssignmentPage, found.content).items

    def logs(
        self, job_id: str, params: Mapping[str, Any]
    ) -> AbstractContextManager[httpx2.Response]:
        """Open a stream of lines."""
        path = f"/jobs/{quote(job_id, safe='')}/logs"
        return self.wire.stream(Call(method="GET", path=path, params=params))

    def _read(
        self, job_id: str, below: str = "", params: Mapping[str, Any] | None = None
    ) -> httpx2.Response:
        path = f"/jobs/{quote(job_id, safe='')}{below}"
        return self.wire.send(Call(method="GET", path=path, params=params or {}))
