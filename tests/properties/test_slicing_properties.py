"""Gangs in slices against their plain oracle, and what holds for each of them."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.devices.fleet import Fleet
from gateway.core.placing.room import Room
from gateway.core.policies.placement import PLACEMENT, GangPlaces, PodSets, pack
from tests.properties.placing_strategies import (
    a_levelled_fleet,
    a_levelled_gang,
    allowed_nodes,
    sliced,
)
from tests.properties.plain_placing import PlainRoom, domain_names, plain_pack
from tests.properties.strategies import Dice, seeds

usual = settings(max_examples=200, deadline=None)
sizes = st.integers(1, 12)


@given(seeds, sizes)
@usual
def test_slices_are_placed_as_by_plain_search(seed: int, count: int) -> None:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    room, plain = Room(fleet), PlainRoom(fleet)
    for _ in range(3):
        gang = sliced(dice, a_levelled_gang(dice))
        masks = allowed_nodes(dice, fleet, gang)
        assert pack(room, gang, masks) == plain_pack(plain, gang, masks)
        assert room.free.tolist() == plain.free.tolist()
        assert room.gpu_free.tolist() == plain.gpu_free.tolist()


def slices_of(fleet: Fleet, gang: PodSets, places: GangPlaces) -> list[tuple[str, set[str]]]:
    """Give the label and the values of it that each slice has, in rank order."""
    cut = sorted((each for each in gang if each.slices), key=lambda each: each.name != "Master")
    rows = [place.row for each in cut for place in places[each.name]]
    found = []
    for label, size in cut[-1].slices:
        names = domain_names(fleet, label)
        starts = range(0, len(rows), size)
        found += [(label, {names[row] for row in rows[start : start + size]}) for start in starts]
    return found


@given(seeds, sizes, st.sampled_from(sorted(PLACEMENT)))
@usual
def test_every_slice_is_in_one_domain_under_every_policy(
    seed: int, count: int, policy: str
) -> None:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    gang = sliced(dice, a_levelled_gang(dice))
    places = PLACEMENT[policy](Room(fleet), gang, allowed_nodes(dice, fleet, gang))
    if places is None:
        return
    assert {name: len(each) for name, each in places.items()} == {e.name: e.count for e in gang}
    for _, values in slices_of(fleet, gang, places):
        assert len(values) == 1
        assert "" not in values


@given(seeds, sizes)
@usual
def test_one_set_is_placed_wherever_the_counts_of_its_domains_allow_it(
    seed: int, count: int
) -> None:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    gang = sliced(dice, a_levelled_gang(dice))
    (worker,) = [each for each in gang if each.name == "Worker"]
    masks = allowed_nodes(dice, fleet, gang)
    if len(worker.slices) > 1 or worker.level:
        return
    ((label, size),) = worker.slices
    pods = Counter[str]()
    capacity = Room(fleet).capacity(worker, masks["Worker"]).tolist()
    for name, more in zip(domain_names(fleet, label), capacity, strict=True):
        pods[name] += more
    slices = sum(each // size for name, each in pods.items() if name)
    placed = pack(Room(fleet), (worker,), masks)
    assert (placed is not None) == (slices >= -(-worker.count // size))
