"""How a local gang is judged: starts, restarts, outcomes and endings, without any program."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.backends.base import ReplicaPhase
from gateway.backends.local.gang import FAREWELL_SECONDS, TERM_SECONDS, Ending
from gateway.backends.local.records import GangStatus
from tests.contract.backends.launches import a_manifest
from tests.unit.backends.a_gang import PlayedGang

ABSENT, GATED, READY = ReplicaPhase.ABSENT, ReplicaPhase.GATED, ReplicaPhase.READY
SUCCEEDED, FAILED, TERMINATING = (
    ReplicaPhase.SUCCEEDED,
    ReplicaPhase.FAILED,
    ReplicaPhase.TERMINATING,
)
TERM, KILL = signal.SIGTERM, signal.SIGKILL


def manifest(workers: int = 1, policy: str = "Never", **spec: Any) -> dict[str, Any]:
    found = a_manifest(workers, ["python", "train.py"], restart_policy=policy)
    if not spec.pop("has_master", True):
        del found["spec"]["pytorchReplicaSpecs"]["Master"]
    found["spec"] |= spec
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def opened(folder: Path, *args: Any, most_restarts: int = 3, **more: Any) -> PlayedGang:
    """Give a gang whose every replica runs."""
    played = PlayedGang(folder, manifest(*args, **more), most_restarts=most_restarts)
    played.open(*range(len(played.phases)))
    assert set(played.phases) == {READY}
    return played


def test_nothing_starts_before_the_last_gate_is_open(folder: Path) -> None:
    played = PlayedGang(folder, manifest(3))
    for rank in (2, 0, 1):
        played.open(rank)
        assert played.started == []
        assert played.phases == [GATED] * 4

    played.open(3)

    assert played.phases == [READY] * 4
    assert [program.log.name for program in played.started] == ["0.log", "1.log", "2.log", "3.log"]


def test_a_program_sees_its_rendezvous_and_the_plan_wins_over_the_manifest(folder: Path) -> None:
    document = a_manifest(0, ["python", "-u"], env={"TRAINING_GATEWAY_GPUS": "mine", "A": "1"})
    played = PlayedGang(folder, document)
    played.open(0, TRAINING_GATEWAY_GPUS="GPU-1")

    [program] = played.started
    assert program.command == [sys.executable, "-u"]
    assert program.environment["TRAINING_GATEWAY_GPUS"] == "GPU-1"
    assert (program.environment["A"], program.environment["MASTER_PORT"]) == ("1", "20123")


@pytest.mark.parametrize("code", [1, 2, 126, 127, 128, 137, 143, 255])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_one_failure_fails_the_gang_and_ends_the_others(folder: Path, rank: int, code: int) -> None:
    played = opened(folder, 2)

    played.end(rank, code)

    name = "Master 0" if rank == 0 else f"Worker {rank - 1}"
    assert played.outcome == ("failed", f"{name} exited with code {code}")
    assert played.gang.status.replicas[rank].exit_code == code
    others = [played.program(other) for other in range(3) if other != rank]
    assert [program.signals for program in others] == [[TERM], [TERM]]


def test_the_first_failed_rank_is_named_when_several_fail_at_once(folder: Path) -> None:
    played = opened(folder, 2)
    played.started[2].code = 3
    played.started[1].code = 4
    played.step()

    assert played.outcome == ("failed", "Worker 0 exited with code 4")
    assert played.phases == [TERMINATING, FAILED, FAILED]


@pytest.mark.parametrize(
    ("has_master", "elastic", "ended", "outcome"),
    [
        (True, None, [0], "succeeded"),
        (True, None, [1, 2], "undecided"),
        (True, {"maxRestarts": 1}, [1, 2], "undecided"),
        (True, {"maxRestarts": 1}, [0], "succeeded"),
        (False, None, [0], "undecided"),
        (False, None, [0, 1, 2], "succeeded"),
        (False, {"maxRestarts": 1}, [2], "succeeded"),
        (False, {}, [0], "succeeded"),
    ],
)
def test_success_is_the_masters_or_all_workers_or_any_elastic_one(
    folder: Path, elastic: object, ended: list[int], outcome: str, *, has_master: bool
) -> None:
    more: dict[str, Any] = {} if elastic is None else {"elasticPolicy": elastic}
    played = opened(folder, 2 if has_master else 3, has_master=has_master, **more)

    for rank in ended:
        played.end(rank, 0)

    assert played.outcome == (outcome, "")


def test_a_failure_at_the_instant_of_the_masters_success_counts(folder: Path) -> None:
    played = opened(folder)
    for program, code in zip(played.started, (0, 9), strict=True):
        program.code = code
    played.step()

    assert played.outcome == ("failed", "Worker 0 exited with code 9")


def test_workers_may_finish_for_a_while_after_the_masters_success(folder: Path) -> None:
    played = opened(folder, 2)
    played.end(0, 0)
    played.step(FAREWELL_SECONDS - 0.1)
    assert played.phases == [SUCCEEDED, READY, READY]
    played.end(1, 0)

    played.step(0.2)

    assert played.phases == [SUCCEEDED, SUCCEEDED, TERMINATING]
    assert [program.signals for program in played.started] == [[], [], [TERM]]


def test_a_worker_that_fails_in_the_farewell_changes_nothing(folder: Path) -> None:
    played = opened(folder)
    played.end(0, 0)

    played.end(1, 1)

    assert played.outcome == ("succeeded", "")
    assert played.phases == [SUCCEEDED, FAILED]
    assert played.gang.is_over()


def test_term_comes_once_and_then_kill_again_and_again(folder: Path) -> None:
    played = opened(folder, 0)
    played.gang.stop(played.now)
    for _ in range(3):
        played.step(TERM_SECONDS / 4)
    assert played.started[0].signals == [TERM]

    for _ in range(3):
        played.step(TERM_SECONDS)
    assert played.started[0].signals == [TERM, KILL, KILL, KILL]
    played.end(0, 137)
    assert (played.phases, played.gang.is_over()) == ([ABSENT], True)


@pytest.mark.parametrize(
    ("told", "after_seconds", "expected"),
    [
        (False, 0.0, TERM),
        (True, 0.0, None),
        (True, TERM_SECONDS - 0.1, None),
        (True, TERM_SECONDS, KILL),
        (False, TERM_SECONDS, KILL),
        (True, 1e6, KILL),
    ],
)
def test_a_signal_is_due_by_time_alone(
    after_seconds: float, expected: object, *, told: bool
) -> None:
    assert Ending(term_at=10.0, is_told=told).due_signal(10.0 + after_seconds) == expected


@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_replica_that_was_told_to_go_leaves_no_result(folder: Path, code: int) -> None:
    played = opened(folder, 0)
    played.gang.stop(played.now)
    played.step()

    played.end(0, code)

    assert played.phases == [ABSENT]
    assert played.outcome == ("stopped", "stopped")


def test_a_stop_cuts_the_farewell_short_and_keeps_the_result(folder: Path) -> None:
    played = opened(folder)
    played.end(0, 0)

    played.gang.stop(played.now)
    played.step()

    assert played.started[1].signals == [TERM]
    assert played.outcome == ("succeeded", "")


def test_the_first_outcome_stays_whatever_comes_later(folder: Path) -> None:
    played = opened(folder)
    played.gang.orphan(played.now)
    for later in (played.gang.stop, played.gang.orphan):
        later(played.now)
    played.end(0, 0)
    played.end(1, 1)

    assert played.outcome == ("orphaned", "no gateway was there for 60 s")


@pytest.mark.parametrize(
    ("policy", "code", "is_recreated"),
    [
        ("Never", 137, False),
        ("OnFailure", 1, True),
        ("OnFailure", 137, True),
        ("Always", 1, True),
        ("ExitCode", 1, False),
        ("ExitCode", 127, False),
        ("ExitCode", 128, True),
        ("ExitCode", 137, True),
        ("", 1, False),
        ("onfailure", 1, False),
    ],
)
def test_a_failed_replica_comes_back_gated_where_its_policy_says_so(
    folder: Path, policy: str, code: int, *, is_recreated: bool
) -> None:
    played = opened(folder, 1, policy)

    played.end(1, code)

    assert played.phases == ([READY, GATED] if is_recreated else [TERMINATING, FAILED])
    replica = played.gang.status.replicas[1]
    assert (replica.generation, played.gang.status.recreations) == (is_recreated, is_recreated)
    assert replica.exit_code == (None if is_recreated else code)


@pytest.mark.parametrize("policy", ["OnFailure", "Always", "ExitCode"])
def test_a_success_is_never_repeated(folder: Path, policy: str) -> None:
    played = opened(folder, 1, policy)
    played.end(1, 0)

    assert played.phases == [READY, SUCCEEDED]
    assert played.gang.status.recreations == 0


def test_a_successor_needs_a_gate_of_its_own_generation(folder: Path) -> None:
    played = opened(folder, 1, "OnFailure")
    played.end(1, 1)
    played.step()
    assert played.phases == [READY, GATED], "the plan of its predecessor opens nothing"

    played.open(1, generation=1)

    assert played.phases == [READY, READY]
    assert len(played.started) == 3


@pytest.mark.parametrize("most", [0, 1, 4])
def test_restarts_are_counted_for_the_whole_gang(folder: Path, most: int) -> None:
    played = opened(folder, 1, "OnFailure", most_restarts=most)
    for number in range(most):
        rank = number % 2
        played.program(rank).code = 1
        played.step()
        replica = played.gang.status.replicas[rank]
        played.open(rank, generation=replica.generation)

    played.program(1).code = 1
    played.step()

    assert played.gang.status.recreations == most
    assert played.outcome == ("failed", "Worker 0 exited with code 1")


def test_a_gated_successor_is_gone_when_the_gang_ends(folder: Path) -> None:
    played = opened(folder, 1, "OnFailure")
    played.end(1, 1)
    played.gang.stop(played.now)
    played.step()
    played.open(1, generation=1)
    played.end(0, 143)

    assert played.phases == [ABSENT, ABSENT]
    assert len(played.started) == 2, "an opened gate starts nothing after the stop"
    assert played.gang.is_over()


def test_a_program_that_cannot_start_fails_the_gang_and_the_rest_goes(folder: Path) -> None:
    document = manifest(1)
    sets = document["spec"]["pytorchReplicaSpecs"]
    worker = {**sets["Worker"]["template"]["spec"]["containers"][0], "command": ["missing"]}
    sets["Worker"]["template"] = {"spec": {"containers": [worker]}}
    played = PlayedGang(folder, document)
    played.missing = {"missing"}
    played.open(0, 1)
    played.step()

    words = "Worker 0 cannot start: [Errno 2] No such file or directory: 'missing'"
    assert played.outcome == ("failed", words)
    assert played.gang.status.replicas[1].exit_code == 126
    assert played.started[0].signals == [TERM]


events = st.lists(
    st.tuples(st.sampled_from(["end", "stop", "orphan", "wait", "open"]), st.integers(0, 3)),
    max_size=12,
)


@settings(max_examples=60)
@given(events, st.sampled_from(["Never", "OnFailure", "ExitCode"]))
def test_no_course_of_events_ends_twice_or_leaves_a_program(
    tmp_path_factory: pytest.TempPathFactory, course: list[tuple[str, int]], policy: str
) -> None:
    played = opened(tmp_path_factory.mktemp("gang"), 1, policy)
    outcomes = []
    for what, number in course:
        if what == "end":
            played.program(number % 2).code = (0, 1, 137, 0)[number]
        elif what in {"stop", "orphan"}:
            getattr(played.gang, what)(played.now)
        elif what == "open":
            rank = number % 2
            played.open(rank, generation=played.gang.status.replicas[rank].generation)
        played.step(number)
        outcomes.append(played.outcome[0])
        assert GangStatus.from_json(played.stored()) == played.gang.status

    decided = list(dict.fromkeys(outcome for outcome in outcomes if outcome != "undecided"))
    assert len(decided) <= 1
    played.gang.stop(played.now)
    for program in played.started:
        program.code = 143 if program.code is None else program.code
    played.step(TERM_SECONDS)
    assert played.gang.is_over()
    assert not {READY, GATED, TERMINATING} & set(played.phases)
