"""One pass over a warm state, told as far as it is news.

Everybody who waits has a reason, but a pass does not repeat it for everybody: reasons are told by
request class, and only those that changed or have grown old. A job that waits reads the reason of
its class.
"""

from collections.abc import Container, Iterable, Iterator
from itertools import islice, takewhile

from gateway.core.admission.deciding import Decided, decide
from gateway.core.admission.granting import admits_of
from gateway.core.admission.state import AskKey, State, Told
from gateway.core.admission.types import ClassHold, CyclePlan
from gateway.core.admission.verdicts import ClassTeller, queue_bar, queue_holds
from gateway.core.admission.waking import next_wake_at_us
from gateway.core.vocabulary import UNLIMITED, Blocking, Reason

REFRESH_US = 30_000_000
"""An explanation whose reason stays is worked out again at most this often."""
# A reason costs a few trials, some milliseconds on a large fleet; a pass has about a second.
MOST_TOLD = 200
"""Explanations in one pass; the others follow in the next ones."""
MOST_REFRESHED = 50
"""Of them, explanations of classes that nothing new is known about."""

_PASSING = frozenset(
    {
        Reason.BEHIND_FAIR_SHARE,
        Reason.BEHIND_PRIORITY,
        Reason.NOT_REACHED,
        Reason.LAUNCH_THROTTLED,
        Reason.OVER_CAP,
    }
)
"""Reasons of those who had no turn; whoever has one and fails has another."""
_KEPT_OFF = Reason.RESERVED_FOR_OTHER


def plan_pass(
    state: State, serial: int, now_us: int, budget: int, most_admits: int = UNLIMITED
) -> CyclePlan:
    """Decide on the state as it is now, and say what is new about those who wait.

    Args:
        state: changed by nothing but what it learns not to fit.
        serial: number of this pass, stored with each answer.
        now_us: present instant, microseconds since the epoch; one before the last pass's counts as
            that one.
        budget: candidates to try.
        most_admits: gangs that may be reserved before launches catch up.
    """
    decided, clock_us = decide(state, now_us, budget, most_admits), now_us
    now_us = state.now_us
    telling = _Telling(state, decided, clock_us)
    return CyclePlan(
        serial=serial,
        admits=admits_of(state, decided),
        holds=(),
        class_holds=tuple(telling.news()),
        queue_holds=queue_holds(state, now_us),
        node_holds=decided.node_holds,
        next_wake_at_us=next_wake_at_us(state, now_us, decided.slots()),
        # The next pass then runs at once: what is owed must not wait for the slow, steady pace.
        is_complete=not telling.untold and not decided.not_reached and not _moves_holds(state),
    )


def _moves_holds(state: State) -> bool:
    """Whether others may use nodes, or begin to hold some, once the present pass is written."""
    return state.hoped != state.node_holds


