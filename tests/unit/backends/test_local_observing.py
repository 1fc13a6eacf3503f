"""What a gateway concludes from an attempt's folder and from who really runs."""

import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gateway.backends.base import ObjectOutcome, Observation, ReplicaPhase
from gateway.backends.durable import write_json
from gateway.backends.local.folder import AttemptFolder, StateFolder
from gateway.backends.local.liveness import Running, identify
from gateway.backends.local.observing import observe_attempt, observe_leaving
from gateway.backends.local.records import ORPHANED, STOPPED, GangStatus, ReplicaStatus

UID = "u-1"
RUNNING_PHASES = [ReplicaPhase.GATED, ReplicaPhase.READY, ReplicaPhase.TERMINATING]
ENDED_PHASES = [ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED, ReplicaPhase.ABSENT]


def alive() -> Running:
    """Give a program that runs: this one."""
    own = identify(os.getpid())
    assert own is not None
    return own


def dead() -> Running:
    """Give a program whose pid belongs to somebody else by now."""
    return replace(alive(), started_ticks=1)


def replica(rank: int, phase: ReplicaPhase, **more: object) -> ReplicaStatus:
    found = ReplicaStatus(pod_set="Worker", index=rank, rank=rank, node=f"n{rank}", phase=phase)
    for name, value in more.items():
        setattr(found, name, value)
    return found


class Attempt:
    """An attempt's folder, written as its gateway and supervisor would."""

    def __init__(self, path: Path, *, is_started: bool = True, is_stopped: bool = False) -> None:
        self.state = StateFolder(path)
        self.folder: AttemptFolder = self.state.attempt("default", "digits")
        (self.folder.path / "plans").mkdir(parents=True)
        if is_started:
            self.folder.mark(self.folder.started)
        if is_stopped:
            self.folder.mark(self.folder.stopped)

    def supervised_by(self, program: Running) -> None:
        """Let a supervisor have introduced itself."""
        write_json(self.folder.path / "supervisor.json", asdict(program))
        write_json(self.state.supervisor_file(UID), asdict(program))

    def says(self, *replicas: ReplicaStatus, **status: object) -> None:
        """Let the supervisor have written this."""
        found = GangStatus(replicas=list(replicas))
        for name, value in status.items():
            setattr(found, name, value)
        self.folder.write_status(found)

    def seen(self) -> Observation:
        """Look at it."""
        return observe_attempt(self.folder, UID)


@pytest.mark.parametrize(
    ("is_started", "is_stopped", "is_suspended"),
    [(False, False, True), (True, False, False), (True, True, True), (False, True, True)],
)
def test_marks_alone_say_whether_it_is_suspended(
    tmp_path: Path, *, is_started: bool, is_stopped: bool, is_suspended: bool
) -> None:
    attempt = Attempt(tmp_path, is_started=is_started, is_stopped=is_stopped)

    assert attempt.seen() == Observation(exists=True, uid=UID, is_suspended=is_suspended)


@pytest.mark.parametrize(
    ("word", "outcome", "is_lost", "message"),
    [
        ("undecided", ObjectOutcome.UNDECIDED, False, "words"),
        ("succeeded", ObjectOutcome.SUCCEEDED, False, "words"),
        ("failed", ObjectOutcome.FAILED, False, "words"),
        (ORPHANED, ObjectOutcome.FAILED, True, "words"),
        (STOPPED, ObjectOutcome.UNDECIDED, False, ""),
        ("a newer release's word", ObjectOutcome.UNDECIDED, False, "words"),
    ],
)
def test_a_supervisors_last_word_is_taken_as_it_is(
    tmp_path: Path, word: str, outcome: ObjectOutcome, message: str, *, is_lost: bool
) -> None:
    attempt = Attempt(tmp_path)
    for supervisor in (alive(), dead()):
        attempt.supervised_by(supervisor)
        is_over = supervisor == dead()
        attempt.says(outcome=word, message="words", is_final=is_over, recreations=2)
        seen = attempt.seen()

        assert (seen.outcome, seen.is_lost, seen.message) == (outcome, is_lost, message)
        assert (seen.exists, seen.uid, seen.recreations) == (True, UID, 2)


