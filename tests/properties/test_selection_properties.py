"""Device choice against a still plainer search that pairs every NIC with every GPU in turn."""

from collections.abc import Iterator
from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.devices.fleet import DeviceSlot, MachineType
from gateway.core.devices.partitions import partitions_of
from gateway.core.devices.selection import Choice, DeviceWish, choose_devices, pods_on
from gateway.core.vocabulary import PairRule, PartitionRule
from tests.properties.strategies import machines

usual = settings(max_examples=150, deadline=None)
Slots = tuple[DeviceSlot, ...]
Key = tuple[bool, int, int, list[tuple[int, int, int]], tuple[list[int], list[int]]]
"""Rule broken, sum of distances, links, sizes left, device order: smaller is better."""
REACH = {PairRule.SWITCH: 0, PairRule.NUMA: 1, PairRule.NODE: 2, PairRule.NONE: 2}
wishes = st.builds(
    DeviceWish,
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from(PairRule),
    st.booleans(),
    st.just(0),
    st.sampled_from(PartitionRule),
)


def numa_of(machine: MachineType, slot: DeviceSlot) -> object:
    """Give the NUMA node; under a switch that of the first device there that knows it."""
    if slot.switch < 0:
        return slot.numa if slot.numa >= 0 else None
    known = [
        other.numa
        for other in (*machine.gpus, *machine.nics)
        if other.switch == slot.switch and other.numa >= 0
    ]
    return known[0] if known else ("switch", slot.switch)


def distance(machine: MachineType, left: DeviceSlot, right: DeviceSlot) -> int:
    if left.switch == right.switch >= 0:
        return 0
    numa = numa_of(machine, left)
    return 1 if numa is not None and numa == numa_of(machine, right) else 2