class _Telling:
    """Chooses whose reason is worked out, and remembers what was told."""

    def __init__(self, state: State, decided: Decided, clock_us: int) -> None:
        self.state = state
        self.decided = decided
        self.now_us = now_us = state.now_us
        # Not the state's instant, which stands still for as long as a clock was set back.
        self.clock_us = clock_us
        self.untold = 0
        """Classes with something new to tell that this pass had no time for."""
        self._teller = ClassTeller(state, decided, now_us)
        self._waiting: dict[str, frozenset[int]] = {}
        self._barred: dict[str, bool] = {}

    def news(self) -> Iterator[ClassHold]:
        """Give what is new, what failed first."""
        due = [key for key in self._due() if not self._is_barred(key[0])]
        # What fails is dead from now on and will not come up again by itself.
        queues = self.state.scene.queues
        closed = [key for key in self.state.owed if key[0] in queues and self._is_barred(key[0])]
        self.untold = len(due[MOST_TOLD:])
        self.state.owed = (*due[MOST_TOLD:], *closed)
        for key in (*due[:MOST_TOLD], *self._old(frozenset(due))):
            hold = self._teller.hold(key)
            ask = self.state.ask(key)
            # Told anew means last in line for the next time.
            self.state.told.pop(key, None)
            self.state.told[key] = Told(
                hold.reason, self.clock_us, self.state.version, (ask.lacks_quota, ask.lacks_nodes)
            )
            if hold.reason in _PASSING:
                self.state.fleeting.add(key)
            yield hold

    def _due(self) -> Iterable[AskKey]:
        """Give what has to be told, what earlier passes had no time for first."""
        others = (*self._others(), *self._heads(), *self._fleeting())
        return dict.fromkeys((*self.state.owed, *self._failed(), *others))

    def _fleeting(self) -> Iterator[AskKey]:
        """Give what others only just came before: now that these run, another reason holds."""
        before, self.state.fleeting = self.state.fleeting, set()
        for key in sorted(before):
            told = self.state.told.get(key)
            if told is not None and told.version == self.state.version:
                # What was admitted has not come true yet, so nothing else can be told.
                self.state.fleeting.add(key)
            elif key[0] in self.state.scene.queues and self._waits(key):
                yield key

    def _failed(self) -> Iterator[AskKey]:
        """Give what had its turn and did not fit, unless the same was told just now."""
        # The trial itself says what is lacking; a whole diagnosis is made only where that is new.
        for key in self.decided.failed:
            told, ask = self.state.told.get(key), self.state.ask(key)
            is_same = told is not None and told.lacks == (ask.lacks_quota, ask.lacks_nodes)
            # It lacks nodes either way; whether others keep them makes another reason of it.
            is_same &= (told and told.reason is _KEPT_OFF) == (key in self.decided.kept_off)
            if told is None or not is_same or self._is_passing(told) or self._is_old(told):
                yield key

    def _others(self) -> Iterator[AskKey]:
        """Give what had no turn, where that is news."""
        # Sorted: which ones a full pass has no time for must not depend on the hash seed.
        for key in sorted(self.decided.unserved.keys() - self.decided.failed.keys()):
            told = self.state.told.get(key)
            if told is None or told.reason is not self._teller.code(key):
                yield key

    def _heads(self) -> Iterator[AskKey]:
        """Give who is the first of a strict queue now, and who was; all others are behind."""
        # Neither of both comes up by itself: where all are known not to fit, nobody has a turn.
        before, self.state.heads = self.state.heads, {}
        for name, queue in self.state.scene.queues.items():
            head = None
            if queue.blocking is Blocking.STRICT and not self._is_barred(name):
                head = self._teller.head(name)
            if head is not None:
                self.state.heads[name] = head
            if before.get(name) != head:
                changed = (before.get(name), head)
                yield from (key for key in changed if key is not None and self._waits(key))

    def _old(self, due: Container[AskKey]) -> Iterator[AskKey]:
        """Give what was told long ago of a state that has changed since."""
        # Telling moves a class to the end, so the oldest come first and the rest is not looked at.
        old = takewhile(lambda entry: self._is_old(entry[1]), self.state.told.items())
        # An unchanged state would be told in the same words, for the price of a diagnosis.
        changed = (key for key, told in old if told.version != self.state.version)
        fresh = (
            key
            for key in changed
            if key not in due and not self._is_barred(key[0]) and self._waits(key)
        )
        # A list first: whoever is told moves to the end of what is gone through here.
        yield from list(islice(fresh, MOST_REFRESHED))

    def _is_barred(self, queue: str) -> bool:
        """Whether a queue is gone, or admits nobody: then that is told of it, not of classes."""
        if queue not in self._barred:
            known = self.state.scene.queues.get(queue)
            self._barred[queue] = known is None or bool(queue_bar(self.state, known, self.now_us))
        return self._barred[queue]

    def _waits(self, key: AskKey) -> bool:
        """Whether anybody of a class waits whose instant has come."""
        queue, class_id = key
        if queue not in self._waiting:
            groups = self.state.lines.groups_of(queue)
            self._waiting[queue] = frozenset(group.key.class_id for group in groups)
        return class_id in self._waiting[queue]

    def _is_old(self, told: Told) -> bool:
        # What was told later than now was told before the clock was set back.
        return not 0 <= self.clock_us - told.at_us < REFRESH_US

    def _is_passing(self, told: Told) -> bool:
        return told.reason in _PASSING
