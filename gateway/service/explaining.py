"""Answers "why is my job waiting?" from what the cycle stored and what is true right now."""

from typing import Any

from gateway.core.admission.ranking import Bar
from gateway.core.admission.unblock import Unblock, words_of
from gateway.core.resources.words import counted, instant_words
from gateway.core.vocabulary import (
    TERMINAL_STATES,
    WAITING_STATES,
    JobState,
    Reason,
    StopOutcome,
)
from gateway.db import attempts as attempt_rows
from gateway.db.engine import Connection, Row
from gateway.db.reasons import get_class_hold, get_queue_hold
from gateway.db.state import read_serial
from gateway.schemas.base import instant
from gateway.schemas.views import CauseView, ExplainView, QuotaStepView
from gateway.service.context import Caller, Gateway
from gateway.service.jobs import find_visible
from gateway.service.standing import lift_views, sets_once_released, standing_of

NO_BASIS = "no estimate: jobs ahead have no run limit and there is no history yet"


def explain(gateway: Gateway, caller: Caller, job_id: str) -> ExplainView:
    """Give the complete answer for one job, in any state."""
    with gateway.database.read() as connection:
        job = find_visible(connection, caller, job_id)
        state = JobState(job["state"])
        answer = _waiting if state in WAITING_STATES else _under_way
        # What no cycle decided is told as of the last one.
        fields = {"serial": read_serial(connection), **answer(connection, job)}
    # Outside of the transaction: the order is read by another one.
    if not job["is_quarantined"]:
        fields |= _live(gateway, job, state)
    return ExplainView(job_id=job["uid"], name=job["name"], state=state, **fields)


def _under_way(connection: Connection, job: Row) -> dict[str, Any]:
    """Answer for a job that does not wait any more."""
    return {
        "summary": _story(connection, job),
        "reason": job["reason"] if job["state"] == JobState.RESERVED else None,
        **(_set_aside(job) if job["is_quarantined"] else {}),
    }


def _set_aside(job: Row) -> dict[str, Any]:
    """Tell of a live job that the loops leave alone."""
    return {
        "reason": Reason.QUARANTINED,
        "summary": f"{job['name']} was set aside while {job['state']}: {job['message']}; "
        "its devices stay held",
        "unblock": (f"find out why, then: gateway release {job['uid']}",),
    }


def _waiting(connection: Connection, job: Row) -> dict[str, Any]:
    if job["is_quarantined"]:
        verb = f"find out why, then: gateway release {job['uid']}"
        return _plainly(job, Reason.QUARANTINED, job["message"], verb)
    if job["state"] == JobState.HELD:
        return _plainly(job, Reason.HELD, "it is held", f"gateway release {job['uid']}")
    return _in_line(connection, job)


def _live(gateway: Gateway, job: Row, state: JobState) -> dict[str, Any]:
    """Give what is true right now: the place, what bars it, what would help."""
    if state is JobState.HELD:
        return _helping(sets_once_released(gateway, job))
    standing = standing_of(gateway, job) if state is JobState.PENDING else None
    if standing is None:
        return {}
    return {
        **(_barred(job, standing.bar) if standing.bar else {}),
        **_helping(standing.sets),
        "position": standing.position,
        "jobs_ahead": standing.position - 1,
        "gpus_ahead": standing.gpus_ahead,
    }


def _helping(sets: tuple[Unblock, ...]) -> dict[str, Any]:
    return {"unblock": words_of(sets), "lifts": lift_views(sets)}


def _barred(job: Row, bar: Bar) -> dict[str, Any]:
    """Say what keeps the job out, whatever its class last met."""
    words = bar.detail
    if bar.reason is Reason.NOT_BEFORE:
        words = f"it is not to start before {instant_words(job['eligible_us'])}"
    return _plainly(job, bar.reason, words, "")


def _in_line(connection: Connection, job: Row) -> dict[str, Any]:
    reason = Reason(job["reason"])
    # Before what the class met: that is not true of a job that had no turn at all.
    barred = get_queue_hold(connection, job["queue"], job["user_name"])
    if barred is not None:
        return _plainly(job, reason, barred["detail"], "")
    stored = get_class_hold(connection, job["queue"], job["class_id"])
    # Submitted since the last cycle, and nobody of its kind has waited in this queue before.
    if stored is None:
        return _plainly(job, Reason.NOT_REACHED, "no cycle has looked at it yet", "")
    return _as_decided(job, stored)


def _as_decided(job: Row, stored: Row) -> dict[str, Any]:
    """Give what the last cycle stored about the job's class."""
    explanation = stored["explanation"]
    causes = tuple(CauseView(**cause) for cause in explanation["causes"])
    return {
        "reason": Reason(job["reason"]),
        "summary": _sentence(job, causes),
        "causes": causes,
        "quota_path": tuple(QuotaStepView(**step) for step in explanation["quota_path"]),
        "limiting": explanation["limiting"],
        "unblock": tuple(explanation["unblock"]),
        "estimate": NO_BASIS,
        "serial": stored["serial"],
        "decided_at": instant(stored["decided_us"]),
    }


def _plainly(job: Row, reason: Reason, words: str, unblock: str) -> dict[str, Any]:
    return {
        "reason": reason,
        "summary": f"{job['name']} waits: {words}",
        "causes": (CauseView(reason=reason, detail=words),),
        "unblock": (unblock,) if unblock else (),
    }


def _sentence(job: Row, causes: tuple[CauseView, ...]) -> str:
    sizes = (("pods", "pod"), ("gpus", "GPU"), ("rdma", "NIC"))
    shape = ", ".join(counted(job[name], noun) for name, noun in sizes)
    first = causes[0].detail if causes else job["reason"]
    return f"{job['name']} ({shape}) waits in queue {job['queue']}: {first}"


def _story(connection: Connection, job: Row) -> str:
    """Say what became of a job that does not wait."""
    state, name = JobState(job["state"]), job["name"]
    if state in TERMINAL_STATES:
        ended = f"{name} {state.value} on attempt {job['attempt']}"
        return ": ".join(filter(None, (ended, job["message"] or job["end_reason"])))
    nodes = _nodes(connection, job)
    if state is JobState.RESERVED:
        words = job["message"] or "its devices are held, the launch is on its way"
        return f"{name} is reserved on {nodes}: {words}"
    if state is JobState.STOPPING:
        becomes = StopOutcome(job["stop_outcome"]).value
        return f"{name} is stopping ({becomes}); {nodes} get their devices back with the last pod"
    return f"{name} is {state.value} on {nodes}"


def _nodes(connection: Connection, job: Row) -> str:
    attempts = attempt_rows.attempts_of(connection, job["id"])
    if not attempts:
        return "no node"
    pods = attempt_rows.pods_of(connection, attempts[-1]["id"])
    return ", ".join(sorted({pod["node"] for pod in pods}))
