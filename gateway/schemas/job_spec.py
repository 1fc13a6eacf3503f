"""JobSpec: one submitted training run in normal form, whatever form the user wrote it in.

`gateway.manifests` reads every accepted form into it; the service stores it as JSON; the digest of
its canonical JSON is what an idempotency key is compared by. `pod_sets` is derived from the
manifest and carries what a decision needs.
"""

from typing import Literal

from pydantic import Field

from gateway.core.vocabulary import PairRule, PartitionRule
from gateway.schemas.base import JsonObject, WireModel

LATER_FIELDS = ("priority_class", "not_before_at", "deadline_at", "expected_seconds")
"""Fields of later releases: left out of the digest while they say nothing, so that an idempotency
key that was used before an upgrade still meets the same body."""


class NodeRequirement(WireModel):
    """One expression over node labels."""

    key: str
    # Literals, not enums: the names are Kubernetes' and travel as they are.
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class TolerationSpec(WireModel):
    """One toleration of a pod template."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


# Every field below is part of the digest, and of the stored JSON of jobs that already wait: a new
# one needs a default that means what was meant before.
class PodSet(WireModel):
    """Pods alike in a gang, with what one of them needs."""

    name: Literal["Master", "Worker"]
    # No set of zero pods: the operator refuses 0 Workers, and an empty set would be placed at once.
    count: int = Field(ge=1)
    per_pod: dict[str, int]
    """Effective requests: cpu in millicores, memory in bytes, the others in whole units."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    affinity: tuple[tuple[NodeRequirement, ...], ...] = ()
    tolerations: tuple[TolerationSpec, ...] = ()
    # The rule that one pod keeps anyway; so "nothing said" and "node" are one request class.
    pair: PairRule = PairRule.NODE
    is_pair_required: bool = True
    partition: PartitionRule = PartitionRule.NONE
    """Whether the GPUs of a pod must be one NVLink partition of their machine."""
    host_ports: tuple[int, ...] = ()
    level: str = ""
    """Node label of which all pods of the set share one value, such as a rack's; empty for none."""
    is_level_required: bool = True
    slices: tuple[tuple[str, int], ...] = ()
    """Node label and number of pods: each so many pods of the gang, in rank order, share one value
    of it. Slices inside slices come after those they are in."""
    avoid: tuple[str, ...] = ()
    """Names of nodes to keep off, sorted."""
    is_avoid_required: bool = True


class JobSpec(WireModel):
    """One training run in normal form."""

    name: str
    namespace: str
    queue: str = ""
    """Empty until the service fills in the namespace's default queue."""
    priority: int = Field(default=0, ge=-1_000_000_000, le=1_000_000_000)
    priority_class: str = ""
    """One that the queue allows; empty for none."""
    hold: bool = False
    not_before_at: str | None = None
    """RFC 3339 as it was written: another spelling of the same instant is another body."""
    deadline_at: str | None = None
    """For the order only: a job that misses it still runs."""
    expected_seconds: int | None = Field(default=None, ge=1)
    """How long it is expected to run."""
    # None waits for ever. 0 would be a job that has failed before anybody looked at it.
    queue_timeout_seconds: int | None = Field(default=None, ge=1)
    run_timeout_seconds: int | None = Field(default=None, ge=1)
    start_timeout_seconds: int = Field(default=1800, ge=1)
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    pod_sets: tuple[PodSet, ...]
    """Master first."""
    manifest: JsonObject
    """The PyTorchJob as plain JSON, integral floats made whole, unknown fields kept."""
