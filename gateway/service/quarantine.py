"""Keeps one poisoned job from stopping the loops: it is set aside with an event, others go on."""

import traceback
from collections.abc import Callable

import structlog

from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.errors import StaleLeader, StaleVersion, Unavailable
from gateway.service.context import SYSTEM_ACTOR, Gateway

log = structlog.get_logger()


def guarded(gateway: Gateway, job: Row, work: Callable[[], bool]) -> bool:
    """Run one job's part of a loop; what it raises unforeseen puts that job in quarantine.

    An outage or a lost lease is nobody's poison: it ends the pass. A change by somebody else only
    skips the job until the next pass.
    """
    try:
        return work()
    except (Unavailable, StaleLeader):
        raise
    except StaleVersion:
        return False
    except Exception as error:  # noqa: BLE001 - the outermost frame of one job in a loop
        quarantine(gateway, job, error)
        return False


def quarantine(gateway: Gateway, job: Row, error: Exception) -> None:
    """Set a job aside and say which kind of error did it; its text may hold secrets."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name}:{frames[-1].lineno}" if frames else "unknown place"
    message = f"{type(error).__name__} in {place}"
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
