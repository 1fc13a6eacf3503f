"""Commands on the order of a queue: who comes when, and who shall come first."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import exits
from gateway.cli.defining import Name
from gateway.cli.jobs import JobId, find
from gateway.cli.options import Namespace, Output
from gateway.cli.output import Column, Format, show_data, show_list
from gateway.cli.session import client
from gateway.cli.terminal import span

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.order import OrderEntry

_FIRST: "list[Column[OrderEntry]]" = [
    Column("POS", lambda job: job.position, is_number=True),
    Column("ID", lambda job: (job.job_id or "")[-8:]),
    Column("NAME", lambda job: job.name or "(another tenant's)"),
    Column("USER", lambda job: job.user),
    Column("GPUS", lambda job: job.gpus, is_number=True),
    Column("PODS", lambda job: job.pods, is_number=True, is_wide=True),
    Column("NICS", lambda job: job.rdma, is_number=True, is_wide=True),
    Column("PRIO", lambda job: job.priority, is_number=True),
]
_TERMS: "list[Column[OrderEntry]]" = [
    Column("CLASS", lambda job: job.priority_class or None),
    Column("AGE", lambda job: _points(job.age), is_number=True),
    Column("TOTAL", lambda job: _points(job.effective), is_number=True),
    Column("USAGE", lambda job: job.user_usage, is_number=True),
    Column("SLACK", lambda job: _signed(job.slack_seconds), is_number=True),
    Column("GPU-SECONDS", lambda job: job.remaining_gpu_seconds, is_number=True),
]
"""Of these only those that the queue's policy asks for, or that some job has, are shown."""
_LAST: "list[Column[OrderEntry]]" = [
    Column("RANK", lambda job: job.rank, is_number=True, is_wide=True),
    Column("WAITED", lambda job: _length(job.waited_seconds), is_number=True),
    Column("SUBMITTED", lambda job: job.submitted_at, is_wide=True),
    Column("KIND", lambda job: job.request_class, is_number=True, is_wide=True),
    Column("REASON", lambda job: job.reason),
    Column("BARRED", lambda job: job.barred, is_wide=True),
]


def order(
    name: Name,
    limit: Annotated[
        int, typer.Option(min=1, max=500, help="Most jobs to show.", metavar="N")
    ] = 50,
    output: Output = Format.TABLE,
) -> None:
    """Show who of a queue comes when, and why.

    Every term of the order, first those who come next.

    Examples:
      gateway queue order research
      gateway queue order research -o wide | grep OverCap
    """
    page = client().queues.order(name, limit=limit)
    if output in {Format.JSON, Format.YAML}:
        show_data(page.model_dump(mode="json"), output)
        return
    if page.items:
        show_list(page.items, [*_FIRST, *_told(page.items), *_LAST], output, name="job_id")
    more = f", the first {len(page.items)} shown" if page.next_cursor else ""
    exits.say(
        f"{page.total} waiting in queue {page.queue}{more}; "
        f"order {page.policy}, {page.blocking}; list {page.list_serial}"
    )


def top(
    job: JobId,
    serial: Annotated[
        int | None,
        typer.Option("--list", help="Number of the list that was looked at.", metavar="N"),
    ] = None,
    namespace: Namespace = None,
) -> None:
    """Put a waiting job first in its queue; for admins.

    By the smallest change of its priority. With --list, only if nobody has come, left or overtaken
    since that list was shown.

    Examples:
      gateway top train
      gateway top train --list 243927366461433
    """
    handle = find(client(), job, namespace).top(list_serial=serial)
    exits.say(f"{handle.name}: priority {handle.view.priority}, first of {handle.view.queue}")


def _told(jobs: "Iterable[OrderEntry]") -> "list[Column[OrderEntry]]":
    entries = list(jobs)
    return [column for column in _TERMS if any(column.value(job) is not None for job in entries)]


def _length(seconds: float | None) -> str | None:
    return None if seconds is None else span(timedelta(seconds=seconds))


def _points(number: float | None) -> str | None:
    return None if number is None else f"{number:g}"


def _signed(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    length = span(timedelta(seconds=abs(seconds)))
    return f"-{length}" if seconds < 0 else length