def pairings(machine: MachineType, gpus: Slots, nics: Slots) -> Iterator[list[int]]:
    """Give the distances of every even way to hand each NIC to a GPU."""
    most = -(-len(nics) // len(gpus)) if gpus else 0
    least = len(nics) // len(gpus) if gpus else 0
    for owners in product(range(len(gpus)), repeat=len(nics)):
        loads = [owners.count(gpu) for gpu in range(len(gpus))]
        if all(least <= load <= most for load in loads):
            yield [distance(machine, gpus[o], nic) for o, nic in zip(owners, nics, strict=True)]


def link(machine: MachineType, left: DeviceSlot, right: DeviceSlot) -> int:
    if left.nvlink_group == right.nvlink_group >= 0:
        return 0
    return 1 + distance(machine, left, right)


def sizes(machine: MachineType, gpus: Slots, nics: Slots) -> list[tuple[int, int, int]]:
    """Give the negative sizes of free groups, NUMA nodes before switches, largest first."""
    everything = (*machine.gpus, *machine.nics)
    numas = {numa_of(machine, slot) for slot in everything} - {None}
    switches = {slot.switch for slot in everything} - {-1}

    def size(of_gpus: int, of_nics: int) -> tuple[int, int, int]:
        return -min(of_gpus, of_nics), -of_gpus, -of_nics

    by_numa = sorted(
        size(
            sum(numa_of(machine, gpu) == numa for gpu in gpus),
            sum(numa_of(machine, nic) == numa for nic in nics),
        )
        for numa in numas
    )
    by_switch = sorted(
        size(sum(g.switch == s for g in gpus), sum(n.switch == s for n in nics)) for s in switches
    )
    return [*by_numa, *by_switch]


def naive_choices(machine: MachineType, wish: DeviceWish) -> Iterator[tuple[Key, Slots, Slots]]:
    for gpus in combinations(machine.gpus, wish.gpus):
        for nics in combinations(machine.nics, wish.nics):
            judged = [
                (max(each, default=0) > REACH[wish.rule], sum(each))
                for each in (pairings(machine, gpus, nics) if gpus else [[]])
            ]
            is_broken, total = min(judged)
            joined = joining(machine, wish, gpus)
            if (is_broken and wish.is_required) or joined is None:
                continue
            links = joined + sum(link(machine, a, b) for a, b in combinations(gpus, 2))
            left = (
                tuple(g for g in machine.gpus if g not in gpus),
                tuple(n for n in machine.nics if n not in nics),
            )
            order = [g.ordinal for g in gpus], [n.ordinal for n in nics]
            yield (is_broken, total, links, sizes(machine, *left), order), gpus, nics


def joining(machine: MachineType, wish: DeviceWish, gpus: Slots) -> int | None:
    """Give what GPUs cost as a partition; None where the rule forbids them."""
    if wish.partition is PartitionRule.NONE or not gpus:
        return 0
    is_one = mask(gpus) in {each.gpus for each in partitions_of(machine)}
    return 0 if is_one else None if wish.partition is PartitionRule.HONOUR else 1000


def mask(slots: Slots) -> int:
    return sum(1 << slot.ordinal for slot in slots)


def without(machine: MachineType, gpus: Slots, nics: Slots) -> MachineType:
    return MachineType(
        name="rest",
        gpus=tuple(g for g in machine.gpus if g not in gpus),
        nics=tuple(n for n in machine.nics if n not in nics),
    )


def full(machine: MachineType) -> tuple[int, int]:
    return mask(machine.gpus), mask(machine.nics)


@given(machines(), wishes)
@usual
def test_the_choice_is_the_best_of_all(machine: MachineType, wish: DeviceWish) -> None:
    expected = min(naive_choices(machine, wish), key=lambda each: each[0], default=None)
    found = choose_devices(machine, *full(machine), wish)
    if expected is None:
        assert found is None
        return
    key, gpus, nics = expected
    assert found == Choice(mask(gpus), mask(nics), is_aligned=not key[0])


def naive_pods(machine: MachineType, gpus: int, nics: int, wish: DeviceWish) -> int:
    """Give the most pods by trying every way to place one pod and then the others."""
    free = MachineType(
        name="free",
        gpus=tuple(g for g in machine.gpus if gpus >> g.ordinal & 1),
        nics=tuple(n for n in machine.nics if nics >> n.ordinal & 1),
    )
    best = 0
    for some_gpus in combinations(free.gpus, wish.gpus):
        for some_nics in combinations(free.nics, wish.nics):
            ways = pairings(machine, some_gpus, some_nics) if some_gpus else iter([[]])
            near = any(max(way, default=0) <= REACH[wish.rule] for way in ways)
            if (wish.is_required and not near) or joining(machine, wish, some_gpus) is None:
                continue
            rest = gpus & ~mask(some_gpus), nics & ~mask(some_nics)
            best = max(best, 1 + naive_pods(machine, *rest, wish))
    return best


small_wishes = wishes.filter(lambda wish: wish.gpus + wish.nics > 0)


@given(machines(), small_wishes)
@usual
def test_the_pods_that_fit_are_counted_exactly(machine: MachineType, wish: DeviceWish) -> None:
    assert pods_on(machine, *full(machine), wish) == naive_pods(machine, *full(machine), wish)


@given(machines(6), small_wishes)
@usual
def test_pods_taken_one_by_one_are_as_many_as_were_counted(
    machine: MachineType, wish: DeviceWish
) -> None:
    gpus, nics = full(machine)
    for siblings in reversed(range(pods_on(machine, gpus, nics, wish))):
        choice = choose_devices(machine, gpus, nics, wish._replace(siblings=siblings))
        assert choice is not None
        gpus, nics = gpus & ~choice.gpu_mask, nics & ~choice.nic_mask


@given(machines(6), small_wishes, st.data())
@usual
def test_less_free_never_fits_more(
    machine: MachineType, wish: DeviceWish, data: st.DataObject
) -> None:
    gpus, nics = full(machine)
    fewer = gpus & data.draw(st.integers(0, 63)), nics & data.draw(st.integers(0, 63))
    assert pods_on(machine, *fewer, wish) <= pods_on(machine, gpus, nics, wish)
