"""Why no GPUs and NICs of a node go together, though enough of both are free. Words for people."""

from collections.abc import Iterator

import numpy as np

from gateway.core.devices.fleet import Bool
from gateway.core.devices.selection import DeviceWish, pods_on
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import Room, wish_of
from gateway.core.resources import GPU, RDMA
from gateway.core.resources.words import in_words


def misalignments(room: Room, pod_set: PodSetRequest, nodes: Bool) -> Iterator[tuple[int, str]]:
    """Count these nodes by what keeps a pod from an aligned set, in words.

    Args:
        room: what is free.
        pod_set: whose pods they are.
        nodes: mask of the nodes that have room for a pod but for the pair rule.
    """
    wish = wish_of(pod_set)
    found: dict[str, int] = {}
    for row in np.flatnonzero(nodes).tolist():
        words = _obstacle(room, row, wish)
        found[words] = found.get(words, 0) + 1
    asked = f"{in_words(GPU, wish.gpus)} with {in_words(RDMA, wish.nics)}"
    for words, count in found.items():
        yield count, f"no free set of {asked} near enough for pair rule '{wish.rule}'{words}"


def _obstacle(room: Room, row: int, wish: DeviceWish) -> str:
    fleet, state = room.fleet, room.state(row)
    machine = fleet.machines[state.machine]
    all_gpus, all_nics = int(fleet.gpu_all[row]), int(fleet.nic_all[row])
    # By pods that would fit, and not by groups: a rule may be met by several groups together.
    if not pods_on(machine, all_gpus, all_nics, wish):
        return ": its devices hang too far apart"
    is_nics = bool(pods_on(machine, state.gpu_free, all_nics, wish))
    is_gpus = bool(pods_on(machine, all_gpus, state.nic_free, wish))
    if is_nics == is_gpus:
        return ": what is free lies apart"
    kinds = ("NICs", "GPUs") if is_nics else ("GPUs", "NICs")
    return ": {} beside its free {} are not free".format(*kinds)
