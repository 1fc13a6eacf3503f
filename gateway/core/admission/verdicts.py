"""Which reason a waiting job has: what bars it before anything is tried, or what its class met."""

from collections.abc import Iterable, Iterator

from gateway.core.admission.asks import Ask
from gateway.core.admission.deciding import Decided
from gateway.core.admission.heads import capped_classes, head_of
from gateway.core.admission.reasons import ReasonFinder
from gateway.core.admission.starving import holders_words
from gateway.core.admission.state import AskKey, State
from gateway.core.admission.types import ClassHold, QueueHold
from gateway.core.queues.definitions import Queue
from gateway.core.resources.words import counted
from gateway.core.vocabulary import UNLIMITED, Blocking, QueueState, Reason


def bar(state: State, ask: Ask, user: str, now_us: int) -> Reason | None:
    """Give what keeps a user's job out of the pass, whatever fits; None for a candidate."""
    # The whole queue's bar first: a user under every cap would still have to wait for it.
    barred = queue_bar(state, ask.queue, now_us)
    if barred is not None:
        return barred.reason
    if state.holdings.cap_in_the_way(ask.queue, user, ask.gpus):
        return Reason.OVER_CAP
    return None


def queue_bar(state: State, queue: Queue, now_us: int) -> QueueHold | None:
    """Give what keeps all jobs of a queue out of the pass."""
    # In the order in which an admin would have to act: nothing else matters while it is paused.
    # A pause before the rest: it is somebody's decision, and ends by one.
    if queue.state is not QueueState.OPEN:
        detail = f"queue {queue.name} is paused"
        return QueueHold(queue=queue.name, reason=Reason.QUEUE_PAUSED, detail=detail)
    if state.holdings.is_over_budget(queue, now_us):
        detail = f"queue {queue.name} has used up its GPU-hour budget of this window"
        return QueueHold(queue=queue.name, reason=Reason.OVER_BUDGET, detail=detail)
    running = state.holdings.running.get(queue.name, 0)
    if running >= queue.caps.running_jobs:
        limit = counted(queue.caps.running_jobs, "running job")
        detail = f"queue {queue.name} is at its cap of {limit}"
        return QueueHold(queue=queue.name, reason=Reason.OVER_CAP, detail=detail)
    return None


def queue_holds(state: State, now_us: int) -> tuple[QueueHold, ...]:
    """Give every queue that admits nobody, and every user who is at a cap, by name."""
    return tuple(_queue_holds(state, now_us))


def _queue_holds(state: State, now_us: int) -> Iterator[QueueHold]:
    holders = _holders(state)
    for _, queue in sorted(state.scene.queues.items()):
        barred = queue_bar(state, queue, now_us)
        if barred is not None:
            yield barred
        else:
            yield from _user_holds(state, queue, holders.get(queue.name, ()))


def _holders(state: State) -> dict[str, list[str]]:
    """Give who holds or held something in each queue that caps its users, by name."""
    # Gone through once for all queues: with many users it would else be most of an idle pass.
    capped = {
        queue.name
        for queue in state.scene.queues.values()
        if min(queue.caps.user_running_jobs, queue.caps.user_gpus) < UNLIMITED
    }
    found: dict[str, list[str]] = {}
    for name, user in state.holdings.jobs:
        if name in capped:
            found.setdefault(name, []).append(user)
    return found


def _user_holds(state: State, queue: Queue, users: Iterable[str]) -> Iterator[QueueHold]:
    """Give the users who are at a cap whatever they ask for."""
    for user in sorted(users):
        # Asked for no GPU: a cap that bars even that bars every job of the user, and is told once.
        cap = state.holdings.cap_in_the_way(queue, user, 0)
        if cap:
            detail = f"{user} is at the cap {cap} of queue {queue.name}"
            yield QueueHold(queue=queue.name, user=user, reason=Reason.OVER_CAP, detail=detail)


class ClassTeller:
    """Tells what each class of a queue met in one pass; asks the finder only where it must."""

    def __init__(self, state: State, decided: Decided, now_us: int) -> None:
        """Look at a pass that is over; the state is as it was before."""
        self.state = state
        self.decided = decided
        self.now_us = now_us
        self.finder = ReasonFinder(state.scene, tuple(decided.admitted), len(state.lines))
        self._leaving = decided.slots()
        self._heads: dict[str, AskKey | None] = {}
        self._capped: dict[str, frozenset[int]] = {}

    def hold(self, key: AskKey) -> ClassHold:
        """Give why the jobs of a class wait that nothing of their own bars."""
        queue, ask = self.state.scene.queues[key[0]], self.state.ask(key)
        barred = queue_bar(self.state, queue, self.now_us)
        if barred is not None:
            return self.finder.barred(key, barred)
        if ask.gpus > queue.caps.gpus_per_job:
            return self.finder.over_job_cap(key, queue, ask.gpus)
        if key in self.decided.kept_off:
            return self.finder.kept_off(key, holders_words(self.state))
        if key in self.decided.failed:
            return self.finder.diagnose(key, ask.request, self.decided.failed[key])
        code = self.code(key)
        if code is not None:
            return self.finder.had_no_turn(key, code)
        # Known not to fit, and therefore not tried in this pass.
        return self.finder.diagnose(key, ask.request, len(self.decided.admitted))

    def code(self, key: AskKey) -> Reason | None:
        """Give why a class that did not fail had no turn; None when that is not what it lacks."""
        queue = key[0]
        # Before the strict head: behind it or not, a cap would keep these back.
        if key[1] in self._capped_in(queue):
            return Reason.OVER_CAP
        if queue in self.decided.behind_strict:
            return Reason.BEHIND_PRIORITY
        if key in self.decided.unserved:
            return self.decided.unserved[key]
        head = self.head(queue)
        return Reason.BEHIND_PRIORITY if head is not None and head != key else None

    def head(self, queue: str) -> AskKey | None:
        """Give what the head of a strict queue asks for, behind which everybody waits."""
        if queue not in self._heads:
            self._heads[queue] = self._head(queue)
        return self._heads[queue]

    def _capped_in(self, queue: str) -> frozenset[int]:
        if queue not in self._capped:
            self._capped[queue] = capped_classes(self.state, queue)
        return self._capped[queue]

    def _head(self, queue: str) -> AskKey | None:
        if self.state.scene.queues[queue].blocking is not Blocking.STRICT:
            return None
        failed = self.decided.behind_strict.get(queue)
        # Where nobody had a turn the pass has not seen who blocks, but the line knows.
        return failed or head_of(self.state, queue, self._leaving, self.now_us)
