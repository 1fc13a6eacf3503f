"""The virtual cluster: scripted courses on a clock that moves only when told."""

import time
from pathlib import Path

import pytest

from gateway.backends.base import (
    Launch,
    NodeSeen,
    ObjectOutcome,
    ObjectRef,
    Observation,
    ReplicaPhase,
)
from gateway.backends.simulated import ManualClock, SimulatedBackend
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.core.vocabulary import DeviceHealth
from gateway.errors import ClusterRejected, ClusterUnreachable
from tests.contract.backends.launches import a_launch, a_manifest

FLEET = virtual_fleet("2xdgx-h100")
PREFIX = "simulated.training-gateway.io/"


class Cluster:
    """A simulated cluster with its clock and one launch."""

    def __init__(self, state_file: Path | None = None, workers: int = 1, **script: str) -> None:
        annotations = {PREFIX + key.replace("_", "-"): value for key, value in script.items()}
        self.clock = ManualClock()
        self.launch: Launch = a_launch(a_manifest(workers, annotations=annotations), nodes=FLEET)
        self.state_file = state_file
        self.backend = SimulatedBackend(FLEET, state_file, self.clock)

    def started(self) -> ObjectRef:
        """Create, unsuspend and open."""
        ref = self.backend.create(self.launch)
        self.backend.unsuspend(self.launch, ref)
        assert self.backend.open_gates(self.launch, ref)
        return ref

    def seen(self, ref: ObjectRef, after_seconds: float = 0.0) -> Observation:
        """Observe some time later."""
        self.clock.advance(after_seconds)
        return self.backend.observe(self.launch, ref)


def phases(seen: Observation) -> list[ReplicaPhase]:
    return [replica.phase for replica in seen.replicas]


def test_a_gang_becomes_ready_after_its_start_and_succeeds_after_its_run() -> None:
    cluster = Cluster(start_seconds="2", run_seconds="30")
    ref = cluster.started()

    assert phases(cluster.seen(ref, 1)) == [ReplicaPhase.PENDING] * 2
    assert phases(cluster.seen(ref, 1)) == [ReplicaPhase.READY] * 2
    assert cluster.seen(ref, 29.9).outcome is ObjectOutcome.UNDECIDED
    assert cluster.seen(ref, 0.2).outcome is ObjectOutcome.SUCCEEDED
    assert phases(cluster.seen(ref)) == [ReplicaPhase.SUCCEEDED] * 2


def test_a_gang_that_is_looked_at_once_and_late_has_the_same_end() -> None:
    cluster = Cluster(workers=3, outcome="failed", fail_index="2", delete_seconds="5")
    ref = cluster.started()

    seen = cluster.seen(ref, 10_000)

    assert seen.outcome is ObjectOutcome.FAILED
    assert phases(seen) == [ReplicaPhase.ABSENT] * 2 + [ReplicaPhase.FAILED, ReplicaPhase.ABSENT]
    assert seen.replicas[2].exit_code == 1


def test_survivors_of_a_failed_replica_linger_as_scripted() -> None:
    cluster = Cluster(outcome="failed", delete_seconds="5", start_seconds="0", run_seconds="1")
    ref = cluster.started()

    assert phases(cluster.seen(ref, 1)) == [ReplicaPhase.FAILED, ReplicaPhase.TERMINATING]
    assert not cluster.seen(ref).are_pods_gone
    assert cluster.seen(ref, 5).are_pods_gone


def test_a_gang_that_never_starts_stays_pending() -> None:
    cluster = Cluster(outcome="never-starts")
    ref = cluster.started()

    assert phases(cluster.seen(ref, 1e6)) == [ReplicaPhase.PENDING] * 2


def test_a_lost_gang_vanishes_without_a_result() -> None:
    cluster = Cluster(outcome="lost")
    ref = cluster.started()

    seen = cluster.seen(ref, 100)

    assert seen.is_lost
    assert phases(seen) == [ReplicaPhase.ABSENT] * 2
    assert [replica.exit_code for replica in seen.replicas] == [None, None]


def test_a_rejected_job_is_refused_at_create_and_nothing_is_left() -> None:
    cluster = Cluster(outcome="rejected")

    with pytest.raises(ClusterRejected):
        cluster.backend.create(cluster.launch)
    assert cluster.backend.find(cluster.launch) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run-seconds", "soon"),
        ("run-seconds", "-1"),
        ("start-seconds", "nan"),
        ("outcome", "fine"),
        ("fail-index", "-1"),
        ("colour", "red"),
    ],
)
def test_a_script_that_cannot_be_meant_is_refused_by_name(key: str, value: str) -> None:
    launch = a_launch(a_manifest(annotations={PREFIX + key: value}))

    with pytest.raises(ClusterRejected) as caught:
        SimulatedBackend(FLEET, clock=ManualClock()).create(launch)
    assert key in caught.value.pointer
    assert caught.value.value == value


def test_a_failing_rank_beyond_the_gang_is_refused() -> None:
    cluster = Cluster(outcome="failed", fail_index="2")

    with pytest.raises(ClusterRejected, match="beyond"):
        cluster.backend.create(cluster.launch)


