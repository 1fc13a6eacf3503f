"""Quota rows at an instant."""

from gateway.core.queues.dated import definitions_at, next_change_us, quotas_at
from gateway.core.queues.definitions import Cohort, DatedChange, Queue, Quota
from gateway.core.queues.tree import QuotaTree
from tests.builders import a_quota

GPU = ("default", "gpu")


def a_change(at_us: int, nominal: int | None = None, lending: int | None = None) -> DatedChange:
    return DatedChange(
        at_us=at_us, flavor="default", resource="gpu", nominal=nominal, lending_limit=lending
    )


def a_queue(*changes: DatedChange, quota: Quota | None = None) -> Queue:
    return Queue(name="q", quotas=(quota or a_quota(8),), changes=changes)


def test_a_change_acts_from_its_instant_on_and_not_before() -> None:
    queue = a_queue(a_change(100, nominal=2))
    assert quotas_at(queue, 99) == (a_quota(8),)
    assert quotas_at(queue, 100) == (a_quota(2),)
    assert quotas_at(queue, 10**9) == (a_quota(2),)


def test_changes_act_in_order_of_time_and_then_of_position() -> None:
    queue = a_queue(a_change(200, nominal=3), a_change(100, nominal=2), a_change(200, nominal=4))
    assert quotas_at(queue, 150) == (a_quota(2),)
    assert quotas_at(queue, 200) == (a_quota(4),)


def test_a_change_leaves_what_it_does_not_name() -> None:
    change = DatedChange(at_us=1, flavor="default", resource="gpu", borrowing_limit=5)
    queue = a_queue(change, quota=a_quota(8, borrowing=1, lending=3))
    assert quotas_at(queue, 1) == (a_quota(8, borrowing=5, lending=3),)


def test_a_change_of_a_missing_row_creates_it_from_nothing() -> None:
    change = DatedChange(at_us=1, flavor="default", resource="cpu", borrowing_limit=5)
    new = Quota(flavor="default", resource="cpu", nominal=0, borrowing_limit=5)
    assert quotas_at(a_queue(change), 1) == (a_quota(8), new)


def test_a_cut_leaves_a_lending_limit_as_it_was() -> None:
    """A cohort lends its children's quota as well, so its limit may well be above its nominal."""
    queue = a_queue(a_change(1, nominal=2), quota=a_quota(8, lending=6))
    assert quotas_at(queue, 1) == (a_quota(2, lending=6),)
    lab = Cohort(
        name="lab",
        parent="site",
        quotas=(a_quota(8, lending=4),),
        changes=(a_change(1, nominal=0),),
    )
    owner = Queue(name="owner", cohort="lab", quotas=(a_quota(8),))
    guest = Queue(name="guest", cohort="site")
    now = definitions_at((owner, guest), (Cohort(name="site"), lab), 1)
    assert QuotaTree(*now).available("guest", ("default", "gpu")) == 4


def test_a_lending_limit_of_a_row_without_changes_stays_as_defined() -> None:
    queue = Queue(
        name="q",
        quotas=(a_quota(2, lending=6),),
        changes=(DatedChange(at_us=1, flavor="default", resource="cpu", nominal=1),),
    )
    assert quotas_at(queue, 1)[0] == a_quota(2, lending=6)


def test_definitions_at_an_instant_are_plain_and_unchanged_ones_the_same_objects() -> None:
    still, moving = Queue(name="still"), a_queue(a_change(5, nominal=1), a_change(9, nominal=7))
    lab = Cohort(name="lab", changes=(a_change(5, nominal=3),))
    queues, cohorts = definitions_at((still, moving), (lab,), 6)
    assert queues[0] is still
    assert queues[1] == Queue(name="q", quotas=(a_quota(1),))
    assert cohorts == (Cohort(name="lab", quotas=(a_quota(3),)),)


def test_the_next_change_is_the_earliest_still_to_come_of_any_owner() -> None:
    queues = (a_queue(a_change(5), a_change(30)), Queue(name="other"))
    cohorts = (Cohort(name="lab", changes=(a_change(20),)),)
    assert next_change_us(queues, cohorts, 4) == 5
    assert next_change_us(queues, cohorts, 5) == 20
    assert next_change_us(queues, cohorts, 20) == 30
    assert next_change_us(queues, cohorts, 30) is None


def test_a_dated_cut_below_the_use_leaves_less_than_nothing() -> None:
    queues, cohorts = definitions_at((a_queue(a_change(10, nominal=2)),), (), 10)
    tree = QuotaTree(queues, cohorts)
    tree.charge("q", GPU, 6)
    assert tree.available("q", GPU) == -4
    assert not tree.has_room("q", {GPU: 1})
