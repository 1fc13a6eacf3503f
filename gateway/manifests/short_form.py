"""Renders the short form (image, command, workers, resources) as a PyTorchJob manifest.

`workers` is the number of Worker replicas beside one Master, so `workers: 3` makes four pods, all
alike. The gateway's own fields become annotations; from there on both forms are one.
"""

import shlex
from typing import Any, Final

from gateway.core.vocabulary import LABEL_PREFIX
from gateway.errors import NotSupportedYet
from gateway.manifests.claims import flat_fields
from gateway.manifests.documents import API_VERSION, KIND
from gateway.manifests.fields import FIELDS, GROUPS, to_text
from gateway.manifests.options import ReadOptions
from gateway.manifests.spot import Spot
from gateway.manifests.suggesting import did_you_mean

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
MAX_WORKERS: Final = 9_999
_UNBUILT_RESOURCES: Final = ("gpu_share", "gpu_memory", "rdma_share", "vf")
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
    metadata = Spot(manifest).at("metadata")
    if metadata.is_missing:
        manifest["metadata"] = {}
    elif not isinstance(metadata.value, dict):
        raise metadata.wrong_type("a mapping")
    for key in ("name", "namespace"):
        _put_once(manifest["metadata"], key, spot.at(key))
    for key in ("labels", "annotations"):
        for name, item in spot.at(key).entries():
            _put_once(_own_map(manifest, key), name, item)
    for name, item in flat_fields(document):
        value = to_text(FIELDS[name].value_of(item))
        _put_once(
            _own_map(manifest, "annotations"), FIELDS[name].annotation, Spot(value, item.pointer)
        )
    return manifest


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
    for key in TEMPLATE_KEYS:
        spot = document.at(key)
        if not spot.is_missing:
            raise spot.refuse(
                f"{key} stands beside a manifest",
                hint="write it into the manifest's pod template, or leave the manifest out",
            )
    return dict(document.at("manifest").fields())


def _own_map(manifest: dict[str, Any], key: str) -> dict[str, Any]:
    spot = Spot(manifest).at("metadata", key)
    if spot.is_missing:
        manifest["metadata"][key] = {}
    elif not isinstance(spot.value, dict):
        raise spot.wrong_type("a mapping")
    own: dict[str, Any] = manifest["metadata"][key]
    return own


def _put_once(mapping: dict[str, Any], key: str, spot: Spot) -> None:
    if spot.is_missing:
        return
    if mapping.setdefault(key, spot.value) != spot.value:
        raise spot.refuse(
            f"{key.removeprefix(LABEL_PREFIX)} is given twice, and not alike",
            allowed=(str(mapping[key])[:80],),
            hint="say it in one place only",
        )


def _rendered(document: Spot, options: ReadOptions) -> dict[str, Any]:
    workers = document.at("workers")
    count = 0 if workers.is_missing else workers.whole(0, MAX_WORKERS)
    specs = {"Master": _replica(document, 1, options)}
    if count:
        specs["Worker"] = _replica(document, count, options)
    spec: dict[str, Any] = {"pytorchReplicaSpecs": specs}
    processes = document.at("nproc_per_node")
    if not processes.is_missing:
        is_number = isinstance(processes.value, int)
        spec["nprocPerNode"] = str(processes.whole(1, 1024)) if is_number else processes.text()
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {}, "spec": spec}


def _replica(document: Spot, count: int, options: ReadOptions) -> dict[str, Any]:
    image = document.at("image")
    if not image.text().strip():
        raise image.refuse("a job needs an image", hint="give a container image, or a manifest")
    container: dict[str, Any] = {"name": "pytorch", "image": image.text()}
    for key in ("command", "args"):
        words = _words(document.at(key))
        if words:
            container[key] = words
    env = _environment(document.at("env"))
    if env:
        container["env"] = env
    resources = _resources(document.at("resources"), options)
    if resources:
        container["resources"] = resources
    return {
        "replicas": count,
        "restartPolicy": "Never",
        "template": {"spec": {"containers": [container]}},
    }


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
    entries = []
    for name, item in spot.entries():
        is_whole = isinstance(item.value, int) and not isinstance(item.value, bool)
        entries.append({"name": name, "value": str(item.value) if is_whole else item.text()})
    return sorted(entries, key=lambda entry: ("$(" in entry["value"], entry["name"]))


def _resources(spot: Spot, options: ReadOptions) -> dict[str, Any]:
    """Give requests as written, and equal limits for devices, which Kubernetes asks for."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for key, item in spot.entries():
        name = _resource_name(key, item, options)
        if item.is_missing:
            raise item.wrong_type("an amount")
        requests[name] = item.value
        if name not in {"cpu", "memory"}:
            limits[name] = item.value
    both = {"requests": requests, "limits": limits}
    return {kind: values for kind, values in both.items() if values}


def _resource_name(key: str, spot: Spot, options: ReadOptions) -> str:
    if key in {"cpu", "memory"} or "/" in key or key.startswith("hugepages-"):
        return key
    devices = {"gpu": options.short_form_gpu, "rdma": options.short_form_rdma}
    if key in devices:
        return devices[key]
    if key.replace("-", "_") in _UNBUILT_RESOURCES or key.startswith("mig-"):
        raise spot.refuse(
            f"{key} is not supported yet",
            allowed=("cpu", "memory", "gpu", "rdma"),
            hint="ask for whole devices: gpu and rdma",
            kind=NotSupportedYet,
        )
    raise spot.refuse(
        f"there is no resource {key[:80]!r}",
        allowed=_RESOURCES,
        hint=did_you_mean(key, _RESOURCES, "use cpu, memory, gpu, rdma or a full resource name"),
    )
