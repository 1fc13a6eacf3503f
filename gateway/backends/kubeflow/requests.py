"""What a pod that exists asks of its node, as kube-scheduler counts it (effective requests). Pure.

Source: k8s.io/component-helpers/resource, PodRequests: the larger of the running containers
together with the sidecars and each init container with the sidecars started before it, plus
overhead; pod-level requests replace the sum where they are given. Unlike the manifest reader this
reads what the API server has accepted, so it refuses nothing.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

from gateway.backends.kubeflow.json_paths import Json, at, items_at, mapping_at
from gateway.backends.kubeflow.names import is_device
from gateway.errors import InvalidInput
from gateway.manifests.quantities import parse_quantity

Requests = dict[str, int]


def quantity(value: Any, resource: str) -> int:
    """Give a Kubernetes quantity in base units; 0 for what is none, as nothing here may raise."""
    try:
        return parse_quantity(value, resource)
    except InvalidInput:
        return 0


def amounts_of(quantities: Json) -> Requests:
    """Give a mapping of quantities in base units."""
    return {name: quantity(value, name) for name, value in quantities.items()}


def total_of(amounts: Requests, is_counted: Callable[[str], bool]) -> int:
    """Give the sum over the resources that are counted."""
    return sum(amounts[name] for name in filter(is_counted, amounts))


def without_devices(amounts: Requests) -> Requests:
    """Give what is counted in amounts rather than granted device by device."""
    return {name: amount for name, amount in amounts.items() if not is_device(name)}


def effective_requests(pod: Json) -> Requests:
    """Give what the pod takes of its node, by resource name."""
    spec = mapping_at(pod, "spec")
    running: Requests = reduce(_plus, map(_requests, items_at(spec, "containers")), {})
    sidecars: Requests = {}
    starting: Requests = {}
    # Order matters (KEP-753): a sidecar runs on beside what starts after it. Sidecar 1, init 5,
    # main 2: starting takes max(1, 5 + 1) = 6, running 2 + 1 = 3, so the pod takes 6.
    for container in items_at(spec, "initContainers"):
        wanted = _requests(container)
        if at(container, "restartPolicy") == "Always":
            sidecars = _plus(sidecars, wanted)
            starting = _most(starting, sidecars)
        else:
            starting = _most(starting, _plus(wanted, sidecars))
    total = _most(_plus(running, sidecars), starting)
    limits = amounts_of(mapping_at(spec, "resources", "limits"))
    requests = amounts_of(mapping_at(spec, "resources", "requests"))
    # Pod-level resources (KEP-2837): a request replaces the sum, a limit fills in where neither is.
    return _plus({**limits, **total, **requests}, amounts_of(mapping_at(spec, "overhead")))


def _requests(holder: Json) -> Requests:
    """Give a container's requests; a limit stands in for a missing request."""
    limits = mapping_at(holder, "resources", "limits")
    return amounts_of({**limits, **mapping_at(holder, "resources", "requests")})


def _plus(left: Requests, right: Requests) -> Requests:
    return {name: left.get(name, 0) + right.get(name, 0) for name in left.keys() | right.keys()}


def _most(left: Requests, right: Requests) -> Requests:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in left.keys() | right.keys()}
