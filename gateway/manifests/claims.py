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
from gateway.schemas.suggesting import did_you_mean

KUEUE_PREFIX: Final = "kueue.x-k8s.io/"
KUEUE_QUEUE: Final = KUEUE_PREFIX + "queue-name"
_RUN_POLICY: Final = ("spec", "runPolicy")
_SCHEDULING: Final = (*_RUN_POLICY, "schedulingPolicy")
PLACES: Final = {
    # Meant for gang schedulers; the operator reads them only when it is started with one.
    "queue": (*_SCHEDULING, "queue"),
    "priority_class": (*_SCHEDULING, "priorityClass"),
    "min_available": (*_SCHEDULING, "minAvailable"),
    "queue_timeout_seconds": (*_SCHEDULING, "scheduleTimeoutSeconds"),
    "run_timeout_seconds": (*_RUN_POLICY, "activeDeadlineSeconds"),
}
"""Fields that a PyTorchJob has a place of its own for."""
_SUSPEND: Final = (*_RUN_POLICY, "suspend")
_OWN_PLACES: Final = {**PLACES, "hold": _SUSPEND}
_INTO_TEMPLATE: Final = "write it into the pod template"
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
    settled: dict[str, Claim] = {}
    for claim in overrides:
        _agree(settled.setdefault(claim.field, claim), claim)
    # First: what an override replaces is not read any more, so it cannot disagree with it.
    for name in settled:
        _clear(manifest, name)
    for claim in _claims(manifest, options):
        _agree(settled.setdefault(claim.field, claim), claim)
    if options.kueue_label == "map":
        _drop_kueue(manifest)
    _write_back(manifest, settled)
    return {name: claim.value for name, claim in settled.items()}


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
    for key, spot in Spot(dict(values)).given(values):
        name = _field_name(key)
        if name in GROUPS:
            yield from _grouped(name, spot)
        elif name in FIELDS:
            yield name, spot


def _field_name(key: str) -> str:
    """Give the field or group that a key of the short form or of overrides names."""
    name = key.replace("-", "_")
    return ALIASES.get(name, name)


def _annotated_field(key: str) -> str:
    return _field_name(key.removeprefix(LABEL_PREFIX).replace(".", "_"))


def _grouped(group: str, spot: Spot) -> Iterator[tuple[str, Spot]]:
    for key, item in spot.entries():
        name = _member(group, key, item)
        if not item.is_missing:
            yield name, item


def _member(group: str, key: str, item: Spot) -> str:
    known = GROUPS[group]
    name = key.replace("-", "_")
    if name in known:
        return known[name]
    raise item.refuse(
        f"{group} has no field {key[:80]!r}",
        allowed=tuple(known),
        hint=did_you_mean(name, known, "choose one of the allowed fields"),
    )


def _claims(manifest: dict[str, Any], options: ReadOptions) -> Iterator[Claim]:
    document = Spot(manifest)
    for key, spot in _prefixed(document.at("metadata", "annotations"), LABEL_PREFIX):
        yield _annotation(key, spot)
    yield from _placed(document)
    for place in _kueue_places(document):
        for key, spot in _prefixed(place, KUEUE_PREFIX):
            yield _kueue(key, spot, options)


def _prefixed(place: Spot, prefix: str) -> Iterator[tuple[str, Spot]]:
    return (entry for entry in place.entries() if entry[0].startswith(prefix))


def _placed(document: Spot) -> Iterator[Claim]:
    """Give what a PyTorchJob says of the gateway's fields in places of its own."""
    for name, path in PLACES.items():
        spot = document.at(*path)
        if not spot.is_missing:
            yield Claim(name, FIELDS[name].value_of(spot), spot.pointer)
    # Only true says something: the CRD's default writes `suspend: false` into every stored object,
    # so an exported one would contradict its own annotation `hold: true`.
    suspend = document.at(*_SUSPEND)
    if suspend.flag():
        yield Claim("hold", True, suspend.pointer)


def _annotation(key: str, spot: Spot) -> Claim:
    # Kubernetes takes text only as annotation; `priority: 5` would be refused by the API server.
    spot.text_value()
    field = FIELDS.get(_annotated_field(key))
    if field is None:
        raise _unknown_annotation(key.removeprefix(LABEL_PREFIX), spot)
    return Claim(field.name, field.value_in_text(spot), spot.pointer)


def _unknown_annotation(written: str, spot: Spot) -> Exception:
    known = [field.annotation.removeprefix(LABEL_PREFIX) for field in FIELDS.values()]
    is_of_pod = written.replace("-", "_") in _TEMPLATE_FIELDS
    otherwise = _INTO_TEMPLATE if is_of_pod else "remove it; the prefix is the gateway's own"
    return spot.refuse(
        f"{LABEL_PREFIX}{written[:80]} is not a field of the gateway",
        allowed=tuple(LABEL_PREFIX + each for each in known),
        hint=did_you_mean(written, known, otherwise),
    )


def _kueue_places(document: Spot) -> list[Spot]:
    # Also on templates: Kueue's integration of plain pods reads the label there, and would gate
    # each pod of a job that the gateway has started.
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
        place.drop(KUEUE_QUEUE)


def _clear(manifest: dict[str, Any], name: str) -> None:
    """Remove every other place of a field that is overridden."""
    document = Spot(manifest)
    annotations = document.at("metadata", "annotations")
    for key, _ in list(_prefixed(annotations, LABEL_PREFIX)):
        if _annotated_field(key) == name:
            annotations.drop(key)
    if name in _OWN_PLACES:
        *holder, last = _OWN_PLACES[name]
        document.at(*holder).drop(last)
    if name == "queue":
        _drop_kueue(manifest)


def _write_back(manifest: dict[str, Any], settled: Mapping[str, Claim]) -> None:
    """Keep what was settled as annotations, unless the document already says it elsewhere."""
    metadata = Spot(manifest).mapping_at("metadata")
    for name, claim in settled.items():
        if not _is_kept(claim):
            annotations = metadata.mapping_at("annotations").value
            annotations[FIELDS[name].annotation] = to_text(claim.value)


def _is_kept(claim: Claim) -> bool:
    """True for what stays in the document where it was found."""
    # The label itself is dropped, so what it said has to be kept as an annotation.
    is_kueue = claim.pointer.endswith(KUEUE_QUEUE.replace("/", "~1"))
    return claim.pointer.startswith(("/spec/", "/metadata/")) and not is_kueue


def _agree(first: Claim, second: Claim) -> None:
    if first.value == second.value:
        return
    raise InvalidInput(
        f"{first.field} is {to_text(first.value)} at {first.pointer or 'the options'} "
        f"but {to_text(second.value)} at {second.pointer}",
        pointer=second.pointer,
        value=second.value,
        allowed=(to_text(first.value),),
        hint="say it in one place only, or the same in both",
    )
