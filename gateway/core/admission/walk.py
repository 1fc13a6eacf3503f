"""One queue during one pass: whose turn it is, group by group, without changing the lines."""

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from gateway.core.admission.asks import Ask
from gateway.core.waiting.lines import Group, Line, Position
from gateway.core.waiting.run import Entry

Asker = tuple[Group, Ask]
"""A group with what its jobs ask for."""


class Turn(NamedTuple):
    """A job whose turn it is in its queue."""

    group: Group
    ask: Ask
    slot: int
    submitted_us: int
    is_dead: bool = False
    """It is known not to fit, and stands here only because others must not pass it unnoticed."""
    is_seen: bool = False
    """Its turn must come even after others failed."""


_Item = tuple[Position, int, Turn, Iterator[Entry] | None]
"""Position, a number that decides ties, whose turn, and who follows where that was asked yet."""


class QueueWalk:
    """The jobs of a queue in order. The first one that is known not to fit takes part, too."""

    def __init__(
        self,
        line: Line,
        live: Iterable[Asker],
        dead: Iterable[Asker],
        now_us: int,
        has_turn: Callable[[Ask], bool] = lambda _: False,
    ) -> None:
        """Line up the heads of the groups; `has_turn` says which of the dead must be seen."""
        self._line = line
        self._now_us = now_us
        self._serial = 0
        items = [self._item(group, ask, group.run.first(), None) for group, ask in live]
        self._heap: list[_Item] = [item for item in items if item is not None]
        markers = list(self._markers(dead, has_turn))
        self._heap += [item for item in markers if item[2].is_seen]
        self._dead = [item for item in markers if not item[2].is_seen]
        heapify(self._heap)
        heapify(self._dead)
        self._mark()

    def turn(self) -> Turn | None:
        """Give whose turn it is; None when nobody is left."""
        return self._heap[0][2] if self._heap else None

    def step(self) -> None:
        """Go on to the next job."""
        _, _, turn, rest = self._heap[0]
        if rest is None:
            # Most heads never get past their first turn, and to walk along costs more than to look.
            rest = turn.group.run.walk()
            next(rest)
        following = self._item(turn.group, turn.ask, next(rest, None), rest)
        if following is None:
            heappop(self._heap)
        else:
            heapreplace(self._heap, following)

    def leave_group(self) -> None:
        """Let all jobs of the present group leave."""
        _, _, turn, _ = heappop(self._heap)
        if turn.is_dead:
            # A cap keeps its user back, so the next of those that do not fit is in the way.
            self._mark()

    def leave_class(self, class_id: int) -> None:
        """Let all jobs of a class leave, and the one that stands for the dead."""
        self._heap = [
            # One failure protects, and one blocks a strict queue: after it no marker is needed.
            item
            for item in self._heap
            if item[2].ask.class_id != class_id and (item[2].is_seen or not item[2].is_dead)
        ]
        # Whoever fails takes all of its class along; the rest has to be put in order once.
        heapify(self._heap)

    def class_ids(self) -> set[int]:
        """Give the classes of those who are left."""
        return {item[2].ask.class_id for item in self._heap}

    def leave(self) -> None:
        """Let everybody leave."""
        self._heap.clear()

    def _item(
        self, group: Group, ask: Ask, entry: Entry | None, rest: Iterator[Entry] | None
    ) -> _Item | None:
        if entry is None:
            return None
        # Positions of two jobs never tie, but comparing must not go on to what cannot be compared.
        self._serial += 1
        position = self._line.position(group, entry, self._now_us)
        return position, self._serial, Turn(group, ask, entry[3], entry[1]), rest

    def _mark(self) -> None:
        """Let the first of those that are known not to fit stand for them all."""
        if self._dead:
            heappush(self._heap, heappop(self._dead))

    def _markers(self, dead: Iterable[Asker], has_turn: Callable[[Ask], bool]) -> Iterator[_Item]:
        """Give the heads of the groups that are known not to fit."""
        return (
            (
                self._line.position(group, entry, self._now_us),
                0,
                Turn(group, ask, entry[3], entry[1], is_dead=True, is_seen=has_turn(ask)),
                None,
            )
            for group, ask in dead
            if (entry := group.run.first()) is not None
        )
