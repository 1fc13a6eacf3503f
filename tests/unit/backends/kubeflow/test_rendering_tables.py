"""The rendered object, part by part: what the gateway owns and what it must not touch."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import Launch
from gateway.backends.environment import ANNOTATIONS
from gateway.backends.kubeflow.json_paths import Json
from gateway.backends.kubeflow.rendering import OWNED_POLICIES, disagreement, identity, render
from gateway.core.vocabulary import SCHEDULING_GATE
from tests.contract.backends.launches import a_launch, a_manifest

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
INJECT = "sidecar.istio.io/inject"
names = st.text("abcdefgh", min_size=1, max_size=5)
texts = st.dictionaries(names, st.text(max_size=5), max_size=4)


def launch_with(**changes: Any) -> Launch:
    """Give a launch whose Master's template was changed, by path a__b."""
    manifest = a_manifest()
    sets = manifest["spec"]["pytorchReplicaSpecs"]
    sets["Worker"] = {**sets["Worker"], "template": {"spec": {"containers": []}}}
    for path, value in changes.items():
        *holders, key = path.split("__")
        found = sets["Master"]["template"]
        for holder in holders:
            found = found.setdefault(holder, {})
        found[key] = value
    return a_launch(manifest)


def master(launch: Launch, priority_class: str = "") -> Json:
    rendered = render(launch, priority_class)["spec"]["pytorchReplicaSpecs"]["Master"]
    found: Json = rendered["template"]
    return found


@pytest.mark.parametrize("policy", sorted(OWNED_POLICIES))
@pytest.mark.parametrize("value", [None, 1, "x", {"a": 1}])
def test_no_value_of_an_owned_policy_gets_through(policy: str, value: object) -> None:
    manifest = a_manifest()
    manifest["spec"]["runPolicy"] = {policy: value, "managedBy": "m"}

    rendered = render(a_launch(manifest))["spec"]["runPolicy"]

    assert rendered == {"managedBy": "m", "suspend": True, "cleanPodPolicy": "Running"}


@pytest.mark.parametrize("run_policy", [None, [], "text", 3, {}])
def test_a_run_policy_of_any_shape_ends_suspended(run_policy: object) -> None:
    manifest = a_manifest()
    manifest["spec"]["runPolicy"] = run_policy

    assert render(a_launch(manifest))["spec"]["runPolicy"]["suspend"] is True


@given(texts, texts)
def test_labels_and_annotations_of_the_user_stay(
    labels: dict[str, str], notes: dict[str, str]
) -> None:
    manifest = a_manifest()
    manifest["metadata"] |= {"labels": labels, "annotations": notes}
    launch = a_launch(manifest)

    metadata = render(launch)["metadata"]

    assert metadata["labels"] == {**labels, **identity(launch)}
    assert metadata["annotations"] == notes


@pytest.mark.parametrize("holder", ["labels", "annotations"])
@pytest.mark.parametrize("key", ["kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/x", LAST_APPLIED])
def test_what_belongs_to_other_tools_is_left_out_everywhere(holder: str, key: str) -> None:
    values = {key: "theirs", "kueue.example/kept": "yes"}
    launch = launch_with(**{f"metadata__{holder}": values})
    launch = replace(
        launch, manifest={**launch.manifest, "metadata": {"name": "digits", holder: values}}
    )
    rendered = render(launch)

    for metadata in (rendered["metadata"], master(launch)["metadata"]):
        assert key not in metadata[holder]
        assert metadata[holder]["kueue.example/kept"] == "yes"


@pytest.mark.parametrize("value", [3, None, True, ["x"], {"a": "b"}])
def test_a_label_that_is_no_text_cannot_reach_the_cluster(value: object) -> None:
    manifest = a_manifest()
    manifest["metadata"]["labels"] = {"odd": value, "team": "vision"}
    launch = a_launch(manifest)

    assert render(launch)["metadata"]["labels"] == {"team": "vision", **identity(launch)}


def test_nobody_can_borrow_the_identity_of_an_attempt() -> None:
    forged = dict.fromkeys(identity(a_launch()), "forged")
    manifest = a_manifest()
    manifest["metadata"]["labels"] = forged
    launch = a_launch(manifest)

    assert render(launch)["metadata"]["labels"] == identity(launch)
    pods = launch_with(metadata__labels=forged)
    assert identity(pods).items() <= master(pods)["metadata"]["labels"].items()


