"""Why a gang does not start: the primary reason, every cause with counts, and what would help.

Judged on the state at the start of the cycle. A sentence about what would unblock is only given
after that change was tried and the gang fitted.
"""

from gateway.core.admission.causes import node_causes, quota_causes, quota_path
from gateway.core.admission.lifts import unblocking
from gateway.core.admission.trial import Scene, charges_of, new_scene
from gateway.core.admission.types import (
    Admit,
    Cause,
    ClassHold,
    Policies,
    QuotaStep,
    Snapshot,
)
from gateway.core.devices.room import Room, without_pairs
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Queue
from gateway.core.queues.limits import Shortage, shortages
from gateway.core.resources import GPU, RDMA
from gateway.core.vocabulary import Reason


class ReasonFinder:
    """Diagnoses request classes of one snapshot."""

    def __init__(
        self, snapshot: Snapshot, policies: Policies, admits: tuple[Admit, ...] = ()
    ) -> None:
        """Keep the state at the start and who was admitted, in order."""
        self.scene = new_scene(snapshot, policies)
        self.admits = admits

    def paused(self, queue: str, class_index: int) -> ClassHold:
        """The queue admits nobody."""
        cause = Cause(reason=Reason.QUEUE_PAUSED, detail=f"queue {queue} is paused")
        return ClassHold(
            queue=queue,
            class_index=class_index,
            reason=cause.reason,
            causes=(cause,),
            unblock=(f"resume queue {queue}",),
        )

    def not_reached(self, queue: str, class_index: int) -> ClassHold:
        """The cycle ended before its turn."""
        cause = Cause(
            reason=Reason.NOT_REACHED,
            detail="the last cycle ended before this job's turn; the next one goes on",
        )
        return ClassHold(queue=queue, class_index=class_index, reason=cause.reason, causes=(cause,))

    def diagnose(self, queue_name: str, class_index: int, *, admits_before: int) -> ClassHold:
        """Find out why a class that was tried did not fit.

        Args:
            queue_name: its queue.
            class_index: index into the snapshot's classes.
            admits_before: how many gangs were admitted before it was tried.
        """
        queue = self.scene.queue(queue_name)
        request = self.scene.snapshot.waiting.classes[class_index]
        if self.scene.fits(queue, request):
            return self._behind(queue, class_index, self.admits[:admits_before])
        impossible = never_fits(self.scene.snapshot, queue_name, request)
        if impossible is not None:
            return _with_index(impossible, class_index)
        return self._blocked(queue, request, class_index)

    def _behind(self, queue: Queue, class_index: int, admits: tuple[Admit, ...]) -> ClassHold:
        others = [admit for admit in admits if admit.queue != queue.name]
        reason = Reason.BEHIND_FAIR_SHARE if others else Reason.BEHIND_PRIORITY
        if others:
            names = ", ".join(sorted({admit.queue for admit in others}))
            detail = f"it would fit, but came after {len(admits)} jobs; fairer shares: {names}"
        else:
            detail = f"it would fit, but {len(admits)} jobs of its queue came first"
        cause = Cause(reason=reason, detail=detail, count=len(admits), total=len(admits))
        return ClassHold(
            queue=queue.name,
            class_index=class_index,
            reason=reason,
            causes=(cause,),
            unblock=("one of the jobs that came first ends, or this one's priority is raised",)
            if not others
            else ("one of the jobs that came first ends",),
        )

    def _blocked(self, queue: Queue, request: RequestClass, class_index: int) -> ClassHold:
        short = self._shortages(queue, request)
        reason = self._reason(queue, request, short)
        return ClassHold(
            queue=queue.name,
            class_index=class_index,
            reason=reason,
            causes=(*quota_causes(short), *node_causes(self.scene, queue, request, reason)),
            quota_path=self._path(queue, request),
            limiting=short[0].node if short else "",
            unblock=unblocking(self.scene, queue, request, short),
        )

    def _shortages(self, queue: Queue, request: RequestClass) -> tuple[Shortage, ...]:
        """Give what quota lacks under the first flavor choice; empty when any choice passes."""
        found: tuple[Shortage, ...] = ()
        for choice in self.scene.choices(queue, request):
            short = shortages(self.scene.tree, queue.name, charges_of(request, choice))
            if not short:
                return ()
            found = found or short
        return found

    def _path(self, queue: Queue, request: RequestClass) -> tuple[QuotaStep, ...]:
        choice = next(self.scene.choices(queue, request), None)
        charges = charges_of(request, choice) if choice else {}
        return quota_path(self.scene.tree, queue.name, charges)

    def _reason(self, queue: Queue, request: RequestClass, short: tuple[Shortage, ...]) -> Reason:
        if short:
            binds = any(lack.is_borrowing_limit for lack in short)
            return Reason.OVER_BORROWING_LIMIT if binds else Reason.OVER_QUOTA
        snapshot = self.scene.snapshot
        healed = new_scene(snapshot, self.scene.policies)
        healed.room.healed()
        if healed.fits(queue, request):
            return Reason.NODES_UNAVAILABLE
        if self.scene.fits(queue, loosened(request)):
            return Reason.NO_ALIGNED_DEVICES
        if _sum_suffices(self.scene, queue, request):
            return Reason.FRAGMENTED_DEVICES
        return Reason.GANG_DOES_NOT_FIT


