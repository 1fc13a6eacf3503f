"""Causes of waiting in words with counts: nodes by what is wrong with them, quota step by step."""

from collections import Counter
from collections.abc import Mapping

from gateway.core.admission.trial import Scene
from gateway.core.admission.types import Cause, QuotaStep
from gateway.core.devices.eligibility import refusal
from gateway.core.devices.selection import choose_devices
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.policies.placement import wish_of
from gateway.core.queues.definitions import Flavor, Queue
from gateway.core.queues.limits import Shortage
from gateway.core.queues.tree import Pair, QuotaTree, node_available
from gateway.core.resources import GPU, RDMA
from gateway.core.vocabulary import Reason

FITS = "fits one pod"


def quota_causes(short: tuple[Shortage, ...]) -> tuple[Cause, ...]:
    """Give one cause for each pair that quota lacks."""
    return tuple(
        Cause(
            reason=Reason.OVER_BORROWING_LIMIT if lack.is_borrowing_limit else Reason.OVER_QUOTA,
            detail=f"asks for {lack.requested} {lack.pair[1]} of flavor {lack.pair[0]}, "
            f"{max(0, lack.available)} available; "
            + ("the borrowing limit of " if lack.is_borrowing_limit else "the quota of ")
            + f"{lack.node} binds",
        )
        for lack in short
    )


def quota_path(tree: QuotaTree, queue: str, charges: Mapping[Pair, int]) -> tuple[QuotaStep, ...]:
    """Give the numbers at each node from the queue to the root, for every counted pair."""
    return tuple(
        QuotaStep(
            node=node.name,
            flavor=pair[0],
            resource=pair[1],
            used=node.used.get(pair, 0),
            nominal=node.nominal(pair),
            available=node_available(node, pair),
            requested=amount,
        )
        for pair, amount in sorted(charges.items())
        if tree.is_counted(queue, pair)
        for node in tree.path(queue)
    )


def node_causes(
    scene: Scene, queue: Queue, request: RequestClass, reason: Reason
) -> tuple[Cause, ...]:
    """Count nodes by the first thing that keeps the largest pod away, most frequent first."""
    choice = next(scene.choices(queue, request), None)
    if choice is None:
        return ()
    pod_set = max(request.pod_sets, key=_weight)
    counts: Counter[tuple[Reason, str]] = Counter(
        _node_trouble(scene, row, pod_set, choice[pod_set.name])
        for row in range(len(scene.snapshot.fleet))
    )
    total = len(scene.snapshot.fleet)
    causes = [
        Cause(reason=kind, detail=f"{count} of {total} nodes: {words}", count=count, total=total)
        for (kind, words), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if words != FITS
    ]
    fitting = sum(count for (_, words), count in counts.items() if words == FITS)
    if fitting and not reason.startswith("Over"):
        causes.insert(0, _too_few(pod_set, fitting, total))
    if not total:
        causes.append(Cause(reason=Reason.NODES_UNAVAILABLE, detail="no node is known yet"))
    return tuple(causes)


def _too_few(pod_set: PodSetRequest, fitting: int, total: int) -> Cause:
    return Cause(
        reason=Reason.GANG_DOES_NOT_FIT,
        detail=f"{fitting} of {total} nodes have room for a {pod_set.name} pod, "
        f"but not for the whole gang of {pod_set.count} at once",
        count=fitting,
        total=total,
    )


def _weight(pod_set: PodSetRequest) -> tuple[int, int]:
    wanted = dict(pod_set.per_pod)
    return wanted.get(GPU, 0), wanted.get(RDMA, 0)


def _node_trouble(
    scene: Scene, row: int, pod_set: PodSetRequest, flavor: Flavor
) -> tuple[Reason, str]:
    room = scene.room
    words = refusal(room.fleet, row, pod_set, flavor)
    if words:
        return Reason.NODES_UNAVAILABLE, words
    if not room.is_available[row]:
        return Reason.NODES_UNAVAILABLE, "cordoned or unhealthy"
    wish = wish_of(pod_set)
    if int(room.gpu_free[row]).bit_count() < wish.gpus:
        return Reason.GANG_DOES_NOT_FIT, f"fewer than {wish.gpus} free GPUs"
    if int(room.nic_free[row]).bit_count() < wish.nics:
        return Reason.GANG_DOES_NOT_FIT, f"fewer than {wish.nics} free NICs"
    short = [
        name
        for name, need, free in zip(
            room.fleet.resources, room.need(pod_set), room.free[row], strict=True
        )
        if free < need
    ]
    if short:
        return Reason.GANG_DOES_NOT_FIT, f"too little {' and '.join(short)} free"
    machine = room.fleet.machines[room.fleet.machine[row]]
    if choose_devices(machine, int(room.gpu_free[row]), int(room.nic_free[row]), wish) is None:
        return (
            Reason.NO_ALIGNED_DEVICES,
            f"no {wish.gpus} free GPUs with NICs under pair rule {wish.rule}",
        )
    return Reason.GANG_DOES_NOT_FIT, FITS
