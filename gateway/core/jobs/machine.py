"""The life of a job as one table: which event leads from which state to which.

Nothing else in the product decides what state follows. Leaving `stopping` is not in the table,
because it depends on the stored outcome: `settled` says what becomes of it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.core.vocabulary import JobEvent, JobState, StopOutcome
from gateway.errors import InvalidTransition

TRANSITIONS: Final[Mapping[tuple[JobState, JobEvent], JobState]] = MappingProxyType(
    {
        (JobState.PENDING, JobEvent.HOLD): JobState.HELD,
        (JobState.HELD, JobEvent.RELEASE): JobState.PENDING,
        (JobState.PENDING, JobEvent.ADMIT): JobState.RESERVED,
        (JobState.PENDING, JobEvent.CANCEL_WAITING): JobState.CANCELLED,
        (JobState.HELD, JobEvent.CANCEL_WAITING): JobState.CANCELLED,
        (JobState.PENDING, JobEvent.FAIL_WAITING): JobState.FAILED,
        (JobState.HELD, JobEvent.FAIL_WAITING): JobState.FAILED,
        # Only from RESERVED: once the object may have been unsuspended, pods may hold the devices,
        # and the only way out leads through STOPPING until they are gone.
        (JobState.RESERVED, JobEvent.UNRESERVE): JobState.PENDING,
        (JobState.RESERVED, JobEvent.UNSUSPEND): JobState.LAUNCHING,
        (JobState.LAUNCHING, JobEvent.READY): JobState.RUNNING,
        (JobState.RESERVED, JobEvent.STOP): JobState.STOPPING,
        (JobState.LAUNCHING, JobEvent.STOP): JobState.STOPPING,
        (JobState.RUNNING, JobEvent.STOP): JobState.STOPPING,
    }
)

_SETTLED: Final[Mapping[StopOutcome, JobState]] = MappingProxyType(
    {
        StopOutcome.SUCCEEDED: JobState.SUCCEEDED,
        StopOutcome.FAILED: JobState.FAILED,
        StopOutcome.CANCELLED: JobState.CANCELLED,
        StopOutcome.REQUEUED: JobState.PENDING,
        StopOutcome.HELD: JobState.HELD,
    }
)


def next_state(state: JobState, event: JobEvent) -> JobState:
    """Give the state that follows.

    Raises:
        InvalidTransition: the table has no such step; the hint lists the events that it has.
    """
    following = TRANSITIONS.get((state, event))
    if following is not None:
        return following
    # Sorted, so that equal refusals are equal texts whatever the order of the table.
    possible = tuple(sorted(known.value for origin, known in TRANSITIONS if origin is state))
    raise InvalidTransition(
        f"a job in state {state.value} does not take {event.value}",
        value=state.value,
        allowed=possible,
        hint=_hint(state, possible),
    )


def _hint(state: JobState, possible: tuple[str, ...]) -> str:
    if state is JobState.STOPPING:
        return "wait until its pods are gone"
    return f"possible now: {', '.join(possible)}" if possible else "the job has ended"


def settled(outcome: StopOutcome) -> JobState:
    """Give the state that a stopping job takes once its pods are gone."""
    return _SETTLED[outcome]
