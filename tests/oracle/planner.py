"""The cycle itself: heads, tournament, trial, and what a failed candidate means for the others.

A pass is described by four things only: who was admitted so far, which (queue, class) failed, which
request each queue failed with first, and what nodes refused. Everything else follows from them.
"""

from typing import NamedTuple

from gateway.core.admission import PodPlacement, Policies, Snapshot
from gateway.core.admission.types import NodeHold
from gateway.core.placing.eligibility import Eligibility
from gateway.core.vocabulary import Blocking, Reason
from tests.oracle.lines import Job, first_bar, in_order, is_over_cap, jobs_of
from tests.oracle.moving import Refusals, Trial, tried
from tests.oracle.reasons import why_failed
from tests.oracle.shares import dominant_share, root_share
from tests.oracle.starving import Refused, holds_after, kept_rows, new_holds
from tests.oracle.tree import (
    Node,
    Pair,
    Row,
    Used,
    children,
    grows_beyond,
    plus,
    tree_at,
)
from tests.oracle.trying import (
    Admission,
    Admissions,
    Case,
    choices,
    nominate,
    passing,
    used_after,
)
from tests.oracle.waking import next_wake_us

ClassKey = tuple[str, int]


class Head(NamedTuple):
    """The job that a queue puts forward, with what it would be charged."""

    job: Job
    charges: dict[Pair, int]
    replays: int = 0
    """How often its charges changed when it was about to be tried."""


class Pass(NamedTuple):
    """How far a pass has come."""

    admissions: Admissions
    failed: dict[ClassKey, Admissions]
    """Classes that failed, with those admitted before."""
    first_failed: dict[str, dict[Pair, int]]
    """By queue, what its first failed candidate asked for."""
    refusals: Refusals
    """What nodes refused."""
    refused: tuple[Refused, ...] = ()
    """Whom nodes refused."""
    kept_off: frozenset[ClassKey] = frozenset()
    """Classes that failed and would stand on nodes that are kept for others."""


class NaivePlan(NamedTuple):
    """What a cycle decides."""

    admits: list[tuple[int, tuple[PodPlacement, ...]]]
    """Job and places, in the order of admission."""
    reasons: dict[int, Reason]
    """Why each of the others waits."""
    next_wake_at_us: int | None
    """Earliest instant after now at which time alone may change something."""
    node_holds: tuple[NodeHold, ...]
    """Who holds nodes from now on, by flavor."""


def naive_plan(snapshot: Snapshot, policies: Policies, now_us: int, budget: int) -> NaivePlan:
    """Decide one cycle; slow, and right by being short."""
    # One fairness and one placement policy are specified.
    seconds = policies.starvation_after_seconds
    case = new_case(snapshot, now_us)._replace(starvation_seconds=seconds)
    lines = lines_of(case)
    done = Pass(admissions=(), failed={}, first_failed={}, refusals=())
    heads: dict[str, Head] = {}
    for queue in lines:
        heads = with_next_head(case, lines, done, heads, queue)
    tried = 0
    while heads and tried < budget:
        head = play(case, done, heads)
        renewed = nominated(case, done, head.job)
        changed = renewed.charges != head.charges
        if changed and head.replays < len(
            choices(case, case.queues[head.job.queue], head.job.request)
        ):
            heads = {**heads, head.job.queue: renewed._replace(replays=head.replays + 1)}
            continue
        tried += 1
        done = after_trial(case, done, renewed)
        heads = with_next_head(case, lines, done, heads, head.job.queue)
    return NaivePlan(
        admits=[(each.job.job_id, placements(case, each)) for each in done.admissions],
        reasons=reasons_of(case, done, heads),
        next_wake_at_us=next_wake_us(snapshot, now_us),
        node_holds=node_holds(case, done, heads),
    )


def new_case(snapshot: Snapshot, now_us: int) -> Case:
    """Give what stays the same in the cycle."""
    return Case(
        snapshot=snapshot,
        now_us=now_us,
        tree=tree_at(snapshot, now_us),
        queues={queue.name: queue for queue in snapshot.queues},
        eligibility=Eligibility(snapshot.fleet, snapshot.flavors),
    )


def lines_of(case: Case) -> dict[str, list[Job]]:
    """Give each queue's eligible jobs in order."""
    eligible = [
        job
        for job in jobs_of(case.snapshot)
        if first_bar(case.snapshot, case.queues[job.queue], job, case.now_us) is None
    ]
    return {
        name: in_order(
            case.snapshot, queue, [job for job in eligible if job.queue == name], case.now_us
        )
        for name, queue in case.queues.items()
    }


def with_next_head(
    case: Case, lines: dict[str, list[Job]], done: Pass, heads: dict[str, Head], name: str
) -> dict[str, Head]:
    """Put forward the first job of a line that is not settled; who is over a cap is passed."""
    queue = case.queues[name]
    others = {each: head for each, head in heads.items() if each != name}
    admitted = tuple(each.job for each in done.admissions)
    if queue.blocking is Blocking.STRICT and name in done.first_failed:
        return others
    for job in lines[name]:
        is_settled = job in admitted or (name, job.class_index) in done.failed
        if not is_settled and not is_over_cap(case.snapshot, queue, job, admitted):
            return {**others, name: nominated(case, done, job)}
    return others


