"""The one way in which the service changes a job's state: machine, row and event together."""

from collections.abc import Mapping, Sequence
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
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event, append_events
from gateway.db.moving import change_attempts, change_jobs, free_all


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
    values, event = _step(job, change)
    job_rows.change_job(writer, job, values)
    append_event(writer, event)
    return JobState(values["state"])


def apply_changes(writer: Writer, changes: Sequence[tuple[Row, Change]]) -> None:
    """Advance many jobs, each by one event, in few statements; all of them or none.

    Raises:
        InvalidTransition: the state machine has no such step for one of them.
        StaleVersion: one of them changed since it was read.
    """
    steps = [_step(job, change) for job, change in changes]
    jobs = [(job, values) for (job, _), (values, _) in zip(changes, steps, strict=True)]
    change_jobs(writer, jobs)
    append_events(writer, [event for _, event in steps])


def _step(job: Row, change: Change) -> tuple[dict[str, Any], NewEvent]:
    """Give the columns that change, and the row in the history."""
    following = next_state(JobState(job["state"]), change.event)
    values = {**change.values, "state": following}
    # The database checks that exactly ended jobs have an end.
    if following in TERMINAL_STATES:
        values["ended_us"] = change.at_us
    event = NewEvent(
        at_us=change.at_us,
        kind=change.kind,
        actor=change.actor,
        job_id=job["id"],
        detail=change.detail,
        data={"from": job["state"], "to": following.value, "attempt": job["attempt"]},
    )
    return values, event


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
    return apply_change(writer, job, stop_change(stop))


def stop_change(stop: Stop) -> Change:
    """Give the step into stopping."""
    return Change(
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


def settle_all(writer: Writer, pairs: Sequence[tuple[Row, Row]], at_us: int, actor: str) -> None:
    """Let jobs leave stopping, given with their attempts; all of them or none.

    Devices are freed and the stored outcomes take effect in one go: devices never come back to a
    job that still has them. Raises StaleVersion when a job or an attempt moved on meanwhile.
    """
    ends = ("end_reason", "message", "exit_code")
    change_attempts(writer, [(each, {key: job[key] for key in ends}) for job, each in pairs])
    free_all(writer, [attempt["id"] for _, attempt in pairs], at_us)
    jobs, told = [], []
    for job, _ in pairs:
        following = settled(StopOutcome(job["stop_outcome"]))
        jobs.append((job, {"state": following, "stop_outcome": None, **_left(following, at_us)}))
        told.append(_settled_event(job, following, at_us, actor))
    change_jobs(writer, jobs)
    append_events(writer, told)


def _settled_event(job: Row, following: JobState, at_us: int, actor: str) -> NewEvent:
    return NewEvent(
        at_us=at_us,
        kind=following.value if following in TERMINAL_STATES else "requeued",
        actor=actor,
        job_id=job["id"],
        detail=job["message"] or job["end_reason"] or "",
        data={"from": job["state"], "to": following.value, "attempt": job["attempt"]},
    )
