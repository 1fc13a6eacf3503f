"""Renders the short form (image, command, workers, resources) as a PyTorchJob manifest.

`workers` is the number of Worker replicas beside one Master, so `workers: 3` makes four pods, all
alike. The gateway's own fields become annotations; from there on both forms are one.
"""

import shlex
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gateway.core.vocabulary import LABEL_PREFIX
from gateway.errors import GatewayError, NotSupportedYet
from gateway.manifests.claims import flat_fields
from gateway.manifests.documents import API_VERSION, KIND
from gateway.manifests.fields import FIELDS, GROUPS, to_text
from gateway.manifests.options import ReadOptions
from gateway.manifests.spot import Spot, is_whole
from gateway.schemas.suggesting import did_you_mean

TEMPLATE_KEYS: Final = (
    "image",
    "command",
    "args",
    "env",
    "workers",
    "nproc_per_node",
    "resources",
)
OBJECT_KEYS: Final = ("name", "namespace", "labels", "annotations")
KEYS: Final = (*OBJECT_KEYS, *TEMPLATE_KEYS, "manifest", *GROUPS, *FIELDS)
# The last index has four digits; names leave room for no more.
MAX_WORKERS: Final = 9_999
_UNBUILT_RESOURCES: Final = ("gpu_share", "gpu_memory", "rdma_share", "vf")
_OVERCOMMITTED: Final = frozenset({"cpu", "memory"})
"""What Kubernetes takes requests of without a limit."""
_RESOURCES: Final = ("cpu", "memory", "gpu", "rdma", *_UNBUILT_RESOURCES)
_MEANT: Final = {
    "replicas": "workers: Worker pods beside one Master",
    "gpus": "resources: {gpu: N}",
    "gpu": "resources: {gpu: N}",
    "rdma": "resources: {rdma: N}",
    "cpu": "resources: {cpu: N}",
    "memory": "resources: {memory: N}",
}


def render(document: dict[str, Any], options: ReadOptions) -> dict[str, Any]:
    """Give the manifest of a short form. Raises InvalidInput for unknown or wrong fields."""
    refuse_unknown_keys(Spot(document))
    spot = Spot(document)
    manifest = _wrapped(spot) if "manifest" in document else _rendered(spot, options)
    metadata = Spot(manifest).mapping_at("metadata")
    for key in ("name", "namespace"):
        _put_once(metadata, key, spot.at(key))
    for key in ("labels", "annotations"):
        _put_all(metadata, key, spot.at(key).entries())
    _put_all(metadata, "annotations", _annotations(document))
    return manifest


def _annotations(document: dict[str, Any]) -> Iterator[tuple[str, Spot]]:
    """Give what the short form says of the gateway's own fields, as annotations."""
    for name, item in flat_fields(document):
        value = to_text(FIELDS[name].value_of(item))
        yield FIELDS[name].annotation, Spot(value, item.pointer)


def refuse_unknown_keys(document: Spot) -> None:
    """Refuse a key that the short form does not have, with the one that was probably meant."""
    for key, spot in document.entries():
        if key.replace("-", "_") in KEYS:
            continue
        meant = _MEANT.get(key)
        otherwise = "choose one of the allowed fields, or give a PyTorchJob manifest"
        raise spot.refuse(
            f"a job has no field {key[:80]!r}",
            allowed=KEYS,
            hint=f"write {meant}" if meant else did_you_mean(key, KEYS, otherwise),
        )


def _wrapped(document: Spot) -> dict[str, Any]:
    """Give the manifest that stands beside fields of the gateway."""
    for key, spot in document.given(TEMPLATE_KEYS):
        raise spot.refuse(
            f"{key} stands beside a manifest",
            hint="write it into the manifest's pod template, or leave the manifest out",
        )
    return dict(document.at("manifest").fields())


def _put_all(metadata: Spot, kind: str, entries: Iterable[tuple[str, Spot]]) -> None:
    for key, spot in entries:
        _put_once(metadata.mapping_at(kind), key, spot)


def _put_once(mapping: Spot, key: str, spot: Spot) -> None:
    if spot.is_missing:
        return
    earlier = mapping.value.setdefault(key, spot.value)
    if earlier != spot.value:
        raise spot.refuse(
            f"{key.removeprefix(LABEL_PREFIX)} is given twice, and not alike",
            allowed=(str(earlier)[:80],),
            hint="say it in one place only",
        )


