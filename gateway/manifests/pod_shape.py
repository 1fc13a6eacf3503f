"""Checks a pod template's form: containers, environment, ports, types of the fields that are read.

Whether it is safe and what it asks for is judged elsewhere. Unknown fields are kept unless they are
surely mistakes, for Kubernetes adds fields to pods over time.
"""

import re
from typing import Final

from gateway.errors import NotSupportedYet
from gateway.manifests import known_fields as known
from gateway.manifests.fields import dns_label
from gateway.manifests.naming import require_keys
from gateway.manifests.spot import Spot
from gateway.schemas.suggesting import UNEXPANDED, closest

TRAINER: Final = "pytorch"
"""Name that the operator wants of the container that trains."""
_MAX_PORT: Final = 65535
_UNBUILT: Final = {
    "resourceClaims": "ask for devices as resources, for example nvidia.com/gpu: 1",
    "schedulingGroup": "remove it: the gateway starts all pods of the job together",
    "workloadRef": "remove it: the gateway starts all pods of the job together",
    "priorityClassName": "use the annotation training-gateway.io/priority",
    "priority": "use the annotation training-gateway.io/priority",
    "preemptionPolicy": "remove it: started pods preempt nobody",
}
_TEXTS: Final = ("image", "imagePullPolicy", "workingDir", "restartPolicy")
# KEP-4369 allows nearly all printable characters, so names such as `a.b` pass. A space or an
# equals sign is what a shell line pasted into `name` leaves behind.
_VARIABLE: Final = re.compile(r"[^=\s\x00-\x1f]+")


def check_template(template: Spot) -> None:
    """Check the form of a pod template. Raises InvalidInput or NotSupportedYet."""
    require_keys(template.at("metadata"))
    known.refuse_misplaced(template.at("metadata"), known.METADATA | known.SERVER_METADATA)
    pod = template.at("spec")
    known.refuse_misplaced(pod, known.POD)
    _refuse_unbuilt(pod)
    containers = pod.at("containers")
    containers.demand(
        bool(containers.items()),
        f"a pod needs a container named {TRAINER!r}",
        f"add a container named {TRAINER!r} with an image",
    )
    # Init containers share the names of containers: the kubelet keys statuses and logs by them.
    everyone = [*containers.items(), *pod.at("initContainers").items()]
    for item in everyone:
        _check_container(item)
    _refuse_twice([item.at("name") for item in everyone], "container")
    _refuse_twice([item.at("name") for item in pod.at("volumes").items()], "volume")
    _require_trainer(containers)


def _refuse_unbuilt(pod: Spot) -> None:
    for key, hint in _UNBUILT.items():
        spot = pod.at(key)
        is_unused = spot.value in (None, [])
        spot.demand(is_unused, f"{key} is not supported yet", hint, kind=NotSupportedYet)


def _require_trainer(containers: Spot) -> None:
    names = [item.at("name") for item in containers.items()]
    if TRAINER in [name.value for name in names]:
        return
    near = _meant_as_trainer(names)
    raise near.refuse(
        f"no container is named {TRAINER!r}, which the operator looks for",
        allowed=(TRAINER,),
        hint=f"rename the container {near.text()[:63]!r} to {TRAINER!r}",
    )


def _meant_as_trainer(names: list[Spot]) -> Spot:
    return next((each for each in names if closest(each.text(), [TRAINER])), names[0])


def _check_container(container: Spot) -> None:
    known.refuse_misplaced(container, known.CONTAINER)
    dns_label(container.at("name"))
    for key in _TEXTS:
        container.at(key).text()
    _check_image(container.at("image"))
    container.at("command").texts()
    container.at("args").texts()
    _check_environment(container.at("env"))
    for port in container.at("ports").items():
        _check_port(port)


def _check_image(image: Spot) -> None:
    text = image.text().strip()
    image.demand(bool(text), "the image is empty", "give a container image")
    # No image reference has a dollar sign, so this is never a false alarm.
    image.demand("$" not in text, f"{text[:80]!r} is not an image", UNEXPANDED)
    has_space = re.search(r"\s", image.text()) is not None
    image.demand(not has_space, f"{text[:80]!r} is not an image", "remove the spaces")


def _check_environment(env: Spot) -> None:
    for item in env.items():
        name = item.at("name")
        is_name = _VARIABLE.fullmatch(name.text()) is not None
        name.demand(is_name, "a variable needs a name without '='", "give the name")
        value, source = item.at("value"), item.at("valueFrom")
        value.text()
        source.fields()
        # Kubernetes refuses the pod, not the job: it would be found only when the gang starts.
        is_one = value.is_missing or source.is_missing
        item.demand(is_one, "value and valueFrom are both given", "keep one of the two")
    # Operator 1.9 declares env as a list keyed by name; the API server refuses a repeated one.
    _refuse_twice([item.at("name") for item in env.items()], "variable")


def _check_port(port: Spot) -> None:
    port.at("containerPort").whole(1, _MAX_PORT)
    port.at("hostPort").whole_or(0, 0, _MAX_PORT)
    port.at("name").text()


def _refuse_twice(names: list[Spot], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        twice = f"the {what} {name.text()[:80]!r} is there twice"
        name.demand(name.text() not in seen, twice, "rename or remove one of the two")
        seen.add(name.text())
