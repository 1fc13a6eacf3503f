"""When a pass could decide differently though nothing but time has passed."""

from collections.abc import Container, Iterable, Iterator

from gateway.core.admission.state import State
from gateway.core.waiting.lines import Group, Line, Position


def next_wake_at_us(state: State, now_us: int, leaving: Container[int] = ()) -> int | None:
    """Give the earliest instant after now at which something that depends on time changes.

    May be too early, never too late; None when time alone changes nothing.

    Args:
        state: as it was before the pass.
        now_us: present instant.
        leaving: slots of those whom the pass admitted; they are in nobody's way any more.
    """
    by_queue = _by_queue(state, now_us, leaving)
    # Whatever else happens, a job that comes or a gang that ends, makes a pass due by itself.
    instants = (
        state.next_dated_us(),
        state.next_starving_us(),
        state.lines.next_change_us(),
        *by_queue,
    )
    return min((at for at in instants if at is not None and at > now_us), default=None)


def _by_queue(state: State, now_us: int, leaving: Container[int]) -> Iterator[int | None]:
    for name, queue in state.scene.queues.items():
        yield state.holdings.budget_change_us(queue, now_us)
        if queue.ageing.per_hour:
            line, groups = state.lines.lines[name], state.lines.groups_of(name)
            yield _overtaking_us(line, groups, now_us, leaving)


def _overtaking_us(
    line: Line, groups: Iterable[Group], now_us: int, leaving: Container[int]
) -> int | None:
    """Give when the first job that still ages overtakes the first that has stopped to.

    Deeper in the line places change later or without effect: only who is first may block.
    """
    ageing: list[Position] = []
    settled: list[Position] = []
    for group in groups:
        entry = next((each for each in group.run.walk() if each[3] not in leaving), None)
        if entry is not None:
            ages = line.ordering.stages[group.key.stage].ages
            (ageing if ages else settled).append(line.position(group, entry, now_us))
    if not ageing or not settled:
        return None
    gap = min(ageing)[2] - min(settled)[2]
    return None if gap < 0 else now_us + _closing_us(gap, line)


def _closing_us(gap: int, line: Line) -> int:
    # Keys are in microseconds times the hour's points: those of jobs that age fall by per_hour each
    # microsecond, the others stand still. Rounded up to where both are level, for from there on the
    # older one may be ahead.
    return max(1, -(-gap // line.queue.ageing.per_hour))
