"""Names of the fields that Kubernetes and the training operator know, by level, and where they go.

Sources: PyTorchJob v1 of the training operator 1.9, core/v1 of Kubernetes 1.36. Data and one
check; nothing here looks at values.
"""

from collections.abc import Iterator
from typing import Final

from gateway.manifests.spot import Spot
from gateway.schemas.suggesting import NEAR, closest, did_you_mean


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TOP: Final = _words("apiVersion kind metadata spec status")
SPEC: Final = _words("pytorchReplicaSpecs runPolicy elasticPolicy nprocPerNode")
# Names only, and as the API spells them: the CRD prunes an unknown field in silence, so
# `cleanPodpolicy` would be stored without it and nobody would ever hear of it.
RUN_POLICY: Final = _words(
    "activeDeadlineSeconds backoffLimit cleanPodPolicy managedBy schedulingPolicy suspend "
    "ttlSecondsAfterFinished"
)
SCHEDULING_POLICY: Final = _words(
    "minAvailable minResources priorityClass queue scheduleTimeoutSeconds"
)
ELASTIC_POLICY: Final = _words(
    "maxReplicas maxRestarts metrics minReplicas nProcPerNode rdzvBackend rdzvConf rdzvHost rdzvId "
    "rdzvPort standalone"
)
REPLICA: Final = _words("replicas restartPolicy template")
TEMPLATE: Final = _words("metadata spec")
METADATA: Final = _words(
    "annotations finalizers generateName labels name namespace ownerReferences"
)
SERVER_METADATA: Final = _words(
    "creationTimestamp deletionGracePeriodSeconds deletionTimestamp generation managedFields "
    "resourceVersion selfLink uid"
)
"""Set by the API server; found in exported objects, and left out."""
POD: Final = _words(
    "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy "
    "enableServiceLinks ephemeralContainers evictionResponders hostAliases hostIPC hostNetwork "
    "hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers nodeName "
    "nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates "
    "resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates "
    "schedulingGroup securityContext serviceAccount serviceAccountName setHostnameAsFQDN "
    "shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations "
    "topologySpreadConstraints volumes workloadRef"
)
CONTAINER: Final = _words(
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports "
    "readinessProbe resizePolicy resources restartPolicy restartPolicyRules securityContext "
    "startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty "
    "volumeDevices volumeMounts workingDir"
)
RESOURCES: Final = _words("requests limits claims")
AFFINITY: Final = _words("nodeAffinity podAffinity podAntiAffinity")
# The first level that has a name wins: activeDeadlineSeconds and restartPolicy are fields of pods
# too, but whoever writes one too high means the job's.
_LEVELS: Final = (
    (SPEC, "spec"),
    (RUN_POLICY, "spec.runPolicy"),
    (SCHEDULING_POLICY, "spec.runPolicy.schedulingPolicy"),
    (ELASTIC_POLICY, "spec.elasticPolicy"),
    (REPLICA, "the replica spec"),
    # Of what both have, such as resources, mostly the container's is meant.
    (POD - CONTAINER, "the pod template's spec"),
    (CONTAINER, "the container"),
    (_words("labels annotations"), "metadata"),
)


def refuse_unknown(spot: Spot, known: frozenset[str]) -> None:
    """Refuse every field that this level does not have: a typo, another case, another level."""
    for key, item in _others(spot, known):
        raise _unknown(key, item, known, did_you_mean(key, known, "remove it"))


def refuse_misplaced(spot: Spot, known: frozenset[str]) -> None:
    """Refuse unknown fields that are surely mistakes, and keep others.

    Kubernetes adds fields to pods over time; only near misses and names of another level go.
    """
    for key, item in _others(spot, known):
        near = closest(key, known, NEAR)
        if near or _home(key):
            raise _unknown(key, item, known, f"did you mean {near!r}?")


def _others(spot: Spot, known: frozenset[str]) -> Iterator[tuple[str, Spot]]:
    return (entry for entry in spot.entries() if entry[0] not in known)


def _unknown(key: str, spot: Spot, known: frozenset[str], hint: str) -> Exception:
    home = _home(key)
    return spot.refuse(
        f"there is no field {key[:80]!r} at this level",
        allowed=tuple(sorted(known)),
        hint=f"{key} belongs into {home}" if home else hint,
    )


def _home(key: str) -> str:
    return next((where for names, where in _LEVELS if key in names), "")
