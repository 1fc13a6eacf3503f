"""A handle on one submitted job: look, wait, read its lines, act on it."""

import html
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.core.vocabulary import TERMINAL_STATES, EndReason, JobState, Reason
from gateway.errors import GatewayError, InvalidInput, JobFailed, TimedOut
from gateway.schemas.views import (
    AssignmentView,
    AttemptView,
    EventView,
    ExplainView,
    JobDetail,
    JobView,
)
from gateway.sdk.job_calls import JobCalls
from gateway.sdk.log_lines import LogChoice, log_lines
from gateway.sdk.transport import is_transient

PATIENCE_SECONDS: Final = 300.0
"""How long `wait` bears a gateway that does not answer, for example while it is restarted."""
Callback = Callable[["JobHandle"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a job ended."""

    job_id: str
    state: JobState
    end_reason: EndReason | None
    exit_code: int | None
    attempts: int
    queue: str
    run_seconds: float
    """From all pods ready to the end; 0 when it never ran."""


class JobHandle:
    """One job; `str(handle)` is its id."""

    def __init__(self, calls: JobCalls, view: JobView) -> None:
        """Hold on to a job as last seen."""
        self._calls = calls
        self.view = view

    @property
    def id(self) -> str:
        """The job's id."""
        return self.view.id

    @property
    def name(self) -> str:
        """The job's name."""
        return self.view.name

    @property
    def state(self) -> JobState:
        """The state as last seen; `refresh` looks again."""
        return self.view.state

    @property
    def reason(self) -> Reason | None:
        """Why it waits, as last seen."""
        return self.view.reason

    @property
    def is_done(self) -> bool:
        """Whether it had ended when last seen."""
        return self.view.state in TERMINAL_STATES

    def refresh(self) -> "JobHandle":
        """Look again."""
        self.view = self._calls.get(self.id)
        return self

    def wait(
        self,
        status: Collection[str] = (JobState.SUCCEEDED,),
        timeout: float | None = None,
        polling_interval: float = 2.0,
        callbacks: Iterable[Callback] = (),
    ) -> "JobHandle":
        """Wait until the job is in one of these states.

        A job that succeeded has passed every state before. Callbacks hear of each change of state
        or reason. Seconds throughout.

        Raises:
            JobFailed: it ended otherwise.
            TimedOut: it took longer than `timeout`.
            InvalidInput: an unknown state.
        """
        wanted, told = _states(status), tuple(callbacks)
        started = heard = time.monotonic()
        # None differs from every state, so callbacks hear of the first one too.
        seen: tuple[JobState, Reason | None] | None = None
        while True:
            try:
                self.refresh()
                heard = time.monotonic()
            except GatewayError as error:
                # A restart must not fail a step that waits for days; counted from the last answer.
                if not is_transient(error) or time.monotonic() - heard > PATIENCE_SECONDS:
                    raise
            if seen != (self.state, self.reason):
                seen = (self.state, self.reason)
                self._tell(told)
            if self._has_reached(wanted):
                return self
            # After looking, so that a timeout of 0 still finds a job that is done.
            left = None if timeout is None else started + timeout - time.monotonic()
            if left is not None and left <= 0:
                raise self._timed_out(wanted, timeout)
            time.sleep(polling_interval if left is None else min(polling_interval, left))

    def _tell(self, callbacks: Iterable[Callback]) -> None:
        for callback in callbacks:
            callback(self)

    def _has_reached(self, wanted: frozenset[JobState]) -> bool:
        if self.state in wanted:
            return True
        if not self.is_done:
            return False
        # Polling may miss a short "running" altogether. A job that succeeded has been there, so
        # waiting for a passing state ends well; waiting for "failed" does not.
        if self.state is JobState.SUCCEEDED and not wanted <= TERMINAL_STATES:
            return True
        why = self.view.message or self.view.end_reason or "no reason was given"
        raise JobFailed(
            f"job {self.name} ended as {self.state.value}: {why}",
            value=self.state.value,
            hint=f"read its lines with: gateway logs {self.id}",
        )

    def _timed_out(self, wanted: frozenset[JobState], timeout: float | None) -> TimedOut:
        names = " or ".join(sorted(state.value for state in wanted))
        waits = f" ({self.reason.value})" if self.reason else ""
        return TimedOut(
            f"job {self.name} is {self.state.value}{waits} after {timeout:g} s, not {names}",
            value=self.state.value,
            hint=f"ask why: gateway explain {self.id}",
        )

    def result(self, timeout: float | None = None) -> JobResult:
        """Wait for the end and give how it went; raises as `wait` does."""
        self.wait(timeout=timeout)
        started, ended = self.view.started_at, self.view.ended_at
        seconds = (ended - started).total_seconds() if started and ended else 0.0
        return JobResult(
            job_id=self.id,
            state=self.state,
            end_reason=self.view.end_reason,
            exit_code=self.view.exit_code,
            attempts=self.view.attempt,
            queue=self.view.queue,
            run_seconds=seconds,
        )

    def logs(
        self,
        rank: int = 0,
        *,
        follow: bool = False,
        tail: int | None = None,
        attempt: int | None = None,
    ) -> Iterator[str]:
        """Give lines of one rank; with `follow` until the job has ended, over broken connections.

        A requeued job goes on with the lines of its next attempt. Nothing comes before it starts.
        """
        choice = LogChoice(rank=rank, follow=follow, tail=tail, attempt=attempt)
        return log_lines(self._calls, self.id, choice)

    def events(self) -> Iterator[EventView]:
        """Give its history so far, oldest first."""
        return self._calls.events(self.id)

    def attempts(self) -> Sequence[AttemptView]:
        """Give its attempts by number."""
        return self._calls.attempts(self.id)

    def assignments(self, attempt: int | None = None) -> Sequence[AssignmentView]:
        """Give which pod runs where on which devices; of the last attempt unless one is named."""
        return self._calls.assignments(self.id, attempt)

    def explain(self) -> ExplainView:
        """Give why it waits, or what became of it."""
        return self._calls.explain(self.id)

    def detail(self) -> JobDetail:
        """Give it with what was submitted."""
        return self._calls.get(self.id)

    def cancel(self) -> "JobHandle":
        """Cancel it; twice is fine."""
        return self._act("cancel")

    def hold(self) -> "JobHandle":
        """Keep it from being considered; only while it is pending."""
        return self._act("hold")

    def release(self) -> "JobHandle":
        """Let it be considered again."""
        return self._act("release")

    def requeue(self) -> "JobHandle":
        """Stop the present attempt and let it wait again."""
        return self._act("requeue")

    def reprioritise(
        self, priority: int | None = None, *, priority_class: str | None = None
    ) -> "JobHandle":
        """Change its priority or its class while it waits; higher runs sooner, "" is no class."""
        said = {"priority": priority, "priority_class": priority_class}
        return self._act("reprioritise", {k: v for k, v in said.items() if v is not None})

    def top(self, *, list_serial: int | None = None) -> "JobHandle":
        """Put it first in its queue; for admins.

        Args:
            list_serial: of the order that was looked at; refused when it has changed since.
        """
        self.view = self._calls.top(self.id, list_serial)
        return self

    def _act(self, verb: str, body: dict[str, int | str] | None = None) -> "JobHandle":
        self.view = self._calls.act(self.id, verb, body)
        return self

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<JobHandle {self.name} {self.state.value} {self.id}>"

    def _repr_html_(self) -> str:
        """Give a small table for notebooks; every value is escaped."""
        rows = {
            "job": self.name,
            "state": self.state.value,
            "reason": self.reason.value if self.reason else "",
            "queue": self.view.queue,
            "GPUs": str(self.view.gpus),
            "id": self.id,
        }
        # Names come from manifests anybody may have written; notebooks run scripts in HTML.
        cells = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table>{cells}</table>"


def _states(status: Collection[str]) -> frozenset[JobState]:
    # A plain text is a collection of letters; `wait("succeeded")` means the word.
    names = (status,) if isinstance(status, str) else tuple(status)
    known = tuple(state.value for state in JobState)
    if not names:
        raise _no_state("no state to wait for", None, known)
    for name in names:
        if name not in known:
            raise _no_state(f"{name!r} is no state of a job", name, known)
    return frozenset(map(JobState, names))


def _no_state(detail: str, value: str | None, known: tuple[str, ...]) -> InvalidInput:
    hint = "choose from the allowed states"
    return InvalidInput(detail, pointer="/status", value=value, allowed=known, hint=hint)
