"""The command that lists who held a device, and when."""

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.options import DeviceId, Output
from gateway.cli.output import Column, Format, show_list
from gateway.cli.session import client
from gateway.cli.terminal import moment_words, span

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.views import DeviceHoldView


def _job_words(hold: "DeviceHoldView") -> str:
    return f"{hold.holder.namespace}/{hold.holder.job_name}" if hold.holder else ""


def _pod_words(hold: "DeviceHoldView") -> str:
    return f"{hold.holder.pod_set} {hold.holder.index}" if hold.holder else ""


def _now() -> datetime:
    return datetime.now(UTC)


COLUMNS: "list[Column[DeviceHoldView]]" = [
    Column("RESERVED", lambda hold: moment_words(hold.reserved_at)),
    Column("FREED", lambda hold: moment_words(hold.freed_at) if hold.freed_at else "still held"),
    Column("FOR", lambda hold: span((hold.freed_at or _now()) - hold.reserved_at), is_number=True),
    Column("QUEUE", lambda hold: hold.queue),
    Column("JOB", _job_words),
    Column("POD", _pod_words),
    Column("ATTEMPT", lambda hold: hold.attempt, is_number=True),
    Column("END", lambda hold: hold.end_reason.value if hold.end_reason else ""),
    Column("JOB ID", lambda hold: hold.holder.job_id if hold.holder else "", is_wide=True),
]


def history(
    device_id: DeviceId,
    limit: Annotated[int, typer.Option(min=1, help="Most lines.", metavar="N")] = 50,
    output: Output = Format.TABLE,
) -> None:
    """Show who held a device, the newest first.

    Jobs of namespaces that you may not see are told by their queue alone.

    Examples:
      gateway device history 7
      gateway device history 7 --limit 500 -o json
    """
    found = list(islice(client().devices.history(device_id), limit))
    show_list(found, COLUMNS, output, name="queue")
