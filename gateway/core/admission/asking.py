"""What would become of a job if it were submitted now: asked of the warm state, which stays as is.

The job takes its place in the line, a pass is made over a second state, and the job leaves again.
So whoever waits before it and fits is served first, as in the cycle that would follow.
"""

from dataclasses import dataclass, replace

from gateway.core.admission.deciding import Admitted, decide
from gateway.core.admission.granting import admits_of
from gateway.core.admission.ranking import Bar, Ranking
from gateway.core.admission.remedies import remedies
from gateway.core.admission.state import State
from gateway.core.admission.types import Admit, ClassHold
from gateway.core.admission.unblock import Unblock
from gateway.core.admission.verdicts import ClassTeller
from gateway.core.admission.what_if import asked
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Flavor
from gateway.core.vocabulary import UNLIMITED
from gateway.core.waiting.table import NewJob

ASKED_JOB = UNLIMITED - 1
"""Id of the job that is only asked about: it comes after all that came at the same instant."""
ASKED_CLASS = -1
"""Id of a request class that is only asked about; the database gives none below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the next cycle would do with a job: one of `admit`, `bar` and `hold` is there."""

    admit: Admit | None = None
    flavors: tuple[tuple[str, Flavor], ...] = ()
    """Under which each pod set of an admission was placed, by pod set."""
    sets: tuple[Unblock, ...] = ()
    """What would let it start, each complete by itself; nothing for an admission."""
    bar: Bar | None = None
    """What keeps it out whatever fits; then no pass was made."""
    hold: ClassHold | None = None
    position: int
    """In its queue, from 1."""
    gpus_ahead: int
    """GPUs that those before it ask for in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """When is asked, and how far the pass may go."""

    now_us: int
    budget: int
    most_admits: int = UNLIMITED


def forecast(state: State, job: NewJob, request: RequestClass, scope: Scope) -> Forecast:
    """Say whether a job would start now, and where, or why not.

    Args:
        state: stays as it is; its lines are brought to the instant asked about.
        job: its queue must be defined; the ids of job and class do not matter.
        request: what it asks for.
        scope: as of the pass that would follow.
    """
    job = job._replace(job_id=ASKED_JOB, class_id=_class_of(state, request))
    with asked(state, job, request, scope.now_us) as fork:
        ranking = Ranking(fork, job.queue, scope.now_us)
        ranked = ranking.of(job.job_id)
        gpus_ahead = ranking.gpus_before(ranked.place)
        found = Forecast(position=ranked.position, gpus_ahead=gpus_ahead)
        if ranked.bar is not None:
            sets = remedies(fork, job.job_id, scope.now_us)
            return replace(found, bar=ranked.bar, sets=sets)
        # A whole pass and not a look: others that wait may take the place first.
        decided = decide(fork, scope.now_us, scope.budget, scope.most_admits)
        slot = fork.lines.table.find(job.job_id)
        for entry, admit in zip(decided.admitted, admits_of(fork, decided), strict=True):
            if entry.slot == slot:
                return replace(found, admit=admit, flavors=_flavors_of(entry))
        hold = ClassTeller(fork, decided, scope.now_us).hold((job.queue, job.class_id))
        return replace(found, hold=hold, sets=remedies(fork, job.job_id, scope.now_us))


def _class_of(state: State, request: RequestClass) -> int:
    """Give the id under which the request is known; what is known of it is then not asked again."""
    known = (class_id for class_id, other in state.classes.items() if other == request)
    return next(known, ASKED_CLASS)


def _flavors_of(entry: Admitted) -> tuple[tuple[str, Flavor], ...]:
    return tuple(sorted(entry.fit.choice.items(), key=lambda each: each[0]))
