"""What would let a gang start: changes that were tried on a copy of the state, never guessed.

Single changes first; if none is enough, changes are added in a fixed order until the gang fits, and
those that turn out not to be needed are dropped again. Only complete sets are told.
"""

from dataclasses import dataclass

from gateway.core.admission.trial import Scene, new_scene
from gateway.core.devices.room import Room, without_pairs
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Queue
from gateway.core.queues.limits import Shortage
from gateway.core.vocabulary import PairRule

QUOTA, NUMA_PAIR, NO_PAIR, HEALTH, ROOM = "quota", "numa pair", "no pair", "health", "room"
ORDER = (QUOTA, NUMA_PAIR, NO_PAIR, HEALTH, ROOM)


@dataclass(frozen=True, slots=True)
class _Question:
    """One gang on one state."""

    scene: Scene
    queue: Queue
    request: RequestClass

    def fits_with(self, lifts: frozenset[str]) -> bool:
        """Whether the gang fits with these limits lifted."""
        scene = new_scene(self.scene.snapshot, self.scene.policies)
        scene.ignores_quota = QUOTA in lifts
        if ROOM in lifts:
            available = scene.room.is_available
            scene.room = Room.emptied(scene.snapshot.fleet)
            scene.room.is_available = available
        if HEALTH in lifts:
            scene.room.healed()
        return scene.fits(self.queue, _loosened(self.request, lifts))


def unblocking(
    scene: Scene, queue: Queue, request: RequestClass, short: tuple[Shortage, ...]
) -> tuple[str, ...]:
    """Give sentences that together would admit the gang; alternatives are joined by "or"."""
    question = _Question(scene, queue, request)
    singles = [lift for lift in ORDER if question.fits_with(frozenset({lift}))]
    if NUMA_PAIR in singles and NO_PAIR in singles:
        singles.remove(NO_PAIR)  # the smaller concession says it all
    if singles:
        return (" or ".join(_words(lift, question, short) for lift in singles),)
    return tuple(_words(lift, question, short) for lift in _smallest_set(question))


def _smallest_set(question: _Question) -> list[str]:
    lifted: list[str] = []
    for lift in ORDER:
        lifted.append(lift)
        if question.fits_with(frozenset(lifted)):
            break
    else:
        return []
    for lift in tuple(lifted):
        rest = frozenset(lifted) - {lift}
        if question.fits_with(rest):
            lifted.remove(lift)
    return lifted


def _loosened(request: RequestClass, lifts: frozenset[str]) -> RequestClass:
    if NO_PAIR in lifts:
        rule = PairRule.NONE
    elif NUMA_PAIR in lifts:
        rule = PairRule.NUMA
    else:
        return request
    return RequestClass(
        pod_sets=tuple(
            without_pairs(pod_set, rule)
            if rule is PairRule.NONE or pod_set.pair is PairRule.SWITCH
            else pod_set
            for pod_set in request.pod_sets
        )
    )


def _words(lift: str, question: _Question, short: tuple[Shortage, ...]) -> str:
    if lift == QUOTA:
        return " and ".join(_quota_words(lack) for lack in short)
    if lift == NUMA_PAIR:
        return "accept pair rule numa"
    if lift == NO_PAIR:
        return "accept pair rule none"
    if lift == HEALTH:
        fleet = question.scene.snapshot.fleet
        names = [
            name for name, usable in zip(fleet.names, fleet.is_available, strict=True) if not usable
        ]
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")  # noqa: PLR2004
        return f"nodes back in service: {shown}"
    return f"running jobs end: {_need(question.request)} must be free at once"


def _quota_words(lack: Shortage) -> str:
    resource = f"{lack.missing} {lack.pair[1]} of flavor {lack.pair[0]}"
    if lack.is_borrowing_limit:
        return f"the borrowing limit of {lack.node} is raised by {resource}"
    return f"{resource} come free in {lack.node}, or its quota is raised by as much"


def _need(request: RequestClass) -> str:
    return " and ".join(
        f"{pod_set.count} x ({', '.join(f'{amount} {name}' for name, amount in pod_set.per_pod)})"
        for pod_set in request.pod_sets
    )
