"""One patch per pod: pinned in every term, told its devices, opened, and nothing lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import Launch
from gateway.backends.environment import plan_annotations
from gateway.backends.kubeflow.gates import (
    REQUIRED,
    Opening,
    has_open_pod,
    look,
    opening_patch,
    pinned,
)
from gateway.backends.kubeflow.json_paths import Json
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.core.vocabulary import SCHEDULING_GATE
from gateway.errors import ClusterRejected
from tests.contract.backends.launches import a_launch
from tests.unit.backends.kubeflow.a_cluster import a_pod, merged

PIN = {"key": "metadata.name", "operator": "In", "values": ["node-7"]}
requirements = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["zone", "pool"]),
        "operator": st.just("In"),
        "values": st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2),
    }
)
terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(requirements, max_size=3),
        "matchFields": st.just([{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]),
    },
)


def gang() -> Launch:
    return a_launch(nodes=virtual_fleet("2xdgx-h100"))


def with_terms(pod: Json, found: list[Json]) -> Json:
    pod["spec"]["affinity"] = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": found}, "preferredX": [1]},
        "podAffinity": {"kept": True},
    }
    return pod


def opened(launch: Launch, pod: Json, rank: int) -> Json:
    found: Json = merged(pod, opening_patch(launch, Opening(pod=pod, planned=launch.pods[rank])))
    return found


@given(st.lists(terms, max_size=4))
def test_a_pin_is_added_to_every_term_and_no_term_is_lost(found: list[dict[str, Any]]) -> None:
    pod = with_terms(a_pod(gang(), 0, "owner"), found)

    after = pinned(pod, "node-7")["nodeSelectorTerms"]

    if not found:
        assert after == [{"matchFields": [PIN]}]
        return
    assert len(after) == len(found)
    for old, new in zip(found, after, strict=True):
        assert new.get("matchExpressions") == old.get("matchExpressions")
        kept = old.get("matchFields", [])
        assert new.get("matchFields", [])[: len(kept)] == kept
        matches_anything = bool(kept or old.get("matchExpressions"))
        # A term without requirements matches no node; with the pin alone it would match one.
        assert (PIN in new.get("matchFields", [])) is matches_anything


def test_a_pod_is_pinned_told_and_opened_by_one_patch() -> None:
    launch = gang()
    pod = with_terms(a_pod(launch, 1, "owner"), [{"matchExpressions": [{"key": "zone"}]}])
    pod["metadata"]["annotations"] = {"theirs": "kept"}

    after = opened(launch, pod, 1)

    assert "schedulingGates" not in after["spec"]
    affinity = after["spec"]["affinity"]
    [term] = affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == [launch.pods[1].node]
    assert affinity["nodeAffinity"]["preferredX"] == [1]
    assert affinity["podAffinity"] == {"kept": True}
    annotations = after["metadata"]["annotations"]
    assert annotations == {"theirs": "kept", **plan_annotations(launch, launch.pods[1])}


def test_gates_of_others_stay_closed() -> None:
    launch = gang()
    pod = a_pod(launch, 0, "owner")
    pod["spec"]["schedulingGates"].append({"name": "example.org/theirs"})

    after = opened(launch, pod, 0)

    assert after["spec"]["schedulingGates"] == [{"name": "example.org/theirs"}]


def test_a_gang_is_complete_once_every_planned_replica_exists() -> None:
    launch = gang()
    pods = [a_pod(launch, rank, "owner") for rank in (0, 1)]

    assert not look(launch, pods[:1]).is_complete
    view = look(launch, pods)
    assert view.is_complete
    assert [opening.planned.rank for opening in view.openings] == [0, 1]


def test_a_leaving_pod_is_neither_opened_nor_counted() -> None:
    launch = gang()
    pods = [a_pod(launch, rank, "owner") for rank in (0, 1)]
    pods[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    view = look(launch, pods)

    assert not view.is_complete
    assert [opening.planned.rank for opening in view.openings] == [0]


def test_an_index_without_a_reservation_stays_gated() -> None:
    launch = gang()
    pods = [a_pod(launch, rank, "owner") for rank in (0, 1, 1)]
    pods[2]["metadata"]["labels"]["training.kubeflow.org/replica-index"] = "5"

    view = look(launch, pods)

    assert all(opening.pod is not pods[2] for opening in view.openings)
    assert view.is_complete


def test_a_pod_that_a_stranger_opened_does_not_count_as_the_gangs_start() -> None:
    launch = gang()
    pod = a_pod(launch, 0, "owner")
    assert not has_open_pod(launch, [pod])
    assert has_open_pod(launch, [opened(launch, pod, 0)])

    stray = a_pod(launch, 0, "owner")
    stray["spec"]["schedulingGates"] = []
    assert not has_open_pod(launch, [stray])


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "rdma/hca"])
def test_a_pod_that_asks_for_more_devices_than_reserved_is_not_opened(resource: str) -> None:
    launch = gang()
    pod = a_pod(launch, 0, "owner")
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "2"}}

    with pytest.raises(ClusterRejected, match="Master 0 asks for 2"):
        look(launch, [pod])
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    assert look(launch, [pod]).openings


def test_the_gate_has_the_name_that_the_vocabulary_says() -> None:
    assert a_pod(gang(), 0, "o")["spec"]["schedulingGates"] == [{"name": SCHEDULING_GATE}]
