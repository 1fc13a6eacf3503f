"""Renders one attempt as the PyTorchJob that is created. Pure; the same launch, the same object.

The user's document stays as it is except for what the gateway owns: identity, run policy, the
scheduling gate, scheduler and priority class, and the environment that carries the plan.
"""

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from typing import Final

from gateway.backends.base import Launch
from gateway.backends.environment import ANNOTATIONS
from gateway.backends.kubeflow.json_paths import Json, at, items_at, mapping_at, text_at, texts_at
from gateway.backends.kubeflow.names import (
    ATTEMPT_LABEL,
    DEFAULT_SCHEDULER,
    EPOCH_LABEL,
    GROUP,
    JOB_ID_LABEL,
    KIND,
    KUEUE_PREFIX,
    REPLICA_SPECS,
    SIDECAR_INJECTION,
    SPEC_HASH_LABEL,
    SPEC_HASH_LENGTH,
    VERSION,
)
from gateway.backends.kubeflow.replicas import has_gate, other_gates
from gateway.backends.kubeflow.tolerations import granted_to, tolerating
from gateway.core.vocabulary import ENVIRONMENT_PREFIX, LABEL_PREFIX, SCHEDULING_GATE

# Of training-operator 1.9: activeDeadlineSeconds is looked at only when something else triggers a
# reconcile, backoffLimit counts restarts in place and not re-created pods, and a ttl removes the
# object with its logs at a time of its own.
OWNED_POLICIES: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "backoffLimit",
        "cleanPodPolicy",
        "schedulingPolicy",
        "suspend",
        "ttlSecondsAfterFinished",
    }
)
"""Parts of runPolicy that the gateway enforces itself, because the operator does so badly."""
COMPUTED: Final = frozenset({"priority", "preemptionPolicy"})
"""Parts of a pod that admission takes from its PriorityClass."""
CONTAINERS: Final = ("initContainers", "containers")
PLAN: Final[dict[str, Json]] = {
    ENVIRONMENT_PREFIX + name: {
        "name": ENVIRONMENT_PREFIX + name,
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{LABEL_PREFIX}{suffix}']"}},
    }
    for name, suffix in ANNOTATIONS.items()
}
"""Environment variables that carry the plan, by name; each is filled from an annotation."""
CLIENT_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


def render(launch: Launch, priority_class: str = "") -> Json:
    """Give the PyTorchJob of an attempt: suspended, every pod template gated."""
    manifest = deepcopy(dict(launch.manifest))
    spec = mapping_at(manifest, "spec")
    counts = Counter(pod.pod_set for pod in launch.pods)
    replicas = mapping_at(spec, REPLICA_SPECS)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {
            "name": launch.object_name,
            "namespace": launch.namespace,
            "labels": {**_foreign(manifest, "metadata", "labels"), **identity(launch)},
            "annotations": _foreign(manifest, "metadata", "annotations"),
        },
        "spec": {
            **spec,
            "runPolicy": _run_policy(mapping_at(spec, "runPolicy")),
            REPLICA_SPECS: {
                name: {
                    **mapping_at(replicas, name),
                    # The operator's webhook sees no defaults and refuses a Master without one.
                    "replicas": counts[name],
                    "template": _template(launch, replicas, name, priority_class),
                }
                for name in replicas
                if counts[name]
            },
        },
    }


def identity(launch: Launch) -> dict[str, str]:
    """Give the labels that say whose object it is."""
    return {
        JOB_ID_LABEL: launch.job_id,
        ATTEMPT_LABEL: str(launch.attempt),
        EPOCH_LABEL: str(launch.epoch),
        SPEC_HASH_LABEL: launch.spec_digest[:SPEC_HASH_LENGTH],
    }


def is_own(job: Json, launch: Launch) -> bool:
    """Whether an object is this attempt's own; the epoch may have moved on meanwhile."""
    labels = texts_at(job, "metadata", "labels")
    wanted = identity(launch)
    del wanted[EPOCH_LABEL]
    return wanted.items() <= labels.items()


