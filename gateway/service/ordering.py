"""Shows who comes when in a queue, from the same lines that decide.

The warm state of this process is brought up to date first, whether or not it leads, so that every
replica gives the same answer.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.core.admission.ranking import Place, Ranked, Ranking
from gateway.core.vocabulary import Reason
from gateway.db.engine import Row
from gateway.db.ranked import jobs_by_row
from gateway.db.state import read_serial
from gateway.errors import NotFound
from gateway.schemas.base import instant
from gateway.schemas.order import OrderEntry, OrderPage
from gateway.service.context import Caller, Gateway
from gateway.service.mirroring import refresh
from gateway.service.paging import match_cursor

_CURSOR = re.compile(r"(\d{1,19})((?:\.-?\d{1,19}){6})\Z")
"""The instant that the list is of, and the last one's place."""


@contextmanager
def ranking(gateway: Gateway, queue: str, now_us: int) -> Iterator[Ranking]:
    """Give a queue's order as it is now; nothing may change while it is looked at.

    Raises:
        NotFound: no such queue.
    """
    with gateway.mirror.lock:
        refresh(gateway)
        state = gateway.mirror.mirror.state
        if queue not in state.lines.lines:
            raise NotFound(
                f"queue {queue[:64]!r} does not exist",
                value=queue[:64],
                allowed=tuple(sorted(state.lines.lines)),
                hint="list them with: gateway queue ls",
            )
        yield Ranking(state, queue, now_us)


def queue_order(
    gateway: Gateway, caller: Caller, name: str, cursor: str = "", limit: int = 100
) -> OrderPage:
    """Give a page of the ranked list; later pages are of the same instant as the first.

    Raises:
        NotFound: no such queue.
        InvalidInput: the cursor is none of ours.
    """
    now_us, after = _read_cursor(cursor, gateway.clock.now_us())
    with ranking(gateway, name, now_us) as order:
        ranked, last = order.after(after, limit)
        queue = gateway.mirror.mirror.state.lines.lines[name].queue
        serial, total = order.serial, len(order)
    with gateway.database.read() as connection:
        rows = jobs_by_row(connection, [each.job_id for each in ranked])
        cycle = read_serial(connection)
    entries = (_entry(each, rows.get(each.job_id), caller) for each in ranked)
    return OrderPage(
        queue=name,
        policy=str(queue.order),
        blocking=queue.blocking,
        list_serial=serial,
        cycle=cycle,
        as_of=instant(now_us),
        total=total,
        # Who is not in the table any more was archived a moment ago.
        items=tuple(entry for entry in entries if entry is not None),
        next_cursor="" if last is None else ".".join(map(str, (now_us, *last))),
    )


def _read_cursor(cursor: str, now_us: int) -> tuple[int, Place | None]:
    found = match_cursor(_CURSOR, cursor)
    if found is None:
        return now_us, None
    early, usage, stage, key, submitted, job = map(int, found[2].split(".")[1:])
    return int(found[1]), (early, usage, stage, key, submitted, job)


def _entry(ranked: Ranked, row: Row | None, caller: Caller) -> OrderEntry | None:
    if row is None:
        return None
    sizes = {name: row[name] for name in ("pods", "gpus", "rdma")}
    if not caller.may_know(row["namespace"]):
        return OrderEntry(position=ranked.position, **sizes)
    terms, bar = ranked.terms, ranked.bar
    return OrderEntry(
        position=ranked.position,
        job_id=row["uid"],
        name=row["name"],
        namespace=row["namespace"],
        user=row["user_name"],
        **sizes,
        priority=ranked.priority,
        age=_rounded(terms.age),
        effective=_rounded(terms.effective),
        user_usage=_rounded(terms.user_usage),
        slack_seconds=_rounded(terms.slack_seconds),
        remaining_gpu_seconds=terms.remaining_gpu_seconds,
        priority_class=row["priority_class"],
        rank=ranked.rank,
        submitted_at=instant(ranked.submitted_us),
        not_before_at=instant(ranked.eligible_us) if ranked.eligible_us else None,
        waited_seconds=_rounded(terms.waited_seconds),
        request_class=ranked.class_id,
        reason=bar.reason if bar else row["reason"],
        barred=_bar_words(ranked),
    )


def _bar_words(ranked: Ranked) -> str:
    if ranked.bar is None:
        return ""
    if ranked.bar.reason is Reason.NOT_BEFORE:
        return f"not before {instant(ranked.eligible_us).isoformat()}"
    return ranked.bar.detail


def _rounded(number: float | None) -> float | None:
    # People read these; the order itself is decided by whole numbers.
    return None if number is None else round(number, 3)
