"""What slices have to do with a gang that waits: which it asks for, and how many have room."""

from collections.abc import Iterable

from gateway.core.admission.types import Cause
from gateway.core.devices.fleet import Int64
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.room import Room
from gateway.core.placing.slicing import count_slices
from gateway.core.resources.words import counted, listed
from gateway.core.vocabulary import Reason


def slices_of(request: RequestClass) -> tuple[tuple[str, int], ...]:
    """Give the slices of a gang that has some; the sets of one gang are cut alike."""
    return next(each.slices for each in request.pod_sets if each.slices)


def slices_in_words(slices: Iterable[tuple[str, int]]) -> str:
    """Say which slices a gang has, widest first."""
    parts = (f"{counted(size, 'pod')} in one domain of {label}" for label, size in slices)
    return f"slices of {listed(parts)}"


def slice_cause(room: Room, pod_set: PodSetRequest, pods: Int64) -> Cause | None:
    """Say how many whole slices have room; None where that is not too little.

    Args:
        room: what is free.
        pod_set: the set; a single pod that comes before it may fill up one more slice.
        pods: how many of its pods each node takes.
    """
    if not pod_set.slices:
        return None
    size, needed = pod_set.slices[0][1], pod_set.count // pod_set.slices[0][1]
    fitting = _most(room, pod_set, pods)
    if fitting >= needed:
        return None
    words = f"room for {counted(fitting, 'slice')} of {size} {pod_set.name} pods"
    where = slices_in_words(pod_set.slices).removeprefix("slices of ")
    detail = f"{words} ({where}); the gang has {counted(needed, 'whole slice')} of them"
    return Cause(reason=Reason.FRAGMENTED_DEVICES, detail=detail)


def _most(room: Room, pod_set: PodSetRequest, pods: Int64) -> int:
    """Give how many whole slices one domain of the required level takes, or all nodes together."""
    labels, sizes = zip(*pod_set.slices, strict=True)
    nest = room.nest((pod_set.required_level, *labels))
    slices = count_slices(nest, (sizes[0], *sizes), pods)[0]
    return int(slices[nest[0].is_named].max(initial=0))
