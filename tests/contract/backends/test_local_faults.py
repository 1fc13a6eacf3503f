"""What becomes of local gangs when something is killed, vanishes or is forgotten."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.backends.base import ForeignObject, ObjectOutcome, ReplicaPhase
from gateway.backends.local.liveness import identify
from gateway.errors import ClusterUnreachable
from tests.contract.backends.harness import Kind
from tests.contract.backends.launches import a_launch, a_manifest
from tests.contract.backends.local_harness import LocalHarness, local_harness
from tests.contract.backends.steps import Run


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[LocalHarness]:
    with local_harness(tmp_path) as harness:
        yield harness


def is_running(pid: int) -> bool:
    found = identify(pid)
    return found is not None and found.is_alive()


def started(harness: LocalHarness, kind: Kind = Kind.LONG) -> tuple[Run, list[int]]:
    run = Run(harness, harness.launch(kind))
    run.start()
    return run, [harness.pid_of(run.launch, pod.rank) for pod in run.launch.pods]


def test_replicas_do_not_outlive_a_killed_supervisor(harness: LocalHarness) -> None:
    run, pids = started(harness)
    (supervisor,) = harness.supervisors()

    os.kill(supervisor, signal.SIGKILL)
    harness.wait_until(lambda: not any(map(is_running, pids)), "the replicas to die")
    run.wait_for_gone()

    seen = run.seen()
    assert seen.outcome is ObjectOutcome.FAILED
    assert seen.is_lost
    assert "supervisor" in seen.message
    assert run.phases() == [ReplicaPhase.ABSENT] * 2


def test_what_a_replica_started_does_not_outlive_a_killed_supervisor(harness: LocalHarness) -> None:
    run = Run(harness, a_launch(a_manifest(0, ["sh", "-c", "sleep 60 & echo $!; wait"])))
    run.start()
    lines = run.backend.logs(run.launch, 0, follow=True, tail=None)
    grandchild = int(next(lines))
    assert is_running(grandchild)

    os.kill(harness.supervisors()[0], signal.SIGKILL)

    harness.wait_until(lambda: not is_running(grandchild), "the grandchild to die")


def test_what_had_ended_before_the_supervisor_died_keeps_its_result(harness: LocalHarness) -> None:
    run, _ = started(harness)
    harness.finish(run.launch, 1)
    harness.wait_until(lambda: run.phase(1) is ReplicaPhase.SUCCEEDED, "the worker to end")

    os.kill(harness.supervisors()[0], signal.SIGKILL)
    run.wait_for_gone()

    assert run.phases() == [ReplicaPhase.ABSENT, ReplicaPhase.SUCCEEDED]


def test_a_killed_rank_fails_the_gang_with_the_signals_code(harness: LocalHarness) -> None:
    run, pids = started(harness)

    os.kill(pids[1], signal.SIGKILL)
    run.wait_for_outcome(ObjectOutcome.FAILED)
    run.wait_for_gone()

    failed = run.replica(1)
    assert failed is not None
    assert failed.exit_code == 137
    assert not run.seen().is_lost
    assert not any(map(is_running, pids))


def test_a_gang_without_a_gateway_ends_itself_and_counts_as_lost(tmp_path: Path) -> None:
    with local_harness(tmp_path, orphan_seconds=0.6) as harness:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()
        pids = [harness.pid_of(run.launch, pod.rank) for pod in run.launch.pods]

        harness.wait_until(lambda: not any(map(is_running, pids)), "the orphans to end")
        harness.wait_until(lambda: run.seen().is_lost, "the supervisor's last word")

        seen = run.seen()
        assert seen.outcome is ObjectOutcome.FAILED
        assert "no gateway" in seen.message


def test_a_gateway_that_shows_itself_keeps_its_gang_alive(tmp_path: Path) -> None:
    with local_harness(tmp_path, orphan_seconds=0.6) as harness:
        run = Run(harness, harness.launch(Kind.LONG))
        run.start()
        for _ in range(4):
            harness.pass_time()
            run.backend.is_reachable()
            harness.make_backend().heartbeat()

        assert run.phases() == [ReplicaPhase.READY] * 2


def test_a_gang_outlives_the_program_that_launched_it(harness: LocalHarness) -> None:
    launch = harness.launch(Kind.LONG)
    run = Run(harness, launch)
    script = (
        "import os, pathlib, signal, sys\n"
        "from gateway.backends.base import ObjectRef\n"
        "from gateway.backends.local import LocalBackend\n"
        "backend = LocalBackend(pathlib.Path(sys.argv[1]), [])\n"
        "backend.unsuspend(None, ObjectRef(namespace='default', name=sys.argv[2],"
        " uid=sys.argv[3]))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    arguments = [str(harness.state), launch.object_name, run.ref.uid]
    ended = subprocess.run([sys.executable, "-c", script, *arguments], check=False)
    assert ended.returncode == -signal.SIGKILL

    run.open()
    run.wait_for_started()

    assert len(harness.supervisors()) == 1


def test_a_supervisor_that_died_at_once_is_started_again(harness: LocalHarness) -> None:
    run = Run(harness, harness.launch(Kind.LONG))
    started_mark = harness.attempt(run.launch) / "started"
    started_mark.write_text("{}")  # as if the supervisor were killed before its first word
    os.utime(started_mark, (0, 0))

    run.open()
    run.wait_for_started()


def test_a_second_supervisor_leaves_the_gang_alone(harness: LocalHarness) -> None:
    run, _ = started(harness)
    before = run.shape()
    module = "gateway.backends.local.supervisor"

    second = subprocess.run(
        [sys.executable, "-m", module, str(harness.attempt(run.launch))], check=False, timeout=10
    )

    assert second.returncode == 0
    assert run.shape() == before


def test_a_supervisor_starts_nothing_that_was_not_unsuspended(harness: LocalHarness) -> None:
    run = Run(harness, harness.launch(Kind.LONG))
    module = "gateway.backends.local.supervisor"
    subprocess.run(
        [sys.executable, "-m", module, str(harness.attempt(run.launch))], check=True, timeout=10
    )

    assert not harness.supervisors()
    assert run.seen().is_suspended


def test_a_pid_that_was_used_again_is_not_taken_for_the_supervisor(harness: LocalHarness) -> None:
    run, _ = started(harness)
    os.kill(harness.supervisors()[0], signal.SIGKILL)
    file = harness.attempt(run.launch) / "supervisor.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "pid": os.getpid()}))

    run.wait_for_gone()
    assert run.seen().is_lost


def test_an_object_that_cannot_be_read_is_foreign(harness: LocalHarness) -> None:
    launch = harness.launch(Kind.LONG)
    harness.plant_foreign(launch)
    (harness.attempt(launch) / "launch.json").write_text('{"uid": "x", "repl')

    with pytest.raises(ForeignObject) as caught:
        harness.make_backend().create(launch)
    assert "requeue" in caught.value.hint


def test_a_half_written_object_of_a_killed_gateway_is_no_object(harness: LocalHarness) -> None:
    launch = harness.launch(Kind.LONG)
    backend = harness.make_backend()
    (harness.state / "incoming" / "half").mkdir()
    os.utime(harness.state / "incoming" / "half", (0, 0))

    assert backend.find(launch) is None
    harness.make_backend()
    assert not list((harness.state / "incoming").iterdir())


def test_a_state_folder_that_cannot_be_used_is_a_cluster_out_of_reach(
    harness: LocalHarness,
) -> None:
    launch = harness.launch(Kind.LONG)
    backend = harness.make_backend()
    (harness.state / "attempts").rmdir()
    (harness.state / "attempts").touch()

    with pytest.raises(ClusterUnreachable):
        backend.create(launch)
    (harness.state / "attempts").unlink()


def test_logs_are_kept_when_the_object_is_deleted(harness: LocalHarness) -> None:
    run = Run(harness, harness.launch(Kind.SUCCEEDING))
    run.start()
    run.wait_for_outcome(ObjectOutcome.SUCCEEDED)
    run.backend.delete(run.ref)

    lines = list(harness.make_backend().logs(run.launch, 1, follow=True, tail=None))

    assert harness.log_line(run.launch, 1) in lines
    assert not harness.attempt(run.launch).exists()


def test_a_followed_log_ends_with_its_replica(harness: LocalHarness) -> None:
    run = Run(harness, harness.launch(Kind.LONG))
    run.start()
    lines = run.backend.logs(run.launch, 0, follow=True, tail=None)
    assert next(lines) == harness.log_line(run.launch, 0)

    harness.finish(run.launch, 0)

    assert len(list(lines)) == 1


def test_replicas_do_not_see_the_gateways_secrets(
    harness: LocalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_TOKEN", "secret")
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    run, _ = started(harness)

    assert "secret" not in harness.left_by(run.launch, 0).values()


def test_a_gang_in_a_folder_that_was_deleted_ends(harness: LocalHarness) -> None:
    run, pids = started(harness)

    harness.delete_externally(run.launch)

    harness.wait_until(lambda: not any(map(is_running, pids)), "the replicas to end")
    run.wait_for_gone()
    assert not run.seen().exists
