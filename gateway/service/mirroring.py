"""Keeps the warm mirror up to date, and what submits are judged by."""

from gateway.core.devices.gains import is_alike_when_idle
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
    _remember(gateway)


def refresh_view(gateway: Gateway) -> Feasible:
    """Read now what submits are judged by."""
    with gateway.mirror.lock:
        refresh(gateway)
        return gateway.mirror.feasible


def _remember(gateway: Gateway) -> None:
    """Judge submits by the present definitions and fleet, unless those known say the same."""
    known, mirror = gateway.mirror.feasible, gateway.mirror.mirror
    generation, fleet = mirror.definitions.generation, mirror.state.scene.fleet
    if (
        known.view is None
        or known.generation != generation
        or not is_alike_when_idle(known.view.fleet, fleet)
    ):
        gateway.mirror.feasible = Feasible(view=mirror.setting(), generation=generation)
