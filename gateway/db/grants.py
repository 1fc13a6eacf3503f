"""What is granted to a gang: the pods with their nodes, amounts and devices, and its charges."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import DeviceKind
from gateway.errors import Conflict

WHOLE_DEVICE_UNITS = 100


class GrantConflict(Conflict):
    """A device, node amount or live attempt is taken already; plan again."""

    code = "grant_conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPod:
    """One pod's part of a grant; `amounts` are cpu, memory, pods and extended resources."""

    pod_set: str
    index: int
    rank: int
    node_id: int
    amounts: Mapping[str, int]
    devices: tuple[tuple[DeviceKind, int], ...]
    """(kind, ordinal) on that node."""
    tolerations: tuple[Toleration, ...] = ()
    """Those of the flavor under which it was placed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A gang to be reserved."""

    job_id: int
    version: int
    attempt: int
    epoch: int
    backend: str
    guarantee: str
    object_name: str
    at_us: int
    pods: tuple[GrantPod, ...]
    charges: tuple[tuple[str, str, str, int], ...]
    """(queue, flavor, resource, amount)."""
    usage_part: int = 0
    """Part of the fleet that it takes, in 1/2^40; 0 where its user's usage is not counted."""
    usage_entry: int = 0
    """Usage that it counts at once, in 1/2^40."""
