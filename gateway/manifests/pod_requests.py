"""What one pod of a template asks for, computed as kube-scheduler computes it.

Sum over containers, maximum over init containers, sidecars added, pod-level resources, overhead,
limits standing in for missing requests. Source: `resource.PodRequests` of Kubernetes
component-helpers; sidecars KEP-753, pod-level resources KEP-2837.
"""

from collections.abc import Iterable
from typing import Final

from gateway.errors import InvalidInput, NotSupportedYet
from gateway.manifests.known_fields import RESOURCES, refuse_unknown
from gateway.manifests.options import GPU_RESOURCE_NAMES, ReadOptions
from gateway.manifests.quantities import parse_quantity
from gateway.manifests.spot import Spot

Requests = dict[str, int]
OPERATOR_INIT: Final[Requests] = {"cpu": 50, "memory": 10 * 2**20}
"""What the operator's own init container asks on workers beside a Master: 50m and 10Mi."""
_UNCOUNTED: Final = frozenset({"ephemeral-storage"})
"""Node-local disk is no part of the inventory; the kubelet guards it."""
_PLAIN: Final = ("cpu", "memory", *_UNCOUNTED)
_UNBUILT: Final = ("nvidia.com/mig-", "nvidia.com/gpu.shared", "koordinator.sh/")


def effective_requests(pod: Spot, options: ReadOptions, *, has_operator_init: bool) -> Requests:
    """Give one pod's effective requests: cpu in millicores, memory in bytes, gpu, rdma, others.

    Raises InvalidInput with the pointer of the quantity that is wrong, NotSupportedYet for parts
    of devices.
    """
    running = _sum(_container(item, options) for item in pod.at("containers").items())
    sidecars: Requests = {}
    starting: Requests = {}
    for item in pod.at("initContainers").items():
        asked = _container(item, options)
        if item.at("restartPolicy").value == "Always":
            running, sidecars = _sum((running, asked)), _sum((sidecars, asked))
            asked = sidecars
        else:
            asked = _sum((sidecars, asked))
        starting = _most(starting, asked)
    if has_operator_init:
        starting = _most(starting, _sum((sidecars, OPERATOR_INIT)))
    total = _with_pod_level(_most(running, starting), pod.at("resources"), options)
    overhead = _amounts(pod.at("overhead"), options)
    return {name: amount for name, amount in sorted(_sum((total, overhead)).items()) if amount}


def quantity_maps(pod: Spot) -> list[Spot]:
    """Give every mapping of a pod spec that holds quantities."""
    holders = [*pod.at("containers").items(), *pod.at("initContainers").items(), pod]
    resources = [holder.at("resources") for holder in holders]
    maps = [each.at(kind) for each in resources for kind in ("requests", "limits")]
    return [*maps, pod.at("overhead")]


def _container(container: Spot, options: ReadOptions) -> Requests:
    resources = container.at("resources")
    refuse_unknown(resources, RESOURCES)
    if resources.at("claims").items():
        raise _unsupported(resources.at("claims"), "resource claims are")
    _refuse_unequal(resources)
    # A limit stands in for a request that is not given.
    return {
        **_amounts(resources.at("limits"), options),
        **_amounts(resources.at("requests"), options),
    }


def _with_pod_level(total: Requests, resources: Spot, options: ReadOptions) -> Requests:
    refuse_unknown(resources, RESOURCES)
    limits = _amounts(resources.at("limits"), options)
    requests = _amounts(resources.at("requests"), options)
    for name, spot in (*resources.at("limits").entries(), *resources.at("requests").entries()):
        if name not in {"cpu", "memory"} and not name.startswith("hugepages-"):
            raise spot.refuse(
                f"{name} cannot be asked for by the pod as a whole",
                allowed=("cpu", "memory", "hugepages-SIZE"),
                hint="ask for it in a container",
            )
    return {**limits, **total, **requests}


def _refuse_unequal(resources: Spot) -> None:
    """Devices cannot be overcommitted, so Kubernetes wants limits that equal the requests."""
    limits, requests = resources.at("limits"), resources.at("requests")
    for name, spot in requests.entries():
        if name in _PLAIN:
            continue
        limit = limits.at(name)
        if limit.is_missing:
            raise spot.refuse(
                f"{name} has a request but no limit", hint=f"add the same {name} to limits"
            )
        if _parsed(name, spot) != _parsed(name, limit):
            raise limit.refuse(
                f"requests {spot.value} of {name}, but its limit is {limit.value}",
                allowed=(str(spot.value),),
                hint="write the same in requests and limits",
            )


def _amounts(quantities: Spot, options: ReadOptions) -> Requests:
    found: Requests = {}
    kinds = set()
    for name, spot in quantities.entries():
        amount = _parsed(name, spot)
        if name in _UNCOUNTED:
            continue
        counted = _counted(name, spot, options)
        if counted == "gpu" and amount:
            kinds.add(name)
        if len(kinds) > 1:
            raise spot.refuse(
                "a pod asks for one kind of GPU only", hint=f"keep one of {sorted(kinds)}"
            )
        found[counted] = found.get(counted, 0) + amount
    return found


def _counted(name: str, spot: Spot, options: ReadOptions) -> str:
    """Give the name by which the gateway counts a Kubernetes resource."""
    if name in GPU_RESOURCE_NAMES:
        return "gpu"
    if options.is_rdma(name):
        return "rdma"
    if name.startswith(_UNBUILT):
        raise _unsupported(spot, f"{name} is")
    if name not in _PLAIN and "/" not in name and not name.startswith("hugepages-"):
        hint = "write nvidia.com/gpu" if "gpu" in name else "write the full name, as DOMAIN/NAME"
        raise spot.refuse(f"Kubernetes has no resource {name[:80]!r}", hint=hint)
    return name


def _parsed(name: str, spot: Spot) -> int:
    try:
        return parse_quantity(spot.value, name)
    except InvalidInput as error:
        raise spot.refuse(error.detail, hint=error.hint, allowed=error.allowed) from None


def _unsupported(spot: Spot, what: str) -> Exception:
    return spot.refuse(
        f"{what} not supported yet",
        hint="ask for whole devices, for example nvidia.com/gpu: 1",
        kind=NotSupportedYet,
    )


def _sum(parts: Iterable[Requests]) -> Requests:
    total: Requests = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _most(left: Requests, right: Requests) -> Requests:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {*left, *right}}
