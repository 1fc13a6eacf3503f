"""Keeps one poisoned job from stopping the loops: it is set aside with an event, others go on."""

import traceback
from collections.abc import Callable
from typing import Final, TypeVar

import structlog

from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.errors import ClusterRejected, StaleLeader, StaleVersion, Unavailable
from gateway.service.context import SYSTEM_ACTOR, Gateway

Result = TypeVar("Result")
log = structlog.get_logger()
POISON: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What rows that make no sense raise; an error of the database itself is none of these."""


def guarded(gateway: Gateway, job: Row, work: Callable[[], Result]) -> Result | None:
    """Run one job's part of a loop; what it raises unforeseen puts that job in quarantine.

    Gives what the part gives, or None where it came to nothing. An outage, a refusing cluster or
    a lost lease is nobody's poison and is raised on. A change by somebody else only skips the job
    until the next pass.
    """
    try:
        return work()
    except (Unavailable, StaleLeader, ClusterRejected):
        raise
    # Somebody was faster; the next pass reads what he made of it.
    except StaleVersion:
        return None
    except Exception as error:  # noqa: BLE001 - the outermost frame of one job in a loop
        quarantine(gateway, job, error)
        return None


def quarantine(gateway: Gateway, job: Row, error: Exception) -> None:
    """Set a job aside and say which kind of error did it; its text may hold secrets."""
    frames = traceback.extract_tb(error.__traceback__)
    # The function and line, never the values: a manifest's environment may hold keys.
    place = f" in {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    message = f"{type(error).__name__}{place}"
    log.error("job_quarantined", job_id=job["uid"], error=message)

    def store(writer: Writer) -> None:
        job_rows.set_quarantine(writer, job["id"], message)
        append_event(
            writer,
            NewEvent(
                at_us=gateway.clock.now_us(),
                kind="quarantined",
                actor=SYSTEM_ACTOR,
                job_id=job["id"],
                detail=message,
            ),
        )

    gateway.database.run_write(store)
