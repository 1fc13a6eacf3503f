"""Who held a device and when, for those who may know."""

from typing import Any

from gateway.db import inventory_reading as fleet_rows
from gateway.db.device_history import holds_of
from gateway.db.engine import Row
from gateway.errors import NotFound
from gateway.schemas.base import instant
from gateway.schemas.views import DeviceHistoryPage, DeviceHoldView, HolderView
from gateway.service.context import Caller, Gateway
from gateway.service.jobs import read_cursor
from gateway.service.paging import next_cursor, number_of


def device_history(
    gateway: Gateway, caller: Caller, device_id: int, cursor: str = "", limit: int = 100
) -> DeviceHistoryPage:
    """Give a page of holds of one device, the newest first.

    Raises:
        NotFound: there is no such device.
        InvalidInput: the cursor is none of ours.
    """
    before = read_cursor(cursor)
    with gateway.database.read() as connection:
        if fleet_rows.get_device(connection, device_id) is None:
            raise NotFound(f"device {device_id} does not exist", hint="see: gateway device ls")
        # One more than asked for tells whether there is a next page.
        rows = holds_of(connection, device_id, before, limit + 1)
    return DeviceHistoryPage(
        items=tuple(_hold_view(row, caller) for row in rows[:limit]),
        next_cursor=next_cursor(rows, limit, number_of),
    )


def _hold_view(row: Row, caller: Caller) -> DeviceHoldView:
    told = _told(row) if caller.may_know(row["namespace"]) else {}
    return DeviceHoldView(
        queue=row["queue"],
        reserved_at=instant(row["reserved_us"]),
        # A grant ends in the transaction that closes its attempt, so both say the same.
        freed_at=None if row["is_live"] else instant(row["closed_us"]),
        **told,
    )


def _told(row: Row) -> dict[str, Any]:
    """Give what the holder's own tenant may know besides."""
    return {"holder": _holder(row), "attempt": row["number"], "end_reason": row["end_reason"]}


def _holder(row: Row) -> HolderView:
    return HolderView(
        job_id=row["uid"],
        job_name=row["name"],
        namespace=row["namespace"],
        pod_set=row["pod_set"],
        index=row["pod_index"],
    )
