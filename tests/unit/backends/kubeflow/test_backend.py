"""The back end's decisions on a cluster in memory: lost answers, strangers, conflicts, order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.backends.base import ForeignObject, Launch, ObjectRef
from gateway.backends.kubeflow import KubeflowBackend, KubeflowSettings
from gateway.backends.kubeflow.answers import Answer, ClusterThrottled
from gateway.backends.kubeflow.client import Request
from gateway.backends.kubeflow.json_paths import Json
from gateway.errors import ClusterRejected, ClusterUnreachable
from tests.contract.backends.launches import a_launch, a_manifest
from tests.unit.backends.kubeflow.a_cluster import (
    ClusterInMemory,
    add_pods,
    job_path,
    merged,
    status,
)

DONE = {"conditions": [{"type": "Succeeded", "status": "True"}]}


@pytest.fixture
def cluster() -> ClusterInMemory:
    return ClusterInMemory()


@pytest.fixture
def backend(cluster: ClusterInMemory) -> KubeflowBackend:
    return KubeflowBackend(KubeflowSettings(), cluster)


def stored(cluster: ClusterInMemory, launch: Launch) -> Json:
    return cluster.objects[job_path(launch)]


def change(cluster: ClusterInMemory, launch: Launch, patch: Json) -> None:
    cluster.put(job_path(launch), merged(stored(cluster, launch), patch))


def started(cluster: ClusterInMemory, backend: KubeflowBackend, launch: Launch) -> ObjectRef:
    ref = backend.create(launch)
    backend.unsuspend(launch, ref)
    return ref


def pods(cluster: ClusterInMemory) -> list[Json]:
    return [found for path, found in cluster.objects.items() if "/pods/" in path]


def test_a_create_whose_answer_was_lost_is_found_and_not_sent_again(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    cluster.loses_answers_to = {"POST"}

    ref = backend.create(launch)

    assert ref.uid == stored(cluster, launch)["metadata"]["uid"]
    assert len(cluster.sent("POST")) == 1


def test_a_create_that_never_arrived_is_reported_and_works_later(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    cluster.faults = [lambda request: status(500) if request.method == "POST" else None]
    with pytest.raises(ClusterUnreachable):
        backend.create(a_launch())

    cluster.faults = []
    assert backend.create(a_launch()).uid


def test_a_throttled_create_is_not_followed_by_another_request(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    cluster.faults = [lambda _: Answer(status=429, headers={"retry-after": "3"})]

    with pytest.raises(ClusterThrottled):
        backend.create(a_launch())
    assert len(cluster.requests) == 1


def test_an_unknown_field_is_to_be_refused_and_not_dropped(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    backend.create(a_launch())

    assert cluster.sent("POST")[0].query == {"fieldValidation": "Strict"}


@pytest.mark.parametrize(
    "meddling",
    [
        {"spec": {"runPolicy": {"suspend": False}}},
        {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}},
        {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": None}}}}},
    ],
)
def test_an_object_that_the_cluster_changed_on_creation_is_removed(
    cluster: ClusterInMemory, backend: KubeflowBackend, meddling: Json
) -> None:
    launch = a_launch()
    cluster.webhook = meddling

    with pytest.raises(ClusterRejected, match="when it was created"):
        backend.create(launch)
    assert job_path(launch) not in cluster.objects


def test_a_strangers_object_is_never_taken(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    cluster.put(job_path(launch), {"metadata": {"name": launch.object_name, "labels": "text"}})

    with pytest.raises(ForeignObject):
        backend.create(launch)
    with pytest.raises(ForeignObject):
        backend.find(launch)
    backend.delete(ObjectRef(namespace="default", name=launch.object_name, uid="ours"))
    assert job_path(launch) in cluster.objects


def test_an_object_without_its_gates_is_not_started(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = backend.create(launch)
    gateless: Json = {"template": {"spec": {"schedulingGates": []}}}
    change(cluster, launch, {"spec": {"pytorchReplicaSpecs": {"Master": gateless}}})

    with pytest.raises(ClusterRejected, match="lost the scheduling gate"):
        backend.unsuspend(launch, ref)


def test_unsuspending_goes_on_from_a_newer_version(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = backend.create(launch)
    conflicts = [2]

    def operator_was_faster(request: Request) -> Answer | None:
        if request.method == "PATCH" and conflicts[0]:
            conflicts[0] -= 1
            return status(409, "Conflict")
        return None

    cluster.faults = [operator_was_faster]
    backend.unsuspend(launch, ref)

    assert stored(cluster, launch)["spec"]["runPolicy"]["suspend"] is False


def test_what_ended_is_not_started_again_and_not_deleted_by_a_stop(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = backend.create(launch)
    change(cluster, launch, {"status": DONE})

    backend.unsuspend(launch, ref)
    backend.stop(launch, ref)

    assert stored(cluster, launch)["spec"]["runPolicy"]["suspend"] is True
    assert cluster.sent("DELETE") == []


def test_pods_that_a_dead_operator_leaves_behind_a_result_are_ended_after_a_while(
    cluster: ClusterInMemory,
) -> None:
    ended = datetime(2026, 1, 1, tzinfo=UTC)
    now = [ended]
    backend = KubeflowBackend(KubeflowSettings(), cluster, lambda: now[0])
    launch = a_launch()
    ref = started(cluster, backend, launch)
    add_pods(cluster, launch, ref.uid, 0, 1)
    done: Json = {"type": "Succeeded", "status": "True", "lastTransitionTime": ended.isoformat()}
    change(cluster, launch, {"status": {"conditions": [done]}})

    backend.stop(launch, ref)
    assert cluster.sent("DELETE") == [], "the operator is given time"

    now[0] += timedelta(minutes=2)
    backend.stop(launch, ref)
    assert job_path(launch) not in cluster.objects


def test_a_finished_object_without_live_pods_is_kept_for_its_logs(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = backend.create(launch)
    done = {**DONE["conditions"][0], "lastTransitionTime": "2020-01-01T00:00:00Z"}
    change(cluster, launch, {"status": {"conditions": [done]}})

    backend.stop(launch, ref)

    assert cluster.sent("DELETE") == []


def test_who_may_not_look_is_told_so_for_good_before_a_launch_and_for_now_after_it(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = backend.create(launch)
    cluster.faults = [lambda _: status(403, "Forbidden", "cannot get resource")]

    with pytest.raises(ClusterRejected, match="refused to get pytorchjobs"):
        backend.find(launch)
    with pytest.raises(ClusterUnreachable, match="refused to get pytorchjobs"):
        backend.observe(launch, ref)


def test_a_stop_deletes_by_uid_and_with_its_pods(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = started(cluster, backend, launch)

    backend.stop(launch, ref)

    body: Any = cluster.sent("DELETE")[0].body
    assert body["preconditions"] == {"uid": ref.uid}
    assert body["propagationPolicy"] == "Foreground"
    assert job_path(launch) not in cluster.objects


def test_no_gate_opens_before_the_gang_is_there_and_then_all_do(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch(a_manifest(2))
    ref = started(cluster, backend, launch)
    add_pods(cluster, launch, ref.uid, 0, 1)
    assert not backend.open_gates(launch, ref)
    assert all(pod["spec"]["schedulingGates"] for pod in pods(cluster))

    add_pods(cluster, launch, ref.uid, 2)
    assert backend.open_gates(launch, ref)
    assert not any(pod["spec"].get("schedulingGates") for pod in pods(cluster))


def test_pods_of_another_owner_are_left_alone(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = started(cluster, backend, launch)
    add_pods(cluster, launch, "somebody-else", 0, 1)

    assert not backend.open_gates(launch, ref)
    assert all(pod["spec"]["schedulingGates"] for pod in pods(cluster))
    assert backend.observe(launch, ref).replicas == ()


def test_a_pod_that_changed_meanwhile_is_opened_on_the_next_pass(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = started(cluster, backend, launch)
    add_pods(cluster, launch, ref.uid, 0, 1)
    cluster.faults = [
        lambda request: status(409, "Conflict") if request.path.endswith("worker-0") else None
    ]
    assert not backend.open_gates(launch, ref)

    cluster.faults = []
    assert backend.open_gates(launch, ref)
    assert backend.observe(launch, ref).recreations == 0


def test_a_recreated_pod_is_noted_before_it_is_opened_and_counted_once(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    launch = a_launch()
    ref = started(cluster, backend, launch)
    add_pods(cluster, launch, ref.uid, 0, 1)
    assert backend.open_gates(launch, ref)
    path = next(path for path in cluster.objects if path.endswith("worker-0"))
    add_pods(cluster, launch, ref.uid, 1)
    cluster.objects[path]["metadata"]["uid"] = "pod-again"
    cluster.faults = [
        lambda request: status(500) if request.method == "PATCH" and request.path == path else None
    ]
    with pytest.raises(ClusterUnreachable):
        backend.open_gates(launch, ref)
    assert backend.observe(launch, ref).recreations == 1

    cluster.faults = []
    assert backend.open_gates(launch, ref)
    assert backend.open_gates(launch, ref)
    assert backend.observe(launch, ref).recreations == 1


def test_a_cluster_without_pytorchjobs_is_not_reachable(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    cluster.faults = [lambda _: Answer(status=404, body=b"404 page not found")]

    assert not backend.is_reachable()
    with pytest.raises(ClusterUnreachable, match="does not serve"):
        backend.find(a_launch())


def test_a_fleet_is_read_page_by_page_and_from_the_start_when_a_page_expired(
    cluster: ClusterInMemory, backend: KubeflowBackend
) -> None:
    pages: list[Answer] = [
        Answer(status=200, body=b'{"metadata": {"continue": "c"}, "items": [{}]}'),
        status(410, "Expired"),
        Answer(status=200, body=b'{"metadata": {"continue": "c"}, "items": [{}]}'),
        Answer(status=200, body=b'{"metadata": {}, "items": [{}]}'),
    ]
    cluster.faults = [lambda request: pages.pop(0) if request.path.endswith("/nodes") else None]

    assert len(backend.inventory()) == 2
    assert cluster.sent("GET")[1].query == {"limit": "500", "continue": "c"}
