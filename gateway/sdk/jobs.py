"""The jobs of a gateway: submit one or many, find, list, try out."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack

from gateway.errors import GatewayError
from gateway.manifests import read_documents
from gateway.schemas.problems import error_of
from gateway.schemas.views import BatchAnswer, BatchItem, JobPage, JobView, PlanView
from gateway.sdk.handle import JobHandle
from gateway.sdk.job_calls import JobCalls
from gateway.sdk.pages import pages
from gateway.sdk.submission import Overrides, Source, envelope, new_key, wrap
from gateway.sdk.transport import Call, Wire, read_answer

MAX_BATCH_JOBS: Final = 1000
# The server takes 8 MiB; the rest is room for what joins the entries.
MAX_BATCH_BYTES: Final = 7 * 1024 * 1024
"""A little below what the server takes."""


class JobFilter(TypedDict, total=False):
    """What to list; what is left out does not filter."""

    state: str
    """One state, or several with commas."""
    queue: str
    user: str
    namespace: str
    name: str
    reason: str
    label: str
    """KEY=VALUE; several with commas."""
    since: str
    """An instant as text, with its time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """What came of one job of a batch: a handle or an error."""

    index: int
    job: JobHandle | None = None
    is_new: bool = False
    error: GatewayError | None = None


class Jobs:
    """The jobs that this client may see."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        self._wire = wire
        self._calls = JobCalls(wire)

    def submit(
        self, source: Source, *, idempotency_key: str | None = None, **overrides: Unpack[Overrides]
    ) -> JobHandle:
        """Submit one job; it is stored durably when this returns.

        A lost answer is asked for again under the same key, so one job comes of it. A key of your
        own makes that hold over restarts of your program too.

        Raises:
            InvalidInput: with the place and a hint; nothing was stored.
            GatewayUnreachable: the gateway did not answer; the job may or may not be stored.
        """
        call = Call(
            method="POST",
            path="/jobs",
            body=envelope(source, overrides),
            # Once per call, not per attempt: the server answers a known key with its job.
            headers={"Idempotency-Key": idempotency_key or new_key()},
            is_repeatable=True,
        )
        return self._handle(read_answer(JobView, self._wire.send(call).content))

    def plan(self, source: Source, **overrides: Unpack[Overrides]) -> PlanView:
        """Check a submission as `submit` does, and store nothing."""
        call = Call(
            method="POST",
            path="/jobs",
            params={"dry_run": "plan"},
            body=envelope(source, overrides),
            is_repeatable=True,
        )
        return read_answer(PlanView, self._wire.send(call).content)

    def batch(
        self, sources: Sequence[Source], **overrides: Unpack[Overrides]
    ) -> list[BatchOutcome]:
        """Submit many jobs, as many requests as needed; each succeeds or fails alone.

        A source with several documents counts as several jobs.
        """
        documents = [document for source in sources for document in read_documents(source)]
        entries = [
            # The key travels inside the entry: one header could not name a thousand jobs.
            {**wrap(document, overrides), "idempotency_key": new_key()}
            for document in documents
        ]
        outcomes: list[BatchOutcome] = []
        for part in split_batch(entries):
            call = Call(method="POST", path="/jobs:batch", body={"jobs": part}, is_repeatable=True)
            answer = read_answer(BatchAnswer, self._wire.send(call).content)
            # The server counts inside one request, the caller over all sources.
            before = len(outcomes)
            outcomes += [self._outcome(item, before + item.index) for item in answer.items]
        return outcomes

    def get(self, job_id: str) -> JobHandle:
        """Give a handle on a job; raises NotFound."""
        return self._handle(self._calls.get(job_id))

    def list(self, **wanted: Unpack[JobFilter]) -> Iterator[JobHandle]:
        """Give jobs, newest first."""
        params = {name: value for name, value in wanted.items() if value}
        for page in pages(self._wire, "/jobs", JobPage, params):
            yield from (self._handle(view) for view in page.items)

    def _handle(self, view: JobView) -> JobHandle:
        return JobHandle(self._calls, view)

    def _outcome(self, item: BatchItem, index: int) -> BatchOutcome:
        if item.job is not None:
            return BatchOutcome(index=index, job=self._handle(item.job), is_new=item.is_new)
        problem = item.error or {}
        return BatchOutcome(index=index, error=error_of(problem, int(problem.get("status", 0))))


def split_batch(entries: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """Give the entries in parts that the server takes."""
    part: list[dict[str, Any]] = []
    size = 0
    for entry in entries:
        # With spaces after commas, so never shorter than what is sent. An entry that is too
        # long alone goes out by itself and is refused by itself.
        length = len(json.dumps(entry))
        if part and (len(part) == MAX_BATCH_JOBS or size + length > MAX_BATCH_BYTES):
            yield part
            part, size = [], 0
        part.append(entry)
        size += length
    if part:
        yield part