def _rendered(document: Spot, options: ReadOptions) -> dict[str, Any]:
    # Always a Master: without it the operator sets neither MASTER_ADDR nor RANK.
    counts = {"Master": 1, "Worker": document.at("workers").whole_or(0, 0, MAX_WORKERS)}
    specs = {kind: _replica(document, count, options) for kind, count in _filled(counts).items()}
    spec: dict[str, Any] = {"pytorchReplicaSpecs": specs}
    for _, processes in document.given(["nproc_per_node"]):
        spec["nprocPerNode"] = _processes(processes)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {}, "spec": spec}


def _processes(spot: Spot) -> str:
    # True is an int too, and is refused by `whole`. The CRD takes this field as text only.
    return str(spot.whole(1, 1024)) if isinstance(spot.value, int) else spot.text()


def _replica(document: Spot, count: int, options: ReadOptions) -> dict[str, Any]:
    image = document.at("image")
    has_image = bool(image.text().strip())
    image.demand(has_image, "a job needs an image", "give a container image, or a manifest")
    container = {
        "name": "pytorch",
        "image": image.text(),
        "command": _words(document.at("command")),
        "args": _words(document.at("args")),
        "env": _environment(document.at("env")),
        "resources": _resources(document.at("resources"), options),
    }
    return {
        "replicas": count,
        # The operator's default OnFailure starts one rank again, while the others wait for it in a
        # collective until they time out. Whole gangs are started again by `requeue`.
        "restartPolicy": "Never",
        "template": {"spec": {"containers": [_filled(container)]}},
    }


def _filled(mapping: dict[str, Any]) -> dict[str, Any]:
    """Give a mapping without its empty values."""
    return {key: value for key, value in mapping.items() if value}


def _words(spot: Spot) -> list[str]:
    """Give a command as a list; a text is split as a shell would, without any expansion."""
    if not isinstance(spot.value, str):
        return spot.texts()
    try:
        return shlex.split(spot.value)
    except ValueError as error:
        raise spot.refuse(
            f"the command cannot be split: {error}", hint="close the quotes, or write a list"
        ) from None


def _environment(spot: Spot) -> list[Any]:
    """Give a container's env; a mapping has no order, so names are sorted.

    Variables that refer to others come last, for a kubelet expands only what came before.
    """
    if isinstance(spot.value, list):
        return list(spot.value)
    entries = [{"name": name, "value": _variable(item)} for name, item in spot.entries()]
    return sorted(entries, key=lambda entry: ("$(" in entry["value"], entry["name"]))


def _variable(spot: Spot) -> str:
    return str(spot.value) if is_whole(spot.value) else spot.text()


def _resources(spot: Spot, options: ReadOptions) -> dict[str, Any]:
    """Give requests as written, and equal limits for devices, which Kubernetes asks for."""
    requests = dict(_request(key, item, options) for key, item in spot.entries())
    limits = {name: amount for name, amount in requests.items() if name not in _OVERCOMMITTED}
    return _filled({"requests": requests, "limits": limits})


def _request(key: str, spot: Spot, options: ReadOptions) -> tuple[str, Any]:
    name = _resource_name(key, spot, options)
    if spot.is_missing:
        raise spot.wrong_type("an amount")
    return name, spot.value


def _resource_name(key: str, spot: Spot, options: ReadOptions) -> str:
    devices = {"gpu": options.short_form_gpu, "rdma": options.short_form_rdma}
    if key in devices:
        return devices[key]
    if _is_kubernetes_name(key):
        return key
    raise _unbuilt_resource(key, spot) if _is_unbuilt(key) else _unknown_resource(key, spot)


def _is_kubernetes_name(key: str) -> bool:
    return key in _OVERCOMMITTED or "/" in key or key.startswith("hugepages-")


def _is_unbuilt(key: str) -> bool:
    return key.startswith("mig-") or key.replace("-", "_") in _UNBUILT_RESOURCES


def _unbuilt_resource(key: str, spot: Spot) -> GatewayError:
    return spot.refuse(
        f"{key} is not supported yet",
        allowed=("cpu", "memory", "gpu", "rdma"),
        hint="ask for whole devices: gpu and rdma",
        kind=NotSupportedYet,
    )


def _unknown_resource(key: str, spot: Spot) -> GatewayError:
    return spot.refuse(
        f"there is no resource {key[:80]!r}",
        allowed=_RESOURCES,
        hint=did_you_mean(key, _RESOURCES, "use cpu, memory, gpu, rdma or a full resource name"),
    )
