"""When the back end gives up, what it says, and what it leaves alone."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.backends.base import ForeignObject, ObjectRef
from gateway.backends.kubeflow import KubeflowBackend, KubeflowSettings
from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.backend import CLEAN_UP_SECONDS, MOST_RECORDED, MOST_TRIES
from gateway.backends.kubeflow.client import Request
from gateway.backends.kubeflow.json_paths import Json
from gateway.core.vocabulary import SCHEDULING_GATE
from gateway.errors import ClusterRejected, ClusterUnreachable
from tests.contract.backends.launches import a_launch
from tests.unit.backends.kubeflow.a_cluster import add_pods, good, merged, status
from tests.unit.backends.kubeflow.test_backend_faults import World

CONFLICT = status(409, "Conflict", "newer version")
ENDED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def world() -> World:
    return World(a_launch())


def started(world: World) -> ObjectRef:
    """Bring it to its gated pods."""
    ref = world.backend.create(world.launch)
    world.backend.unsuspend(world.launch, ref)
    add_pods(world.cluster, world.launch, ref.uid, 0, 1)
    return ref


def always_changing(request: Request) -> Answer | None:
    return CONFLICT if request.method == "PATCH" else None


def test_an_object_that_never_stops_changing_is_tried_again_later(world: World) -> None:
    ref = world.backend.create(world.launch)
    world.cluster.faults = [always_changing]

    with pytest.raises(ClusterUnreachable) as caught:
        world.backend.unsuspend(world.launch, ref)

    assert caught.value.detail == "digits-ab12-1 changes too fast to be unsuspended"
    assert len(world.cluster.sent("PATCH")) == MOST_TRIES


def test_a_mark_that_cannot_be_set_is_tried_again_and_the_gang_stays_open(world: World) -> None:
    ref = started(world)
    world.cluster.faults = [
        lambda request: (
            CONFLICT if always_changing(request) and "/pods/" not in request.path else None
        )
    ]

    with pytest.raises(ClusterUnreachable, match="changes too fast to be annotated"):
        world.backend.open_gates(world.launch, ref)
    world.cluster.faults = []
    assert world.backend.open_gates(world.launch, ref)
    assert world.job()["metadata"]["annotations"]["training-gateway.io/opened"] == "true"


def test_something_that_suspends_the_job_again_at_once_is_named(world: World) -> None:
    ref = world.backend.create(world.launch)
    suspended = dict(world.job())
    world.cluster.faults = [lambda request: good(suspended) if request.method == "PATCH" else None]

    with pytest.raises(ClusterRejected) as caught:
        world.backend.unsuspend(world.launch, ref)
    assert caught.value.detail == "something in the cluster keeps digits-ab12-1 suspended"
    assert "Kueue" in caught.value.hint


def test_an_object_that_vanishes_between_look_and_patch_is_gone(world: World) -> None:
    ref = world.backend.create(world.launch)
    gone = status(404, "NotFound", "gone", name="it", kind="pytorchjobs")

    def vanish(request: Request) -> Answer | None:
        if request.method == "PATCH":
            world.cluster.objects.clear()
            return gone
        return None

    world.cluster.faults = [vanish]
    world.backend.unsuspend(world.launch, ref)

    assert not world.backend.observe(world.launch, ref).exists


def test_a_name_that_was_taken_and_is_free_again_is_tried_later(world: World) -> None:
    world.cluster.faults = [
        lambda request: status(409, "AlreadyExists") if request.method == "POST" else None
    ]

    with pytest.raises(ClusterUnreachable, match="digits-ab12-1 was just deleted"):
        world.backend.create(world.launch)


def test_a_create_that_met_others_at_a_quota_is_neither_refused_nor_poison(world: World) -> None:
    conflict = status(409, "Conflict", "Operation cannot be fulfilled on resourcequotas")
    world.cluster.faults = [lambda request: conflict if request.method == "POST" else None]

    with pytest.raises(ClusterUnreachable, match="resourcequotas"):
        world.backend.create(world.launch)
    world.cluster.faults = []
    assert world.backend.create(world.launch) == world.backend.find(world.launch)


def test_a_strangers_object_is_named_with_its_uid_and_a_way_out(world: World) -> None:
    world.backend.create(world.launch)
    world.change({"metadata": {"labels": {"training-gateway.io/job-id": "another"}}})

    for call in (world.backend.create, world.backend.find):
        with pytest.raises(ForeignObject) as caught:
            call(world.launch)
        assert caught.value.value == world.job()["metadata"]["uid"]
        assert caught.value.hint == "delete it or submit the job under another name"
        assert caught.value.detail == (
            "PyTorchJob digits-ab12-1 exists in default and is not this attempt's"
        )


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (
            {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}}},
            "Worker has 3 replicas, 1 are reserved",
        ),
        (
            {"spec": {"pytorchReplicaSpecs": {"Master": None}}},
            "Master has None replicas, 1 are reserved",
        ),
        (
            {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}},
            "Kueue put its label on it, so two queues would start and stop the same job",
        ),
    ],
)
def test_a_job_that_was_changed_before_its_start_is_not_started(
    world: World, patch: Json, words: str
) -> None:
    ref = world.backend.create(world.launch)
    world.change(patch)

    with pytest.raises(ClusterRejected) as caught:
        world.backend.unsuspend(world.launch, ref)
    assert caught.value.detail == f"digits-ab12-1 was changed before it started: {words}"
    assert world.job()["spec"]["runPolicy"]["suspend"] is True


def test_gates_of_a_suspended_or_missing_object_stay_closed(world: World) -> None:
    ref = world.backend.create(world.launch)
    add_pods(world.cluster, world.launch, ref.uid, 0, 1)

    assert not world.backend.open_gates(world.launch, ref)
    world.backend.delete(ref)
    assert not world.backend.open_gates(world.launch, ref)
    assert all(pod["spec"]["schedulingGates"] for pod in world.pods())


def test_a_call_that_is_out_of_time_opens_nothing_more_and_goes_on_later(world: World) -> None:
    ref = started(world)
    hurried = KubeflowBackend(KubeflowSettings(call_seconds=0.9), world.cluster)

    assert not hurried.open_gates(world.launch, ref), "less than the reserve is left"
    assert all(pod["spec"]["schedulingGates"] for pod in world.pods())
    assert world.backend.open_gates(world.launch, ref)


@pytest.mark.parametrize(
    ("after_seconds", "is_deleted"),
    [(0, False), (CLEAN_UP_SECONDS - 1, False), (CLEAN_UP_SECONDS, True), (1e6, True)],
)
@pytest.mark.parametrize("kind", ["Succeeded", "Failed"])
def test_the_operator_has_a_minute_to_clean_up_behind_a_result(
    world: World, kind: str, after_seconds: float, *, is_deleted: bool
) -> None:
    ref = started(world)
    done = {"type": kind, "status": "True", "lastTransitionTime": ENDED_AT.isoformat()}
    world.change({"status": {"conditions": [done]}})
    now = ENDED_AT + timedelta(seconds=after_seconds)

    KubeflowBackend(KubeflowSettings(), world.cluster, lambda: now).stop(world.launch, ref)

    assert bool(world.cluster.sent("DELETE")) is is_deleted


@pytest.mark.parametrize("written", ["", "soon", "2026-01-01T00:00:00", None, 7])
def test_a_result_of_an_unreadable_instant_keeps_its_logs(world: World, written: object) -> None:
    ref = started(world)
    done = {"type": "Failed", "status": "True", "lastTransitionTime": written}
    world.change({"status": {"conditions": [done]}})

    world.backend.stop(world.launch, ref)

    assert world.cluster.sent("DELETE") == []


def test_recreated_pods_are_noted_up_to_a_limit_and_still_opened(world: World) -> None:
    ref = started(world)
    assert world.backend.open_gates(world.launch, ref)
    many = ",".join(f"u{number:03d}" for number in range(MOST_RECORDED))
    world.change({"metadata": {"annotations": {"training-gateway.io/recreated": many}}})
    path = next(path for path in world.cluster.objects if path.endswith("worker-0"))
    gate = {"spec": {"schedulingGates": [{"name": SCHEDULING_GATE}]}}
    world.cluster.put(path, merged(world.cluster.objects[path], gate))

    assert world.backend.open_gates(world.launch, ref)

    assert world.job()["metadata"]["annotations"]["training-gateway.io/recreated"] == many
    assert "schedulingGates" not in world.cluster.objects[path]["spec"]


@pytest.mark.parametrize(
    ("answer", "is_reachable"),
    [
        (good({"resources": []}), True),
        (status(403, "Forbidden", "no discovery"), False),
        (status(500), False),
        (Answer(status=200, body=b"<html>"), False),
        (status(404, name="x", kind="y"), False),
    ],
)
def test_a_cluster_is_reachable_when_it_serves_the_kind(
    world: World, answer: Answer, *, is_reachable: bool
) -> None:
    world.cluster.faults = [lambda _: answer]

    assert world.backend.is_reachable() is is_reachable
