"""Replays the device scenarios against the product's choice, and against the plain search."""

import pytest

from gateway.core.devices.selection import choose_devices, pods_on
from tests.oracle.selection import ordinals, plain_choice
from tests.scenarios.devices.reading import DeviceScenario, read_scenarios

SCENARIOS = read_scenarios()


def chosen(scenario: DeviceScenario) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Give the numbers of the GPUs and NICs that are chosen."""
    choice = choose_devices(scenario.machine, *scenario.free, scenario.wish)
    if choice is None:
        return None
    return (
        tuple(scenario.gpus[each] for each in ordinals(choice.gpu_mask)),
        tuple(scenario.nics[each] for each in ordinals(choice.nic_mask)),
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_a_pod_gets_the_devices_that_the_scenario_says(scenario: DeviceScenario) -> None:
    assert chosen(scenario) == scenario.expected


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_the_plain_search_says_the_same(scenario: DeviceScenario) -> None:
    question = (scenario.machine, *scenario.free, scenario.wish)
    assert choose_devices(*question) == plain_choice(*question)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_pods_are_counted_where_and_only_where_one_is_placed(scenario: DeviceScenario) -> None:
    pods = pods_on(scenario.machine, *scenario.free, scenario.wish)
    assert (pods > 0) == (scenario.expected is not None)
