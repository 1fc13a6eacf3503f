"""Why a gang does not start: the primary reason, every cause with counts, and what would help.

Judged on the state at the start of the cycle; who was admitted before it matters only for the two
"behind" reasons.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from gateway.core.admission.asks import FlavorChoice, charges_of
from gateway.core.admission.causes import node_causes, pieces_cause, quota_causes, quota_path
from gateway.core.admission.deciding import Admitted
from gateway.core.admission.lift_words import unblocking
from gateway.core.admission.never import never_fits_on
from gateway.core.admission.state import AskKey
from gateway.core.admission.trial import Scene
from gateway.core.admission.types import Cause, ClassHold, QueueHold, QuotaStep
from gateway.core.admission.unblock import Unblock, coming_first, lifts_of, words_of
from gateway.core.jobs.request import RequestClass
from gateway.core.placing.room import with_rule
from gateway.core.queues.definitions import Queue
from gateway.core.queues.limits import Shortage, shortages
from gateway.core.resources.words import counted, listed
from gateway.core.vocabulary import PairRule, Reason

# Lifts need dozens of trials; classes past this get theirs when somebody asks.
MAX_TRIED = 50
"""Classes a cycle for which unblocking changes are tried; the others only get their causes."""


_NO_TURN: dict[Reason, Callable[[str], str]] = {
    Reason.BEHIND_PRIORITY: "queue {} is strict, and its first job does not fit".format,
    Reason.OVER_CAP: "queue {}, or the user in it, has reached a cap".format,
    Reason.NOT_REACHED: lambda _: (
        "the cycle ended before this job's turn; the next one follows at once"
    ),
    Reason.LAUNCH_THROTTLED: lambda _: "as many gangs as may be are waiting for their launch",
}
"""What is told by reason, for a queue."""


class ReasonFinder:
    """Diagnoses request classes of one snapshot."""

    def __init__(self, scene: Scene, admitted: tuple[Admitted, ...], waiting: int) -> None:
        """Keep the state at the start of the pass, who was admitted, and how many waited."""
        self.scene = scene
        self.admitted = admitted
        self._others = waiting - len(admitted) - 1
        self._shown: tuple[str, int] = ("", 0)
        """Queue and number of admissions that the probe shows."""
        self._tried = 0

    def barred(self, key: AskKey, hold: QueueHold) -> ClassHold:
        """Give the answer for a queue that admits nobody."""
        return _told(key, hold.reason, hold.detail)

    def over_job_cap(self, key: AskKey, queue: Queue, gpus: int) -> ClassHold:
        """Give the answer for a gang that is larger than its queue takes."""
        cap = queue.caps.gpus_per_job
        detail = f"asks for {counted(gpus, 'GPU')}; queue {queue.name} takes {cap} a job at most"
        return _told(key, Reason.OVER_CAP, detail)

    def had_no_turn(self, key: AskKey, reason: Reason) -> ClassHold:
        """Give the answer for a class that the pass did not get to try."""
        return _told(key, reason, _NO_TURN[reason](key[0]))

    def kept_off(self, key: AskKey, holders: str) -> ClassHold:
        """Give the answer for a class that would fit but for nodes that are held for others."""
        detail = f"it would fit on nodes that are held for {holders}"
        told = _told(key, Reason.RESERVED_FOR_OTHER, detail)
        return replace(told, unblock=(f"{holders} to start or leave",), lifts=((),))

    def diagnose(self, key: AskKey, request: RequestClass, admits_before: int) -> ClassHold:
        """Find out why a class that had its turn did not fit.

        Args:
            key: its queue and class.
            request: what it asks for.
            admits_before: how many gangs were admitted before its turn.
        """
        queue, class_index = self.scene.queues[key[0]], key[1]
        # It fits the state at the start, so nothing but the order of the pass kept it out.
        # It fits where the pass began and did not at its turn: whoever came between is the reason.
        if self.scene.look(queue, request):
            return self._behind(queue, class_index, request, self.admitted[:admits_before])
        impossible = never_fits_on(self.scene, queue.name, request)
        if impossible is not None:
            return replace(impossible, class_index=class_index)
        return self._blocked(queue, request, class_index)

    def _behind(
        self,
        queue: Queue,
        class_index: int,
        request: RequestClass,
        before: tuple[Admitted, ...],
    ) -> ClassHold:
        """Tell own and other queues' jobs apart by trying the class after each of them alone."""
        own = [entry for entry in before if entry.queue == queue.name]
        others = [entry for entry in before if entry.queue != queue.name]
        # With its own queue's jobs alone it would still fit: the others took its place.
        if self._after_own(queue, len(before)).look(queue, request):
            reason = Reason.BEHIND_FAIR_SHARE
            first = f"{counted(len(others), 'job')} of {_queues_of(others)}"
            detail = f"it fitted until {first} came first by fair share"
        else:
            reason = Reason.BEHIND_PRIORITY
            detail = f"it fitted until {counted(len(own), 'job')} of its queue came first"
        cause = Cause(reason=reason, detail=detail, count=len(before), total=len(before))
        # The next cycle has another reason; what would help is worked out when somebody asks.
        return ClassHold(queue=queue.name, class_index=class_index, reason=reason, causes=(cause,))

    def _unblocking(self, queue: Queue, request: RequestClass) -> tuple[Unblock, ...]:
        """Give what would admit the first job of a class in the next cycle.

        By then the gangs that this pass admitted run, and everybody else still waits.
        """
        self._tried += 1
        if self._tried > MAX_TRIED:
            return ()
        sets = unblocking(self._rest, queue, request)
        return tuple(each.also(coming_first(self._others)) for each in sets)

    @cached_property
    def _rest(self) -> Scene:
        """The scene with everything taken that the pass admitted."""
        if not self.admitted:
            return self.scene
        scene = self.scene.afresh()
        for entry in self.admitted:
            scene.admit(entry.queue, entry.request, entry.fit)
        return scene

    @cached_property
    def _probe(self) -> tuple[Scene, int, int]:
        """A scene to try admissions on, with the marks of its room and its quota at the start."""
        scene = self.scene.afresh()
        return scene, scene.room.mark(), scene.tree.mark()

    def _after_own(self, queue: Queue, admits: int) -> Scene:
        """Give the scene after this queue's own ones of the first admissions."""
        scene, room, quota = self._probe
        if self._shown != (queue.name, admits):
            # Taken back, not made anew: a thousand queues ask, and a tree of them is dear.
            scene.room.back_to(room)
            scene.tree.back_to(quota)
            for entry in self.admitted[:admits]:
                if entry.queue == queue.name:
                    scene.admit(entry.queue, entry.request, entry.fit)
            self._shown = (queue.name, admits)
        return scene

    def _blocked(self, queue: Queue, request: RequestClass, class_index: int) -> ClassHold:
        lacks = [
            shortages(self.scene.tree, queue.name, charges_of(request, choice))
            for choice in self.scene.choices(queue, request)
        ]
        # Quota holds the gang back only when no flavor passes; the first one is then told.
        short = lacks[0] if lacks and all(lacks) else ()
        every = dict.fromkeys(chain.from_iterable(lacks))
        sets = self._unblocking(queue, request)
        reason = self._reason(queue, request, short)
        is_in_pieces = reason is Reason.FRAGMENTED_DEVICES
        pieces = pieces_cause(self.scene, queue, request) if is_in_pieces else ()
        nodes = node_causes(self.scene, queue, request)
        return ClassHold(
            queue=queue.name,
            class_index=class_index,
            reason=reason,
            causes=(*quota_causes(every), *pieces, *nodes),
            quota_path=self._path(queue, request, short),
            limiting=short[0].node if short else "",
            unblock=words_of(sets),
            lifts=lifts_of(sets),
        )

    def _path(
        self, queue: Queue, request: RequestClass, short: tuple[Shortage, ...]
    ) -> tuple[QuotaStep, ...]:
        charges = self.scene.nominate(queue, request)
        lacking = {lack.pair for lack in short} or set(charges)
        chosen = {pair: amount for pair, amount in charges.items() if pair in lacking}
        return quota_path(self.scene.tree, queue.name, chosen)

    def _reason(self, queue: Queue, request: RequestClass, short: tuple[Shortage, ...]) -> Reason:
        if short:
            return max(short, key=lambda lack: lack.is_borrowing_limit).reason
        return self._place_reason(queue, request)

    def _place_reason(self, queue: Queue, request: RequestClass) -> Reason:
        fleet = self.scene.fleet
        # The first that would be enough names the reason: health, then a fleet that is still being
        # read, then the plain sum, and only then how what is free lies apart.
        healed = replace(self.scene, room=self.scene.room.afresh().heal(range(len(fleet))))
        if healed.look(queue, request):
            return Reason.NODES_UNAVAILABLE
        # Until all nodes are read, too little room may only mean too little known.
        if not fleet.is_complete and not self._fits_idle(queue, request):
            return Reason.NODES_UNAVAILABLE
        if not self._sum_suffices(queue, request):
            return Reason.GANG_DOES_NOT_FIT
        if self.scene.look(queue, with_rule(request, PairRule.NONE)):
            return Reason.NO_ALIGNED_DEVICES
        return Reason.FRAGMENTED_DEVICES

    def _fits_idle(self, queue: Queue, request: RequestClass) -> bool:
        """Whether the nodes known so far could hold it at all; the missing ones might."""
        fleet = self.scene.fleet
        rows = range(len(fleet))
        idle = replace(self.scene, room=self.scene.room.afresh().empty(rows).heal(rows))
        return idle.look(queue, request) is not None

    def _sum_suffices(self, queue: Queue, request: RequestClass) -> bool:
        """Whether some choice's usable nodes together have enough of everything free."""
        passing = self.scene.passing(queue, request)
        return any(self._holds_sum(request, choice) for choice, _ in passing)

    def _holds_sum(self, request: RequestClass, choice: FlavorChoice) -> bool:
        allowed = list(self.scene.nodes(request, choice).values())
        # Nodes that no pod of it may use would make a sum that does not help.
        free = self.scene.room.free_sums(self.scene.room.is_available & np.any(allowed, axis=0))
        return all(amount <= free.get(name, 0) for name, amount in request.total)


def _told(key: AskKey, reason: Reason, detail: str) -> ClassHold:
    """Give an answer for which nothing was tried; what would help is worked out when it is read."""
    return ClassHold(
        queue=key[0],
        class_index=key[1],
        reason=reason,
        causes=(Cause(reason=reason, detail=detail),),
    )


def _queues_of(entries: list[Admitted]) -> str:
    return listed(sorted({entry.queue for entry in entries}))
