"""What the reader is told beside the document: defaults, settings and what the caller overrides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final, Literal

RDMA_RESOURCE_NAMES: Final = (
    "rdma/*",
    "nvidia.com/roce*",
    "nvidia.com/hostdev*",
    "nvidia.com/rdma*",
    "nvidia.com/sriov*",
    "openshift.io/mlnx*",
    "mellanox.com/*",
    "vpc.amazonaws.com/efa",
)
"""Patterns of the resource names by which device plugins offer RDMA NICs, one unit a NIC."""
GPU_RESOURCE_NAMES: Final = ("nvidia.com/gpu", "amd.com/gpu")

TOPOLOGY_LABELS: Final = MappingProxyType(
    {
        "rack": "topology.kubernetes.io/rack",
        "block": "topology.kubernetes.io/block",
        # Set by NVIDIA's GPU feature discovery; nodes of one clique share NVLink.
        "nvlink_domain": "nvidia.com/gpu.clique",
        "node": "kubernetes.io/hostname",
    }
)
"""Node label of each level that a gang may ask to stay inside of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read one job.

    `overrides` has the field names of the short form and wins over everything in the document; an
    entry that is None counts as not given.
    """

    allow_unsafe_templates: bool = False
    default_namespace: str = "default"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    rdma_resource_names: tuple[str, ...] = RDMA_RESOURCE_NAMES
    kueue_label: Literal["map", "refuse"] = "refuse"
    """Whether a Kueue queue label becomes the queue, or is refused."""
    short_form_gpu: str = "nvidia.com/gpu"
    """Resource name that `gpu` of the short form is rendered as."""
    short_form_rdma: str = "rdma/hca"
    """The same for `rdma`."""
    topology_labels: Mapping[str, str] = field(default_factory=lambda: dict(TOPOLOGY_LABELS))
    """Node label by topology level."""

    def is_rdma(self, resource: str) -> bool:
        """True for a resource name that counts NICs."""
        # Not `fnmatch`, which folds case on Windows: the SDK must read there what the server reads.
        return any(fnmatchcase(resource, pattern) for pattern in self.rdma_resource_names)
