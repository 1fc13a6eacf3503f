"""A mirror that saw many changes equals one that saw only the last state."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.admission import Policies, Snapshot, plan_cycle
from gateway.core.admission.deciding import decide
from gateway.core.admission.granting import admits_of
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.mirror import ChargeRow, ClassRow, DefinitionRows, JobRow, Mirror, MirrorRows
from gateway.core.vocabulary import JobState
from tests.properties.strategies import (
    FLAVORS,
    Dice,
    a_random_gang,
    a_random_node,
    a_random_tree,
    seeds,
)


def random_rows(dice: Dice) -> MirrorRows:
    """Give changes of a few rows of each kind; ids are few, so rows are changed again."""
    nodes: list[NodeRow] = []
    devices: list[DeviceRow] = []
    for _ in range(dice.number(0, 2)):
        node, held = a_random_node(dice, dice.number(0, 3))
        nodes.append(node._replace(is_present=dice.happens(80)))
        devices += [device._replace(is_present=dice.happens(90)) for device in held]
    queues, cohorts = a_random_tree(dice, 3, 1)
    generation = dice.number(1, 9)
    return MirrorRows(
        jobs=tuple(random_job(dice) for _ in range(dice.number(0, 4))),
        classes=tuple(
            # A class never changes its shape: its id stands for the shape's digest.
            ClassRow(class_id, a_random_gang(Dice(class_id)))
            for class_id in (dice.number(0, 3) for _ in range(dice.number(0, 2)))
        ),
        nodes=tuple(nodes),
        devices=tuple(devices),
        charges=tuple(random_charge(dice) for _ in range(dice.number(0, 2))),
        definitions=DefinitionRows(generation, queues, cohorts, FLAVORS)
        if dice.happens(40)
        else None,
        is_inventory_complete=dice.pick([None, None, True, False]),
    )


def random_job(dice: Dice) -> JobRow:
    return JobRow(
        job_id=dice.number(1, 8),
        version=dice.number(1, 5),
        queue=f"queue-{dice.number(0, 3)}",
        class_id=dice.number(0, 3),
        priority=dice.number(0, 2),
        submitted_us=dice.number(0, 5),
        state=dice.pick([JobState.PENDING, JobState.PENDING, JobState.RESERVED, JobState.HELD]),
        is_quarantined=dice.happens(10),
        user=dice.pick(["ann", "bob"]),
        eligible_us=dice.pick([0, 0, 0, 3, 6]),
    )


def random_charge(dice: Dice) -> ChargeRow:
    charge_id = dice.number(1, 4)
    return ChargeRow(
        charge_id,
        f"queue-{dice.number(0, 2)}",
        dice.pick(FLAVORS).name,
        "gpu",
        dice.number(1, 4),
        is_live=dice.happens(70),
        user=dice.pick(["ann", "bob"]),
        attempt_id=charge_id,
    )


def last_state(changes: list[MirrorRows]) -> MirrorRows:
    """Give the last row of every id, in another order than they came."""
    jobs = {row.job_id: row for change in changes for row in change.jobs}
    classes = {row.class_id: row for change in changes for row in change.classes}
    nodes = {row.node_id: row for change in changes for row in change.nodes}
    devices = {row.device_id: row for change in changes for row in change.devices}
    charges = {row.charge_id: row for change in changes for row in change.charges}
    definitions = [c.definitions for c in changes if c.definitions is not None]
    complete = [c.is_inventory_complete for c in changes if c.is_inventory_complete is not None]
    return MirrorRows(
        jobs=tuple(jobs.values())[::-1],
        classes=tuple(classes.values())[::-1],
        nodes=tuple(nodes.values())[::-1],
        devices=tuple(devices.values())[::-1],
        charges=tuple(charges.values())[::-1],
        definitions=definitions[-1] if definitions else None,
        is_inventory_complete=complete[-1] if complete else None,
    )


def in_words(snapshot: Snapshot) -> str:
    """Give a snapshot as text; arrays have no plain equality."""
    return repr(snapshot)


@given(seeds, st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_a_cold_mirror_equals_a_warm_one(seed: int, count: int) -> None:
    dice = Dice(seed)
    changes = [random_rows(dice) for _ in range(count)]
    warm, cold = Mirror(), Mirror()
    for change in changes:
        warm.apply(change)
        warm.snapshot(0)
    cold.apply(last_state(changes))
    left, right = warm.snapshot(1), cold.snapshot(1)
    assert in_words(left) == in_words(right)
    assert warm.class_ids() == cold.class_ids()
    plans = [plan_cycle(each, Policies(), now_us=0, budget=100) for each in (left, right)]
    assert plans[0] == plans[1]


@given(seeds, st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_applying_rows_twice_is_harmless(seed: int, count: int) -> None:
    dice = Dice(seed)
    once, twice = Mirror(), Mirror()
    for change in [random_rows(dice) for _ in range(count)]:
        once.apply(change)
        twice.apply(change)
        twice.apply(change)
    assert in_words(once.snapshot(1)) == in_words(twice.snapshot(1))


@given(seeds, st.integers(2, 8))
@settings(max_examples=150, deadline=None)
def test_a_warm_state_decides_what_a_cold_one_decides(seed: int, count: int) -> None:
    dice = Dice(seed)
    mirror = Mirror()
    for now_us in range(count):
        mirror.apply(random_rows(dice))
        warm = decide(mirror.state, now_us, budget=100)
        cold = plan_cycle(mirror.snapshot(1), Policies(), now_us, budget=100)
        told = [replace(admit, class_index=0) for admit in admits_of(mirror.state, warm)]
        assert told == [replace(admit, class_index=0) for admit in cold.admits]
