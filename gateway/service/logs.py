"""Lines of a rank: live from the back end, else the tail that was kept when the attempt ended."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.core.vocabulary import AttemptPhase
from gateway.db import attempts as attempt_rows
from gateway.errors import NotFound
from gateway.service.context import Caller, Gateway
from gateway.service.jobs import choose_attempt, find_visible
from gateway.service.launches import launch_of, read_facts


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
        attempts = attempt_rows.attempts_of(connection, job["id"])
        attempt = choose_attempt(attempts, options.attempt or None)
        if attempt is None:
            raise NotFound(
                f"{job['name']} has not started: it is {job['state']}",
                hint=f"ask why: gateway explain {job['uid']}",
            )
        launch = launch_of(job, attempt, read_facts(connection, [(job, attempt)]))
        kept = attempt_rows.read_log_tail(connection, attempt["id"], options.rank)
    _require_rank(options.rank, len(launch.pods))
    # While it stops the pods may still write, so the stored tail is only the end of an ended one.
    if kept is not None and attempt["phase"] == AttemptPhase.CLOSED:
        return iter(kept.split("\n")[-(options.tail or 0) :])
    return gateway.backend.logs(launch, options.rank, follow=options.follow, tail=options.tail)


def _require_rank(rank: int, ranks: int) -> None:
    if rank not in range(ranks):
        raise NotFound(
            f"rank {rank} does not exist",
            pointer="/rank",
            value=rank,
            allowed=(f"0 to {ranks - 1}",),
            hint="ranks count from 0; the Master is rank 0",
        )
