"""What a pod that exists asks of its node, as kube-scheduler counts it (effective requests). Pure.

Source: k8s.io/component-helpers/resource, PodRequests: the larger of the running containers
together with the sidecars and each init container with the sidecars started before it, plus
overhead; pod-level requests replace the sum where they are given. Unlike the manifest reader this
reads what the API server has accepted, so it refuses nothing.
"""

from gateway.backends.kubeflow.json_paths import Json, at, items_at, mapping_at
from gateway.errors import InvalidInput
from gateway.manifests.quantities import parse_quantity

Requests = dict[str, int]


def quantity(value: object, resource: str) -> int:
    """Give a Kubernetes quantity in base units; 0 for what is none, as nothing here may raise."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return 0
    try:
        return parse_quantity(value, resource)
    except InvalidInput:
        return 0


def amounts_of(quantities: Json) -> Requests:
    """Give a mapping of quantities in base units."""
    return {name: quantity(value, name) for name, value in quantities.items()}


def effective_requests(pod: Json) -> Requests:
    """Give what the pod takes of its node, by resource name."""
    spec = mapping_at(pod, "spec")
    running: Requests = {}
    for container in items_at(spec, "containers"):
        running = _plus(running, _requests(container))
    sidecars: Requests = {}
    starting: Requests = {}
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
    return _plus({**limits, **total, **requests}, amounts_of(mapping_at(spec, "overhead")))


def _requests(holder: Json) -> Requests:
    """Give a container's requests; a limit stands in for a missing request."""
    limits = mapping_at(holder, "resources", "limits")
    return amounts_of({**limits, **mapping_at(holder, "resources", "requests")})


def _plus(left: Requests, right: Requests) -> Requests:
    return {name: left.get(name, 0) + right.get(name, 0) for name in left.keys() | right.keys()}


def _most(left: Requests, right: Requests) -> Requests:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in left.keys() | right.keys()}
