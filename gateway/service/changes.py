"""The one way in which the service changes a job's state: machine, row and event together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.jobs.machine import next_state, settled
from gateway.core.vocabulary import (
    TERMINAL_STATES,
    EndReason,
    JobEvent,
    JobState,
    Reason,
    StopOutcome,
)
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.db.judge import free


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A step of a job's life: the event, who caused it, when, and what else is stored."""

    event: JobEvent
    actor: str
    at_us: int
    kind: str
    detail: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


def apply_change(writer: Writer, job: Row, change: Change) -> JobState:
    """Advance a job by one event, with its row in the history.

    Raises:
        InvalidTransition: the state machine has no such step.
        StaleVersion: the job changed since it was read.
    """
    following = next_state(JobState(job["state"]), change.event)
    values = {**change.values, "state": following}
    # The database checks that exactly ended jobs have an end.
    if following in TERMINAL_STATES:
        values["ended_us"] = change.at_us
    job_rows.change_job(writer, job, values)
    append_event(
        writer,
        NewEvent(
            at_us=change.at_us,
            kind=change.kind,
            actor=change.actor,
            job_id=job["id"],
            detail=change.detail,
            data={"from": job["state"], "to": following.value, "attempt": job["attempt"]},
        ),
    )
    return following


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why an attempt is stopped and what becomes of its job."""

    outcome: StopOutcome
    end_reason: EndReason
    actor: str
    at_us: int
    message: str = ""
    exit_code: int | None = None


def begin_stop(writer: Writer, job: Row, stop: Stop) -> JobState:
    """Store the outcome; devices stay held until the pods are gone."""
    change = Change(
        event=JobEvent.STOP,
        actor=stop.actor,
        at_us=stop.at_us,
        kind="stopping",
        detail=stop.message or stop.end_reason.value,
        values={
            "reason": None,
            "stop_outcome": stop.outcome,
            "end_reason": stop.end_reason,
            # It may be a pod's last words; the column is read with every list.
            "message": stop.message[:2000],
            "exit_code": stop.exit_code,
            "stopping_us": stop.at_us,
            "is_quarantined": False,  # only a person stops a job that is set aside
        },
    )
    return apply_change(writer, job, change)


def _left(following: JobState, at_us: int) -> dict[str, Any]:
    """Give the columns that change with leaving stopping: an end, or a life that begins anew."""
    if following in TERMINAL_STATES:
        return {"ended_us": at_us}
    return {
        # A job that waits again must not show when its last attempt began.
        **dict.fromkeys(("reserved_us", "started_us", "stopping_us", "exit_code", "end_reason")),
        "message": "",
        "reason": Reason.HELD if following is JobState.HELD else None,
    }


def settle(writer: Writer, job: Row, attempt: Row, at_us: int, actor: str) -> JobState:
    """Leave stopping: free the devices and let the stored outcome take effect, in one go."""
    attempt_rows.change_attempt(
        writer,
        attempt,
        {
            "end_reason": job["end_reason"],
            "message": job["message"],
            "exit_code": job["exit_code"],
        },
    )
    # In the same transaction as the state: devices never come back to a job that still has them.
    free(writer, attempt["id"], at_us)
    following = settled(StopOutcome(job["stop_outcome"]))
    values = {"state": following, "stop_outcome": None, **_left(following, at_us)}
    job_rows.change_job(writer, job, values)
    append_event(
        writer,
        NewEvent(
            at_us=at_us,
            kind=following.value if following in TERMINAL_STATES else "requeued",
            actor=actor,
            job_id=job["id"],
            detail=job["message"] or job["end_reason"] or "",
            data={"from": job["state"], "to": following.value, "attempt": job["attempt"]},
        ),
    )
    return following
