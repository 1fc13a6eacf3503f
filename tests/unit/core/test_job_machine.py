"""The life of a job: which event leads where."""

import pytest

from gateway.core.jobs.machine import TRANSITIONS, next_state, settled
from gateway.core.vocabulary import JobEvent, JobState, StopOutcome
from gateway.errors import InvalidTransition

LIFE = [
    (JobState.PENDING, JobEvent.ADMIT, JobState.RESERVED),
    (JobState.RESERVED, JobEvent.UNSUSPEND, JobState.LAUNCHING),
    (JobState.LAUNCHING, JobEvent.READY, JobState.RUNNING),
    (JobState.RUNNING, JobEvent.STOP, JobState.STOPPING),
    (JobState.PENDING, JobEvent.HOLD, JobState.HELD),
    (JobState.HELD, JobEvent.RELEASE, JobState.PENDING),
    (JobState.RESERVED, JobEvent.UNRESERVE, JobState.PENDING),
    (JobState.HELD, JobEvent.CANCEL_WAITING, JobState.CANCELLED),
    (JobState.PENDING, JobEvent.FAIL_WAITING, JobState.FAILED),
]


@pytest.mark.parametrize(("state", "event", "following"), LIFE)
def test_an_event_leads_to_the_next_state(
    state: JobState, event: JobEvent, following: JobState
) -> None:
    assert next_state(state, event) is following


@pytest.mark.parametrize("state", [JobState.RESERVED, JobState.LAUNCHING, JobState.RUNNING])
def test_whatever_holds_devices_stops_through_stopping(state: JobState) -> None:
    assert next_state(state, JobEvent.STOP) is JobState.STOPPING


@pytest.mark.parametrize("state", [s for s in JobState if s is not JobState.PENDING])
def test_only_a_pending_job_can_be_held(state: JobState) -> None:
    with pytest.raises(InvalidTransition):
        next_state(state, JobEvent.HOLD)


def test_a_refused_event_says_what_is_possible() -> None:
    with pytest.raises(InvalidTransition) as caught:
        next_state(JobState.RUNNING, JobEvent.HOLD)
    assert caught.value.allowed == ("stop",)
    assert "stop" in caught.value.hint
    assert "running" in caught.value.detail
    assert "hold" in caught.value.detail


def test_an_ended_job_takes_nothing_more() -> None:
    with pytest.raises(InvalidTransition) as caught:
        next_state(JobState.SUCCEEDED, JobEvent.ADMIT)
    assert caught.value.hint == "the job has ended"


def test_leaving_stopping_needs_the_outcome() -> None:
    assert (JobState.STOPPING, JobEvent.GONE) not in TRANSITIONS
    assert settled(StopOutcome.REQUEUED) is JobState.PENDING
    assert settled(StopOutcome.HELD) is JobState.HELD
    assert settled(StopOutcome.SUCCEEDED) is JobState.SUCCEEDED
    assert settled(StopOutcome.FAILED) is JobState.FAILED
    assert settled(StopOutcome.CANCELLED) is JobState.CANCELLED


def test_the_hint_of_a_stopping_job_does_not_call_it_ended() -> None:
    with pytest.raises(InvalidTransition) as caught:
        next_state(JobState.STOPPING, JobEvent.HOLD)
    assert caught.value.hint == "wait until its pods are gone"
