"""What users do to jobs: cancel, hold, release, requeue; what every verb has in common."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from gateway.core.vocabulary import (
    TERMINAL_STATES,
    WAITING_STATES,
    EndReason,
    JobEvent,
    JobState,
    Reason,
    StopOutcome,
)
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.errors import InvalidTransition, StaleVersion
from gateway.schemas.views import JobView
from gateway.service.changes import Change, Stop, apply_change, begin_stop
from gateway.service.context import Caller, Gateway
from gateway.service.jobs import find_visible
from gateway.service.presenting import job_view

MAX_TRIES = 5
WAITING_OUTCOMES = frozenset({StopOutcome.REQUEUED, StopOutcome.HELD})
Act = Callable[[Writer, Row], None]
VERBS: Mapping[JobState, tuple[str, ...]] = {
    JobState.PENDING: ("cancel", "hold", "reprioritise", "top"),
    JobState.HELD: ("cancel", "release", "reprioritise"),
    JobState.RESERVED: ("cancel", "requeue"),
    JobState.LAUNCHING: ("cancel", "requeue"),
    JobState.RUNNING: ("cancel", "requeue"),
}
"""What a user may do to a job in a state; where nothing is named, nothing."""


def cancel(gateway: Gateway, caller: Caller, job_id: str, if_version: int | None = None) -> JobView:
    """Cancel a job: at once while it waits, by stopping its pods otherwise; twice is fine."""

    def act(writer: Writer, job: Row) -> None:
        state, at_us = JobState(job["state"]), gateway.clock.now_us()
        # A client that lost the answer repeats the call, and must not be told that it was wrong.
        if state is JobState.CANCELLED or job["stop_outcome"] == StopOutcome.CANCELLED:
            return
        # It stops to come back; what changes is only what becomes of it afterwards.
        if job["stop_outcome"] in WAITING_OUTCOMES:
            _cancel_return(writer, job, caller, at_us)
            return
        require_verb(job, "cancel")
        if state in WAITING_STATES:
            change = Change(
                event=JobEvent.CANCEL_WAITING,
                actor=caller.name,
                at_us=at_us,
                kind="cancelled",
                values={"reason": None, "end_reason": EndReason.CANCELLED},
            )
            apply_change(writer, job, change)
            return
        begin_stop(
            writer,
            job,
            Stop(
                outcome=StopOutcome.CANCELLED,
                end_reason=EndReason.CANCELLED,
                actor=caller.name,
                at_us=at_us,
                message=f"cancelled by {caller.name}",
            ),
        )

    return change_visible(gateway, caller, job_id, act, if_version)


def _cancel_return(writer: Writer, job: Row, caller: Caller, at_us: int) -> None:
    """Let a job that was on its way back to the queue end instead."""
    words = f"cancelled by {caller.name}"
    values = {
        "stop_outcome": StopOutcome.CANCELLED,
        "end_reason": EndReason.CANCELLED,
        "message": words,
        "is_quarantined": False,
    }
    job_rows.change_job(writer, job, values)
    append_event(
        writer,
        NewEvent(at_us=at_us, kind="stopping", actor=caller.name, job_id=job["id"], detail=words),
    )


def hold(gateway: Gateway, caller: Caller, job_id: str, if_version: int | None = None) -> JobView:
    """Keep a pending job from being considered; anything else is a conflict."""

    def act(writer: Writer, job: Row) -> None:
        require_verb(job, "hold")
        change = Change(
            event=JobEvent.HOLD,
            actor=caller.name,
            at_us=gateway.clock.now_us(),
            kind="held",
            values={"reason": Reason.HELD},
        )
        apply_change(writer, job, change)

    return change_visible(gateway, caller, job_id, act, if_version)


def release(
    gateway: Gateway, caller: Caller, job_id: str, if_version: int | None = None
) -> JobView:
    """Let a held or quarantined job be considered again."""

    def act(writer: Writer, job: Row) -> None:
        at_us = gateway.clock.now_us()
        # Set aside in any live state: release is the one way back, also while devices are held.
        if job["is_quarantined"] and JobState(job["state"]) not in TERMINAL_STATES:
            reason = Reason.HELD if job["state"] == JobState.HELD else None
            values = {"is_quarantined": False, "reason": reason, "message": ""}
            job_rows.change_job(writer, job, values)
            append_event(
                writer,
                NewEvent(at_us=at_us, kind="released", actor=caller.name, job_id=job["id"]),
            )
            return
        require_verb(job, "release")
        change = Change(
            event=JobEvent.RELEASE,
            actor=caller.name,
            at_us=at_us,
            kind="released",
            values={"reason": None},
        )
        apply_change(writer, job, change)

    return change_visible(gateway, caller, job_id, act, if_version)


def requeue(
    gateway: Gateway, caller: Caller, job_id: str, if_version: int | None = None
) -> JobView:
    """Stop the present attempt and let the job wait again with its old submit time."""

    def act(writer: Writer, job: Row) -> None:
        require_verb(job, "requeue")
        begin_stop(
            writer,
            job,
            Stop(
                outcome=StopOutcome.REQUEUED,
                end_reason=EndReason.REQUEUED,
                actor=caller.name,
                at_us=gateway.clock.now_us(),
                message=f"requeued by {caller.name}",
            ),
        )

    return change_visible(gateway, caller, job_id, act, if_version)


def require_verb(job: Row, verb: str) -> None:
    """Refuse a verb that does not apply in this state, and say which do."""
    state = JobState(job["state"])
    allowed = VERBS.get(state, ())
    if verb in allowed:
        return
    if state in TERMINAL_STATES:
        hint = f"it has ended; submit it again: gateway submit --from {job['uid']}"
    elif state is JobState.STOPPING:
        hint = "wait until its pods are gone"
    else:
        hint = f"possible now: {', '.join(allowed)}"
    raise InvalidTransition(
        f"job {job['name']} is {state.value}: {verb} does not apply",
        value=state.value,
        allowed=allowed,
        hint=hint,
    )


def change_visible(
    gateway: Gateway, caller: Caller, job_id: str, act: Act, if_version: int | None
) -> JobView:
    """Read, act and commit; again when somebody else was faster.

    With `if_version`, only if the job still has that version; raises StaleVersion otherwise.
    """

    def work(writer: Writer) -> Row:
        job = find_visible(writer.connection, caller, job_id)
        _require_version(job, if_version)
        act(writer, job)
        return find_visible(writer.connection, caller, job_id)

    # With a version the caller wants to know of a change; without one he wants his verb done.
    tries = MAX_TRIES if if_version is None else 1
    row = _repeated(partial(gateway.database.run_write, work), tries)
    # After the commit: a cycle that wakes too early would not see it.
    gateway.wake.set()
    return job_view(row, gateway.backend.guarantee)


def _repeated(write: Callable[[], Row], tries: int) -> Row:
    """Give what a write gives that somebody else may be faster than, a few times in a row."""
    for _ in range(1, tries):
        with suppress(StaleVersion):
            return write()
    return write()


def _require_version(job: Row, if_version: int | None) -> None:
    if if_version in {None, job["version"]}:
        return
    raise StaleVersion(
        f"job {job['name']} has version {job['version']} by now, not {if_version}",
        value=if_version,
        hint="read it again, then decide again",
    )
