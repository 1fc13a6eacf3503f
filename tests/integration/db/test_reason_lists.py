"""Lists by reason give exactly the jobs that show it, wherever the reason is written."""

from typing import Any

import pytest

from gateway.core.vocabulary import JobState, Reason
from gateway.db.engine import Database, Writer
from gateway.db.jobs import JobQuery, intern_class, list_jobs
from gateway.db.reasons import replace_queue_holds, store_class_holds
from tests.builders import a_gang
from tests.db_rows import NOW_US, insert_job, job_values

FAR_US = 4_000_000_000_000_000
JOBS: tuple[dict[str, Any], ...] = (
    {},
    {"user_name": "ben"},
    {"queue": "paused"},
    {"queue": "new"},
    {"queue": "full"},
    {"eligible_us": FAR_US},
    {"state": JobState.HELD, "reason": Reason.HELD},
    {"is_quarantined": True, "reason": Reason.QUARANTINED},
    {"is_quarantined": True, "reason": Reason.QUARANTINED, "state": JobState.RUNNING},
    {"state": JobState.RESERVED, "reason": Reason.LAUNCH_THROTTLED},
    {"state": JobState.RESERVED, "reason": Reason.OVER_QUOTA},
    {"state": JobState.RUNNING},
    {"state": JobState.CANCELLED, "ended_us": NOW_US},
)
QUEUE_HOLDS = (("paused", "", Reason.QUEUE_PAUSED), ("default", "ben", Reason.OVER_CAP))
CLASS_HOLDS = (
    ("default", Reason.OVER_QUOTA),
    ("paused", Reason.OVER_QUOTA),
    ("full", Reason.LAUNCH_THROTTLED),
)


def fill(writer: Writer) -> None:
    """Let each job wait twice, and what holds them be stored."""
    class_id = intern_class(writer, a_gang())
    for number, values in enumerate(JOBS * 2):
        assert insert_job(writer, job_values(f"job-{number}", class_id=class_id, **values))
    common: dict[str, Any] = {"decided_us": NOW_US}
    rows = [
        {"queue": queue, "user_name": user, "reason": reason, "detail": "", **common}
        for queue, user, reason in QUEUE_HOLDS
    ]
    replace_queue_holds(writer, (), rows)
    common |= {"class_id": class_id, "explanation": {}, "config_generation": 0, "serial": 1}
    store_class_holds(
        writer, [{"queue": queue, "reason": reason, **common} for queue, reason in CLASS_HOLDS]
    )


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_list_by_reason_gives_who_shows_it_newest_first(database: Database, limit: int) -> None:
    database.run_write(fill)
    with database.read() as connection:
        everybody = list_jobs(connection, JobQuery(limit=1000))
        shown = {row["reason"] for row in everybody}
        for reason in Reason:
            wanted = [row["id"] for row in everybody if row["reason"] == reason]
            found = list_jobs(connection, JobQuery(reason=reason, limit=limit))
            assert [row["id"] for row in found] == wanted[:limit]

    assert len(everybody) == 2 * len(JOBS)
    assert shown >= {Reason.OVER_QUOTA, Reason.OVER_CAP, Reason.NOT_REACHED, Reason.NOT_BEFORE}


def test_other_filters_hold_as_well(database: Database) -> None:
    database.run_write(fill)
    query = JobQuery(reason=Reason.OVER_QUOTA, states=("reserved",), limit=100)
    with database.read() as connection:
        found = list_jobs(connection, query)

    assert [row["state"] for row in found] == ["reserved", "reserved"]