def never_fits(snapshot: Snapshot, queue_name: str, request: RequestClass) -> ClassHold | None:
    """Say why a gang could not run even on an idle, healthy fleet; None when it could.

    Judged against all known nodes, cordoned ones included, all empty, and the most that quota
    could ever give. With an incomplete inventory nothing is called impossible.
    """
    if not snapshot.fleet.is_complete:
        return None
    scene = new_scene(snapshot, Policies())
    scene.room = Room.emptied(snapshot.fleet)
    scene.ignores_quota = True
    queue = scene.queue(queue_name)
    causes = [*_impossible_quota(scene, queue, request)]
    if not scene.fits(queue, request):
        causes.append(_impossible_place(scene, queue, request))
    if not causes:
        return None
    return ClassHold(
        queue=queue_name, class_index=0, reason=Reason.NEVER_FITS, causes=tuple(causes)
    )


def loosened(request: RequestClass) -> RequestClass:
    """Give the same gang with pair rule none."""
    return RequestClass(pod_sets=tuple(without_pairs(pod_set) for pod_set in request.pod_sets))


def _with_index(hold: ClassHold, class_index: int) -> ClassHold:
    return ClassHold(
        queue=hold.queue, class_index=class_index, reason=hold.reason, causes=hold.causes
    )


def _impossible_quota(scene: Scene, queue: Queue, request: RequestClass) -> list[Cause]:
    """Give a cause for each pair whose quota can never suffice, unless another flavor could."""
    causes: list[Cause] = []
    for choice in scene.choices(queue, request):
        short = [
            (pair, amount, scene.tree.potential(queue.name, pair))
            for pair, amount in charges_of(request, choice).items()
            if scene.tree.is_counted(queue.name, pair)
            and scene.tree.potential(queue.name, pair) < amount
        ]
        if not short:
            return []
        causes = causes or [
            Cause(
                reason=Reason.NEVER_FITS,
                detail=f"asks for {amount} {pair[1]} of flavor {pair[0]}; "
                f"queue {queue.name} can get {most} at most, borrowing included",
            )
            for pair, amount, most in short
        ]
    return causes


def _impossible_place(scene: Scene, queue: Queue, request: RequestClass) -> Cause:
    fleet = scene.snapshot.fleet
    if scene.fits(queue, loosened(request)):
        rules = ", ".join(sorted({str(pod_set.pair) for pod_set in request.pod_sets}))
        return Cause(
            reason=Reason.NEVER_FITS,
            detail=f"no node of the fleet can pair its devices under rule {rules}; "
            "it would fit with pair rule none",
        )
    biggest = max(request.pod_sets, key=_devices)
    gpus, nics = _devices(biggest)
    best = max(
        ((int(g).bit_count(), int(n).bit_count(), name) for g, n, name in _masks(scene)),
        default=(0, 0, "none"),
    )
    total = sum(int(mask).bit_count() for mask in fleet.gpu_all)
    return Cause(
        reason=Reason.NEVER_FITS,
        detail=f"{biggest.count} pods of {gpus} GPUs and {nics} NICs each have no place; the "
        f"largest node is {best[2]} with {best[0]} GPUs and {best[1]} NICs, the fleet has "
        f"{len(fleet)} nodes and {total} GPUs",
        total=len(fleet),
    )


def _masks(scene: Scene) -> list[tuple[int, int, str]]:
    fleet = scene.snapshot.fleet
    return list(zip(fleet.gpu_all.tolist(), fleet.nic_all.tolist(), fleet.names, strict=True))


def _devices(pod_set: PodSetRequest) -> tuple[int, int]:
    wanted = dict(pod_set.per_pod)
    return wanted.get(GPU, 0), wanted.get(RDMA, 0)


def _sum_suffices(scene: Scene, queue: Queue, request: RequestClass) -> bool:
    """Whether the free devices of all usable nodes together are enough."""
    for choice in scene.choices(queue, request):
        needed, free = [0, 0], [0, 0]
        for pod_set in request.pod_sets:
            gpus, nics = _devices(pod_set)
            needed[0] += gpus * pod_set.count
            needed[1] += nics * pod_set.count
        heavy = max(request.pod_sets, key=_devices)
        usable = scene.nodes(heavy, choice[heavy.name]) & scene.room.is_available
        free[0] = sum(int(mask).bit_count() for mask in scene.room.gpu_free[usable])
        free[1] = sum(int(mask).bit_count() for mask in scene.room.nic_free[usable])
        if needed[0] <= free[0] and needed[1] <= free[1]:
            return True
    return False
