"""Conformance: nothing starts too early, and what starts knows its place."""

from gateway.backends.base import ReplicaPhase
from gateway.backends.environment import plan_environment
from tests.contract.backends.harness import Harness, Kind
from tests.contract.backends.steps import CLOSED, Run, shape


class StartingSuite:
    """Needs a `harness` fixture in the subclass."""

    def test_nothing_runs_before_it_is_unsuspended(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.SUCCEEDING))

        assert not run.backend.open_gates(run.launch, run.ref)
        harness.pass_time()

        assert not harness.has_started(run.launch)
        assert run.seen().is_suspended

    def test_nothing_runs_before_its_gate_is_open(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.SUCCEEDING))
        run.unsuspend()
        run.wait_for_gated()
        harness.pass_time()

        assert not run.seen().is_suspended
        assert not harness.has_started(run.launch)
        assert run.phases() == [ReplicaPhase.GATED] * 2

    def test_no_gate_is_open_while_the_gang_is_not_there(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG, workers=3))
        run.unsuspend()

        def opened() -> bool:
            is_complete = ReplicaPhase.ABSENT not in run.phases()
            if run.backend.open_gates(run.launch, run.ref):
                return True
            # A refusal must have opened nothing, or part of the gang would start alone.
            assert is_complete or set(run.phases()) <= CLOSED
            return False

        harness.wait_until(opened, "every gate to be open")
        run.wait_for_started()
        assert len(run.seen().replicas) == 4

    def test_unsuspending_twice_is_harmless(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.unsuspend()
        run.backend.unsuspend(run.launch, run.ref)
        run.open()
        run.wait_for_started()
        before = run.shape()

        harness.make_backend().unsuspend(run.launch, run.ref)
        harness.pass_time()

        assert run.shape() == before

    def test_opening_gates_twice_is_harmless(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()
        before = run.shape()

        assert harness.make_backend().open_gates(run.launch, run.ref)
        assert run.shape() == before

    def test_every_replica_sees_exactly_its_plan(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG, workers=2))
        run.start()

        for pod in run.launch.pods:
            wanted = plan_environment(run.launch, pod)
            assert wanted["TRAINING_GATEWAY_GPUS"]
            assert harness.environment_of(run.launch, pod.rank) == wanted
            replica = run.replica(pod.rank)
            assert replica is not None
            assert replica.node == pod.node

    def test_nodes_that_only_the_flavor_tolerates_are_no_hindrance(self, harness: Harness) -> None:
        run = Run(harness, harness.keep_out(harness.launch(Kind.LONG)))
        assert run.backend.create(run.launch) == run.ref, "a retry meets its own object"
        run.start()

        nodes = [replica.node for replica in run.seen().replicas]
        assert nodes == [pod.node for pod in run.launch.pods]

    def test_a_recreated_replica_is_opened_alone_onto_its_old_place(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.RESTARTING))
        run.start()
        first, second = run.replica(0), run.replica(1)
        assert first is not None
        assert second is not None

        harness.recreate(run.launch, 1)
        harness.wait_until(
            lambda: run.phase(1) is ReplicaPhase.GATED, "the new replica to be gated"
        )
        harness.pass_time()
        assert run.phase(1) is ReplicaPhase.GATED
        run.open()
        run.wait_for_started()

        again = run.replica(1)
        assert again is not None
        assert again.node == second.node
        assert again.uid != second.uid
        assert run.replica(0) == first, "the others run on"
        wanted = plan_environment(run.launch, run.launch.pods[1])
        assert harness.environment_of(run.launch, 1) == wanted
        assert run.seen().recreations >= 1

    def test_a_restarted_gateway_sees_the_running_gang(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()

        assert shape(harness.make_backend().observe(run.launch, run.ref)) == run.shape()
