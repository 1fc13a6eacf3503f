"""Turns rows into the views that users see."""

import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gateway.core.vocabulary import HOLDING_STATES, Guarantee, JobState, PairRule
from gateway.schemas.base import instant
from gateway.schemas.views import (
    AssignmentView,
    AttemptView,
    DeviceRef,
    EventView,
    JobDetail,
    JobView,
)

Row = Mapping[Any, Any]
"""A row of the database, or the same columns as a dict."""
_HOLE = f"hole-{secrets.token_hex(16)}"
"""Stands for what differs; nobody can guess it and write it elsewhere."""
EXPLAINED_STATES = frozenset({JobState.PENDING, JobState.HELD, JobState.RESERVED})


def job_view(row: Row, guarantee: Guarantee | None = None) -> JobView:
    """Give a job as lists show it."""
    return JobView(**_job_fields(row, guarantee))


def new_job_view(columns: Row, labels: Mapping[str, str]) -> JobView:
    """Give a job as it stands after the insert of these columns, without reading it back."""
    empty = ("end_reason", "reserved_us", "started_us", "ended_us", "exit_code")
    # The defaults of the table's own columns.
    told = {"message": "", "attempt": 0, "version": 1, "spec": {"labels": labels}}
    return job_view({**dict.fromkeys(empty), **columns, **told})


class NewJobText:
    """Writes new jobs that differ by id, name and time only, as their views would be written.

    A template is an order faster than a model for each job; a test holds both together.
    """

    def __init__(self, example: JobView) -> None:
        """Write jobs like this one."""
        holes = example.model_copy(update=dict.fromkeys(("id", "name", "submitted_at"), _HOLE))
        # The hole is no instant, of which pydantic would warn.
        self._parts = holes.model_dump_json(warnings=False).split(_HOLE)

    def of(self, uid: str, name: str, submitted_us: int) -> str:
        """Give one job; the name is one that reading took, so that nothing in it is escaped."""
        to_id, to_name, to_time, rest = self._parts
        return f"{to_id}{uid}{to_name}{name}{to_time}{_instant_text(submitted_us)}{rest}"


def _instant_text(micros: int) -> str:
    """Give an instant as pydantic writes it: no fraction when it is none."""
    # Jobs of a batch fall into one second or two, so its text is made once.
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{_second_text(seconds)}.{fraction:06}Z" if fraction else f"{_second_text(seconds)}Z"


@lru_cache(maxsize=8)
def _second_text(seconds: int) -> str:
    return f"{instant(seconds * 1_000_000):%Y-%m-%dT%H:%M:%S}"


def job_detail(row: Row, guarantee: Guarantee | None = None) -> JobDetail:
    """Give a job with what was submitted."""
    return JobDetail(**_job_fields(row, guarantee), spec=row["spec"])


def _job_fields(row: Row, guarantee: Guarantee | None) -> dict[str, Any]:
    # A reason stays in the row until it is replaced; it says nothing once the job got its place.
    state = JobState(row["state"])
    same = ("name", "namespace", "queue", "priority", "message", "attempt", "pods", "gpus", "rdma")
    return {
        **{field: row[field] for field in same},
        "id": row["uid"],
        "user": row["user_name"],
        "state": state,
        "reason": row["reason"] if state in EXPLAINED_STATES else None,
        "end_reason": row["end_reason"],
        "submitted_at": instant(row["submitted_us"]),
        "reserved_at": _instant(row["reserved_us"]),
        "started_at": _instant(row["started_us"]),
        "ended_at": _instant(row["ended_us"]),
        "priority_class": row["priority_class"],
        "not_before_at": _instant(row["eligible_us"] or None),
        "deadline_at": _instant(row["deadline_us"] or None),
        "expected_seconds": row["expected_seconds"] or None,
        "exit_code": row["exit_code"],
        "guarantee": guarantee if state in HOLDING_STATES else None,
        "version": row["version"],
        "labels": row["spec"].get("labels", {}),
    }


def _instant(micros: int | None) -> Any:
    return None if micros is None else instant(micros)


def event_view(row: Row) -> EventView:
    """Give one event of the history."""
    return EventView(
        id=row["id"],
        at=instant(row["at_us"]),
        job_id=row["uid"],
        kind=row["kind"],
        actor=row["actor"],
        detail=row["detail"],
        data=row["data"],
    )


def attempt_view(row: Row) -> AttemptView:
    """Give one attempt."""
    return AttemptView(
        number=row["number"],
        phase=row["phase"],
        object_name=row["object_name"],
        object_uid=row["object_uid"],
        end_reason=row["end_reason"],
        message=row["message"],
        exit_code=row["exit_code"],
        reserved_at=instant(row["reserved_us"]),
        started_at=_instant(row["started_us"]),
        ended_at=_instant(row["closed_us"]),
    )


def assignment_view(row: Row, held: list[Any], attempt: Row, pair: PairRule) -> AssignmentView:
    """Give one pod's node and devices."""
    return AssignmentView(
        attempt=attempt["number"],
        pod_set=row["pod_set"],
        index=row["pod_index"],
        rank=row["rank"],
        node=row["node"],
        devices=tuple(map(device_ref, held)),
        pair=pair,
        guarantee=Guarantee(attempt["guarantee"]),
    )


def device_ref(row: Row) -> DeviceRef:
    """Give one held device."""
    same = ("kind", "ordinal", "name", "uuid", "pci_address", "numa", "rail")
    return DeviceRef(**{field: row[field] for field in same})
