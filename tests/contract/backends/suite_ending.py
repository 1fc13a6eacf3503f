"""Conformance: results, stopping, deleting, and logs."""

from functools import partial

from gateway.backends.base import ObjectOutcome, ReplicaPhase
from tests.contract.backends.harness import Harness, Kind
from tests.contract.backends.steps import Run


class EndingSuite:
    """Needs a `harness` fixture in the subclass."""

    def test_a_gang_whose_replicas_succeed_succeeds(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.SUCCEEDING))
        run.start()
        run.wait_for_outcome(ObjectOutcome.SUCCEEDED)
        run.wait_for_gone()

        assert run.phase(0) is ReplicaPhase.SUCCEEDED
        master = run.replica(0)
        assert master is not None
        assert master.exit_code == 0

    def test_one_failed_replica_fails_the_gang_with_its_code(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.FAILING))
        run.start()
        run.wait_for_outcome(ObjectOutcome.FAILED)
        run.backend.stop(run.launch, run.ref)
        run.wait_for_gone()

        failed = run.replica(1)
        assert failed is not None
        assert failed.phase is ReplicaPhase.FAILED
        assert failed.exit_code == harness.failing_code
        assert run.seen().outcome is ObjectOutcome.FAILED, "the result outlives the stop"
        assert not run.seen().is_lost

    def test_the_masters_success_is_the_gangs_while_workers_run(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()

        harness.finish(run.launch, 0)
        run.wait_for_outcome(ObjectOutcome.SUCCEEDED)
        run.wait_for_gone()

        assert run.phase(0) is ReplicaPhase.SUCCEEDED

    def test_a_replica_that_still_runs_counts_as_not_gone(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()

        assert not run.seen().are_pods_gone

    def test_a_stopped_gang_goes_and_does_not_come_back(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.RESTARTING))
        run.start()

        run.backend.stop(run.launch, run.ref)
        run.wait_for_gone()
        run.backend.unsuspend(run.launch, run.ref)
        run.backend.open_gates(run.launch, run.ref)
        harness.pass_time()

        assert run.seen().are_pods_gone
        assert run.seen().outcome is ObjectOutcome.UNDECIDED

    def test_stopping_again_is_harmless(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()
        run.backend.stop(run.launch, run.ref)
        run.backend.stop(run.launch, run.ref)
        run.wait_for_gone()

        harness.make_backend().stop(run.launch, run.ref)

        assert run.seen().are_pods_gone

    def test_what_was_never_started_can_be_stopped_and_stays_so(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.SUCCEEDING))

        run.backend.stop(run.launch, run.ref)
        run.backend.unsuspend(run.launch, run.ref)
        run.backend.open_gates(run.launch, run.ref)
        harness.pass_time()

        assert run.seen().are_pods_gone
        assert not harness.has_started(run.launch)

    def test_a_deleted_object_is_gone_and_deleting_again_is_harmless(
        self, harness: Harness
    ) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()
        run.backend.delete(run.ref)
        harness.wait_until(
            lambda: harness.uid_in_cluster(run.launch) is None, "the object to be gone"
        )

        run.backend.delete(run.ref)
        run.wait_for_gone()

        assert not run.seen().exists
        assert run.backend.find(run.launch) is None

    def test_a_deletion_behind_our_back_is_seen(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()

        harness.delete_externally(run.launch)
        harness.wait_until(lambda: not run.seen().exists, "the deletion to be seen")
        run.wait_for_gone()

        assert run.seen().outcome is ObjectOutcome.UNDECIDED
        assert not run.backend.open_gates(run.launch, run.ref)
        run.backend.stop(run.launch, run.ref)

    def test_the_log_of_a_rank_is_its_own(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()
        wanted = [harness.log_line(run.launch, pod.rank) for pod in run.launch.pods]
        assert wanted[0] != wanted[1]

        for rank, line in enumerate(wanted):
            harness.wait_until(partial(says, run, rank, line), f"rank {rank} to say its line")
        assert not says(run, 0, wanted[1])

    def test_a_followed_log_begins_while_the_replica_runs(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()
        wanted = harness.log_line(run.launch, 0)

        lines = run.backend.logs(run.launch, 0, follow=True, tail=None)

        assert next(lines) == wanted

    def test_the_tail_of_a_log_has_that_many_lines(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.SUCCEEDING))
        run.start()
        run.wait_for_outcome(ObjectOutcome.SUCCEEDED)

        whole = read(run, 0)
        assert len(whole) >= 2
        assert list(run.backend.logs(run.launch, 0, follow=False, tail=1)) == whole[-1:]
        assert list(run.backend.logs(run.launch, 0, follow=False, tail=1000)) == whole


def read(run: Run, rank: int) -> list[str]:
    """Read what a rank said so far."""
    return list(run.backend.logs(run.launch, rank, follow=False, tail=None))


def says(run: Run, rank: int, line: str) -> bool:
    """Whether a rank's log has this line."""
    return line in read(run, rank)
