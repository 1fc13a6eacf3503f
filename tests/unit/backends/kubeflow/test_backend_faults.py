"""A launch under every single fault: whatever is repeated converges, and nothing exists twice."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from gateway.backends.base import Launch, ObjectRef
from gateway.backends.environment import plan_annotations
from gateway.backends.kubeflow import KubeflowBackend, KubeflowSettings
from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.client import Request
from gateway.backends.kubeflow.json_paths import Json
from gateway.errors import ClusterUnreachable
from tests.contract.backends.launches import a_launch, a_manifest
from tests.unit.backends.kubeflow.a_cluster import (
    ClusterInMemory,
    Fault,
    add_pods,
    job_path,
    merged,
    status,
)

MOST_PASSES = 40
LAUNCH = a_launch(a_manifest(2))
OUTAGE = status(503, "ServiceUnavailable", "etcdserver: leader changed")
THROTTLED = Answer(status=429, headers={"retry-after": "1"})
PROXY = Answer(status=302, body=b"<html>log in</html>")
RIGHTS = status(403, "Forbidden", 'User "g" cannot patch resource "pods"')
Found = TypeVar("Found")


class World:
    """One launch on a cluster in memory whose operator creates pods once it may."""

    def __init__(self, launch: Launch = LAUNCH) -> None:
        self.cluster = ClusterInMemory()
        self.launch = launch
        self.backend = self.restarted()

    def restarted(self) -> KubeflowBackend:
        """Give what a gateway that was killed comes back with: nothing in memory."""
        return KubeflowBackend(KubeflowSettings(), self.cluster)

    def until(self, call: Callable[[], Found], *, is_done: bool = False) -> Found:
        """Repeat a call through outages, as the ticker does, each time by a restarted gateway."""
        for _ in range(MOST_PASSES):
            try:
                found = call()
            except ClusterUnreachable:
                self.backend = self.restarted()
                continue
            if found or not is_done:
                return found
        raise AssertionError("it never converged")

    def take_all_steps(self) -> ObjectRef:
        """Do what the service does for one attempt."""
        ref = self.until(lambda: self.backend.create(self.launch))
        self.until(lambda: self.backend.hold(self.launch, ref))
        self.until(lambda: self.backend.unsuspend(self.launch, ref))
        if not self.pods():
            add_pods(self.cluster, self.launch, ref.uid, *range(len(self.launch.pods)))
        self.until(lambda: self.backend.open_gates(self.launch, ref), is_done=True)
        return ref

    def pods(self) -> list[Json]:
        """Give the pods."""
        return [found for path, found in self.cluster.objects.items() if "/pods/" in path]

    def job(self) -> Json:
        """Give the PyTorchJob."""
        return self.cluster.objects[job_path(self.launch)]

    def change(self, patch: Json) -> None:
        """Change the PyTorchJob as somebody else would."""
        self.cluster.put(job_path(self.launch), merged(self.job(), patch))

    def assert_launched(self, ref: ObjectRef) -> None:
        """Make sure that exactly this gang is open, each pod on its place and told so."""
        assert [path for path in self.cluster.objects if "/pytorchjobs/" in path] == [
            job_path(self.launch)
        ]
        job = self.job()
        assert job["metadata"]["uid"] == ref.uid
        assert job["spec"]["runPolicy"]["suspend"] is False
        assert job["metadata"]["annotations"]["training-gateway.io/opened"] == "true"
        for planned, pod in zip(self.launch.pods, self.pods(), strict=True):
            assert "schedulingGates" not in pod["spec"]
            assert pod["metadata"]["annotations"] == plan_annotations(self.launch, planned)
        seen = self.backend.observe(self.launch, ref)
        assert (seen.exists, seen.recreations, seen.message) == (True, 0, "")


def request_count() -> int:
    world = World()
    world.take_all_steps()
    return len(world.cluster.requests)


REQUESTS = request_count()


def at_request(number: int, fault: Fault) -> Fault:
    """Let a fault befall the request of this number alone."""
    seen = 0

    def answer(request: Request) -> Answer | None:
        nonlocal seen
        seen += 1
        return fault(request) if seen == number + 1 else None

    return answer


def losing(cluster: ClusterInMemory) -> Fault:
    """Let the request act and lose its answer."""

    def lose(request: Request) -> Answer:
        cluster._answer(request)
        raise ClusterUnreachable("the answer was lost")

    return lose


@pytest.mark.parametrize("number", range(REQUESTS))
@pytest.mark.parametrize("answer", [OUTAGE, THROTTLED, PROXY], ids=["outage", "throttled", "proxy"])
def test_one_refused_request_anywhere_only_delays_a_launch(number: int, answer: Answer) -> None:
    world = World()
    world.cluster.faults = [at_request(number, lambda _: answer)]

    ref = world.take_all_steps()

    world.assert_launched(ref)


@pytest.mark.parametrize("number", range(REQUESTS))
def test_one_lost_answer_anywhere_makes_nothing_twice(number: int) -> None:
    world = World()
    world.cluster.faults = [at_request(number, losing(world.cluster))]

    ref = world.take_all_steps()

    world.assert_launched(ref)
    assert len(world.cluster.sent("POST")) == 1


@pytest.mark.parametrize("number", range(REQUESTS))
def test_an_operator_that_writes_before_any_request_of_ours_is_no_trouble(number: int) -> None:
    world = World()

    def operator_writes(_: Request) -> None:
        for path, found in list(world.cluster.objects.items()):
            world.cluster.put(path, merged(found, {"status": {"lastReconcileTime": str(number)}}))

    world.cluster.faults = [at_request(number, operator_writes)]

    ref = world.take_all_steps()

    world.assert_launched(ref)


def test_every_step_may_be_repeated_without_any_change() -> None:
    world = World()
    ref = world.take_all_steps()
    before = {path: dict(found) for path, found in world.cluster.objects.items()}

    again = world.take_all_steps()

    assert again == ref
    assert world.cluster.objects == before


def test_rights_that_are_taken_away_and_given_back_only_delay_the_opening() -> None:
    world = World()
    ref = world.backend.create(world.launch)
    world.backend.unsuspend(world.launch, ref)
    add_pods(world.cluster, world.launch, ref.uid, 0, 1, 2)
    world.cluster.faults = [
        lambda request: RIGHTS if request.method == "PATCH" and "/pods/" in request.path else None
    ]

    with pytest.raises(ClusterUnreachable, match="refused to patch pods in namespace default"):
        world.backend.open_gates(world.launch, ref)
    world.cluster.faults = []
    assert world.backend.open_gates(world.launch, ref)
    world.assert_launched(ref)


def test_a_gang_that_was_opened_but_not_marked_is_finished_although_a_pod_ended() -> None:
    world = World()
    ref = world.backend.create(world.launch)
    world.backend.unsuspend(world.launch, ref)
    add_pods(world.cluster, world.launch, ref.uid, 0, 1, 2)
    stuck = world.pods()[2]["metadata"]["name"]
    world.cluster.faults = [
        lambda request: OUTAGE if request.method == "PATCH" and stuck in request.path else None
    ]
    with pytest.raises(ClusterUnreachable):
        world.backend.open_gates(world.launch, ref)
    first = next(path for path in world.cluster.objects if path.endswith("-master-0"))
    del world.cluster.objects[first]
    world.cluster.faults = []

    assert not world.restarted().open_gates(world.launch, ref), "the Master is missing"

    assert not any(pod["spec"].get("schedulingGates") for pod in world.pods())


@pytest.mark.parametrize("name", ["unsuspend", "open_gates", "stop", "observe"])
def test_nothing_is_done_to_an_object_that_took_the_name(name: str) -> None:
    world = World()
    ref = world.backend.create(world.launch)
    world.change({"metadata": {"uid": "another", "labels": {"theirs": "yes"}}})
    before = dict(world.job())

    getattr(world.backend, name)(world.launch, ref)
    world.backend.delete(ref)

    assert world.job() == before
    assert not world.backend.observe(world.launch, ref).exists


@pytest.mark.parametrize("name", ["unsuspend", "open_gates", "stop"])
def test_an_object_that_is_being_deleted_is_left_to_go(name: str) -> None:
    world = World()
    ref = world.backend.create(world.launch)
    world.change({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})

    getattr(world.backend, name)(world.launch, ref)

    assert world.cluster.sent("PATCH") == []
    assert world.cluster.sent("DELETE") == []
