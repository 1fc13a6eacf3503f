"""The best set of GPUs and NICs on one node: exact, and quick enough to be asked for every pod.

GPU subsets come from lists that are made once for a machine type, NICs are found by counts, and
answers are remembered, for a fleet has few free states at a time.
"""

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.nic_search import NicSearch, NicWish
from gateway.core.devices.subset_lists import Model
from gateway.core.devices.topology import pods_that_fit
from gateway.core.vocabulary import PairRule, PartitionRule

MANY_PODS = 1 << 20
"""Stands for "as many as the other resources allow"."""
REMEMBERED = 65536
"""Answers kept, of choices and of counts each: at most some 20 MB."""
KNOWN_MACHINES = 1024
"""Machine objects that are recognised without comparing their devices."""
Masks = tuple[int, int]
"""GPUs and NICs."""
Candidate = tuple[int, int, int]
"""Key, GPUs, NICs."""
_NEAR = frozenset({PairRule.SWITCH, PairRule.NUMA})


class Choice(NamedTuple):
    """Chosen devices as masks of ordinals; `is_aligned` says whether the pair rule holds."""

    gpu_mask: int
    nic_mask: int
    is_aligned: bool


class DeviceWish(NamedTuple):
    """How many devices one pod wants, and how near to each other."""

    gpus: int
    nics: int
    rule: PairRule
    is_required: bool
    siblings: int = 0
    """Pods alike that must still find their devices in what this choice leaves."""
    partition: PartitionRule = PartitionRule.NONE

    @property
    def is_pairing(self) -> bool:
        """Whether GPUs and NICs are to be nearer than on one node."""
        return self.rule in _NEAR and self.gpus > 0 and self.nics > 0

    @property
    def is_near(self) -> bool:
        """Whether where GPUs and NICs hang decides, and not only how many are free."""
        return self.is_required and self.is_pairing

    @property
    def is_joined(self) -> bool:
        """Whether the GPUs must be one NVLink partition."""
        return self.partition is PartitionRule.HONOUR and self.gpus > 0

    @property
    def is_picky(self) -> bool:
        """Whether free devices may not do although there are enough of them."""
        return self.is_near or self.is_joined

    def pods_by_count(self, gpus: int, nics: int) -> int:
        """Give how many pods these masks hold devices for, wherever those hang."""
        return min(_times(gpus, self.gpus), _times(nics, self.nics))


def _times(free: int, wanted: int) -> int:
    return free.bit_count() // wanted if wanted else MANY_PODS


_models: dict[int, tuple[MachineType, Model]] = {}


def choose_devices(
    machine: MachineType, gpu_free: int, nic_free: int, wish: DeviceWish
) -> Choice | None:
    """Give the best choice, or None when the wish cannot be met.

    Among the choices that leave room for the siblings the order is: rule met, sum of pair
    distances, GPU-GPU links, largest groups of free devices kept, device order.
    """
    return _chosen(model_of(machine), gpu_free, nic_free, wish)


def pods_on(machine: MachineType, gpu_free: int, nic_free: int, wish: DeviceWish) -> int:
    """Give how many pods with this wish find their devices at the same time; exact."""
    # Nothing else knows the machine as such, so plain counts need no look-up of it.
    if not wish.is_picky:
        return wish.pods_by_count(gpu_free, nic_free)
    return _pods(model_of(machine), (gpu_free, nic_free), wish)


def model_of(machine: MachineType) -> Model:
    """Give what is worked out for a machine type; equal ones share it."""
    # By identity first: hashing all of a machine's devices would cost more than the answer.
    known = _models.get(id(machine))
    if known is None:
        if len(_models) >= KNOWN_MACHINES:
            _models.clear()
        # The machine is kept with its model, or its id could come to mean another one.
        known = _models[id(machine)] = machine, _model_of(machine)
    return known[1]


@lru_cache(maxsize=256)
def _model_of(machine: MachineType) -> Model:
    return Model(machine)


def _pods(model: Model, free: Masks, wish: DeviceWish) -> int:
    if not wish.is_picky:
        return wish.pods_by_count(*free)
    count = _joined_pods if wish.is_joined else _near_pods
    return count(model, *free, wish._replace(siblings=0))


