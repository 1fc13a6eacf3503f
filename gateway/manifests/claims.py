"""Collects what a document says of the gateway's fields, wherever it says it, and settles it.

Places: annotations, runPolicy and its schedulingPolicy, a Kueue label. Two places that disagree
are refused; an override wins over all of them. What was settled is written back as annotations, so
that reading the result again gives the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.core.vocabulary import LABEL_PREFIX
from gateway.errors import InvalidInput
from gateway.manifests.fields import ALIASES, FIELDS, GROUPS, to_text
from gateway.manifests.options import ReadOptions
from gateway.manifests.spot import Spot
from gateway.manifests.suggesting import did_you_mean

KUEUE_PREFIX: Final = "kueue.x-k8s.io/"
KUEUE_QUEUE: Final = KUEUE_PREFIX + "queue-name"
_RUN_POLICY: Final = ("spec", "runPolicy")
_SCHEDULING: Final = (*_RUN_POLICY, "schedulingPolicy")
PLACES: Final = {
    "queue": (*_SCHEDULING, "queue"),
    "priority_class": (*_SCHEDULING, "priorityClass"),
    "min_available": (*_SCHEDULING, "minAvailable"),
    "queue_timeout_seconds": (*_SCHEDULING, "scheduleTimeoutSeconds"),
    "run_timeout_seconds": (*_RUN_POLICY, "activeDeadlineSeconds"),
}
"""Fields that a PyTorchJob has a place of its own for."""
_SUSPEND: Final = (*_RUN_POLICY, "suspend")
_TEMPLATE_FIELDS: Final = ("image", "command", "args", "env", "workers", "resources")


@dataclass(frozen=True, slots=True)
class Claim:
    """One place that says something of a field."""

    field: str
    value: Any
    pointer: str


def settle(
    manifest: dict[str, Any], overrides: list[Claim], options: ReadOptions
) -> dict[str, Any]:
    """Give the settled fields by name, and write them into the manifest.

    Raises InvalidInput for two places that disagree, an unknown key or a wrong value;
    NotSupportedYet for a field that is not built.
    """
    settled: dict[str, Claim] = {claim.field: claim for claim in overrides}
    for name in settled:
        _clear(manifest, name)
    for claim in _claims(manifest, options):
        earlier = settled.setdefault(claim.field, claim)
        if earlier.value != claim.value:
            raise _conflict(earlier, claim)
    values = {name: claim.value for name, claim in settled.items()}
    if options.kueue_label == "map":
        _drop_kueue(manifest)
    _write_back(manifest, settled)
    return values


def override_claims(values: Mapping[str, Any]) -> list[Claim]:
    """Give the claims of overrides, nested groups flattened; numbers may be written as text.

    Keys that are no field of the gateway are left to the caller. None counts as not given.
    """
    return [
        Claim(name, FIELDS[name].value_in_text(spot), spot.pointer)
        for name, spot in flat_fields(values)
    ]


def flat_fields(values: Mapping[str, Any]) -> Iterator[tuple[str, Spot]]:
    """Give (field, value) of every entry that is a field of the gateway."""
    for key, spot in Spot(dict(values)).entries():
        name = key.replace("-", "_")
        if spot.is_missing:
            continue
        if name in GROUPS:
            yield from _grouped(name, spot)
        elif ALIASES.get(name, name) in FIELDS:
            yield ALIASES.get(name, name), spot


def _grouped(group: str, spot: Spot) -> Iterator[tuple[str, Spot]]:
    known = GROUPS[group]
    for key, item in spot.entries():
        name = key.replace("-", "_")
        if name not in known:
            raise item.refuse(
                f"{group} has no field {key[:80]!r}",
                allowed=tuple(known),
                hint=did_you_mean(name, known, "choose one of the allowed fields"),
            )
        if not item.is_missing:
            yield known[name], item


def _claims(manifest: dict[str, Any], options: ReadOptions) -> Iterator[Claim]:
    document = Spot(manifest)
    for key, spot in document.at("metadata", "annotations").entries():
        if key.startswith(LABEL_PREFIX):
            yield _annotation(key, spot)
    for name, path in PLACES.items():
        spot = document.at(*path)
        if not spot.is_missing:
            yield Claim(name, FIELDS[name].value_of(spot), spot.pointer)
    suspend = document.at(*_SUSPEND)
    if suspend.flag():
        yield Claim("hold", True, suspend.pointer)
    for place in _kueue_places(document):
        for key, spot in place.entries():
            if key.startswith(KUEUE_PREFIX):
                yield _kueue(key, spot, options)


def _annotation(key: str, spot: Spot) -> Claim:
    if not isinstance(spot.value, str):
        raise spot.wrong_type("a text")
    written = key.removeprefix(LABEL_PREFIX)
    name = written.replace("-", "_").replace(".", "_")
    field = FIELDS.get(ALIASES.get(name, name))
    if field is None:
        raise _unknown_annotation(written, spot)
    return Claim(field.name, field.value_in_text(spot), spot.pointer)


def _unknown_annotation(written: str, spot: Spot) -> Exception:
    known = [field.annotation.removeprefix(LABEL_PREFIX) for field in FIELDS.values()]
    otherwise = "remove it; the prefix is the gateway's own"
    if written.replace("-", "_") in _TEMPLATE_FIELDS:
        otherwise = "write it into the pod template"
    return spot.refuse(
        f"{LABEL_PREFIX}{written[:80]} is not a field of the gateway",
        allowed=tuple(LABEL_PREFIX + each for each in known),
        hint=did_you_mean(written, known, otherwise),
    )


def _kueue_places(document: Spot) -> list[Spot]:
    places = [document.at("metadata", "labels"), document.at("metadata", "annotations")]
    for _, replica in document.at("spec", "pytorchReplicaSpecs").entries():
        metadata = replica.at("template", "metadata")
        places += [metadata.at("labels"), metadata.at("annotations")]
    return places


def _kueue(key: str, spot: Spot, options: ReadOptions) -> Claim:
    if key == KUEUE_QUEUE and options.kueue_label == "map":
        return Claim("queue", FIELDS["queue"].value_of(spot), spot.pointer)
    raise spot.refuse(
        f"{key} belongs to Kueue, which would queue the job a second time",
        hint=f"remove it, and name the queue by the annotation {FIELDS['queue'].annotation}",
    )


def _drop_kueue(manifest: dict[str, Any]) -> None:
    for place in _kueue_places(Spot(manifest)):
        if isinstance(place.value, dict):
            place.value.pop(KUEUE_QUEUE, None)


def _clear(manifest: dict[str, Any], name: str) -> None:
    """Remove every other place of a field that is overridden."""
    annotations = Spot(manifest).at("metadata", "annotations").fields()
    for key in list(annotations):
        written = key.removeprefix(LABEL_PREFIX).replace("-", "_").replace(".", "_")
        if key.startswith(LABEL_PREFIX) and ALIASES.get(written, written) == name:
            del manifest["metadata"]["annotations"][key]
    path = _SUSPEND if name == "hold" else PLACES.get(name)
    if path:
        holder = Spot(manifest).at(*path[:-1]).value
        if holder is not None:
            holder.pop(path[-1], None)
    if name == "queue":
        _drop_kueue(manifest)


def _write_back(manifest: dict[str, Any], settled: Mapping[str, Claim]) -> None:
    """Keep what was settled as annotations, unless the document already says it elsewhere."""
    for name, claim in settled.items():
        is_kueue = claim.pointer.endswith(KUEUE_QUEUE.replace("/", "~1"))
        if claim.pointer.startswith(("/spec/", "/metadata/")) and not is_kueue:
            continue
        metadata = manifest.setdefault("metadata", {})
        annotations = metadata.setdefault("annotations", {})
        annotations[FIELDS[name].annotation] = to_text(claim.value)


def _conflict(first: Claim, second: Claim) -> InvalidInput:
    return InvalidInput(
        f"{first.field} is {to_text(first.value)} at {first.pointer or 'the options'} "
        f"but {to_text(second.value)} at {second.pointer}",
        pointer=second.pointer,
        value=second.value,
        allowed=(to_text(first.value),),
        hint="say it in one place only, or the same in both",
    )
