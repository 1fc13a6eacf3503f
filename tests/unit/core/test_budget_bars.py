"""What would have to be otherwise for a job whose queue has spent its budget."""

from gateway.core.admission.bars import Waiter, unbarred
from gateway.core.admission.state import State
from gateway.core.admission.types import Policies
from gateway.core.queues.definitions import Budget, Queue
from gateway.core.vocabulary import LiftKind

SECOND_US = 1_000_000
WINDOW_SECONDS = 100
NOW_US = 50 * SECOND_US
QUEUE = Queue(name="default", budget=Budget(gpu_seconds=40, window_seconds=WINDOW_SECONDS))


def ways(spans: tuple[tuple[int, int, int], ...], eligible_us: int = 0) -> list[list[LiftKind]]:
    state = State(Policies())
    state.holdings.spans["default"] = spans
    waiter = Waiter(queue="default", user="ann", gpus=1, eligible_us=eligible_us)
    found = unbarred(state, waiter, QUEUE, NOW_US)
    return [[lift.kind for lift in way.unblock.lifts] for way in found]


def test_a_budget_that_lasts_bars_nobody() -> None:
    assert ways(((1, 0, 39 * SECOND_US),)) == [[]]


def test_a_spent_budget_needs_more_of_it_or_the_next_window() -> None:
    state = State(Policies())
    state.holdings.spans["default"] = ((1, 0, 45 * SECOND_US),)
    waiter = Waiter(queue="default", user="ann", gpus=1, eligible_us=0)
    larger, later = unbarred(state, waiter, QUEUE, NOW_US)
    assert larger.queue.budget is not None
    assert (larger.queue.budget.gpu_seconds, larger.at_us) == (46, NOW_US)
    assert later.at_us == WINDOW_SECONDS * SECOND_US
    assert [lift.kind for lift in later.unblock.lifts] == [LiftKind.TIME]


def test_a_job_before_its_time_is_not_told_two_times() -> None:
    assert ways(((1, 0, 45 * SECOND_US),), eligible_us=60 * SECOND_US) == [
        [LiftKind.TIME, LiftKind.BUDGET]
    ]
