"""Keeps the warm mirror up to date, and what submits are judged by."""

from gateway.core.admission import Snapshot
from gateway.db.mirror_reading import read_changes
from gateway.service.context import Feasible, Gateway


def refresh(gateway: Gateway) -> None:
    """Apply what the database changed; call it under the mirror's lock."""
    state = gateway.mirror
    rows, horizon = read_changes(gateway.database, state.horizon)
    known = state.mirror.definitions.generation
    if state.horizon and rows.definitions and rows.definitions.generation == known:
        rows = rows._replace(definitions=None)  # unchanged, so nothing built from them is thrown
    state.mirror.apply(rows)
    state.horizon = horizon


def remember(gateway: Gateway, snapshot: Snapshot) -> None:
    """Judge submits by this snapshot from now on; call it under the mirror's lock."""
    known, generation = gateway.mirror.feasible, gateway.mirror.mirror.definitions.generation
    is_same_fleet = known.view is not None and known.view.fleet is snapshot.fleet
    if not is_same_fleet or known.generation != generation:
        gateway.mirror.feasible = Feasible(view=snapshot, generation=generation)


def refresh_view(gateway: Gateway) -> Feasible:
    """Read now what submits are judged by."""
    with gateway.mirror.lock:
        refresh(gateway)
        remember(gateway, gateway.mirror.mirror.snapshot(0))
        return gateway.mirror.feasible
