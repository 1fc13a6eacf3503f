"""Who comes first in a queue among those whom no cap keeps back, whether it is known to fit or not.

Only for telling why others wait behind it; passes find it themselves while they walk.
"""

from collections.abc import Container, Iterator

from gateway.core.admission.state import AskKey, State
from gateway.core.waiting.lines import Group, Position


def capped_classes(state: State, queue: str) -> frozenset[int]:
    """Give the classes of a queue of which caps keep everybody back whose instant has come."""
    capped: set[int] = set()
    served: set[int] = set()
    for group in _known_groups(state, queue):
        (capped if _keeps_back(state, group) else served).add(group.key.class_id)
    # A user at a cap does not speak for the class: others of it may have had their turn.
    return frozenset(capped - served)


def head_of(state: State, queue: str, leaving: Container[int], now_us: int) -> AskKey | None:
    """Give what the first in line asks for, leaving out slots that the pass admitted."""
    heads = _heads(state, queue, leaving, now_us)
    # A position ends with the job's id, so no two are equal.
    first = min(heads, default=None)
    return None if first is None else (queue, first[1])


def _heads(
    state: State, queue: str, leaving: Container[int], now_us: int
) -> Iterator[tuple[Position, int]]:
    line = state.lines.lines[queue]
    for group in _known_groups(state, queue):
        # Who was admitted stands in the line until the database says that it started.
        entry = next((each for each in group.run.walk() if each[3] not in leaving), None)
        if entry is not None and not _keeps_back(state, group):
            yield line.position(group, entry, now_us), group.key.class_id


def _known_groups(state: State, queue: str) -> Iterator[Group]:
    """Give the groups with an ask; a class without one was not read yet."""
    groups = state.lines.groups_of(queue)
    return (group for group in groups if (queue, group.key.class_id) in state.asks)


def _keeps_back(state: State, group: Group) -> bool:
    ask = state.asks[group.key.queue, group.key.class_id]
    user = state.lines.user_of(group.key)
    return ask.has_caps and bool(state.holdings.cap_in_the_way(ask.queue, user, ask.gpus))
