"""What a single pod tells: which replica it is, its phase, its end and its words."""

from typing import Any

import pytest

from gateway.backends.base import GONE_PHASES, ReplicaPhase
from gateway.backends.kubeflow.json_paths import Json
from gateway.backends.kubeflow.replicas import (
    MOST_MESSAGE,
    UNKNOWN_INDEX,
    Place,
    has_gate,
    in_order,
    is_alive,
    is_leaving,
    other_gates,
    phase_of,
    place_of,
    replica_of,
    restarts_of,
    was_ended_by_cluster,
)
from gateway.core.vocabulary import SCHEDULING_GATE

TYPE, INDEX = "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"
GATE = [{"name": SCHEDULING_GATE}]
THEIRS = [{"name": "example.org/theirs"}]
READY = [{"type": "Ready", "status": "True"}]
LEAVING = "2026-01-01T00:00:00Z"


def a_pod(phase: object = "Pending", **fields: Any) -> Json:
    metadata = {"labels": fields.pop("labels", {}), "uid": "u"}
    if fields.pop("is_leaving", False):
        metadata["deletionTimestamp"] = LEAVING
    spec = {"schedulingGates": fields.pop("gates", [])}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, **fields}}


def with_container(name: str = "pytorch", **status: Any) -> Json:
    return a_pod("Failed", containerStatuses=[{"name": name, **status}])


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({TYPE: "master", INDEX: "0"}, Place("Master", 0)),
        ({TYPE: "worker", INDEX: "12"}, Place("Worker", 12)),
        ({TYPE: "WORKER", INDEX: "1"}, Place("Worker", 1)),
        ({TYPE: "worker", INDEX: "007"}, Place("Worker", 7)),
        ({TYPE: "worker", INDEX: "-1"}, Place("Worker", UNKNOWN_INDEX)),
        ({TYPE: "worker", INDEX: "1.0"}, Place("Worker", UNKNOWN_INDEX)),
        ({TYPE: "worker", INDEX: "٣"}, Place("Worker", UNKNOWN_INDEX)),
        ({TYPE: "worker", INDEX: "9" * 5000}, Place("Worker", UNKNOWN_INDEX)),
        ({TYPE: "worker", INDEX: ""}, Place("Worker", UNKNOWN_INDEX)),
        ({TYPE: "worker"}, Place("Worker", UNKNOWN_INDEX)),
        ({INDEX: "0"}, Place("", UNKNOWN_INDEX)),
        ({TYPE: "", INDEX: "0"}, Place("", UNKNOWN_INDEX)),
        ({TYPE: 1, INDEX: 0}, Place("", UNKNOWN_INDEX)),
        ({}, Place("", UNKNOWN_INDEX)),
    ],
)
def test_a_pod_is_the_replica_that_its_labels_say_or_none(
    labels: dict[str, object], place: Place
) -> None:
    assert place_of(a_pod(labels=labels)) == place


@pytest.mark.parametrize("is_leaving", [False, True])
@pytest.mark.parametrize("gates", [[], GATE, THEIRS])
@pytest.mark.parametrize("conditions", [[], READY])
@pytest.mark.parametrize(
    "phase", ["Pending", "Running", "Unknown", "Succeeded", "Failed", "", None]
)
def test_the_phase_follows_from_end_leave_gate_and_readiness_in_this_order(
    phase: str | None, conditions: list[Json], gates: list[Json], *, is_leaving: bool
) -> None:
    pod = a_pod(phase, is_leaving=is_leaving, gates=gates, conditions=conditions)
    found = phase_of(pod)

    if phase in {"Succeeded", "Failed"}:
        assert found.value == str(phase).lower()
    elif is_leaving:
        assert found is ReplicaPhase.TERMINATING
    elif gates == GATE:
        assert found is ReplicaPhase.GATED
    elif phase in {"Running", "Unknown"}:
        assert found is (ReplicaPhase.READY if conditions else ReplicaPhase.RUNNING)
    else:
        assert found is ReplicaPhase.PENDING
    is_over = found in {*GONE_PHASES, ReplicaPhase.TERMINATING}
    assert is_alive(pod) is not is_over


