"""Turns a PyTorchJob and its pods into an Observation. Pure, and tolerant of any malformed part.

Reading order of the conditions: Failed, then Succeeded; whether it is suspended is read from the
spec. Running and Restarting are not read at all, because the operator leaves Restarting behind and
calls a gang running when only its Master is: the pods themselves say more.
"""

from collections.abc import Sequence
from datetime import datetime

from gateway.backends.base import (
    Launch,
    ObjectOutcome,
    ObjectRef,
    Observation,
    ReplicaPhase,
    ReplicaSeen,
)
from gateway.backends.kubeflow.json_paths import Json, at, text_at, texts_at
from gateway.backends.kubeflow.names import OPENED_ANNOTATION, RECREATED_ANNOTATION
from gateway.backends.kubeflow.replicas import (
    MOST_MESSAGE,
    Place,
    condition,
    has_gate,
    in_order,
    is_leaving,
    phase_of,
    plan_of,
    replica_of,
    restarts_of,
    was_ended_by_cluster,
)

OUTCOMES = {"Failed": ObjectOutcome.FAILED, "Succeeded": ObjectOutcome.SUCCEEDED}
"""By condition, in the order in which they are read."""


def observation_of(
    launch: Launch, ref: ObjectRef, job: Json | None, pods: Sequence[Json]
) -> Observation:
    """Give what is seen of the object with this UID; `pods` are those that it owns.

    An object that is being deleted no longer exists; what it decided before still counts.
    """
    own = job if is_same(job, ref) else None
    outcome = outcome_of(own)
    replicas = in_order(map(replica_of, pods))
    return Observation(
        exists=is_live(job, ref),
        uid=text_at(own, "metadata", "uid"),
        is_suspended=is_suspended(own),
        outcome=outcome,
        replicas=replicas,
        recreations=recreations_of(own, pods),
        is_lost=outcome is ObjectOutcome.FAILED and _is_lost(own, pods),
        message=_message(launch, own, replicas),
    )


def is_same(job: Json | None, ref: ObjectRef) -> bool:
    """Whether it is the very object that was created, not one that took its name."""
    return job is not None and text_at(job, "metadata", "uid") == ref.uid


def is_live(job: Json | None, ref: ObjectRef) -> bool:
    """Whether it is the very object that was created, and nobody asked for its deletion."""
    return is_same(job, ref) and not is_leaving(job)


def is_suspended(job: Json | None) -> bool:
    """Whether the operator is told to run nothing of it."""
    return at(job, "spec", "runPolicy", "suspend") is True


def may_start(job: Json) -> bool:
    """Whether it waits to be unsuspended and has no result yet."""
    return is_suspended(job) and outcome_of(job) is ObjectOutcome.UNDECIDED


def outcome_of(job: Json | None) -> ObjectOutcome:
    """Read the conditions in the order that the operator's habits require."""
    decided = (outcome for name, outcome in OUTCOMES.items() if condition(job, name))
    return next(decided, ObjectOutcome.UNDECIDED)


def result_at(job: Json) -> datetime | None:
    """Give the instant of its result; None without one, or when it cannot be read."""
    found = condition(job, "Failed") or condition(job, "Succeeded")
    try:
        moment = datetime.fromisoformat(text_at(found, "lastTransitionTime"))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def recreated_uids(job: Json | None) -> frozenset[str]:
    """Give the recorded UIDs of pods that replaced others."""
    recorded = texts_at(job, "metadata", "annotations").get(RECREATED_ANNOTATION, "")
    return frozenset(filter(None, recorded.split(",")))


def was_opened(job: Json | None) -> bool:
    """Whether the whole first gang was opened at some time."""
    return texts_at(job, "metadata", "annotations").get(OPENED_ANNOTATION) == "true"


def recreations_of(job: Json | None, pods: Sequence[Json]) -> int:
    """Count pods that replaced others and containers that were restarted in place."""
    uids = recreated_uids(job)
    # A successor is noted by the pass that opens it. Until then its gate tells, so that the
    # restart budget is not a pass behind.
    if was_opened(job):
        uids |= {text_at(pod, "metadata", "uid") for pod in pods if has_gate(pod)}
    return len(uids) + sum(map(restarts_of, pods))


def _is_lost(job: Json | None, pods: Sequence[Json]) -> bool:
    """Whether a failed job has no replica that failed by itself."""
    if at(job, "spec", "runPolicy", "cleanPodPolicy") == "All":
        return False  # the evidence was cleaned up with the pods
    # Failed without a failed pod: they went with their node, and all() of nothing is true.
    failed = [pod for pod in pods if phase_of(pod) is ReplicaPhase.FAILED]
    return all(map(was_ended_by_cluster, failed))


def _message(launch: Launch, job: Json | None, replicas: Sequence[ReplicaSeen]) -> str:
    violations = filter(None, (_violation(launch, replica) for replica in replicas))
    return ("; ".join(violations) or _why(job, replicas))[:MOST_MESSAGE]


def _why(job: Json | None, replicas: Sequence[ReplicaSeen]) -> str:
    """Give a failed job's first failed replica's words, else the operator's."""
    failed = condition(job, "Failed")
    if failed is None:
        return ""
    broken = (replica for replica in replicas if replica.phase is ReplicaPhase.FAILED)
    return next(map(_failure, broken), text_at(failed, "message"))


def _failure(replica: ReplicaSeen) -> str:
    code = "" if replica.exit_code is None else f" with exit code {replica.exit_code}"
    said = f": {replica.message}" if replica.message else ""
    return f"{replica.pod_set} {replica.index} failed{code}{said}"


def _violation(launch: Launch, replica: ReplicaSeen) -> str:
    """Say that a pod is where its reservation is not: somebody else opened its gate."""
    # A role such as kubeflow-edit may patch pods, and so take our gate away.
    if not replica.node:
        return ""
    planned = plan_of(launch).get(Place(replica.pod_set, replica.index))
    if planned is None:
        return f"a pod without a reservation is on node {replica.node}"
    if replica.node != planned.node:
        where = f"on node {replica.node}, reserved is {planned.node}"
        return f"{replica.pod_set} {replica.index} is {where}"
    return ""
