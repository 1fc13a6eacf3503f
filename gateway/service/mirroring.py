"""Keeps the warm mirror up to date and gives snapshots of it."""

from gateway.core.admission import Snapshot
from gateway.db.mirror_reading import read_changes
from gateway.service.context import Gateway


def refresh(gateway: Gateway) -> None:
    """Apply what the database changed; call it under the mirror's lock."""
    state = gateway.mirror
    rows, horizon = read_changes(gateway.database, state.horizon)
    state.mirror.apply(rows)
    state.horizon = horizon


def current_snapshot(gateway: Gateway) -> Snapshot | None:
    """Give definitions and fleet as last seen; None before the first reading.

    It may be some seconds old and must only serve questions that age does not make wrong, such as
    whether a job could ever fit.
    """
    state = gateway.mirror
    if state.fleet_view is None:
        with state.lock:
            refresh(gateway)
            state.fleet_view = state.mirror.snapshot(0)
    return state.fleet_view
