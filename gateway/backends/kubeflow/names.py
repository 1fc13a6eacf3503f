"""The words that Kubernetes, the training operator and the gateway agree on. Constants only."""

from fnmatch import fnmatchcase
from typing import Final

from gateway.core.vocabulary import LABEL_PREFIX
from gateway.manifests.options import GPU_RESOURCE_NAMES, RDMA_RESOURCE_NAMES

GROUP: Final = "kubeflow.org"
VERSION: Final = "v1"
KIND: Final = "PyTorchJob"
PLURAL: Final = "pytorchjobs"
CRD_NAME: Final = f"{PLURAL}.{GROUP}"
REPLICA_SPECS: Final = "pytorchReplicaSpecs"
MAIN_CONTAINER: Final = "pytorch"
"""Container that the operator insists on, and whose log and exit code count."""

OPERATOR_PREFIX: Final = "training.kubeflow.org/"
JOB_NAME_LABEL: Final = OPERATOR_PREFIX + "job-name"
REPLICA_TYPE_LABEL: Final = OPERATOR_PREFIX + "replica-type"
REPLICA_INDEX_LABEL: Final = OPERATOR_PREFIX + "replica-index"

JOB_ID_LABEL: Final = LABEL_PREFIX + "job-id"
ATTEMPT_LABEL: Final = LABEL_PREFIX + "attempt"
EPOCH_LABEL: Final = LABEL_PREFIX + "epoch"
SPEC_HASH_LABEL: Final = LABEL_PREFIX + "spec-hash"
SPEC_HASH_LENGTH: Final = 40
"""A label value has at most 63 characters; a whole SHA-256 in hexadecimal has 64."""
OPENED_ANNOTATION: Final = LABEL_PREFIX + "opened"
"""On the PyTorchJob, "true" once every gate of the first gang was opened."""
RECREATED_ANNOTATION: Final = LABEL_PREFIX + "recreated"
"""On the PyTorchJob, the UIDs of re-created pods that were or are about to be opened."""
TOPOLOGY_ANNOTATION: Final = LABEL_PREFIX + "topology"
"""On a node, a JSON list of its devices."""

KUEUE_PREFIX: Final = "kueue.x-k8s.io/"
SIDECAR_INJECTION: Final = "sidecar.istio.io/inject"
DEFAULT_SCHEDULER: Final = "default-scheduler"


def is_gpu(resource: str) -> bool:
    """Whether an extended resource counts whole GPUs."""
    return resource in GPU_RESOURCE_NAMES


def is_rdma(resource: str) -> bool:
    """Whether an extended resource counts RDMA NICs."""
    return any(fnmatchcase(resource, pattern) for pattern in RDMA_RESOURCE_NAMES)


def is_device(resource: str) -> bool:
    """Whether an extended resource counts devices that are granted one by one."""
    return is_gpu(resource) or is_rdma(resource)


def pod_name(object_name: str, pod_set: str, index: int) -> str:
    """Give the name that the operator gives to a replica's pod."""
    return f"{object_name}-{pod_set.lower()}-{index}"
