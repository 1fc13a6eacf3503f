"""Pods tolerate what their flavor does, beside what their user wrote."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.backends.base import Launch
from gateway.backends.kubeflow.rendering import render
from gateway.backends.kubeflow.tolerations import tolerating
from gateway.core.resources.node_rules import Toleration
from tests.contract.backends.launches import KEPT_OUT as RESERVED
from tests.contract.backends.launches import a_launch, a_manifest

ANY_GPU = Toleration(key="nvidia.com/gpu", operator="Exists")
WRITTEN = {"key": "pool", "operator": "Equal", "value": "training", "effect": "NoSchedule"}
WRITTEN_ANY_GPU = {"key": "nvidia.com/gpu", "operator": "Exists"}


def granted(launch: Launch, **tolerations: tuple[Toleration, ...]) -> Launch:
    """Place each pod set under a flavor with these tolerations."""
    pods = (replace(pod, tolerations=tolerations.get(pod.pod_set, ())) for pod in launch.pods)
    return replace(launch, pods=tuple(pods))


def rendered(launch: Launch) -> dict[str, Any]:
    """Give the tolerations of each pod set as they are sent; None where none are."""
    sets = render(launch)["spec"]["pytorchReplicaSpecs"]
    return {name: each["template"]["spec"].get("tolerations") for name, each in sets.items()}


def test_each_pod_set_tolerates_what_its_own_flavor_does() -> None:
    launch = granted(a_launch(a_manifest(2)), Worker=(RESERVED, ANY_GPU))

    assert rendered(launch) == {"Master": None, "Worker": [WRITTEN, WRITTEN_ANY_GPU]}


def test_the_users_own_tolerations_stay_first_and_as_they_were_written() -> None:
    manifest = a_manifest(0)
    own = [{"key": "zone", "operator": "Exists", "tolerationSeconds": 30, "aFieldToCome": 1}]
    manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["tolerations"] = own

    assert rendered(granted(a_launch(manifest), Master=(RESERVED,))) == {"Master": [*own, WRITTEN]}
    assert rendered(a_launch(manifest)) == {"Master": own}


@pytest.mark.parametrize(
    "own",
    [
        WRITTEN,
        {"key": "pool", "value": "training", "effect": "NoSchedule"},
        WRITTEN | {"tolerationSeconds": 60},
    ],
)
def test_what_the_user_tolerates_already_is_not_said_twice(own: dict[str, Any]) -> None:
    assert tolerating({"tolerations": [own]}, (RESERVED,)) == {}
    assert tolerating({"tolerations": [own]}, (RESERVED, ANY_GPU))["tolerations"] == [
        own,
        WRITTEN_ANY_GPU,
    ]


@pytest.mark.parametrize("changed", ["key", "value", "effect"])
def test_a_toleration_of_another_taint_does_not_stand_for_it(changed: str) -> None:
    own = WRITTEN | {changed: "other"}

    assert tolerating({"tolerations": [own]}, (RESERVED,))["tolerations"] == [own, WRITTEN]


def test_a_flavor_that_says_it_twice_is_heard_once() -> None:
    assert tolerating({}, (RESERVED, RESERVED)) == {"tolerations": [WRITTEN]}


@pytest.mark.parametrize("garbage", [None, "text", {"key": "pool"}, ["text", 1, None]])
def test_what_is_no_list_of_tolerations_is_no_hindrance(garbage: object) -> None:
    assert tolerating({"tolerations": garbage}, (RESERVED,)) == {"tolerations": [WRITTEN]}


def test_every_retry_of_a_launch_is_rendered_alike() -> None:
    launch = granted(a_launch(), Master=(ANY_GPU, RESERVED), Worker=(RESERVED,))

    assert render(launch) == render(launch)