def seen_by(case: Case, done: Pass, asker: str) -> Used:
    """Give the usage that a queue must respect: what is used, and what protects other queues.

    A queue's first failed candidate that is within its nominal quota keeps what is left of that
    quota, up to its request, from all others.
    """
    used = used_after(case, done.admissions)
    for name, request in done.first_failed.items():
        rows = case.tree.rows["queue", name]
        nominal = {pair: rows.get(pair, Row()).nominal for pair in request}
        if name != asker and all(request[pair] <= nominal[pair] for pair in request):
            unused = {pair: max(0, nominal[pair] - used.get((name, pair), 0)) for pair in request}
            used = plus(used, name, {pair: min(request[pair], unused[pair]) for pair in request})
    return used


def nominated(case: Case, done: Pass, job: Job) -> Head:
    """Give a job as a candidate with the flavors it would take at present."""
    used = seen_by(case, done, job.queue)
    return Head(job, nominate(case, used, case.queues[job.queue], job.request))


def play(case: Case, done: Pass, heads: dict[str, Head]) -> Head:
    """Play the tournament: each cohort's best child, then the best root."""
    used = used_after(case, done.admissions)
    entries = [
        (root_key(case, used, root, winner), winner)
        for root in children(case.tree, None)
        if (winner := best_below(case, used, heads, root))
    ]
    return min(entries, key=lambda entry: entry[0])[1]


def best_below(case: Case, used: Used, heads: dict[str, Head], node: Node) -> Head | None:
    """Give the candidate that wins inside a subtree."""
    kind, name = node
    if kind == "queue":
        return heads.get(name)
    entries = [
        (child_key(case, used, child, winner), winner)
        for child in children(case.tree, node)
        if (winner := best_below(case, used, heads, child))
    ]
    return min(entries, key=lambda entry: entry[0])[1] if entries else None


def child_key(case: Case, used: Used, child: Node, head: Head) -> tuple[object, ...]:
    """Compare children of one cohort: no borrowing, lower share, higher rank, older, name."""
    after = plus(used, head.job.queue, head.charges)
    return (
        grows_beyond(case.tree, after, child, head.charges),
        dominant_share(case.tree, after, child),
        *_by_job(head.job, child),
    )


def root_key(case: Case, used: Used, root: Node, head: Head) -> tuple[object, ...]:
    """Compare roots: lower use of what each owns, higher rank, older, name."""
    after = plus(used, head.job.queue, head.charges)
    return root_share(case.tree, after, root), *_by_job(head.job, root)


def _by_job(job: Job, node: Node) -> tuple[int, int, str, bool]:
    kind, name = node
    return -job.rank, job.submitted_us, name, kind == "cohort"


def after_trial(case: Case, done: Pass, head: Head) -> Pass:
    """Admit the candidate, or fail its class in its queue."""
    name, before = head.job.queue, Trial(done.admissions, done.refusals)
    used, closed = seen_by(case, done, name), kept_rows(case, done.failed)
    trial = tried(case, used, before, head.job, closed)
    done = done._replace(admissions=trial.admissions, refusals=trial.refusals)
    if len(trial.admissions) > len(before.admissions):
        return done
    key = (name, head.job.class_index)
    found = passing(case, used, case.queues[name], head.job.request)
    options = tuple(choice for choice, _ in found)
    mine = [each for each in done.refusals if any(each.is_of(head.job, c) for c in options)]
    return done._replace(
        failed={**done.failed, key: done.admissions},
        first_failed={name: head.charges, **done.first_failed},
        refused=(*done.refused, Refused(head.job, options)),
        kept_off=done.kept_off | {key for each in mine if each.is_kept_off},
    )


def node_holds(case: Case, done: Pass, heads: dict[str, Head]) -> tuple[NodeHold, ...]:
    """Give who holds nodes from now on, by flavor."""
    leaving = {each.job.job_id for each in done.admissions}
    holds = {
        **new_holds(case, leaving, done.refused),
        **holds_after(case, leaving, done.failed, heads),
    }
    return tuple(holds[flavor] for flavor in sorted(holds))


def reasons_of(case: Case, done: Pass, heads: dict[str, Head]) -> dict[int, Reason]:
    """Give exactly one reason for everybody who was not admitted."""
    admitted = {each.job.job_id for each in done.admissions}
    waiting = [job for job in jobs_of(case.snapshot) if job.job_id not in admitted]
    return {job.job_id: reason_of(case, done, heads, job) for job in waiting}


def reason_of(case: Case, done: Pass, heads: dict[str, Head], job: Job) -> Reason:
    """Give why one job waits, when the pass ended with these heads left."""
    queue = case.queues[job.queue]
    bar = first_bar(case.snapshot, queue, job, case.now_us)
    if bar is not None:
        return bar
    if (job.queue, job.class_index) in done.kept_off:
        return Reason.RESERVED_FOR_OTHER
    before = done.failed.get((job.queue, job.class_index))
    if before is not None:
        # Where they stand in the end: a later gang may have moved those before it.
        return why_failed(case, job, done.admissions[: len(before)])
    if queue.blocking is Blocking.STRICT and job.queue in done.first_failed:
        return Reason.BEHIND_PRIORITY
    return Reason.NOT_REACHED if job.queue in heads else Reason.OVER_CAP


def placements(case: Case, admission: Admission) -> tuple[PodPlacement, ...]:
    """Give every pod's place, Master first."""
    names = sorted((each.name for each in admission.job.request.pod_sets), key="Master".__ne__)
    return tuple(
        PodPlacement(
            pod_set=name,
            index=index,
            node_id=int(case.snapshot.fleet.node_id[place.row]),
            gpu_mask=place.gpu_mask,
            nic_mask=place.nic_mask,
        )
        for name in names
        for index, place in enumerate(admission.places[name])
    )
