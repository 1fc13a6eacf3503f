"""Screening never says no to what can be placed, and says it to whatever has no room at all."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.placing.screening import screen
from gateway.core.policies.placement import pack
from tests.properties.placing_strategies import FLAVORS, a_levelled_fleet, a_levelled_gang
from tests.properties.strategies import Dice, seeds


@given(seeds, st.integers(1, 9))
@settings(max_examples=150, deadline=None)
def test_what_is_screened_out_cannot_be_placed(seed: int, count: int) -> None:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    room, eligibility = Room(fleet), Eligibility(fleet, FLAVORS)
    gangs = [a_levelled_gang(dice) for _ in range(4)]
    asked = [(gang, {each.name: dice.pick(FLAVORS) for each in gang}) for gang in gangs]
    for _ in range(2):
        verdicts = screen(room, eligibility, asked)
        for (gang, flavors), might_fit in zip(asked, verdicts.tolist(), strict=True):
            nodes = {each.name: eligibility.nodes(each, flavors[each.name]) for each in gang}
            mark = room.mark()
            is_placed = pack(room, gang, nodes) is not None
            room.back_to(mark)
            assert might_fit or not is_placed
            if len(gang) == 1:
                assert might_fit == is_placed
        pack(room, gangs[0], {each.name: fleet.is_available for each in gangs[0]})
