"""What the gateway must be allowed to do, and nothing more; deploy/base grants exactly this."""

from dataclasses import dataclass
from typing import Final

from gateway.backends.kubeflow.names import GROUP, PLURAL


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One verb on one resource; `resource` may be RESOURCE/SUBRESOURCE."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


CLUSTER_WIDE: Final = (
    Permission("", "nodes", "list"),
    Permission("", "pods", "list"),
)
# No update, since every change is a merge patch, and no watch, since the ticker lists: a missed
# event cannot hide a pod.
IN_NAMESPACES: Final = (
    Permission("", "pods", "list"),
    Permission("", "pods", "patch"),
    Permission("", "pods/log", "get"),
    Permission(GROUP, PLURAL, "create"),
    Permission(GROUP, PLURAL, "delete"),
    Permission(GROUP, PLURAL, "get"),
    Permission(GROUP, PLURAL, "patch"),
)
