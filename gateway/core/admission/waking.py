"""When a pass could decide differently though nothing but time has passed."""

from collections.abc import Iterator

from gateway.core.admission.state import State
from gateway.core.waiting.lines import Line, Position


def next_wake_at_us(state: State, now_us: int) -> int | None:
    """Give the earliest instant after now at which something that depends on time changes.

    May be too early, never too late; None when time alone changes nothing.
    """
    instants = (state.next_dated_us(), state.lines.next_change_us(), *_by_queue(state, now_us))
    return min((at for at in instants if at is not None and at > now_us), default=None)


def _by_queue(state: State, now_us: int) -> Iterator[int | None]:
    for name, queue in state.scene.queues.items():
        yield state.holdings.budget_change_us(queue, now_us)
        if queue.ageing.per_hour:
            yield _overtaking_us(state, state.lines.lines[name], now_us)


def _overtaking_us(state: State, line: Line, now_us: int) -> int | None:
    """Give when the first job that still ages overtakes the first that has stopped to.

    Deeper in the line places change later or without effect: only who is first may block.
    """
    ageing: list[Position] = []
    settled: list[Position] = []
    for group in state.lines.groups_of(line.queue.name):
        entry = group.run.first()
        if entry is not None:
            ages = line.ordering.stages[group.key.stage].ages
            (ageing if ages else settled).append(line.position(group, entry, now_us))
    if not ageing or not settled:
        return None
    gap = min(ageing)[2] - min(settled)[2]
    return now_us + gap // line.queue.ageing.per_hour + 1 if gap >= 0 else None
