"""Lines of a rank: live from the back end, else the tail that was kept when the attempt ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.core.vocabulary import AttemptPhase
from gateway.db import attempts as attempt_rows
from gateway.db.engine import Row
from gateway.errors import NotFound
from gateway.service.context import Caller, Gateway
from gateway.service.jobs import find_visible
from gateway.service.launches import launch_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Which lines: rank, whether to wait for more, the last n only, which attempt (0: last)."""

    rank: int = 0
    follow: bool = False
    tail: int | None = None
    attempt: int = 0


def job_logs(gateway: Gateway, caller: Caller, job_id: str, options: LogOptions) -> Iterator[str]:
    """Give lines without line ends; with `follow` until the rank has ended.

    Raises:
        NotFound: no such job, attempt or rank, or it has not started yet.
    """
    with gateway.database.read() as connection:
        job = find_visible(connection, caller, job_id)
        attempt = _chosen(attempt_rows.attempts_of(connection, job["id"]), options.attempt)
        if attempt is None:
            raise NotFound(
                f"{job['name']} has not started: it is {job['state']}",
                hint=f"ask why: gateway explain {job['uid']}",
            )
        launch = launch_of(connection, job, attempt)
        kept = attempt_rows.read_log_tail(connection, attempt["id"], options.rank)
    ranks = len(launch.pods)
    if not 0 <= options.rank < ranks:
        raise NotFound(
            f"rank {options.rank} does not exist",
            pointer="/rank",
            value=options.rank,
            allowed=(f"0 to {ranks - 1}",),
            hint="ranks count from 0; the Master is rank 0",
        )
    if kept is not None and attempt["phase"] == AttemptPhase.CLOSED:
        lines = kept.split("\n")
        return iter(lines[-options.tail :] if options.tail else lines)
    return gateway.backend.logs(launch, options.rank, follow=options.follow, tail=options.tail)


def _chosen(attempts: Sequence[Row], number: int) -> Row | None:
    if number:
        return next((row for row in attempts if row["number"] == number), None)
    return attempts[-1] if attempts else None
