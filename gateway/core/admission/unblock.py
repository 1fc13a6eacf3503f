"""What would let a job start, in numbers that a program can apply and in words for people.

Every set stands by itself: with all of it, and nothing else, the job starts in the next cycle.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gateway.core.vocabulary import LiftKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """One thing that stands in a job's way, and by how much it must give."""

    kind: LiftKind
    target: str = ""
    """Node of the quota tree, queue, or node of the fleet."""
    flavor: str = ""
    resource: str = ""
    amount: int = 0
    """A raise of quotas and limits, what comes free on a node; of the others the new value."""
    ordinals: tuple[int, ...] = ()
    """Devices that come free; `resource` says of which kind."""
    word: str = ""
    """A pair rule, or the name of a cap."""


Lifts = tuple[Lift, ...]


class Unblock(NamedTuple):
    """A complete set."""

    words: str
    lifts: Lifts

    def also(self, other: "Unblock") -> "Unblock":
        """Give both together."""
        words = "; and ".join(filter(None, (self.words, other.words)))
        return Unblock(words, (*self.lifts, *other.lifts))


NOTHING = Unblock("", ())


def coming_first(others: int) -> Unblock:
    """Give the lift that keeps everybody else who waits from coming first; none for nobody."""
    if not others:
        return NOTHING
    # How many and not who: they may be another tenant's.
    lift = Lift(kind=LiftKind.ORDER, amount=others)
    words = "1 other job that waits" if others == 1 else f"{others} other jobs that wait"
    return Unblock(f"it to come before the {words}", (lift,))


def words_of(sets: Iterable[Unblock]) -> tuple[str, ...]:
    """Give the sentences."""
    return tuple(each.words for each in sets)


def lifts_of(sets: Iterable[Unblock]) -> tuple[Lifts, ...]:
    """Give the numbers."""
    return tuple(each.lifts for each in sets)
