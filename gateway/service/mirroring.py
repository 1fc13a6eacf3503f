"""Keeps the warm mirror up to date, and what submits are judged by."""

from gateway.core.devices.gains import is_alike_when_idle
from gateway.core.mirror import DefinitionRows, MirrorRows
from gateway.core.policies.placement import ALWAYS_ALIKE
from gateway.core.queues.definitions import Budget
from gateway.db.mirror_reading import read_changes, read_spent, read_waiting
from gateway.db.recent import read_recent
from gateway.service.context import Feasible, Gateway
from gateway.service.user_usage import SECOND_US


def refresh(gateway: Gateway) -> None:
    """Apply what the database changed; call it under the mirror's lock."""
    state = gateway.mirror
    is_cold = state.horizon == 0
    half_life_us = gateway.settings.usage_half_life_seconds * SECOND_US
    rows, horizon = read_changes(
        gateway.database, state.horizon, half_life_us, with_jobs=not is_cold
    )
    rows = _with_news(gateway, rows)
    state.mirror.apply(rows)
    for piece in read_waiting(gateway.database) if is_cold else ():
        state.mirror.apply(MirrorRows(waiting=piece))
    state.horizon = horizon
    if is_cold and horizon:
        # Who came while everybody was read may be of a queue or class that came with him.
        refresh(gateway)
        return
    _remember(gateway)


def _with_news(gateway: Gateway, rows: MirrorRows) -> MirrorRows:
    """Give these rows without definitions that are known, and with what else they call for."""
    state = gateway.mirror
    known, found, is_cold = state.mirror.definitions, rows.definitions, state.horizon == 0
    # Only jobs that come change what is recent, and each brings a row.
    if (is_cold or rows.jobs) and state.mirror.state.policies.placement not in ALWAYS_ALIKE:
        rows = rows._replace(recent=read_recent(gateway.database))
    if is_cold or found is None:
        return rows
    if found.generation == known.generation:
        return rows._replace(definitions=None)  # so that nothing built from them is thrown away
    if _budgets(found) == _budgets(known):
        return rows
    return rows._replace(charges=(*rows.charges, *read_spent(gateway.database, found)))


def _budgets(definitions: DefinitionRows) -> dict[str, Budget]:
    return {queue.name: queue.budget for queue in definitions.queues if queue.budget is not None}


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
