"""The best set of GPUs and NICs on one node: exact, and quick enough to be asked for every pod.

GPU subsets come from lists that are made once for a machine type, NICs are found by counts, and
answers are remembered, for a fleet has few free states at a time.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.nic_search import NicSearch, NicWish
from gateway.core.devices.subset_lists import Model
from gateway.core.devices.topology import pods_that_fit
from gateway.core.vocabulary import PairRule

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

    @property
    def is_pairing(self) -> bool:
        """Whether GPUs and NICs are to be nearer than on one node."""
        return self.rule in _NEAR and self.gpus > 0 and self.nics > 0

    @property
    def is_near(self) -> bool:
        """Whether where the devices hang decides, and not only how many are free."""
        return self.is_required and self.is_pairing

    def pods_by_count(self, gpus: int, nics: int) -> int:
        """Give how many pods these masks hold devices for, wherever those hang."""
        by_gpus = gpus.bit_count() // self.gpus if self.gpus else MANY_PODS
        return min(by_gpus, nics.bit_count() // self.nics if self.nics else MANY_PODS)


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
    if wish.is_near:
        return _near_pods(model_of(machine), gpu_free, nic_free, wish)
    # Plain counts are exact unless nearness is required: then which devices are free decides.
    return wish.pods_by_count(gpu_free, nic_free)


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


@lru_cache(maxsize=REMEMBERED)
def _near_pods(model: Model, gpu_free: int, nic_free: int, wish: DeviceWish) -> int:
    groups = model.layout.switches if wish.rule is PairRule.SWITCH else model.layout.numas
    return pods_that_fit(groups, gpu_free, nic_free, (wish.gpus, wish.nics))


@lru_cache(maxsize=REMEMBERED)
def _chosen(model: Model, gpu_free: int, nic_free: int, wish: DeviceWish) -> Choice | None:
    if gpu_free.bit_count() < wish.gpus or nic_free.bit_count() < wish.nics:
        return None
    if not wish.is_pairing:
        return _best(model, (gpu_free, nic_free), wish, PairRule.NONE)
    # Whatever meets the rule comes before all that does not, so the rule is asked for first.
    strict = _best(model, (gpu_free, nic_free), wish, wish.rule)
    if strict or wish.is_required:
        return strict
    loose = _best(model, (gpu_free, nic_free), wish, PairRule.NONE)
    return loose._replace(is_aligned=False) if loose else None


def _best(model: Model, free: Masks, wish: DeviceWish, rule: PairRule) -> Choice | None:
    """Give the best choice that meets the rule, and leaves room for the siblings."""
    found = list(_candidates(model, free, wish, rule))
    if not wish.siblings:
        return _aligned(min(found, default=None))
    # The best pair for this pod may split the pairs of the next; both have to stand here.
    return _aligned(
        next((each for each in sorted(found) if _leaves_room(model, free, wish, each)), None)
    )


def _candidates(model: Model, free: Masks, wish: DeviceWish, rule: PairRule) -> Iterator[Candidate]:
    """Give the best choice for each kind of GPU subset; all choices where siblings decide."""
    search = NicSearch(model.nests, model.scale, free, _nic_wish(wish, rule))
    seen: set[object] = set()
    for subset in model.within(free[0], wish.gpus):
        kind = subset.links, search.kind(subset.counts)
        # Alike in all that counts but order, and lists are in that order.
        if kind not in seen:
            seen.add(kind)
            for key, nics in search.found(subset.counts):
                yield subset.key + key, subset.mask, nics


def _aligned(found: Candidate | None) -> Choice | None:
    return Choice(*found[1:], is_aligned=True) if found else None


def _leaves_room(model: Model, free: Masks, wish: DeviceWish, candidate: Candidate) -> bool:
    left = free[0] & ~candidate[1], free[1] & ~candidate[2]
    if wish.is_near:
        return _near_pods(model, *left, wish._replace(siblings=0)) >= wish.siblings
    return wish.pods_by_count(*left) >= wish.siblings


def _nic_wish(wish: DeviceWish, rule: PairRule) -> NicWish:
    keeps_places = wish.is_near and wish.siblings > 0
    each, busier = divmod(wish.nics, wish.gpus or MANY_PODS)
    if not each:
        # Each NIC needs a GPU of its own, and some GPUs get none.
        each, busier = 1, 0
    return NicWish(wish.nics, each, busier, rule, keeps_places)