def disagreement(job: Json, launch: Launch) -> str:
    """Say why a created object would not behave as rendered; empty when it would."""
    if _is_queued_by_kueue(job):
        return "Kueue put its label on it, so two queues would start and stop the same job"
    counts = Counter(pod.pod_set for pod in launch.pods)
    replicas = mapping_at(job, "spec", REPLICA_SPECS)
    found = (_replica_disagreement(replicas, name, count) for name, count in counts.items())
    return next(filter(None, found), "")


def _is_queued_by_kueue(job: Json) -> bool:
    return any(label.startswith(KUEUE_PREFIX) for label in mapping_at(job, "metadata", "labels"))


def _replica_disagreement(replicas: Json, name: str, count: int) -> str:
    stored = at(replicas, name, "replicas")
    if stored != count:
        return f"{name} has {stored} replicas, {count} are reserved"
    if not has_gate(mapping_at(replicas, name, "template")):
        return f"the pods of {name} lost the scheduling gate {SCHEDULING_GATE}"
    return ""


def _run_policy(policy: Json) -> Json:
    # The operator's default, None, leaves workers running on their GPUs after the Master's success.
    clean = "All" if policy.get("cleanPodPolicy") == "All" else "Running"
    return {**_lacking(policy, OWNED_POLICIES), "suspend": True, "cleanPodPolicy": clean}


def _lacking(document: Json, keys: frozenset[str]) -> Json:
    return {key: value for key, value in document.items() if key not in keys}


def _template(launch: Launch, replicas: Json, name: str, priority_class: str) -> Json:
    template = mapping_at(replicas, name, "template")
    metadata = mapping_at(template, "metadata")
    labels = _foreign(template, "metadata", "labels")
    annotations = _foreign(template, "metadata", "annotations")
    if SIDECAR_INJECTION not in {*labels, *annotations}:
        # A mesh's sidecar never ends and would keep a finished gang running.
        labels[SIDECAR_INJECTION] = annotations[SIDECAR_INJECTION] = "false"
    return {
        **template,
        "metadata": {
            **metadata,
            "labels": {**labels, **identity(launch)},
            "annotations": annotations,
        },
        "spec": {
            **_pod_spec(mapping_at(template, "spec"), priority_class),
            **tolerating(mapping_at(template, "spec"), granted_to(launch, name)),
            # Gates can be set at creation only and afterwards only be removed (KEP-3521).
            "schedulingGates": [*other_gates(template), {"name": SCHEDULING_GATE}],
        },
    }


def _pod_spec(spec: Json, priority_class: str) -> Json:
    containers: Json = {
        key: list(map(_container, items_at(spec, key))) for key in CONTAINERS if key in spec
    }
    return {
        **_prioritised(spec, priority_class),
        **containers,
        # Left empty, an operator with a gang scheduler fills in its own, a second judge of gangs.
        "schedulerName": text_at(spec, "schedulerName") or DEFAULT_SCHEDULER,
    }


def _prioritised(spec: Json, priority_class: str) -> Json:
    if not priority_class:
        return spec
    # Admission computes the two that are left out from the class and refuses others.
    return {**_lacking(spec, COMPUTED), "priorityClassName": priority_class}


def _container(container: Json) -> Json:
    """Put the plan first, so that the user's own variables may refer to it as $(NAME)."""
    # The CRD treats env as a map by name since 1.9: a double name is refused.
    kept = [entry for entry in items_at(container, "env") if at(entry, "name") not in PLAN]
    # Kueue acts on its label alone: it would suspend and start the job beside us. kubectl's record
    # describes the submitted document, and a later apply would compare against the wrong object.
    return {**container, "env": [*deepcopy(list(PLAN.values())), *kept]}


def _foreign(document: Mapping[str, object], *path: str) -> dict[str, str]:
    """Give the user's labels or annotations; what belongs to another queue is left out."""
    return {
        key: value
        for key, value in texts_at(document, *path).items()
        if not key.startswith(KUEUE_PREFIX) and key != CLIENT_ANNOTATION
    }
