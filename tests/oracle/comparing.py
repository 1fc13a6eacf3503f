"""Compares the engine's plan with the naive one, in words that name the job."""

from collections.abc import Sequence

from gateway.core.admission import CyclePlan
from tests.oracle.planner import NaivePlan


def differences(plan: CyclePlan, naive: NaivePlan) -> list[str]:
    """Give every decision that differs; empty when the plans are equal."""
    found = []
    admits = [(admit.job_id, admit.placements) for admit in plan.admits]
    if admits != naive.admits:
        found.append(f"admitted {brief(admits)}, by the specification {brief(naive.admits)}")
    told = {hold.job_id: hold.reason for hold in plan.holds}
    if len(told) != len(plan.holds):
        found.append("a job has two reasons")
    for job in sorted(told.keys() | naive.reasons.keys()):
        ours, theirs = told.get(job), naive.reasons.get(job)
        if ours != theirs:
            found.append(f"job {job} waits for {ours}, by the specification for {theirs}")
    if plan.node_holds != naive.node_holds:
        found.append(f"{plan.node_holds}, by the specification {naive.node_holds}")
    return found


def brief(admits: Sequence[tuple[int, object]]) -> list[int]:
    """Give the jobs alone."""
    return [job for job, _ in admits]
