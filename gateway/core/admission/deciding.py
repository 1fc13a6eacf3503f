"""One pass over the queues: candidate after candidate, admitted while it fits.

The pass takes what it admits out of the state, so that the next candidate sees it gone, and puts
everything back at its end; what was admitted comes true when the database has it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.core.admission.asks import Ask, Option
from gateway.core.admission.repacking import Gang, Repacking
from gateway.core.admission.starving import Keeping
from gateway.core.admission.state import AskKey, State
from gateway.core.admission.trial import Fit
from gateway.core.admission.types import NodeHold
from gateway.core.admission.walk import QueueWalk, Turn
from gateway.core.jobs.request import RequestClass
from gateway.core.policies import named
from gateway.core.policies.fairness import FAIRNESS, Candidate, Contest
from gateway.core.policies.placement import PLACEMENT, GangPlaces, PlacementPolicy, would_place
from gateway.core.queues.definitions import Queue
from gateway.core.queues.share import borrows
from gateway.core.vocabulary import UNLIMITED, Blocking, QueueState, Reason, WhenCanBorrow
from gateway.core.waiting.lines import Group


class Admitted(NamedTuple):
    """A waiting job that the pass admitted, in the order of admission."""

    slot: int
    queue: str
    class_id: int
    priority: int
    request: RequestClass
    fit: Fit


@dataclass(slots=True)
class Decided:
    """What came of one pass."""

    admitted: list[Admitted] = field(default_factory=list)
    failed: dict[AskKey, int] = field(default_factory=dict)
    """Asks that did not fit at their turn, with the number of admissions before it."""
    behind_strict: dict[str, AskKey] = field(default_factory=dict)
    """Strict queues whose head did not fit, so that nobody behind it had a turn."""
    not_reached: set[str] = field(default_factory=set)
    """Queues with candidates left when the pass had to end."""
    unserved: dict[AskKey, Reason] = field(default_factory=dict)
    """Classes with somebody who had no turn, and why."""
    kept_off: set[AskKey] = field(default_factory=set)
    """Asks that only lack nodes which are kept for others."""
    node_holds: tuple[NodeHold, ...] = ()
    """Who holds nodes from the next pass on."""

    def slots(self) -> frozenset[int]:
        """Give the slots of those who were admitted."""
        return frozenset(entry.slot for entry in self.admitted)


class Pass:
    """Progress of one pass."""

    def __init__(self, state: State, now_us: int, budget: int, most_admits: int) -> None:
        """Prepare; the state must stand at `now_us` already."""
        self.state = state
        self.scene = state.scene
        self.now_us = now_us
        self.budget = budget
        self.most_admits = most_admits
        self.decided = Decided()
        self.walks: dict[str, QueueWalk] = {}
        self.contest: Contest = named("fairness", FAIRNESS, state.policies.fairness)(
            self.scene.tree
        )
        self.place: PlacementPolicy = named("placement", PLACEMENT, state.policies.placement)
        self.scene.room.typical = state.typical()
        self._turns: dict[str, tuple[Turn, Option | None, int]] = {}
        self._room_mark = 0
        # Before anything is tried: who holds nodes is judged on the state as it is.
        self.keeping = Keeping(state)
        self._standing: list[Gang] = []
        self._gangs: dict[tuple[int, tuple[str, ...]], Gang] = {}
        self._refused: dict[tuple[int, tuple[str, ...]], Gang] = {}
        self._kept_off: set[tuple[int, tuple[str, ...]]] = set()
        self._met_failure: set[str] = set()
        self._buried: list[Ask] = []

    def run(self) -> Decided:
        """Decide until nobody is left or the budget is used up; the state is as before after it."""
        # The live tree and room are used and put back: a copy of them costs more than most passes.
        tree_mark, self._room_mark = self.scene.tree.mark(), self.scene.room.mark()
        try:
            self._line_up()
            while self._may_go_on() and (winner := self.contest.best()) is not None:
                self._play(winner)
            self.decided.not_reached.update(self._turns)
            for queue in self._turns:
                self._leave(queue, self._why_over())
        finally:
            # Also when a policy fails: nothing else would ever take out again what the pass put in.
            self.scene.room.back_to(self._room_mark)
            self.scene.tree.back_to(tree_mark)
            # Else every charge that the database brings would be written down to be taken back.
            self.scene.tree.keep()
            for entry in self.decided.admitted:
                self._count(entry, -1)
        # Not before the end: a pass that broke off has not shown that anything stays unfit.
        self.state.bury(self._buried)
        job_ids = self.state.lines.table.job_id
        self.state.promised = {int(job_ids[each.slot]) for each in self.decided.admitted}
        self._renew_holds()
        return self.decided

    def _renew_holds(self) -> None:
        decided = self.decided
        leaving, cut_off = self.state.promised, decided.not_reached
        decided.node_holds = self.keeping.holds(leaving, decided.failed, cut_off)
        self.state.hoped = decided.node_holds

    def _may_go_on(self) -> bool:
        return self.budget > 0 and len(self.decided.admitted) < self.most_admits

    def _why_over(self) -> Reason:
        is_throttled = len(self.decided.admitted) >= self.most_admits
        return Reason.LAUNCH_THROTTLED if is_throttled else Reason.NOT_REACHED

    def _line_up(self) -> None:
        """Let the queues with somebody who may fit take part, and those who may be in their way."""
        # Whoever holds nodes has to be seen even where nobody else may fit.
        if not any(self.state.live.values()) and not self.keeping.roots():
            return
        tree = self.scene.tree
        admitting = [name for name in self.scene.queues if self._is_open(name)]
        # A queue without live groups still counts in its root: its first dead candidate protects
        # what is its queue's own, and blocks the queue if that is strict.
        roots = {id(tree.root_of(name)) for name in admitting if self.state.live.get(name)}
        roots |= self.keeping.roots()
        for name in admitting:
            if id(tree.root_of(name)) in roots:
                self._open(name)

    def _is_open(self, name: str) -> bool:
        queue, holdings = self.scene.queues[name], self.state.holdings
        return (
            queue.state is QueueState.OPEN
            and holdings.running.get(name, 0) < queue.caps.running_jobs
            and not holdings.is_over_budget(queue, self.now_us)
        )

    def _open(self, name: str) -> None:
        line, live = self.state.lines.lines[name], self.state.live.get(name, set())
        # A class without an ask was not read yet.
        known = self.state.asks
        everybody = [
            (group, ask)
            for group in self.state.lines.groups_of(name)
            if (ask := known.get((name, group.key.class_id))) is not None
        ]
        askers = [each for each in everybody if not each[1].has_caps or self._may_start(*each)]
        if len(askers) < len(everybody):
            served = {ask.class_id for _, ask in askers}
            capped = {ask.class_id for _, ask in everybody} - served
            self._pass_over(name, capped, Reason.OVER_CAP)
        # Groups that everybody left would have the queue opened for nobody, pass after pass.
        live.intersection_update([group.key for group, _ in everybody])
        alive = [asker for asker in askers if asker[0].key in live]
        dead = (asker for asker in askers if asker[0].key not in live)
        self.walks[name] = QueueWalk(line, alive, dead, self.now_us, self.keeping.has_turn)
        self._next_head(name)

    def _may_start(self, group: Group, ask: Ask) -> bool:
        """Whether no cap is in the way of the jobs of a group."""
        if not ask.has_caps:
            return True
        user = self.state.lines.user_of(group.key)
        return not self.state.holdings.cap_in_the_way(ask.queue, user, ask.gpus)

    def _next_head(self, queue: str) -> None:
        """Let the first job that no cap keeps back compete; nobody when none is left."""
        walk = self.walks[queue]
        while (turn := walk.turn()) is not None and not self._may_start(turn.group, turn.ask):
            self._pass_over(queue, [turn.ask.class_id], Reason.OVER_CAP)
            walk.leave_group()
        if turn is None:
            self._turns.pop(queue, None)
            self.contest.withdraw(queue)
        else:
            self._put(turn, self._nominate(turn.ask), changes=0)

    def _put(self, turn: Turn, option: Option | None, changes: int) -> None:
        queue, table = turn.ask.queue.name, self.state.lines.table
        self._turns[queue] = turn, option, changes
        rank, charges = int(table.rank[turn.slot]), option.counted if option else {}
        self.contest.put(Candidate(queue, turn.slot, turn.submitted_us, charges, rank))

    def _nominate(self, ask: Ask) -> Option | None:
        """Give the option that is tried first: one that quota lets through, else the first."""
        # A single option is the nomination whether quota lets it through or not.
        if len(ask.options) > 1:
            passing = self._passing(ask)
            return passing[0] if passing else ask.options[0]
        return ask.options[0] if ask.options else None

    def _passing(self, ask: Ask) -> Sequence[Option]:
        """Give the options that quota lets through now, in the order in which they are tried."""
        tree, queue = self.scene.tree, ask.queue
        passing = [each for each in ask.options if tree.has_room(queue.name, each.counted)]
        if queue.when_can_borrow is WhenCanBorrow.TRY_NEXT_FLAVOR:
            # Stable: flavors that need no borrowing first, each kind in the queue's order.
            node = tree.queues[queue.name]
            passing.sort(key=lambda each: borrows(node, each.counted))
        return passing

    def _play(self, winner: Candidate) -> None:
        """Try the winner, unless its flavor changed since it became head: then play again."""
        turn, option, changes = self._turns[winner.queue]
        ask = turn.ask
        now = self._nominate(ask)
        # Others may have used up the flavor it was compared by. Bounded, because two heads whose
        # flavors change with each other's turns could else go on for ever.
        if now is not option and changes < len(ask.options):
            self._put(turn, now, changes + 1)
            return
        found = None if turn.is_dead else self._try(ask)
        # The dead are not tried again, so they use up nothing of what is meant for trials.
        if not turn.is_dead:
            self.budget -= 1
        if found is None:
            self._fail(turn, now)
        else:
            self._admit(turn, *found)
        self._next_head(winner.queue)

    def _try(self, ask: Ask) -> tuple[Option, Fit] | None:
        """Take room for a whole gang, or leave everything as it was and note what it lacks."""
        passing = self._passing(ask)
        ask.lacks_quota, ask.lacks_nodes = len(passing) < len(ask.options), bool(passing)
        for option in passing:
            key = ask.class_id, option.place
            # Of whatever queue: nodes refuse a gang whoever asks, and in a pass they only fill.
            if key in self._refused:
                continue
            gang = self._gangs.get(key)
            if gang is None:
                # Nodes do not change in a pass, and to find them anew costs a tenth of a turn.
                nodes = self.keeping.open(self.scene.nodes(ask.request, option.choice))
                gang = self._gangs[key] = Gang(ask.request, nodes)
            places = self.place(self.scene.room, gang.request.pod_sets, gang.nodes)
            if places is None:
                places = self._place_all_anew(gang)
            if places is not None:
                self._standing.append(gang)
                return option, Fit(choice=option.choice, places=places, charges=option.charges)
            self._refused[key] = gang
            if self.keeping.is_on and self._fits_beside(gang.request, option):
                self._kept_off.add(key)
        if any((ask.class_id, option.place) in self._kept_off for option in passing):
            self.decided.kept_off.add((ask.queue.name, ask.class_id))
        return None

    def _fits_beside(self, request: RequestClass, option: Option) -> bool:
        """Whether a gang would find room if no nodes were kept for others."""
        nodes = self.scene.nodes(request, option.choice)
        return would_place(self.place, self.scene.room, request.pod_sets, nodes)

    def _place_all_anew(self, gang: Gang) -> GangPlaces | None:
        """Let a gang in by moving those that this pass admitted; nothing of it is committed yet."""
        admitted = self.decided.admitted
        standing = [
            (each, entry.fit.places) for each, entry in zip(self._standing, admitted, strict=True)
        ]
        repacking = Repacking(self.scene.room, self.place, self._room_mark)
        found = repacking.with_newcomer(standing, gang, self._refused.values())
        if found is None:
            return None
        for index, places in enumerate(found[:-1]):
            moved = admitted[index].fit._replace(places=places)
            admitted[index] = admitted[index]._replace(fit=moved)
        return found[-1]

    def _admit(self, turn: Turn, option: Option, fit: Fit) -> None:
        ask, tree, table = turn.ask, self.scene.tree, self.state.lines.table
        queue = ask.queue.name
        for pair, amount in option.counted.items():
            # What nobody limits need not be counted: it is all taken back at the end of the pass.
            tree.charge(queue, pair, amount)
        priority = int(table.priority[turn.slot])
        entry = Admitted(turn.slot, queue, ask.class_id, priority, ask.request, fit)
        self.decided.admitted.append(entry)
        self.contest.refresh(queue)
        self.walks[queue].step()
        if ask.has_caps:
            self._count(entry, 1)
            # This cap ends the whole line at once; those of users are looked at turn by turn.
            if ask.queue.caps.running_jobs <= self.state.holdings.running.get(queue, 0):
                self._leave(queue, Reason.OVER_CAP)

    def _leave(self, queue: str, why: Reason) -> None:
        """Let everybody of a queue go without a turn."""
        walk = self.walks[queue]
        self._pass_over(queue, walk.class_ids(), why)
        walk.leave()

    def _pass_over(self, queue: str, class_ids: Iterable[int], why: Reason) -> None:
        """Note that classes have somebody who gets no turn."""
        self.decided.unserved.update(((queue, class_id), why) for class_id in class_ids)

    def _count(self, entry: Admitted, sign: int) -> None:
        """Count a gang into what its queue and user hold, or out again."""
        if not self.state.asks[entry.queue, entry.class_id].has_caps:
            return
        table = self.state.lines.table
        user = table.words["user"][int(table.user[entry.slot])]
        gpus = self.state.asks[entry.queue, entry.class_id].gpus
        self.state.holdings.add(entry.queue, user, jobs=sign, gpus=sign * gpus)

    def _fail(self, turn: Turn, option: Option | None) -> None:
        ask, queue, walk = turn.ask, turn.ask.queue, self.walks[turn.ask.queue.name]
        self.decided.failed.setdefault((queue.name, ask.class_id), len(self.decided.admitted))
        if not turn.is_dead and self._stays_so(ask):
            self._buried.append(ask)
        if self.keeping.failed(ask, self._passing(ask), turn.slot):
            # What others may use is less from here on.
            self._gangs.clear()
        # Only for the first that fails: the next ones come after it in the same queue, and would
        # claim the same unused quota a second time.
        if queue.name not in self._met_failure and option is not None:
            self._protect(queue, option)
        self._met_failure.add(queue.name)
        if queue.blocking is Blocking.STRICT:
            self.decided.behind_strict[queue.name] = queue.name, ask.class_id
            walk.leave_class(ask.class_id)
            self._leave(queue.name, Reason.BEHIND_PRIORITY)
        else:
            walk.leave_class(ask.class_id)

    def _stays_so(self, ask: Ask) -> bool:
        """Whether it will not fit in the next pass either, if nothing comes free.

        What others are protected from may be theirs next time. With several large pod sets the
        placement is a heuristic, which may find on less what it did not find on more.
        """
        is_guess = ask.lacks_nodes and sum(each.count > 1 for each in ask.request.pod_sets) > 1
        is_kept_off = (ask.queue.name, ask.class_id) in self.decided.kept_off
        return not is_guess and not is_kept_off and not self._is_kept_off(ask)

    def _is_kept_off(self, ask: Ask) -> bool:
        """Whether an option fails only because another queue's share is protected."""
        tree, name = self.scene.tree, ask.queue.name
        return any(tree.is_kept_off(name, each.counted) for each in ask.options)

    def _protect(self, queue: Queue, option: Option) -> None:
        """Keep what the first blocked candidate may claim as its queue's own from the others."""
        node = self.scene.tree.queues[queue.name]
        # Whoever has to borrow has no claim to what others could use meanwhile.
        if all(amount <= node.nominal(pair) for pair, amount in option.counted.items()):
            self.scene.tree.protect(queue.name, option.counted)


def decide(state: State, now_us: int, budget: int, most_admits: int = UNLIMITED) -> Decided:
    """Make one pass over a state; the state stays as it is, but for what it learns to be dead."""
    return Pass(state, state.at(now_us), budget, most_admits).run()
