"""What the engine is checked against: one cycle, written from its specification and nothing else.

Nothing is remembered between two steps. Usage is summed up from the queues each time, shares are
Fractions, the tournament is played from the leaves at every turn, and the room of the fleet is
filled again from the list of gangs admitted so far. Only two things of the product are called:
which nodes a pod set may use (`Eligibility`) and how one gang is packed into free room (`pack`),
because both have oracles of their own.

Read `planner` first, then `tree`, `shares`, `lines`, `trying`, `starving`, `reasons` and `waking`.

Where the specification leaves a choice, this reading is used:

1. "After admitting" is meant as if it were done: the request is charged to the queue, and what it
   adds to a cohort is what the queues below do not keep for themselves. A cohort above a queue that
   serves a request from quota it does not lend therefore neither borrows nor grows.
2. A dated change of a row that does not exist makes one at its instant, nominal 0 and unlimited
   where it says nothing.
3. A candidate is played again at most as often as it has flavor choices, counted since it became
   head. What it asks for, when it fails and protects, is its last nomination.
4. Who is over a cap when the cycle starts waits for OverCap. What happens later is told by queue
   and class: what the class met at its turn, else that a strict head failed, else that the pass
   ended before its queue's next candidate, else the cap that was reached meanwhile.
5. Decayed usages of one queue come at one landmark, so that they compare as they stand.
6. A latest start is missed once the present is after it, not at it.
7. BehindPriority: it fits at cycle start, and not beside what its own queue was given before its
   turn. BehindFairShare: it fits at cycle start and beside that.
8. A job that could not run on the idle, healthy fleet with the most that quota could give at
   present waits for NeverFits; with several large pod sets only if one of them alone has no place.
9. A job without GPUs is never over `user_gpus`, even where its user holds more than a cap that was
   cut.
10. "Longer than starvation_after_seconds" is a job's whole wait; "blocked only by nodes" is judged
    at its turn. A hold goes on while its job has a turn, or the pass ends before it.
"""

from tests.oracle.planner import NaivePlan, naive_plan

__all__ = ["NaivePlan", "naive_plan"]
