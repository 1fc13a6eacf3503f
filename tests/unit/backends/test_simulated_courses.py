"""A virtual gang's course: the same however often somebody looks, and lost by no fault."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.backends.base import (
    GONE_PHASES,
    ForeignObject,
    ObjectOutcome,
    ObjectRef,
    Observation,
    ReplicaPhase,
)
from gateway.backends.simulated import ManualClock, SimulatedBackend
from gateway.backends.simulated.objects import VirtualCluster, from_json, to_json
from gateway.backends.simulated.script import Outcome, Script, read_script
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.core.vocabulary import DeviceHealth
from gateway.errors import ClusterRejected, ClusterUnreachable, NotFound
from tests.contract.backends.launches import a_launch, a_manifest

FLEET = virtual_fleet("2xdgx-h100")
PREFIX = "simulated.training-gateway.io/"
DEFAULTS = Script()
seconds = st.integers(0, 20).map(lambda tenths: tenths / 2)
scripts = st.builds(
    Script,
    outcome=st.sampled_from([each for each in Outcome if each is not Outcome.REJECTED]),
    appear_seconds=st.just(0.0),
    start_seconds=seconds,
    run_seconds=seconds,
    fail_index=st.integers(0, 2),
    delete_seconds=seconds,
)


class Gang:
    """One launch of three ranks on a virtual cluster."""

    def __init__(self, script: Script = DEFAULTS, state_file: Path | None = None) -> None:
        self.clock = ManualClock()
        self.launch = a_launch(a_manifest(2), nodes=FLEET)
        self.backend = SimulatedBackend(FLEET, state_file, self.clock, defaults=script)
        self.ref: ObjectRef = self.backend.create(self.launch)

    def started(self) -> "Gang":
        """Unsuspend and open it."""
        self.backend.unsuspend(self.launch, self.ref)
        assert self.backend.open_gates(self.launch, self.ref)
        return self

    def seen(self, after_seconds: float = 0.0) -> Observation:
        """Observe some time later."""
        self.clock.advance(after_seconds)
        return self.backend.observe(self.launch, self.ref)

    def phases(self) -> list[ReplicaPhase]:
        """Observe the phases by rank."""
        return [replica.phase for replica in self.seen().replicas]


@settings(max_examples=60)
@given(scripts, st.lists(seconds, max_size=8))
def test_it_does_not_matter_how_often_somebody_looks(script: Script, steps: list[float]) -> None:
    watched, alone = Gang(script).started(), Gang(script).started()
    for step in steps:
        watched.seen(step)

    assert alone.seen(sum(steps)) == watched.seen()


@settings(max_examples=60)
@given(scripts, st.lists(seconds, max_size=8))
def test_what_has_ended_stays_ended_and_an_outcome_stands(
    script: Script, steps: list[float]
) -> None:
    gang = Gang(script).started()
    before = gang.seen()
    for step in steps:
        after = gang.seen(step)
        for old, new in zip(before.replicas, after.replicas, strict=True):
            if old.phase in GONE_PHASES:
                assert new == old
        if before.outcome is not ObjectOutcome.UNDECIDED:
            assert (after.outcome, after.message) == (before.outcome, before.message)
        before = after


@settings(max_examples=60)
@given(scripts, seconds, seconds)
def test_a_stop_frees_everything_after_the_time_that_pods_linger(
    script: Script, ran: float, after: float
) -> None:
    gang = Gang(script).started()
    gang.clock.advance(ran)
    gang.backend.stop(gang.launch, gang.ref)

    assert gang.seen(script.delete_seconds).are_pods_gone
    assert gang.seen(after).are_pods_gone
    assert not gang.backend.open_gates(gang.launch, gang.ref) or gang.seen().are_pods_gone


@settings(max_examples=30)
@given(scripts, seconds)
def test_a_state_comes_back_from_its_file_as_it_was(script: Script, ran: float) -> None:
    gang = Gang(script).started()
    gang.backend.fail_node("dgx-h100-1")
    gang.seen(ran)
    gang.backend.delete(gang.ref)
    with gang.backend._ledger.reading() as cluster:
        assert from_json(json.loads(json.dumps(to_json(cluster)))) == cluster


@pytest.mark.parametrize("key", ["appear", "start", "run", "delete"])
@pytest.mark.parametrize(
    "text", ["", "x", "-1", "-0.5", "nan", "inf", "-inf", "1e999", "1,5", "1s"]
)
def test_no_duration_is_taken_that_cannot_be_meant(key: str, text: str) -> None:
    with pytest.raises(ClusterRejected) as caught:
        read_script({"metadata": {"annotations": {f"{PREFIX}{key}-seconds": text}}}, DEFAULTS)

    assert caught.value.value == text
    assert caught.value.pointer == (
        f"/metadata/annotations/simulated.training-gateway.io~1{key}-seconds"
    )
    assert caught.value.detail.startswith(f"{PREFIX}{key}-seconds is {text!r}: not a ")
    assert caught.value.hint == "correct or remove the annotation"


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("outcome", "Succeeded", "not one of succeeded, failed, never-starts, lost, rejected"),
        ("outcome", "", "not one of succeeded, failed, never-starts, lost, rejected"),
        ("fail-index", "-1", "not a rank from 0"),
        ("fail-index", "1.0", "not a rank from 0"),
        ("fail-index", "²", "not a rank from 0"),
        ("fail-index", "", "not a rank from 0"),
        ("run-second", "1", "no such script key"),
        ("", "1", "no such script key"),
    ],
)
def test_a_script_says_what_is_wrong_with_it(key: str, text: str, problem: str) -> None:
    with pytest.raises(ClusterRejected) as caught:
        read_script({"metadata": {"labels": {PREFIX + key: text}}}, DEFAULTS)

    assert caught.value.detail == f"{PREFIX}{key} is {text!r}: {problem}"


@pytest.mark.parametrize(
    ("metadata", "script"),
    [
        (None, DEFAULTS),
        ({}, DEFAULTS),
        ({"labels": None, "annotations": None}, DEFAULTS),
        ({"labels": {"team": "a"}, "annotations": {"x/run-seconds": "1"}}, DEFAULTS),
        ({"labels": {PREFIX + "run-seconds": "1"}}, replace(DEFAULTS, run_seconds=1.0)),
        ({"annotations": {PREFIX + "run-seconds": 2}}, replace(DEFAULTS, run_seconds=2.0)),
        (
            {
                "labels": {PREFIX + "fail-index": "1"},
                "annotations": {PREFIX + "fail-index": "2", PREFIX + "outcome": "failed"},
            },
            replace(DEFAULTS, fail_index=2, outcome=Outcome.FAILED),
        ),
    ],
)
def test_annotations_win_over_labels_and_both_over_the_defaults(
    metadata: dict[str, Any] | None, script: Script
) -> None:
    assert read_script({"metadata": metadata}, DEFAULTS) == script


Verb = Callable[[Gang], object]
VERBS: dict[str, Verb] = {
    "create": lambda gang: gang.backend.create(gang.launch),
    "unsuspend": lambda gang: gang.backend.unsuspend(gang.launch, gang.ref),
    "open_gates": lambda gang: gang.backend.open_gates(gang.launch, gang.ref),
    "stop": lambda gang: gang.backend.stop(gang.launch, gang.ref),
    "delete": lambda gang: gang.backend.delete(gang.ref),
}
READS: dict[str, Verb] = {
    "inventory": lambda gang: gang.backend.inventory(),
    "find": lambda gang: gang.backend.find(gang.launch),
    "hold": lambda gang: gang.backend.hold(gang.launch, gang.ref),
    "observe": lambda gang: gang.backend.observe(gang.launch, gang.ref),
    "logs": lambda gang: gang.backend.logs(gang.launch, 0, follow=False, tail=None),
}


@pytest.mark.parametrize("name", [*VERBS, *READS])
def test_a_cut_connection_refuses_each_call_and_changes_nothing(name: str) -> None:
    gang = Gang()
    before = gang.seen()
    gang.backend.set_unreachable(True)

    with pytest.raises(ClusterUnreachable, match="the virtual cluster is cut off"):
        (VERBS | READS)[name](gang)
    gang.backend.set_unreachable(False)
    assert gang.seen() == before


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_whose_answers_are_lost_has_acted_and_may_be_repeated(name: str) -> None:
    plain, faulty = Gang(), Gang()
    faulty.backend.lose_answers(name, 2)
    for step, take in VERBS.items():
        take(plain)
        for _ in range(2 if step == name else 0):
            with pytest.raises(ClusterUnreachable, match=f"the answer to {name} was lost"):
                take(faulty)
        take(faulty)

        assert faulty.seen() == plain.seen()


@pytest.mark.parametrize("name", ["unsuspend", "open_gates", "stop", "delete"])
def test_nothing_is_done_to_another_object_of_the_name(name: str) -> None:
    gang = Gang()
    gang.backend.delete_behind_our_back(gang.ref.name)
    uid = gang.backend.plant_foreign(gang.ref.name)

    VERBS[name](gang)

    assert gang.backend.uid_of(gang.ref.name) == uid
    assert not gang.seen().exists
    with pytest.raises(ForeignObject) as caught:
        gang.backend.find(gang.launch)
    assert (caught.value.value, caught.value.code) == (uid, "foreign_object")
    assert list(gang.backend.logs(gang.launch, 0, follow=False, tail=None)) == []


def test_a_recreated_pod_is_gated_and_opened_alone_onto_its_old_place() -> None:
    gang = Gang().started()
    place = gang.seen().replicas[1]
    gang.backend.recreate_pod(gang.ref.name, 1)
    assert gang.phases()[1] is ReplicaPhase.GATED

    assert gang.backend.open_gates(gang.launch, gang.ref)

    seen = gang.seen(DEFAULTS.start_seconds)
    assert (seen.replicas[1].node, seen.recreations) == (place.node, 1)
    assert seen.replicas[1].uid != place.uid
    assert [replica.phase for replica in seen.replicas] == [ReplicaPhase.READY] * 3


def test_a_recreated_pod_runs_its_whole_course_again() -> None:
    gang = Gang(Script(outcome=Outcome.FAILED, fail_index=1, start_seconds=0, run_seconds=10))
    gang.started().clock.advance(9)
    gang.backend.recreate_pod(gang.ref.name, 1)
    gang.backend.open_gates(gang.launch, gang.ref)

    assert gang.seen(1).outcome is ObjectOutcome.SUCCEEDED, "the Master ended first"


@pytest.mark.parametrize("code", [1, 137])
def test_a_replica_that_is_made_to_fail_fails_the_gang_at_once(code: int) -> None:
    gang = Gang().started()
    gang.backend.finish_replica(gang.ref.name, 2, code, namespace="default")

    seen = gang.seen()
    assert seen.outcome is ObjectOutcome.FAILED
    assert (seen.replicas[2].exit_code, seen.replicas[2].message) == (
        code,
        f"exited with code {code}",
    )
    assert not seen.is_lost


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda b: b.finish_replica("none", 0, namespace="default"),
            "no virtual object default/none",
        ),
        (lambda b: b.recreate_pod("digits-ab12-1", 9), "object digits-ab12-1 has no rank 9"),
        (lambda b: b.delete_behind_our_back("none", "team"), "no virtual object team/none"),
        (lambda b: b.environments("none"), "no virtual object default/none"),
    ],
)
def test_a_lever_on_what_does_not_exist_says_so(
    call: Callable[[SimulatedBackend], object], words: str
) -> None:
    with pytest.raises(NotFound) as caught:
        call(Gang().backend)
    assert caught.value.detail == words


def test_a_node_that_is_lost_after_the_end_takes_no_result_back() -> None:
    gang = Gang(Script(start_seconds=0, run_seconds=1)).started()
    gang.clock.advance(5)
    gang.backend.fail_node("dgx-h100-0")

    seen = gang.seen()
    assert (seen.outcome, seen.is_lost) == (ObjectOutcome.SUCCEEDED, False)


@pytest.mark.parametrize("health", list(DeviceHealth))
def test_a_node_is_reported_as_it_was_set_and_running_gangs_stay(health: DeviceHealth) -> None:
    gang = Gang().started()
    before = gang.seen()
    gang.backend.set_node_health("dgx-h100-1", health)

    assert [node.health for node in gang.backend.inventory()] == [DeviceHealth.HEALTHY, health]
    assert gang.seen() == before


def test_lines_tell_the_place_the_plan_and_the_end() -> None:
    gang = Gang(Script(start_seconds=0, run_seconds=1))
    assert list(gang.backend.logs(gang.launch, 1, follow=True, tail=None)) == []
    gang.started().clock.advance(1)

    lines = list(gang.backend.logs(gang.launch, 1, follow=True, tail=None))

    assert lines[0] == "rank 1 of digits-ab12-1 on dgx-h100-1"
    assert "TRAINING_GATEWAY_RANK=1" in lines
    assert lines[-1] == "rank 1 exited with code 0"
    assert list(gang.backend.logs(gang.launch, 1, follow=False, tail=1)) == lines[-1:]
    assert list(gang.backend.logs(gang.launch, 9, follow=False, tail=None)) == []


def test_an_empty_cluster_comes_back_from_its_file() -> None:
    assert from_json(to_json(VirtualCluster())) == VirtualCluster()