def test_labels_script_a_job_where_annotations_are_silent() -> None:
    manifest = a_manifest(annotations={PREFIX + "run-seconds": "1"})
    manifest["metadata"]["labels"] = {PREFIX + "run-seconds": "99", PREFIX + "start-seconds": "0"}
    backend = SimulatedBackend(FLEET, clock=(clock := ManualClock()))
    launch = a_launch(manifest, nodes=FLEET)
    ref = backend.create(launch)
    backend.unsuspend(launch, ref)
    backend.open_gates(launch, ref)
    clock.advance(1)

    assert backend.observe(launch, ref).outcome is ObjectOutcome.SUCCEEDED


def test_gates_stay_closed_until_the_last_pod_has_appeared() -> None:
    cluster = Cluster(workers=2, appear_seconds="10")
    ref = cluster.backend.create(cluster.launch)
    cluster.backend.unsuspend(cluster.launch, ref)

    assert not cluster.backend.open_gates(cluster.launch, ref)
    absent, gated = ReplicaPhase.ABSENT, ReplicaPhase.GATED
    assert phases(cluster.seen(ref, 10)) == [gated, gated, absent]
    assert not cluster.backend.open_gates(cluster.launch, ref)
    cluster.clock.advance(10)
    assert cluster.backend.open_gates(cluster.launch, ref)


def test_a_master_that_finishes_ends_its_workers() -> None:
    cluster = Cluster(delete_seconds="3")
    ref = cluster.started()
    cluster.backend.finish_replica(ref.name, 0, namespace=ref.namespace)

    seen = cluster.seen(ref)

    assert seen.outcome is ObjectOutcome.SUCCEEDED
    assert phases(seen) == [ReplicaPhase.SUCCEEDED, ReplicaPhase.TERMINATING]
    assert cluster.seen(ref, 3).are_pods_gone


def test_pods_of_a_deleted_object_linger_and_then_are_gone() -> None:
    cluster = Cluster(delete_seconds="4")
    ref = cluster.started()
    cluster.backend.delete_behind_our_back(ref.name)

    seen = cluster.seen(ref)
    assert not seen.exists
    assert phases(seen) == [ReplicaPhase.TERMINATING] * 2
    assert cluster.seen(ref, 4).are_pods_gone


def test_a_name_that_is_free_again_gets_another_uid() -> None:
    cluster = Cluster()
    first = cluster.backend.create(cluster.launch)
    cluster.backend.delete(first)

    second = cluster.backend.create(cluster.launch)

    assert second.uid != first.uid
    cluster.backend.delete(first)
    assert cluster.backend.find(cluster.launch) == second


def test_a_lost_node_takes_its_gangs_and_shows_in_the_inventory() -> None:
    cluster = Cluster()
    ref = cluster.started()
    cluster.backend.fail_node("dgx-h100-1")

    seen = cluster.seen(ref)
    assert seen.is_lost
    assert seen.are_pods_gone
    health = {node.name: node.health for node in cluster.backend.inventory()}
    assert health == {
        "dgx-h100-0": DeviceHealth.HEALTHY,
        "dgx-h100-1": DeviceHealth.UNHEALTHY,
    }
    cluster.backend.set_node_health("dgx-h100-1", DeviceHealth.HEALTHY)
    assert list(cluster.backend.inventory()) == FLEET


def test_a_cut_connection_refuses_every_call() -> None:
    cluster = Cluster()
    ref = cluster.started()
    cluster.backend.set_unreachable(True)

    assert not cluster.backend.is_reachable()
    with pytest.raises(ClusterUnreachable):
        cluster.backend.observe(cluster.launch, ref)
    cluster.backend.set_unreachable(False)
    assert cluster.seen(ref).exists


def test_a_lost_answer_has_acted() -> None:
    cluster = Cluster()
    cluster.backend.lose_answers("create")

    with pytest.raises(ClusterUnreachable):
        cluster.backend.create(cluster.launch)
    assert cluster.backend.find(cluster.launch) == cluster.backend.create(cluster.launch)


def test_another_backend_on_the_same_file_continues(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster.json")
    ref = cluster.started()
    cluster.clock.advance(1)

    again = SimulatedBackend(FLEET, cluster.state_file, cluster.clock)

    assert again.find(cluster.launch) == ref
    assert again.observe(cluster.launch, ref) == cluster.seen(ref)
    again.stop(cluster.launch, ref)
    assert cluster.seen(ref).are_pods_gone, "a change through one is seen by the other"


def test_time_goes_on_for_a_backend_that_was_away(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster.json", run_seconds="5")
    ref = cluster.started()
    cluster.clock.advance(60)

    again = SimulatedBackend(FLEET, cluster.state_file, cluster.clock)

    assert again.observe(cluster.launch, ref).outcome is ObjectOutcome.SUCCEEDED


def test_a_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="back"):
        ManualClock().advance(-1)


def test_twenty_thousand_objects_stay_cheap() -> None:
    nodes: list[NodeSeen] = []
    backend = SimulatedBackend(nodes, clock=ManualClock())
    started = time.perf_counter()
    for number in range(20_000):
        launch = a_launch(MANIFEST, name=f"job-{number}")
        backend.observe(launch, backend.create(launch))

    assert time.perf_counter() - started < 10, "about 30 microseconds each; ample for a slow host"


MANIFEST = a_manifest(workers=0)
