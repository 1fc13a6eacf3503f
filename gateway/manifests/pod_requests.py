"""What one pod of a template asks for, computed as kube-scheduler computes it.

Sum over containers, maximum over init containers, sidecars added, pod-level resources, overhead,
limits standing in for missing requests. Source: `resource.PodRequests` of Kubernetes
component-helpers; sidecars KEP-753, pod-level resources KEP-2837.
"""

from collections.abc import Iterable
from itertools import chain
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
# What Kubernetes lets be overcommitted; everything else needs limits that equal the requests.
_PLAIN: Final = ("cpu", "memory", *_UNCOUNTED)
_UNBUILT: Final = ("nvidia.com/mig-", "nvidia.com/gpu.shared", "koordinator.sh/")


def effective_requests(pod: Spot, options: ReadOptions, *, has_operator_init: bool) -> Requests:
    """Give one pod's effective requests: cpu in millicores, memory in bytes, gpu, rdma, others.

    Raises InvalidInput with the pointer of the quantity that is wrong, NotSupportedYet for parts
    of devices.
    """
    # Init containers run one after the other, each beside the sidecars started before it; then all
    # containers run beside all sidecars. A node needs room for the larger of the two.
    containers = _sum(_container(item, options) for item in pod.at("containers").items())
    starting, sidecars = _starting(pod.at("initContainers").items(), options)
    # The operator appends its own init container, so it starts when every sidecar runs already.
    if has_operator_init:
        starting = _most(starting, _sum((sidecars, OPERATOR_INIT)))
    running = _sum((containers, sidecars))
    _refuse_mixed_gpus(pod)
    total = _with_pod_level(_most(running, starting), pod.at("resources"), options)
    overhead = _amounts(pod.at("overhead"), options)
    # Sorted and without zeros: pods that ask alike must be equal, for they share a request class.
    return {name: amount for name, amount in sorted(_sum((total, overhead)).items()) if amount}


def _starting(inits: list[Spot], options: ReadOptions) -> tuple[Requests, Requests]:
    """Give the most that is asked for while init containers run, and what sidecars keep."""
    sidecars: Requests = {}
    starting: Requests = {}
    for item in inits:
        asked = _sum((sidecars, _container(item, options)))
        # A sidecar of 1 CPU, then an init container of 5: 6. The other way round: 5.
        starting = _most(starting, asked)
        # This alone makes a sidecar of it (KEP-753): it runs until the pod ends.
        if item.at("restartPolicy").value == "Always":
            sidecars = asked
    return starting, sidecars


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
        spot.demand(
            name in {"cpu", "memory"} or name.startswith("hugepages-"),
            f"{name} cannot be asked for by the pod as a whole",
            "ask for it in a container",
            allowed=("cpu", "memory", "hugepages-SIZE"),
        )
    # KEP-2837: what the pod as a whole requests replaces the sum of its containers. Its limits
    # stand in only for a resource that no container asks for; so defaults the API server, too.
    return {**limits, **total, **requests}


def _refuse_unequal(resources: Spot) -> None:
    """Devices cannot be overcommitted, so Kubernetes wants limits that equal the requests."""
    limits, requests = resources.at("limits"), resources.at("requests")
    for name, spot in requests.entries():
        if name not in _PLAIN:
            _require_equal(name, spot, limits.at(name))


def _require_equal(name: str, request: Spot, limit: Spot) -> None:
    request.demand(
        not limit.is_missing,
        f"{name} has a request but no limit",
        f"add the same {name} to limits",
    )
    limit.demand(
        _parsed(name, request) == _parsed(name, limit),
        f"requests {request.value} of {name}, but its limit is {limit.value}",
        "write the same in requests and limits",
        allowed=(str(request.value),),
    )


def _amounts(quantities: Spot, options: ReadOptions) -> Requests:
    found: Requests = {}
    for name, spot in quantities.entries():
        counted = _counted(name, spot, options)
        found[counted] = found.get(counted, 0) + _parsed(name, spot)
    return {name: amount for name, amount in found.items() if name not in _UNCOUNTED}


def _refuse_mixed_gpus(pod: Spot) -> None:
    """Refuse two kinds of GPU in one pod: no node has both, and their sum would mean nothing."""
    gpus: set[str] = set()
    for quantities in quantity_maps(pod):
        for name, spot in quantities.given(GPU_RESOURCE_NAMES):
            if _parsed(name, spot):
                gpus.add(name)
            one_kind = "a pod asks for one kind of GPU only"
            spot.demand(len(gpus) <= 1, one_kind, f"keep one of {sorted(gpus)}")


def _counted(name: str, spot: Spot, options: ReadOptions) -> str:
    """Give the name by which the gateway counts a Kubernetes resource."""
    if name in GPU_RESOURCE_NAMES:
        return "gpu"
    if options.is_rdma(name):
        return "rdma"
    if name.startswith(_UNBUILT):
        raise _unsupported(spot, f"{name} is")
    if not _is_kubernetes_name(name):
        hint = "write nvidia.com/gpu" if "gpu" in name else "write the full name, as DOMAIN/NAME"
        raise spot.refuse(f"Kubernetes has no resource {name[:80]!r}", hint=hint)
    return name


def _is_kubernetes_name(name: str) -> bool:
    return name in _PLAIN or "/" in name or name.startswith("hugepages-")


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
    for name, amount in chain.from_iterable(part.items() for part in parts):
        total[name] = total.get(name, 0) + amount
    return total


def _most(left: Requests, right: Requests) -> Requests:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {*left, *right}}