@lru_cache(maxsize=REMEMBERED)
def _near_pods(model: Model, gpu_free: int, nic_free: int, wish: DeviceWish) -> int:
    groups = model.layout.switches if wish.rule is PairRule.SWITCH else model.layout.numas
    return pods_that_fit(groups, gpu_free, nic_free, (wish.gpus, wish.nics))


@lru_cache(maxsize=REMEMBERED)
def _joined_pods(model: Model, gpu_free: int, nic_free: int, wish: DeviceWish) -> int:
    """Give how many pods find partitions of their own, by trying each as the first pod's."""
    most = wish.pods_by_count(gpu_free, nic_free)
    best = 0
    for _, gpus, nics in _first_pods(model, (gpu_free, nic_free), wish) if most else ():
        # Partitions are few and overlap little, so the first ways tried are nearly always enough.
        best = max(best, 1 + _joined_pods(model, gpu_free & ~gpus, nic_free & ~nics, wish))
        if best == most:
            break
    return best


def _first_pods(model: Model, free: Masks, wish: DeviceWish) -> Iterator[Candidate]:
    """Give every way in which a pod might be the first of several."""
    rule = wish.rule if wish.is_near else PairRule.NONE
    return _candidates(model, free, wish._replace(siblings=1), rule)


@lru_cache(maxsize=REMEMBERED)
def _chosen(model: Model, gpu_free: int, nic_free: int, wish: DeviceWish) -> Choice | None:
    free = gpu_free, nic_free
    if not wish.pods_by_count(*free):
        return None
    # Whatever meets the rule comes before all that does not, so the rule is asked for first.
    strict = _best(model, free, wish, wish.rule if wish.is_pairing else PairRule.NONE)
    if strict or wish.is_required:
        return strict
    loose = _best(model, free, wish, PairRule.NONE)
    return loose._replace(is_aligned=not wish.is_pairing) if loose else None


def _best(model: Model, free: Masks, wish: DeviceWish, rule: PairRule) -> Choice | None:
    """Give the best choice that meets the rule, and leaves room for the siblings."""
    candidates = _candidates(model, free, wish, rule)
    if not wish.siblings:
        return _aligned(min(candidates, default=None))
    # The best pair for this pod may split the pairs of the next; both have to stand here.
    leaves_room = partial(_leaves_room, model, free, wish)
    return _aligned(next(filter(leaves_room, sorted(candidates)), None))


def _candidates(model: Model, free: Masks, wish: DeviceWish, rule: PairRule) -> Iterator[Candidate]:
    """Give the best choice for each kind of GPU subset; all choices where siblings decide."""
    search = NicSearch(model.nests, model.scale, free, _nic_wish(wish, rule))
    seen: set[object] = set()
    # What other pods find in partitions depends on the very GPUs that are left.
    own = ~0 if wish.siblings and wish.is_joined else 0
    for subset in model.within(free[0], wish.gpus, wish.partition):
        kind = subset.mask & own, subset.links, search.kind(subset.counts)
        # Alike in all that counts but order, and lists are in that order.
        if kind not in seen:
            seen.add(kind)
            for key, nics in search.found(subset.counts):
                yield subset.key + key, subset.mask, nics


def _aligned(found: Candidate | None) -> Choice | None:
    return Choice(*found[1:], is_aligned=True) if found else None


def _leaves_room(model: Model, free: Masks, wish: DeviceWish, candidate: Candidate) -> bool:
    left = free[0] & ~candidate[1], free[1] & ~candidate[2]
    return _pods(model, left, wish._replace(siblings=0)) >= wish.siblings


def _nic_wish(wish: DeviceWish, rule: PairRule) -> NicWish:
    keeps_places = wish.is_near and wish.siblings > 0
    each, busier = divmod(wish.nics, wish.gpus or MANY_PODS)
    if not each:
        # Each NIC needs a GPU of its own, and some GPUs get none.
        each, busier = 1, 0
    return NicWish(wish.nics, each, busier, rule, keeps_places)
