"""What jobs of one queue and request class ask for: worked out once, used by every pass.

An ask that was seen not to fit is dead until something of its kind changes. That is sound because
the trial is monotone: what fails on a state fails on every state with less free.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Caps, Flavor, Queue
from gateway.core.queues.tree import Pair, QuotaTree
from gateway.core.resources import CPU, GPU

FlavorChoice = dict[str, Flavor]
"""Flavor by pod set name."""
Charges = dict[Pair, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to choose flavors, with what it would charge."""

    choice: FlavorChoice
    charges: Charges
    counted: Charges
    """The part that quota counts; pairs that nobody limits are left out."""
    place: tuple[str, ...]
    """Flavor names by pod set: with the class it says what placement will be asked."""
    flavor: str
    """Of the largest pods, whose nodes the gang depends on most."""


# Compared by identity: one object, buried and revived in place wherever it is listed.
@dataclass(slots=True, eq=False, kw_only=True)
class Ask:
    """A (queue, request class) with its options in the queue's order."""

    queue: Queue
    class_id: int
    request: RequestClass
    gpus: int
    """Of the whole gang."""
    root: str
    """Top of the queue's tree."""
    has_caps: bool
    """Whether what is held already may keep a job of it from starting."""
    options: tuple[Option, ...]
    is_dead: bool = False
    lacks_quota: bool = False
    """Whether quota refused an option when it was last tried."""
    lacks_nodes: bool = False
    """Whether the nodes refused an option when it was last tried."""


def new_ask(
    tree: QuotaTree,
    flavors: tuple[Flavor, ...],
    queue: Queue,
    numbered: tuple[int, RequestClass],
) -> Ask:
    """Work out an ask for a class with its id; it has no option where no flavor is known."""
    class_id, request = numbered
    return Ask(
        queue=queue,
        class_id=class_id,
        request=request,
        gpus=dict(request.total).get(GPU, 0),
        root=tree.root_of(queue.name).name,
        # Caps on what waits are judged at submit; any other makes each turn ask what is held.
        has_caps=queue.caps
        != Caps(queued_jobs=queue.caps.queued_jobs, user_queued_jobs=queue.caps.user_queued_jobs),
        options=tuple(
            _option(tree, queue.name, request, choice)
            for choice in choices(queue, request, flavors)
        ),
    )


def _option(tree: QuotaTree, queue: str, request: RequestClass, choice: FlavorChoice) -> Option:
    charges = charges_of(request, choice)
    return Option(
        choice=choice,
        charges=charges,
        counted=tree.counted(queue, charges),
        place=tuple(choice[pod_set.name].name for pod_set in request.pod_sets),
        flavor=choice[largest(request).name].name,
    )


def largest(request: RequestClass) -> PodSetRequest:
    """Give the pod set with the largest pods: by GPUs, then CPU, then how many, then name."""
    return max(request.pod_sets, key=_size)


def _size(pod_set: PodSetRequest) -> tuple[int, int, int, str]:
    asked = dict(pod_set.per_pod)
    return asked.get(GPU, 0), asked.get(CPU, 0), pod_set.count, pod_set.name


def choices(
    queue: Queue, request: RequestClass, flavors: tuple[Flavor, ...]
) -> Iterator[FlavorChoice]:
    """Give flavor choices in the queue's order; pod sets that ask for GPUs share one."""
    offered = flavors_of(queue, flavors)
    # GPU pods of one gang talk over NVLink and RDMA: on two kinds of node all would wait for the
    # slower one. A Master without GPUs only coordinates, and may sit on a cheap node.
    light = [each.name for each in request.pod_sets if not _asks_gpus(each)]
    heavy = [each.name for each in request.pod_sets if _asks_gpus(each)]
    # Without GPUs there is nothing to share, and one round over the others is enough.
    # Where nobody shares, the outer loop must run once, or every choice would come up again.
    for shared in offered if heavy else offered[:1]:
        for others in product(offered, repeat=len(light)):
            yield {**dict.fromkeys(heavy, shared), **dict(zip(light, others, strict=True))}


def flavors_of(queue: Queue, flavors: tuple[Flavor, ...]) -> list[Flavor]:
    """Give the flavors a queue may use, in its order; all by name when it names none."""
    by_name = {flavor.name: flavor for flavor in flavors}
    # Admins are refused a name without a definition; questions of the kind what-if are not.
    # By name, so that equal definitions give equal plans, whichever flavor was made first.
    names = queue.flavors or tuple(sorted(by_name))
    return [by_name[name] for name in names if name in by_name]


def charges_of(request: RequestClass, choice: FlavorChoice) -> Charges:
    """Give what a gang charges by (flavor, resource)."""
    charges: Charges = {}
    for pod_set in request.pod_sets:
        flavor = choice[pod_set.name].name
        for resource, amount in pod_set.total:
            # One charge for all of one flavor: tested apart, each could pass where both do not.
            pair = (flavor, resource)
            # Two pod sets of one flavor are charged together: all pairs pass, or none.
            charges[pair] = charges.get(pair, 0) + amount
    return charges


def _asks_gpus(pod_set: PodSetRequest) -> bool:
    return dict(pod_set.per_pod).get(GPU, 0) > 0
