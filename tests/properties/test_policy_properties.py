"""What every placement policy has in common, whatever it likes best."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.devices.fleet import Fleet
from gateway.core.placing.room import Room
from gateway.core.placing.typical import Asked, Typical
from gateway.core.policies.placement import (
    PLACEMENT,
    GangPlaces,
    PlacementPolicy,
    PodSets,
    fragmentation,
    pack,
    spread,
)
from tests.properties.placing_strategies import (
    Masks,
    a_levelled_fleet,
    a_levelled_gang,
    allowed_nodes,
)
from tests.properties.strategies import Dice, seeds

usual = settings(max_examples=100, deadline=None)
sizes = st.integers(1, 9)
policies = st.sampled_from(sorted(PLACEMENT))
Case = tuple[Fleet, list[PodSets], list[Masks]]


def a_case(seed: int, count: int) -> Case:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    gangs = [a_levelled_gang(dice) for _ in range(4)]
    return fleet, gangs, [allowed_nodes(dice, fleet, gang) for gang in gangs]


def a_room(case: Case) -> Room:
    """Give a room in which the case's own gangs are typical."""
    room = Room(case[0])
    room.typical = Typical(
        room,
        [
            Asked(each, masks[each.name], each.count)
            for gang, masks in zip(case[1], case[2], strict=True)
            for each in gang
        ],
    )
    return room


def run(policy: PlacementPolicy, case: Case) -> list[GangPlaces | None]:
    room = a_room(case)
    return [policy(room, gang, masks) for gang, masks in zip(case[1], case[2], strict=True)]


@given(seeds, sizes)
@usual
def test_all_policies_find_room_for_the_same_gangs(seed: int, count: int) -> None:
    case = a_case(seed, count)
    for gang, masks in zip(case[1], case[2], strict=True):
        fits = pack(Room(case[0]), gang, masks) is not None
        if sum(each.count > 1 for each in gang) > 1:
            # Not exact then, for any of them: one may find what another does not.
            continue
        assert (fragmentation(a_room(case), gang, masks) is not None) == fits
        assert (spread(a_room(case), gang, masks) is not None) == fits


@given(seeds, sizes, policies)
@usual
def test_no_device_is_given_twice_and_a_gang_is_whole(seed: int, count: int, policy: str) -> None:
    case = a_case(seed, count)
    fleet = case[0]
    gpus, nics = fleet.gpu_free.copy(), fleet.nic_free.copy()
    for gang, masks, places in zip(case[1], case[2], run(PLACEMENT[policy], case), strict=True):
        given = {} if places is None else places
        assert [len(given[each.name]) for each in gang if given] == [
            each.count for each in gang if given
        ]
        for name, listed in given.items():
            for place in listed:
                assert masks[name][place.row]
                assert fleet.is_available[place.row]
                assert int(gpus[place.row]) & place.gpu_mask == place.gpu_mask
                assert int(nics[place.row]) & place.nic_mask == place.nic_mask
                gpus[place.row] ^= place.gpu_mask
                nics[place.row] ^= place.nic_mask


@given(seeds, sizes, policies)
@usual
def test_the_same_state_gives_the_same_places(seed: int, count: int, name: str) -> None:
    case = a_case(seed, count)
    assert run(PLACEMENT[name], case) == run(PLACEMENT[name], case)


@given(seeds, sizes, policies)
@usual
def test_what_is_refused_takes_nothing(seed: int, count: int, name: str) -> None:
    case = a_case(seed, count)
    room = a_room(case)
    for gang, masks in zip(case[1], case[2], strict=True):
        before = room.state_of.tolist()
        if PLACEMENT[name](room, gang, masks) is None:
            assert room.state_of.tolist() == before
