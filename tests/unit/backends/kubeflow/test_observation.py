"""What a PyTorchJob and its pods say, read in order and never trusted to be well-formed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import ObjectOutcome, ObjectRef, Observation, ReplicaPhase
from gateway.backends.kubeflow.json_paths import Json
from gateway.backends.kubeflow.observation import observation_of
from gateway.backends.kubeflow.rendering import render
from tests.contract.backends.launches import a_launch
from tests.unit.backends.kubeflow.a_cluster import a_pod

LAUNCH = a_launch()
REF = ObjectRef(namespace="default", name=LAUNCH.object_name, uid="own")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def a_job(*conditions: str, **metadata: Any) -> Json:
    job = render(LAUNCH)
    job["metadata"] |= {"uid": "own", **metadata}
    job["spec"]["runPolicy"]["suspend"] = False
    job["status"] = {"conditions": [{"type": name, "status": "True"} for name in conditions]}
    return job


def running(rank: int, *, is_ready: bool = True, **fields: Any) -> Json:
    conditions = [{"type": "Ready", "status": str(is_ready)}]
    pod = a_pod(LAUNCH, rank, "own", phase="Running", conditions=conditions)
    pod["status"] |= fields
    return on_node(pod, LAUNCH.pods[rank].node)


def on_node(pod: Json, node: str) -> Json:
    pod["spec"] |= {"schedulingGates": [], "nodeName": node}
    return pod


def ended(rank: int, code: int, **fields: Any) -> Json:
    pod = running(rank, phase="Failed" if code else "Succeeded", **fields)
    state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
    pod["status"]["containerStatuses"] = [{"name": "pytorch", "state": state}]
    return pod


def seen(job: Json | None, *pods: Json) -> Observation:
    return observation_of(LAUNCH, REF, job, pods)


def phases(found: Observation) -> list[ReplicaPhase]:
    return [replica.phase for replica in found.replicas]


def test_failed_is_read_before_succeeded_and_a_stale_restarting_is_ignored() -> None:
    assert seen(a_job("Succeeded", "Failed")).outcome is ObjectOutcome.FAILED
    assert seen(a_job("Restarting", "Succeeded", "Running")).outcome is ObjectOutcome.SUCCEEDED
    assert seen(a_job("Created", "Running", "Restarting")).outcome is ObjectOutcome.UNDECIDED


def test_a_condition_that_is_not_true_says_nothing() -> None:
    job = a_job()
    job["status"]["conditions"] = [{"type": "Failed", "status": "False"}]

    assert seen(job).outcome is ObjectOutcome.UNDECIDED


@pytest.mark.parametrize(
    ("pod", "phase"),
    [
        (a_pod(LAUNCH, 0, "own"), ReplicaPhase.GATED),
        (on_node(a_pod(LAUNCH, 0, "own"), "n"), ReplicaPhase.PENDING),
        (running(0, is_ready=False), ReplicaPhase.RUNNING),
        (running(0), ReplicaPhase.READY),
        (running(0, phase="Unknown"), ReplicaPhase.READY),
        (ended(0, 0), ReplicaPhase.SUCCEEDED),
        (ended(0, 3), ReplicaPhase.FAILED),
    ],
)
def test_the_phase_of_a_pod_is_read_from_gates_status_and_readiness(
    pod: Json, phase: ReplicaPhase
) -> None:
    assert phases(seen(a_job(), pod)) == [phase]


def test_a_terminating_pod_still_holds_its_devices_unless_it_has_ended() -> None:
    leaving, gone = running(0), ended(1, 1)
    for pod in (leaving, gone):
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    found = seen(a_job("Failed"), leaving, gone)

    assert phases(found) == [ReplicaPhase.TERMINATING, ReplicaPhase.FAILED]
    assert not found.are_pods_gone


def test_the_masters_success_counts_while_workers_still_run() -> None:
    found = seen(a_job("Running", "Succeeded"), ended(0, 0), running(1))

    assert found.outcome is ObjectOutcome.SUCCEEDED
    assert not found.are_pods_gone


def test_pods_outlive_an_object_that_was_deleted() -> None:
    found = seen(None, running(0))

    assert not found.exists
    assert not found.are_pods_gone


def test_an_object_that_took_the_name_is_not_ours() -> None:
    found = seen(a_job("Succeeded", uid="other"))

    assert not found.exists
    assert found.outcome is ObjectOutcome.UNDECIDED


def test_an_object_that_is_being_deleted_no_longer_exists_but_keeps_its_result() -> None:
    found = seen(a_job("Succeeded", deletionTimestamp="2026-01-01T00:00:00Z"))

    assert not found.exists
    assert found.outcome is ObjectOutcome.SUCCEEDED


def test_a_pod_on_another_node_than_reserved_is_a_violation() -> None:
    pod = on_node(running(0), "elsewhere")

    assert seen(a_job(), running(0)).message == ""
    assert seen(a_job(), pod).message == "Master 0 is on node elsewhere, reserved is dgx-h100-0"


def test_a_failure_names_the_replica_its_code_and_the_words_of_its_pod() -> None:
    found = seen(a_job("Failed"), running(0), ended(1, 137, reason="OOM", message="killed"))

    assert found.message == "Worker 0 failed with exit code 137: OOM: killed: Error"
    assert not found.is_lost


def test_a_failure_by_eviction_or_without_any_failed_pod_is_a_lost_gang() -> None:
    assert seen(a_job("Failed"), running(0)).is_lost
    assert seen(a_job("Failed"), ended(1, 137, reason="Evicted")).is_lost
    disrupted = ended(1, 137, conditions=[{"type": "DisruptionTarget", "status": "True"}])
    assert seen(a_job("Failed"), disrupted).is_lost
    assert not seen(a_job("Failed"), ended(1, 1)).is_lost


def test_recreated_pods_and_restarts_in_place_are_counted_together() -> None:
    job = a_job(annotations={"training-gateway.io/recreated": "u1,u2"})
    statuses = [{"name": "pytorch", "restartCount": 2}, {"name": "sidecar", "restartCount": 9}]

    assert seen(job, running(0, containerStatuses=statuses)).recreations == 4


def test_a_gated_pod_of_a_started_gang_counts_as_recreated_before_it_is_opened() -> None:
    gated = a_pod(LAUNCH, 1, "own")

    assert seen(a_job(), running(0), gated).recreations == 0
    started = a_job(annotations={"training-gateway.io/opened": "true"})
    assert seen(started, running(0), gated).recreations == 1


def test_a_pod_whose_labels_make_no_sense_is_still_seen() -> None:
    for labels in ({}, {"training.kubeflow.org/replica-index": "x"}, None, "text"):
        pod = running(0)
        pod["metadata"]["labels"] = labels
        found = seen(a_job(), pod)
        assert phases(found) == [ReplicaPhase.READY]
        assert not found.are_pods_gone
        assert "without a reservation" in found.message


@given(anything, anything, anything)
def test_malformed_parts_never_raise(first: Any, second: Any, third: Any) -> None:
    job = {"metadata": {"uid": "own", "annotations": first}, "spec": second, "status": third}
    pod = {"metadata": {"labels": first, "uid": second}, "spec": third, "status": first}

    found = seen(job, pod, {"metadata": third}, {"status": {"conditions": second}})

    assert len(found.replicas) == 3