@pytest.mark.parametrize("written", ["true", "false", "yes"])
@pytest.mark.parametrize("holder", ["labels", "annotations"])
def test_a_sidecar_is_the_users_choice_once_it_is_written_anywhere(
    holder: str, written: str
) -> None:
    metadata = master(launch_with(**{f"metadata__{holder}": {INJECT: written}}))["metadata"]
    other = "annotations" if holder == "labels" else "labels"

    assert metadata[holder][INJECT] == written
    assert INJECT not in metadata[other]


@pytest.mark.parametrize(
    ("written", "scheduler"),
    [("volcano", "volcano"), ("", "default-scheduler"), (None, "default-scheduler")],
)
def test_a_scheduler_is_always_named(written: str | None, scheduler: str) -> None:
    assert master(launch_with(spec__schedulerName=written))["spec"]["schedulerName"] == scheduler


@pytest.mark.parametrize("written", ["user-class", "", None])
def test_a_configured_priority_class_wins_and_takes_its_number_along(written: str | None) -> None:
    launch = launch_with(
        spec__priorityClassName=written, spec__priority=7, spec__preemptionPolicy="Never"
    )
    owned, own = master(launch, "gateway")["spec"], master(launch)["spec"]

    assert owned["priorityClassName"] == "gateway"
    assert not {"priority", "preemptionPolicy"} & owned.keys()
    assert (own["priorityClassName"], own["priority"]) == (written, 7)


@pytest.mark.parametrize("gates", [None, [], [{"name": SCHEDULING_GATE}], "x"])
def test_our_gate_is_there_once_whatever_was_written(gates: object) -> None:
    spec = master(launch_with(spec__schedulingGates=gates))["spec"]

    assert spec["schedulingGates"] == [{"name": SCHEDULING_GATE}]


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_every_container_gets_the_plan_and_keeps_its_own_variables(kind: str) -> None:
    own = [{"name": "A", "value": "1"}, {"name": "TRAINING_GATEWAY_RANK", "value": "9"}]
    containers = [{"name": "one", "env": own}, {"name": "two"}, {"name": "three", "env": None}]

    rendered = master(launch_with(**{f"spec__{kind}": containers}))["spec"][kind]

    plan = [f"TRAINING_GATEWAY_{suffix}" for suffix in ANNOTATIONS]
    told = [[entry["name"] for entry in container["env"]] for container in rendered]
    assert told == [[*plan, "A"], plan, plan]


def test_two_containers_do_not_share_one_list_of_variables() -> None:
    first, second = master(launch_with(spec__containers=[{"name": "a"}, {"name": "b"}]))["spec"][
        "containers"
    ]
    first["env"][0]["value"] = "changed"

    assert "value" not in second["env"][0]
    assert (
        "value"
        not in master(launch_with(spec__containers=[{"name": "a"}]))["spec"]["containers"][0][
            "env"
        ][0]
    )


def test_a_template_without_init_containers_gets_none() -> None:
    assert "initContainers" not in master(launch_with())["spec"]


def test_a_replica_set_without_a_reservation_is_left_out() -> None:
    launch = a_launch(a_manifest(2))
    alone = replace(launch, pods=launch.pods[:1])

    assert list(render(alone)["spec"]["pytorchReplicaSpecs"]) == ["Master"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"replicas": 2}, "Master has 2 replicas, 1 are reserved"),
        ({"replicas": None}, "Master has None replicas, 1 are reserved"),
        ({"template": {}}, f"the pods of Master lost the scheduling gate {SCHEDULING_GATE}"),
        ({"template": None}, f"the pods of Master lost the scheduling gate {SCHEDULING_GATE}"),
    ],
)
def test_a_stored_object_that_would_behave_otherwise_is_told(
    changes: dict[str, Any], words: str
) -> None:
    launch = a_launch()
    job = render(launch)
    job["spec"]["pytorchReplicaSpecs"]["Master"] |= changes

    assert disagreement(job, launch) == words


def test_what_an_admission_adds_without_harm_is_accepted() -> None:
    launch = a_launch()
    job = render(launch)
    job["metadata"] |= {"uid": "u", "generation": 1, "managedFields": [{}]}
    job["metadata"]["labels"]["example.org/cost-centre"] = "7"
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulingGates"].insert(
        0, {"name": "example.org/theirs"}
    )

    assert disagreement(job, launch) == ""
