"""Keeps the warm mirror up to date, and what submits are judged by."""

from gateway.core.devices.gains import is_alike_when_idle
from gateway.core.mirror import DefinitionRows, MirrorRows
from gateway.core.policies.placement import ALWAYS_ALIKE
from gateway.core.queues.definitions import Budget
from gateway.db.mirror_reading import Asked, read_changes, read_spent, read_waiting
from gateway.service.context import Feasible, Gateway
from gateway.service.user_usage import SECOND_US


def refresh(gateway: Gateway) -> None:
    """Apply what the database changed; call it under the mirror's lock."""
    state = gateway.mirror
    is_cold = state.horizon == 0
    half_life_us = gateway.settings.usage_half_life_seconds * SECOND_US
    asked = Asked(
        half_life_us=half_life_us,
        with_jobs=not is_cold,
        with_recent=state.mirror.state.policies.placement not in ALWAYS_ALIKE,
        generation=None if is_cold else state.mirror.definitions.generation,
    )
    rows, horizon = read_changes(gateway.database, state.horizon, asked)
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
    """Give these rows with the ended charges that new or longer budgets count."""
    state = gateway.mirror
    found, is_cold = rows.definitions, state.horizon == 0
    if is_cold or found is None or _budgets(found) == _budgets(state.mirror.definitions):
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
