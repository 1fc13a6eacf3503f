"""What REST answers and the command line prints about known machine types."""

from pydantic import Field

from gateway.core.vocabulary import DeviceKind
from gateway.schemas.base import Page, View


class DeviceTypeView(View):
    """One machine type in short; -1 is not used, a count of 0 says that no source tells."""

    name: str
    gpus: int
    nics: int
    switches: int
    numa_nodes: int
    pairs: int
    """GPUs that have a NIC under their switch."""
    is_c2c: bool = False
    """GPUs are reached over C2C: nearness is judged by NUMA node."""
    match: dict[str, str] = Field(default_factory=dict)
    """Labels by which nodes are recognised."""


class DevicePlaceView(View):
    """Place of one device inside a machine; -1 or empty where no source tells."""

    kind: DeviceKind
    ordinal: int
    name: str
    pci_address: str = ""
    switch: int = -1
    switch_path: tuple[int, ...] = ()
    root: int = -1
    numa: int = -1
    rail: int = -1
    nvlink_group: int = -1


class PartitionView(View):
    """GPUs that can be joined by NVLink apart from the others."""

    gpus: tuple[int, ...]
    """By ordinal."""
    bandwidth: int = 0
    """Of a ring through them, in GB/s; 0 where nobody measured it."""


class DeviceTypeDetail(DeviceTypeView):
    """One machine type with its wiring."""

    devices: tuple[DevicePlaceView, ...]
    partitions: tuple[PartitionView, ...] = ()
    gpu_links: tuple[tuple[str, ...], ...] = ()
    """GPU by GPU: X, NV18 for 18 NVLinks, or PIX, PXB, PHB, NODE, SYS, ? as NCCL has them."""
    nic_distances: tuple[tuple[str, ...], ...] = ()
    """GPU by NIC: PIX, PXB, PHB, NODE, SYS, ?."""
    drawing: tuple[str, ...] = ()
    """Lines of at most 80 columns."""


class DeviceTypePage(Page):
    """All known machine types, the built-in ones first."""

    items: tuple[DeviceTypeView, ...]
