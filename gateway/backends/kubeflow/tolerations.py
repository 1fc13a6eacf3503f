"""Gives pods the tolerations of the flavor that they were placed under. Pure.

Placement took a flavor's tolerations for the pods' own, as Kueue's ResourceFlavor means them;
without them a scheduler would keep a pod from the very node that it is pinned to.
"""

from dataclasses import asdict

from gateway.backends.base import Launch
from gateway.backends.kubeflow.json_paths import Json, items_at, text_at
from gateway.core.resources.node_rules import Toleration


def granted_to(launch: Launch, pod_set: str) -> tuple[Toleration, ...]:
    """Give what the flavor of a pod set tolerates; empty for a set without pods."""
    # All pods of a set are placed under one flavor, so the first speaks for them.
    return next((pod.tolerations for pod in launch.pods if pod.pod_set == pod_set), ())


def tolerating(spec: Json, granted: tuple[Toleration, ...]) -> Json:
    """Give the `tolerations` field of a pod spec: its own, then what is granted, none twice.

    Empty, so that the spec stays as it was written, where there is nothing to add.
    """
    own = items_at(spec, "tolerations")
    said = set(map(_toleration, own))
    added = [each for each in dict.fromkeys(granted) if each not in said]
    return {"tolerations": [*own, *map(_written, added)]} if added else {}


def _toleration(item: Json) -> Toleration:
    # How long a taint is tolerated does not tell two apart: the scheduler does not look at it, and
    # of several times Kubernetes takes the shortest, so the user's own would stay in force.
    return Toleration(
        key=text_at(item, "key"),
        operator=text_at(item, "operator") or "Equal",
        value=text_at(item, "value"),
        effect=text_at(item, "effect"),
    )


def _written(toleration: Toleration) -> Json:
    return {name: value for name, value in asdict(toleration).items() if value}