@pytest.mark.parametrize(
    ("gates", "is_gated", "others"),
    [
        (GATE, True, []),
        (THEIRS, False, THEIRS),
        ([*THEIRS, *GATE], True, THEIRS),
        ([], False, []),
        (None, False, []),
        ([None, "text", {"name": 3}], False, [{"name": 3}]),
    ],
)
def test_the_gateways_gate_is_told_from_those_of_others(
    gates: object, others: list[Json], *, is_gated: bool
) -> None:
    pod = a_pod(gates=gates)

    assert has_gate(pod) is is_gated
    assert other_gates(pod) == others


@pytest.mark.parametrize("stamp", ["", None, 0, []])
def test_only_a_written_instant_is_a_request_to_go(stamp: object) -> None:
    assert is_leaving(a_pod(is_leaving=True))
    assert not is_leaving({"metadata": {"deletionTimestamp": stamp}})
    assert not is_leaving(None)


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        (with_container(state={"terminated": {"exitCode": 137}}), 137),
        (with_container(state={"terminated": {"exitCode": 0}}), 0),
        (with_container("sidecar", state={"terminated": {"exitCode": 1}}), None),
        (with_container(state={"running": {}}), None),
        (with_container(state={"terminated": {"exitCode": "1"}}), None),
        (with_container(state={"terminated": {"exitCode": True}}), None),
        (with_container(lastState={"terminated": {"exitCode": 9}}), None),
        (a_pod("Failed"), None),
    ],
)
def test_the_exit_code_is_the_training_containers_own(pod: Json, code: int | None) -> None:
    assert replica_of(pod).exit_code == code


@pytest.mark.parametrize(
    ("count", "restarts"), [(0, 0), (3, 3), (-2, 0), ("3", 0), (None, 0), (True, 0), (2.0, 0)]
)
def test_restarts_in_place_are_counted_when_they_are_a_number(count: object, restarts: int) -> None:
    assert restarts_of(with_container(restartCount=count)) == restarts
    assert restarts_of(with_container("sidecar", restartCount=count)) == 0


@pytest.mark.parametrize(
    ("reason", "is_clusters_doing"),
    [
        ("Evicted", True),
        ("NodeLost", True),
        ("NodeShutdown", True),
        ("Shutdown", True),
        ("Terminated", True),
        ("NodeAffinity", True),
        ("UnexpectedAdmissionError", True),
        ("OOMKilled", False),
        ("Error", False),
        ("DeadlineExceeded", False),
        ("", False),
        (None, False),
    ],
)
def test_the_cluster_is_blamed_for_its_own_reasons_only(
    reason: object, *, is_clusters_doing: bool
) -> None:
    assert was_ended_by_cluster(a_pod("Failed", reason=reason)) is is_clusters_doing


@pytest.mark.parametrize(("status", "is_clusters_doing"), [("True", True), ("False", False)])
def test_a_disruption_is_the_clusters_doing_when_it_happened(
    status: str, *, is_clusters_doing: bool
) -> None:
    conditions = [{"type": "DisruptionTarget", "status": status}]

    assert was_ended_by_cluster(a_pod("Failed", conditions=conditions)) is is_clusters_doing


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, ""),
        ({"reason": "Evicted", "message": "low on memory"}, "Evicted: low on memory"),
        ({"message": "only words"}, "only words"),
        ({"reason": 3, "message": None}, ""),
        (
            {
                "containerStatuses": [
                    {"name": "pytorch", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
                ]
            },
            "ImagePullBackOff",
        ),
        (
            {
                "reason": "Error",
                "containerStatuses": [
                    {
                        "name": "pytorch",
                        "state": {"terminated": {"reason": "Error", "message": "NCCL"}},
                    }
                ],
            },
            "Error: NCCL",
        ),
        ({"containerStatuses": [{"name": "pytorch", "state": "text"}]}, ""),
        ({"message": "x" * 1000}, "x" * MOST_MESSAGE),
    ],
)
def test_the_words_of_a_pod_are_its_own_and_then_its_containers(
    status: dict[str, Any], words: str
) -> None:
    assert replica_of(a_pod("Failed", **status)).message == words


def test_replicas_are_in_order_whatever_the_list_says() -> None:
    labels = [
        {TYPE: "worker", INDEX: "10"},
        {TYPE: "worker", INDEX: "9"},
        {TYPE: "master", INDEX: "0"},
        {},
    ]
    seen = in_order(replica_of(a_pod(labels=each)) for each in labels)

    assert [(replica.pod_set, replica.index) for replica in seen] == [
        ("", UNKNOWN_INDEX),
        ("Master", 0),
        ("Worker", 9),
        ("Worker", 10),
    ]
