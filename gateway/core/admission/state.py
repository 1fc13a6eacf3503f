"""The state that passes decide on, kept warm: quota in use, free room, lines, and dead asks.

It is changed by what the database says and by time, never by a pass: a pass takes what it admits
out of the state while it decides, and puts everything back at its end. Whatever is remembered here
to skip work may never alter a plan; a state made afresh from the same rows decides the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

from gateway.core.admission.asks import Ask, new_ask
from gateway.core.admission.trial import Scene
from gateway.core.admission.types import NodeHold, Policies
from gateway.core.admission.usage import Holdings
from gateway.core.admission.usual import Requested, Usual, requested_by
from gateway.core.devices.building import fleet_of
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.gains import has_gained
from gateway.core.jobs.request import RequestClass
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.placing.typical import Typical
from gateway.core.policies.placement import ALWAYS_ALIKE
from gateway.core.queues.dated import definitions_at, next_change_us
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.queues.tree import Pair, QuotaTree
from gateway.core.resources import GPU
from gateway.core.vocabulary import Blocking, Reason
from gateway.core.waiting.lines import GroupKey, Lines

SECOND_US = 1_000_000
AskKey = tuple[str, int]
"""(queue name, class id)."""


class Definitions(NamedTuple):
    """What admins defined, with dated changes not yet put in."""

    queues: tuple[Queue, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    flavors: tuple[Flavor, ...] = ()


class Told(NamedTuple):
    """What was last told about an ask."""

    reason: Reason
    at_us: int
    """By the clock, which may be set back."""
    version: int
    """Of the state."""
    lacks: tuple[bool, bool]
    """Whether it lacked quota, and nodes, when it was last tried."""


class State:
    """Everything a pass looks at."""

    def __init__(self, policies: Policies) -> None:
        """Start with nothing defined, no node and nobody waiting."""
        self.policies = policies
        self.definitions = Definitions()
        self.classes: dict[int, RequestClass] = {}
        self._gpus: dict[int, int] = {}
        self.lines = Lines(self._gpus)
        self.holdings = Holdings()
        self.asks: dict[AskKey, Ask] = {}
        self.live: dict[str, set[GroupKey]] = {}
        """Groups by queue that may fit, as far as is known."""
        self._freed: set[str] = set()
        """Queues that gave something back."""
        self._refused: dict[str, list[Ask]] = {}
        """Dead asks that quota refused, by root."""
        self.fleeting: set[AskKey] = set()
        """Asks that were told a reason which speaks of one pass only."""
        self.told: dict[AskKey, Told] = {}
        """What was told about each ask, in the order of telling."""
        self.owed: tuple[AskKey, ...] = ()
        """Asks with something new to tell that no pass had time for."""
        self.heads: dict[str, AskKey] = {}
        """What the first in line asks for, of each strict queue where it does not fit."""
        self.version = 0
        """Grows with everything that may change a reason."""
        self.promised: set[int] = set()
        """Jobs that the last pass admitted and that were not seen to hold anything yet; what it saw
        fail, failed beside them."""
        self.node_holds: tuple[NodeHold, ...] = ()
        """Who holds nodes, as the database has it."""
        self.hoped: tuple[NodeHold, ...] = ()
        """Who is to hold nodes by the last pass."""
        self._starving_us: dict[AskKey, int] = {}
        """When asks that nodes alone refuse may have waited for long."""
        self.starving: set[AskKey] = set()
        """Those that may have by now; whose turn it is in them says whether they have."""
        self.recent: Requested = ()
        """What was asked for of late; nothing where nobody looked."""
        self._usual = Usual()
        self.now_us = 0
        """Instant at which it stands."""
        self._dated_until_us: int | None = None
        fleet = fleet_of((), {}, is_complete=False)
        self.scene = Scene(
            policies=policies,
            queues={},
            cohorts=(),
            flavors=(),
            tree=QuotaTree((), ()),
            room=Room(fleet),
            eligibility=Eligibility(fleet, ()),
        )

    def learn(self, classes: Mapping[int, RequestClass]) -> None:
        """Take request classes; call it before jobs of them come."""
        self.classes.update(classes)
        self._gpus.update((key, dict(each.total).get(GPU, 0)) for key, each in classes.items())
        # Jobs of it may have come before, and were nobody's ask until now.
        self.lines.touch(classes)

    def define(self, definitions: Definitions) -> None:
        """Take other definitions; everything that follows from them is worked out again."""
        self.definitions = definitions
        self.lines.define(definitions.queues)
        self._rebuild()

    def charge(self, queue: str, pair: Pair, amount: int) -> None:
        """Count what a live reservation uses, or with a negative amount what one gave back."""
        # Whoever told a reason at this number knows whether anything may have changed since.
        self.version += 1
        tree = self.scene.tree
        tree.charge(queue, pair, amount)
        # Whoever takes more only makes less fit, so that is worth no second try.
        if amount < 0:
            self._freed.add(queue)

    def move(self, fleet: Fleet, rows: Sequence[int] | None) -> None:
        """Take a later fleet, in which only these nodes changed; None for anything."""
        self.version += 1
        before, scene = self.scene.fleet, self.scene
        # The room follows in place, because views of it are what makes the next pass cheap.
        scene.room.sync(fleet, rows)
        if rows is None:
            self.scene = replace(scene, eligibility=Eligibility(fleet, scene.flavors))
        else:
            scene.eligibility.sync(fleet, rows)
        # What failed on more fails on less: a fleet that only lost brings nothing back.
        if has_gained(before, fleet, rows):
            self.revive_refused()

    def at(self, now_us: int) -> int:
        """Let time pass: dated changes act, jobs become eligible or age. Gives where it stands now.

        Time never goes back: of an earlier instant the state stays where it was.
        """
        # A clock that is set back must not take back what has begun: jobs cannot be put off again.
        now_us = self.now_us = max(self.now_us, now_us)
        if self.promised:
            # What failed beside these may fit, since they hold nothing after all. That they do not
            # wait any more says little: they may have been cancelled, or have ended already.
            self.revive_all()
            self.promised = set()
        self._revive_quota()
        if self.hoped != self.node_holds:
            # That was not written: what others were refused by is not there.
            self.revive_refused()
            self.hoped = self.node_holds
        # Between passes only: jobs get other slots, and a pass remembers jobs by slot.
        self.lines.compact()
        if self._dated_until_us is not None and now_us >= self._dated_until_us:
            self._rebuild()
        self.lines.advance(now_us)
        self._let_live(self.lines.touched)
        self._watch_touched()
        self.lines.touched.clear()
        due = [key for key, at_us in self._starving_us.items() if at_us <= now_us]
        self.starving.update(due)
        for key in due:
            del self._starving_us[key]
        return now_us

    def next_dated_us(self) -> int | None:
        """Give the instant of the next dated change."""
        return next_change_us(self.definitions.queues, self.definitions.cohorts, self.now_us)

    def hold_nodes(self, holds: tuple[NodeHold, ...]) -> None:
        """Take who holds nodes now; what they kept off has its turn in any pass."""
        # Read again is nothing new, and all reasons would be told again for it.
        if holds == self.node_holds:
            return
        ended = set(self.node_holds) - set(holds)
        self.node_holds = holds
        self.version += 1
        if ended:
            # Whoever starves longest is next, and may be known not to fit for a long time.
            self.revive_refused()

    def watch(self, ask: Ask, at_us: int) -> None:
        """Let an ask that does not fit have its turn once it may have waited for long."""
        key = ask.queue.name, ask.class_id
        if at_us <= self.now_us:
            self.starving.add(key)
        else:
            self._starving_us[key] = min(at_us, self._starving_us.get(key, at_us))

    def starves_at_us(self, ask: Ask, since_us: int) -> int:
        """Give from when on whoever waits since an instant starves, if nodes alone refuse it."""
        # Behind a strict head nobody passes, so nothing is lost by keeping nodes for it at once.
        if ask.queue.blocking is Blocking.STRICT:
            return since_us
        return since_us + self.policies.starvation_after_seconds * SECOND_US

    def next_starving_us(self) -> int | None:
        """Give the earliest instant at which somebody will have waited for long."""
        return min(self._starving_us.values(), default=None)

    def typical(self) -> Typical | None:
        """Give what is typically asked for, for a placement policy that wants to know it."""
        if self.policies.placement in ALWAYS_ALIKE:
            return None
        # Who waits is a poor sample, for it leaves out whoever never had to; better than none.
        requested = self.recent or requested_by(self.lines.table, self.classes)
        return self._usual.typical(self.scene, requested)

    def ask(self, key: AskKey) -> Ask:
        """Give what a queue's jobs of a class ask for."""
        ask = self.asks.get(key)
        if ask is None:
            scene = self.scene
            queue, request = scene.queues[key[0]], self.classes[key[1]]
            ask = new_ask(scene.tree, scene.flavors, queue, (key[1], request))
            self.asks[key] = ask
        return ask

    def fork(self) -> "State":
        """Give a second state over the same lines, quota and room, for one question.

        A pass over it puts quota and room back, and what it learns not to fit stays with it.
        """
        other = copy(self)
        # What a pass may learn is copied; a million waiting jobs are not, for a single question.
        asks = {key: replace(ask) for key, ask in self.asks.items()}
        vars(other).update(
            classes=dict(self.classes),
            asks=asks,
            live={name: set(keys) for name, keys in self.live.items()},
            told=dict(self.told),
            _freed=set(self._freed),
            _starving_us=dict(self._starving_us),
            starving=set(self.starving),
            _refused={
                root: [asks[ask.queue.name, ask.class_id] for ask in refused]
                for root, refused in self._refused.items()
            },
        )
        return other

    def bury(self, asks: Iterable[Ask]) -> None:
        """Remember that these do not fit, until something of their kind changes."""
        for ask in asks:
            # From here on its jobs cost nothing until something of their kind comes back.
            ask.is_dead = True
            if ask.lacks_quota:
                self._refused.setdefault(ask.root, []).append(ask)
            self._watch_oldest(ask)
            groups = self.live.get(ask.queue.name, set())
            groups.difference_update([key for key in groups if key.class_id == ask.class_id])

    def revive(self, asks: Iterable[Ask]) -> None:
        """Let these be tried again."""
        for ask in asks:
            if ask.is_dead:
                ask.is_dead = False
                groups = self.lines.groups_of(ask.queue.name)
                mine = (each.key for each in groups if each.key.class_id == ask.class_id)
                self._let_live(mine)

    def revive_all(self) -> None:
        """Forget what was known not to fit, because it is not known any more what is free."""
        self.revive(self.asks.values())

    def untell(self, keys: Iterable[AskKey]) -> None:
        """Forget that these were told, since nobody may have read it, or others told otherwise."""
        gone = [key for key in list(keys) if self.told.pop(key, None) is not None]
        # What is known not to fit has no turn, and would not be told again by itself.
        self.revive(self.asks[key] for key in gone if key in self.asks)

    def _let_live(self, keys: Iterable[GroupKey]) -> None:
        for key in keys:
            # A class that was not read yet is nobody's ask; its row comes with the next reading.
            is_known = key.class_id in self.classes and key.queue in self.scene.queues
            if is_known and not self.ask((key.queue, key.class_id)).is_dead:
                self.live.setdefault(key.queue, set()).add(key)

    def _revive_quota(self) -> None:
        """Let what quota refused be tried again wherever quota came back."""
        tree = self.scene.tree
        # Quota may have come back anywhere in the same root.
        for root in {tree.root_of(queue).name for queue in self._freed if queue in tree.queues}:
            # One that died, was revived and died again stands there twice.
            refused = dict.fromkeys(self._refused.pop(root, ()))
            dead = [ask for ask in refused if ask.is_dead and ask.lacks_quota]
            # Inside a pass quota only shrinks: whom it refuses now it would refuse at its turn.
            passing = {ask: self._has_quota(ask) for ask in dead}
            self._refused[root] = [ask for ask in dead if not passing[ask]]
            self.revive(ask for ask in dead if passing[ask])
        self._freed.clear()

    def revive_refused(self) -> None:
        """Let everybody whom nodes refused be tried again."""
        self.revive(ask for ask in self.asks.values() if ask.lacks_nodes)

    def _watch_touched(self) -> None:
        """Watch what does not fit and has newcomers, which may wait since long ago."""
        for key in self.lines.touched:
            ask = self.asks.get((key.queue, key.class_id))
            if ask is not None and ask.is_dead:
                self._watch_oldest(ask)

    def _watch_oldest(self, ask: Ask) -> None:
        oldest_us = self.lines.lines[ask.queue.name].oldest_us.get(ask.class_id)
        if ask.lacks_nodes and oldest_us is not None:
            self.watch(ask, self.starves_at_us(ask, oldest_us))

    def _has_quota(self, ask: Ask) -> bool:
        """Whether quota lets an option through as long as nothing is admitted."""
        tree, queue = self.scene.tree, ask.queue.name
        return any(tree.has_room(queue, option.counted) for option in ask.options)

    def _rebuild(self) -> None:
        """Work out what follows from the definitions at this instant."""
        queues, cohorts = definitions_at(
            self.definitions.queues, self.definitions.cohorts, self.now_us
        )
        self.scene = self.scene.under(queues, cohorts, self.definitions.flavors)
        self._dated_until_us = self.next_dated_us()
        self.version += 1
        self._freed.clear()
        self._refused.clear()
        # An ask holds its queue's rules and what quota counts: under other definitions, others.
        self.asks.clear()
        self._starving_us.clear()
        self.starving.clear()
        self.live.clear()
        # Every ask was thrown away with the old definitions, so every group must be asked about
        # anew.
        self.lines.touch(self.classes)
