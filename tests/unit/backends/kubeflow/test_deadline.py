"""One call's time, shared by all its requests."""

import pytest

from gateway.backends.kubeflow.deadline import LEAST_SECONDS, Deadline
from gateway.backends.simulated import ManualClock
from gateway.errors import ClusterUnreachable


def test_the_time_left_shrinks_with_the_clock_and_then_is_refused() -> None:
    clock = ManualClock()
    deadline = Deadline(5.0, clock)

    assert deadline.left_seconds() == 5.0
    clock.advance(4.5)
    assert deadline.left_seconds() == pytest.approx(0.5)
    clock.advance(0.5)
    with pytest.raises(ClusterUnreachable) as caught:
        deadline.left_seconds()
    assert caught.value.detail == "the cluster did not answer in time"
    assert caught.value.hint == "nothing is lost; it is tried again by itself"


@pytest.mark.parametrize(("passed", "is_enough"), [(0.94, True), (0.96, False), (1.0, False)])
def test_too_little_time_for_a_request_counts_as_none(passed: float, *, is_enough: bool) -> None:
    clock = ManualClock()
    deadline = Deadline(1.0, clock)
    clock.advance(passed)

    if is_enough:
        assert deadline.left_seconds() >= LEAST_SECONDS
        return
    with pytest.raises(ClusterUnreachable):
        deadline.left_seconds()


def test_an_earlier_deadline_leaves_its_reserve_to_the_later_one() -> None:
    clock = ManualClock(100.0)
    whole = Deadline(5.0, clock)
    clock.advance(1.0)
    early = whole.earlier(1.5)

    assert (early.left_seconds(), whole.left_seconds()) == (2.5, 4.0)
    clock.advance(2.5)
    with pytest.raises(ClusterUnreachable):
        early.left_seconds()
    assert whole.left_seconds() == 1.5


def test_an_earlier_deadline_than_the_time_allows_is_over_at_once() -> None:
    with pytest.raises(ClusterUnreachable):
        Deadline(1.0, ManualClock()).earlier(2.0).left_seconds()


@pytest.mark.parametrize(("seconds", "is_near"), [(0.9, False), (1.0, False), (1.1, True)])
def test_a_deadline_is_near_when_less_than_that_is_left(seconds: float, *, is_near: bool) -> None:
    assert Deadline(1.0, ManualClock()).is_near(seconds) is is_near


def test_looking_at_a_deadline_that_has_passed_does_not_raise() -> None:
    clock = ManualClock()
    deadline = Deadline(1.0, clock)
    clock.advance(10.0)

    assert deadline.is_near(0.0)
