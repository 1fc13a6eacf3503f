"""No sequence of events takes a job anywhere but where the table allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.jobs.machine import TRANSITIONS, next_state, settled
from gateway.core.vocabulary import (
    HOLDING_STATES,
    TERMINAL_STATES,
    JobEvent,
    JobState,
    StopOutcome,
)
from gateway.errors import InvalidTransition

events = st.lists(st.sampled_from(JobEvent), max_size=30)
outcomes = st.sampled_from(StopOutcome)


def after(state: JobState, event: JobEvent, outcome: StopOutcome) -> JobState:
    """Give the next state; events that do not apply change nothing."""
    if (state, event) == (JobState.STOPPING, JobEvent.GONE):
        return settled(outcome)
    try:
        return next_state(state, event)
    except InvalidTransition:
        return state


@given(events, outcomes)
def test_no_event_sequence_leaves_the_table(sequence: list[JobEvent], outcome: StopOutcome) -> None:
    state = JobState.PENDING
    for event in sequence:
        following = after(state, event, outcome)
        allowed = {TRANSITIONS.get((state, event)), state}
        if state is JobState.STOPPING:
            allowed.add(settled(outcome))
        assert following in allowed
        state = following


@given(st.sampled_from(sorted(TERMINAL_STATES)), events, outcomes)
def test_terminal_states_absorb(
    state: JobState, sequence: list[JobEvent], outcome: StopOutcome
) -> None:
    for event in sequence:
        with pytest.raises(InvalidTransition):
            next_state(state, event)
        assert after(state, event, outcome) is state


@given(events, outcomes)
def test_devices_are_held_from_admission_until_the_pods_are_gone(
    sequence: list[JobEvent], outcome: StopOutcome
) -> None:
    state = JobState.PENDING
    for event in sequence:
        following = after(state, event, outcome)
        if state not in HOLDING_STATES and following in HOLDING_STATES:
            assert event is JobEvent.ADMIT
        if state in HOLDING_STATES and following not in HOLDING_STATES:
            assert event is JobEvent.UNRESERVE or state is JobState.STOPPING
        state = following
