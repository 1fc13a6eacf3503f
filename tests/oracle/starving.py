"""Nodes that are held for one starving job of each flavor, worked out anew in each cycle."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gateway.core.admission.types import NodeHold
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import Room
from gateway.core.policies.placement import GangPlaces, pack
from gateway.core.vocabulary import Blocking
from tests.oracle.lines import SECOND_US, Job, jobs_of
from tests.oracle.tree import has_room
from tests.oracle.trying import (
    Case,
    Choice,
    asks_gpus,
    charges_of,
    choices,
    nodes_of,
    used_after,
)

ClassKey = tuple[str, int]
MOST_ASKED = 8
"""Of those that starve for nodes of a flavor, so many of the oldest may be given some."""


class Holder(NamedTuple):
    """Who holds nodes as the cycle begins."""

    hold: NodeHold
    key: ClassKey
    """Its queue and class."""


class Refused(NamedTuple):
    """A job whose turn came in vain although quota let these choices through."""

    job: Job
    choices: tuple[Choice, ...]


def holders_of(case: Case) -> tuple[Holder, ...]:
    """Give the holds that still make sense."""
    jobs = {job.job_id: job for job in jobs_of(case.snapshot)}
    return tuple(
        Holder(hold, (jobs[hold.job_id].queue, jobs[hold.job_id].class_index))
        for hold in case.snapshot.node_holds
        if hold.job_id in jobs and makes_sense(case, hold, jobs[hold.job_id])
    )


def makes_sense(case: Case, hold: NodeHold, job: Job) -> bool:
    """Whether a job has quota and could use the nodes it holds, once they are empty."""
    rows = rows_of(case, hold)
    used = used_after(case, ())
    return len(rows) == len(hold.node_ids) and any(
        flavor_of(job, choice) == hold.flavor
        and has_room(case.tree, used, job.queue, charges_of(job.request, choice))
        and on_empty(case, job, choice, rows) is not None
        for choice in choices(case, case.queues[job.queue], job.request)
    )


def rows_of(case: Case, hold: NodeHold) -> list[int]:
    """Give the rows of held nodes that are still there."""
    ids = case.snapshot.fleet.node_id.tolist()
    return [row for row, node_id in enumerate(ids) if node_id in hold.node_ids]


def kept_rows(case: Case, failed: Iterable[ClassKey]) -> frozenset[int]:
    """Give the rows that are closed to everybody else once these had their turn."""
    failed = set(failed)
    mine = [holder for holder in holders_of(case) if holder.key in failed]
    return frozenset(row for holder in mine for row in rows_of(case, holder.hold))


def holds_after(
    case: Case, leaving: set[int], failed: Iterable[ClassKey], cut_off: Iterable[str]
) -> dict[str, NodeHold]:
    """Give the holds that go on, by flavor: of those whose turn came, or may still come."""
    failed, cut_off = set(failed), set(cut_off)
    return {
        holder.hold.flavor: holder.hold
        for holder in holders_of(case)
        if holder.hold.job_id not in leaving and (holder.key in failed or holder.key[0] in cut_off)
    }


def new_holds(case: Case, leaving: set[int], refused: Iterable[Refused]) -> dict[str, NodeHold]:
    """Give the holds that begin, by flavor: the oldest that some nodes would do for."""
    taken = {holder.hold.flavor for holder in holders_of(case)}
    found: dict[str, NodeHold] = {}
    for flavor in {each.name for each in case.snapshot.flavors} - taken:
        starving = sorted(
            (since_us(each.job), each.job.job_id, index, each.job, choice)
            for each in refused
            if due_us(case, each.job) <= case.now_us
            for index, choice in enumerate(each.choices)
            if flavor_of(each.job, choice) == flavor
        )
        for _, job_id, _, job, choice in starving[:MOST_ASKED]:
            rows = best_rows(case, job, choice) if job_id not in leaving else []
            if rows and flavor not in found:
                ids = sorted(case.snapshot.fleet.node_id[rows].tolist())
                found[flavor] = NodeHold(flavor=flavor, job_id=job_id, node_ids=tuple(ids))
    return found


def since_us(job: Job) -> int:
    """Since when a job waits."""
    return max(job.submitted_us, job.eligible_us)


def due_us(case: Case, job: Job) -> int:
    """From when on a job starves that nodes alone refuse."""
    is_strict = case.queues[job.queue].blocking is Blocking.STRICT
    return since_us(job) + (0 if is_strict else case.starvation_seconds * SECOND_US)


def flavor_of(job: Job, choice: Choice) -> str:
    """Give the flavor of the pods with most GPUs, else most CPU."""

    def size(pod_set: PodSetRequest) -> tuple[int, int, str]:
        asks = dict(pod_set.per_pod)
        return asks.get("gpu", 0), asks.get("cpu", 0), pod_set.name

    return choice[max(job.request.pod_sets, key=size).name]


def best_rows(case: Case, job: Job, choice: Choice) -> list[int]:
    """Give the nodes of one allowed domain with fewest devices to come free; empty for none."""
    found = [
        (sum(busy(case, job, row) for row in rows), len(rows), rows)
        for domain in domains(case, job, choice)
        if (rows := fewest(case, job, choice, domain))
    ]
    return min(found, key=lambda each: each[:2])[2] if found else []


def fewest(case: Case, job: Job, choice: Choice, domain: list[int]) -> list[int]:
    """Empty the nodes of a domain, the least used first, until the gang fits; give where."""
    rows = sorted(domain, key=lambda row: (busy(case, job, row), row))
    for count in range(1, len(rows) + 1):
        places = on_empty(case, job, choice, rows[:count])
        if places is not None:
            bound = [each.name for each in job.request.pod_sets if is_bound(job, each)]
            used = sorted({place.row for name in bound for place in places[name]})
            return used if on_empty(case, job, choice, used) else sorted(rows[:count])
    return []


def domains(case: Case, job: Job, choice: Choice) -> list[list[int]]:
    """Give the usable nodes of each domain that the largest pods must share, by name."""
    fleet, main = case.snapshot.fleet, largest(job)
    usable = np.flatnonzero(nodes_of(case, main, choice) & fleet.is_available).tolist()
    if not (main.level and main.is_level_required):
        return [usable]
    by_name: dict[str, list[int]] = {}
    for row in usable:
        value = dict(fleet.labels[row]).get(main.level)
        if value is not None:
            by_name.setdefault(value, []).append(row)
    return [by_name[name] for name in sorted(by_name)]


def on_empty(case: Case, job: Job, choice: Choice, rows: list[int]) -> GangPlaces | None:
    """Give how the gang would stand on these nodes alone, with nothing else on them."""
    chosen = np.zeros(len(case.snapshot.fleet), dtype=np.bool_)
    chosen[rows] = True
    nodes = {
        each.name: nodes_of(case, each, choice) & (chosen if is_bound(job, each) else True)
        for each in job.request.pod_sets
    }
    return pack(Room(case.snapshot.fleet).empty(rows), job.request.pod_sets, nodes)


def is_bound(job: Job, pod_set: PodSetRequest) -> bool:
    """Whether pods of a set stand on the held nodes; a small Master may stand anywhere."""
    return pod_set == largest(job) or asks_gpus(pod_set)


def largest(job: Job) -> PodSetRequest:
    """Give the set with the largest pods."""

    def size(pod_set: PodSetRequest) -> tuple[int, int, int, str]:
        asks = dict(pod_set.per_pod)
        return asks.get("gpu", 0), asks.get("cpu", 0), pod_set.count, pod_set.name

    return max(job.request.pod_sets, key=size)


def busy(case: Case, job: Job, row: int) -> int:
    """Give what is in use of a node: GPUs, or CPU for a gang without GPUs."""
    fleet = case.snapshot.fleet
    if job.gpus:
        return (int(fleet.gpu_all[row]) & ~int(fleet.gpu_free[row])).bit_count()
    column = fleet.resources.index("cpu")
    return int(fleet.total[row, column] - fleet.free[row, column])