def test_a_supervisor_that_vanished_without_a_word_lost_its_gang(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(dead())

    seen = attempt.seen()

    assert (seen.outcome, seen.is_lost) == (ObjectOutcome.FAILED, True)
    assert seen.message == "the gang's supervisor vanished"


@pytest.mark.parametrize("phase", RUNNING_PHASES)
def test_replicas_that_went_with_their_supervisor_are_gone(
    tmp_path: Path, phase: ReplicaPhase
) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(dead())
    attempt.says(replica(0, phase, running=dead()), replica(1, phase))

    seen = attempt.seen()

    assert [each.phase for each in seen.replicas] == [ReplicaPhase.ABSENT] * 2
    assert seen.are_pods_gone
    assert seen.is_lost


@pytest.mark.parametrize("phase", ENDED_PHASES)
def test_what_had_ended_keeps_its_phase_and_code(tmp_path: Path, phase: ReplicaPhase) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(dead())
    attempt.says(replica(0, phase, exit_code=7, message="m"))

    [seen] = attempt.seen().replicas

    assert (seen.phase, seen.exit_code, seen.message) == (phase, 7, "m")


@pytest.mark.parametrize(("word", "is_lost"), [("failed", False), ("succeeded", False)])
def test_an_outcome_that_stood_before_the_supervisor_died_counts(
    tmp_path: Path, word: str, *, is_lost: bool
) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(dead())
    attempt.says(replica(0, ReplicaPhase.READY), outcome=word, message="first")

    seen = attempt.seen()

    assert (seen.outcome.value, seen.message, seen.is_lost) == (word, "first", is_lost)
    assert seen.are_pods_gone


@pytest.mark.parametrize(("is_started", "is_stopped"), [(True, True), (False, False)])
def test_a_gang_that_was_stopped_or_never_started_is_not_lost(
    tmp_path: Path, *, is_started: bool, is_stopped: bool
) -> None:
    attempt = Attempt(tmp_path, is_started=is_started, is_stopped=is_stopped)
    attempt.supervised_by(dead())
    attempt.says(replica(0, ReplicaPhase.READY))

    seen = attempt.seen()

    assert (seen.outcome, seen.is_lost, seen.message) == (ObjectOutcome.UNDECIDED, False, "")
    assert seen.are_pods_gone


def test_a_gated_replica_is_on_no_node_yet_and_each_generation_has_its_uid(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(alive())
    attempt.says(
        replica(0, ReplicaPhase.READY, generation=2), replica(1, ReplicaPhase.GATED, generation=1)
    )
    first, second = attempt.seen().replicas

    assert (first.node, first.uid) == ("n0", "u-1-0-2")
    assert (second.node, second.uid) == ("", "u-1-1-1")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"replicas": 3}', '{"replicas": [{}]}'])
def test_a_status_that_cannot_be_read_is_no_status(tmp_path: Path, text: str) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(alive())
    (attempt.folder.path / "status.json").write_text(text)

    assert attempt.seen() == Observation(exists=True, uid=UID)


def leaving(attempt: Attempt) -> Observation:
    return observe_leaving(attempt.state, attempt.folder, UID)


def test_an_object_that_is_gone_with_its_supervisor_holds_nothing(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    assert leaving(attempt) == Observation(exists=False, uid=UID)

    attempt.supervised_by(dead())
    attempt.says(replica(0, ReplicaPhase.READY, running=dead()))
    seen = leaving(attempt)
    assert not seen.exists
    assert [each.phase for each in seen.replicas] == [ReplicaPhase.ABSENT]


def test_while_its_supervisor_lives_what_it_last_said_holds(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(alive())
    attempt.says(replica(0, ReplicaPhase.READY), replica(1, ReplicaPhase.SUCCEEDED))

    seen = leaving(attempt)

    assert [each.phase for each in seen.replicas] == [ReplicaPhase.READY, ReplicaPhase.SUCCEEDED]
    assert not seen.are_pods_gone


def test_a_living_supervisor_without_a_folder_stands_for_all_that_may_run(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(alive())
    gone = attempt.state.kept("default", "digits", UID)

    seen = observe_leaving(attempt.state, gone, UID)

    assert [each.phase for each in seen.replicas] == [ReplicaPhase.TERMINATING]
    assert not seen.are_pods_gone


def test_the_same_look_twice_sees_the_same(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.supervised_by(dead())
    attempt.says(replica(0, ReplicaPhase.READY), replica(1, ReplicaPhase.FAILED, exit_code=1))

    assert attempt.seen() == attempt.seen()
    stored = attempt.folder.status()
    assert stored is not None
    assert stored.replicas[0].phase is ReplicaPhase.READY, "looking writes nothing"
