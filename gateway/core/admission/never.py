"""Whether a gang could ever run: all known nodes empty and healthy, quota at its very most.

Answers "never" only with a proof, for the answer refuses a job at submit.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from gateway.core.admission.asks import FlavorChoice, charges_of
from gateway.core.admission.lifts import spread, whole
from gateway.core.admission.nearest import nearest_words
from gateway.core.admission.slice_causes import slices_in_words, slices_of
from gateway.core.admission.trial import Scene, new_scene
from gateway.core.admission.types import Cause, ClassHold, Policies, Snapshot
from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.room import Room, with_rule
from gateway.core.policies.placement import pack
from gateway.core.queues.definitions import Queue
from gateway.core.resources import GPU, RDMA
from gateway.core.resources.words import counted, in_words, listed
from gateway.core.vocabulary import PairRule, Reason


def never_fits(snapshot: Snapshot, queue: str, request: RequestClass) -> ClassHold | None:
    """Say why a gang could not run even on an idle, healthy fleet; None when it might.

    Cordoned nodes count, and the most that quota could ever give. While the inventory is
    incomplete nothing is called impossible. `class_index` of the answer is 0.
    """
    return never_fits_on(new_scene(snapshot, Policies()), queue, request)


def never_fits_on(scene: Scene, queue_name: str, request: RequestClass) -> ClassHold | None:
    """Answer the same on a scene that exists already; its usage and free room do not matter."""
    fleet = scene.fleet
    # Nodes that were not read yet might hold it, and a refusal cannot be taken back.
    if not fleet.is_complete:
        return None
    queue = scene.queues[queue_name]
    idle = scene.room.afresh().empty(range(len(fleet))).heal(range(len(fleet)))
    details: list[str] = []
    for choice in scene.choices(queue, request):
        words = _quota_words(scene, queue, charges_of(request, choice))
        words = words or _place_words(idle, request, scene.nodes(request, choice), choice)
        # One choice that might do is enough: a job that could run must not be refused.
        if not words:
            return None
        details += words
    if not details:
        details = [f"queue {queue_name} has no flavor"]
    causes = [Cause(reason=Reason.NEVER_FITS, detail=each) for each in dict.fromkeys(details)]
    return ClassHold(
        queue=queue_name, class_index=0, reason=Reason.NEVER_FITS, causes=tuple(causes)
    )


def _quota_words(scene: Scene, queue: Queue, charges: dict[tuple[str, str], int]) -> list[str]:
    most = {
        pair: scene.tree.potential(queue.name, pair)
        for pair in scene.tree.counted(queue.name, charges)
    }
    return [
        f"queue {queue.name} can get at most {in_words(pair[1], most[pair])} of flavor {pair[0]}, "
        f"borrowing included; the gang asks for {in_words(pair[1], charges[pair])}"
        for pair in most
        if most[pair] < charges[pair]
    ]


def _place_words(
    idle: Room, request: RequestClass, nodes: dict[str, Bool], choice: FlavorChoice
) -> list[str]:
    alone = [
        words
        for pod_set in request.pod_sets
        for words in _pod_set_words(idle, pod_set, nodes[pod_set.name], choice)
    ]
    return alone or _joint_words(idle, request, nodes)


def _pod_set_words(
    idle: Room, pod_set: PodSetRequest, allowed: Bool, choice: FlavorChoice
) -> Iterator[str]:
    """Say why one pod set has no place of its own; nothing when it has one."""
    capacity = idle.capacity(pod_set, allowed)
    room = int(capacity.sum())
    if room >= pod_set.count:
        return
    if room:
        yield (
            f"the known nodes have room for {counted(room, f'{pod_set.name} pod')} when idle; "
            f"the gang has {pod_set.count}"
        )
    elif not allowed.any():
        flavor = choice[pod_set.name].name
        yield f"no known node of flavor {flavor} is allowed for {pod_set.name} pods"
    else:
        yield from _largest_words(idle, pod_set, np.flatnonzero(allowed).tolist())


def _largest_words(idle: Room, pod_set: PodSetRequest, rows: list[int]) -> Iterator[str]:
    """Name the largest place that exists, resource by resource."""
    largest = {name: _largest(idle, name, rows) for name, _ in pod_set.per_pod}
    short = [(name, amount) for name, amount in pod_set.per_pod if largest[name] < amount]
    for name, amount in short:
        asked = str(amount) if name in {GPU, RDMA} else in_words(name, amount)
        yield f"largest node has {in_words(name, largest[name])}; the pod asks for {asked}"
    if not short:
        yield _combined_words(idle, pod_set, rows)


def _combined_words(idle: Room, pod_set: PodSetRequest, rows: list[int]) -> str:
    """Say what no node has at once, although some node has each of it."""
    asked = listed(in_words(name, amount) for name, amount in pod_set.per_pod)
    nearest = nearest_words(idle, pod_set, np.isin(np.arange(len(idle.fleet)), rows))
    return nearest or f"no node has all of this at once: {asked}"


def _largest(idle: Room, resource: str, rows: Iterable[int]) -> int:
    fleet = idle.fleet
    if resource in fleet.resources:
        column = fleet.resources.index(resource)
        return max(int(fleet.total[row, column]) for row in rows)
    masks = {GPU: fleet.gpu_all, RDMA: fleet.nic_all}.get(resource)
    return 0 if masks is None else max(int(masks[row]).bit_count() for row in rows)


def _joint_words(idle: Room, request: RequestClass, nodes: dict[str, Bool]) -> list[str]:
    """Say that pod sets that fit alone do not fit together, where that is certain."""
    mark = idle.mark()
    is_placed = pack(idle, request.pod_sets, nodes) or pack(
        idle, with_rule(request, PairRule.NONE).pod_sets, nodes
    )
    idle.back_to(mark)
    # With several large pod sets the placement is a good guess, not a proof.
    is_guess = sum(pod_set.count > 1 for pod_set in request.pod_sets) > 1
    if is_placed or is_guess:
        return []
    uncut = whole(request)
    if uncut != request and pack(idle, uncut.pod_sets, nodes):
        idle.back_to(mark)
        cut = slices_in_words(slices_of(request))
        return [f"no room for the whole gang in {cut}, even when idle"]
    looser = spread(uncut)
    if looser != request and pack(idle, looser.pod_sets, nodes):
        idle.back_to(mark)
        return [_domain_words(idle, each) for each in _levels(request)]
    names = listed(pod_set.name for pod_set in request.pod_sets)
    return [f"{names} pods each have a place on the idle nodes, but not all at the same time"]


def _levels(request: RequestClass) -> list[str]:
    return sorted({each.required_level for each in request.pod_sets} - {""})


def _domain_words(idle: Room, label: str) -> str:
    """Say that no domain of a level is large enough for the gang."""
    domains = len(idle.level(label).rows) - 1
    if not domains:
        return f"no known node has the label {label}, of which the pods are to share one value"
    known = counted(domains, "known domain")
    return f"no value of {label} has room for the whole gang, even when idle: {known}"
