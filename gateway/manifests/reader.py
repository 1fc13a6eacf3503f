"""Reads one document, in either form, into a JobSpec; or says exactly what is wrong with it.

The order of checks is part of the behaviour: form first, then what is unsafe, then what the
gateway's own fields say, then what the pods ask for. Reading the result again gives the same.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from gateway.core.vocabulary import LABEL_PREFIX, PartitionRule, ReplicaType
from gateway.errors import GatewayError, InvalidInput
from gateway.manifests.claims import override_claims, settle
from gateway.manifests.device_wishes import device_fields, refuse_contradictions
from gateway.manifests.documents import is_manifest, require_job_kind
from gateway.manifests.job_shape import check_job, drop_server_fields, require_whole_gang
from gateway.manifests.naming import refuse_reserved, require_keys, require_name, require_namespace
from gateway.manifests.normal_form import refuse_meaningless_nulls, write_implied
from gateway.manifests.options import ReadOptions
from gateway.manifests.overriding import (
    apply_to_manifest,
    apply_to_short_form,
    overrides_of,
    refuse_template_keys,
    underscored,
)
from gateway.manifests.placement_rules import placement_of
from gateway.manifests.plain import plain, without_nulls
from gateway.manifests.pod_requests import effective_requests
from gateway.manifests.pod_shape import check_template
from gateway.manifests.reading import Source, read_documents
from gateway.manifests.safety import check_reserved, check_safety
from gateway.manifests.short_form import TEMPLATE_KEYS, render
from gateway.manifests.spot import Spot
from gateway.manifests.topology_wishes import avoided, level_fields, slices_of
from gateway.schemas.job_spec import LATER_FIELDS, JobSpec, PodSet

_DEFAULTS = ReadOptions()
_SPEC_FIELDS = (
    "queue",
    "priority",
    "priority_class",
    "hold",
    "not_before_at",
    "deadline_at",
    "expected_seconds",
    "queue_timeout_seconds",
    "run_timeout_seconds",
    "start_timeout_seconds",
)


def read_job(document: Mapping[str, Any], options: ReadOptions = _DEFAULTS) -> JobSpec:
    """Give the JobSpec of a PyTorchJob manifest or a short form.

    Raises InvalidInput with JSON pointer, value, allowed values and hint; its subclasses
    UnsafeTemplate and NotSupportedYet say why a known thing is refused.
    """
    # A copy: from here on the document is written to, and the caller may submit his once more.
    data = plain(document)
    if not isinstance(data, dict):
        raise Spot(data).wrong_type("a mapping")
    overrides = overrides_of(options)
    manifest = _manifest_of(data, overrides, options)
    require_job_kind(manifest, "the document")
    drop_server_fields(manifest)
    # Before nulls are dropped, for afterwards nobody can tell an empty value from no value.
    refuse_meaningless_nulls(manifest)
    manifest = without_nulls(manifest)
    # Before names are checked, so that a document without a name can be given one.
    apply_to_manifest(manifest, overrides)
    # Form before safety: a privileged flag under a misspelled key is no privileged flag.
    counts = check_job(Spot(manifest))
    _check_object(Spot(manifest), counts, options)
    settled = settle(manifest, override_claims(overrides), options)
    # Last: what is refused above must be what somebody wrote, not what it implies.
    write_implied(manifest, options.default_namespace)
    return _job_spec(manifest, settled, counts, options)


def read_jobs(source: Source, options: ReadOptions = _DEFAULTS) -> list[JobSpec]:
    """Give the JobSpec of every job in a source; the first one that is wrong refuses all."""
    first, *others = documents = read_documents(source)
    if not others:
        return [read_job(first, options)]
    return [
        _read_numbered(document, options, f"document {position} of {len(documents)}")
        for position, document in enumerate(documents, start=1)
    ]


def _read_numbered(document: Mapping[str, Any], options: ReadOptions, called: str) -> JobSpec:
    """Read one of several documents; a refusal says which of them it is about."""
    try:
        return read_job(document, options)
    except GatewayError as error:
        raise type(error)(
            f"{called}: {error.detail}",
            pointer=error.pointer,
            value=error.value,
            allowed=error.allowed,
            hint=error.hint,
        ) from None


def digest(spec: JobSpec) -> str:
    """Give the SHA-256 of a JobSpec's canonical JSON, in hex; equal jobs give equal digests."""
    return hashlib.sha256(canonical(spec).encode()).hexdigest()


def canonical(spec: JobSpec) -> str:
    """Give a JobSpec as canonical JSON: sorted keys, no spaces."""
    # Idempotency keys are compared by this text, also across replicas of two versions. Another form
    # would make every repeated submit look like another body.
    fields = spec.model_dump(mode="json")
    for name in LATER_FIELDS:
        if not fields[name]:
            del fields[name]
    for pod_set in fields["pod_sets"]:
        if pod_set["partition"] == PartitionRule.NONE:
            del pod_set["partition"]
        if not pod_set["level"]:
            del pod_set["level"], pod_set["is_level_required"]
        if not pod_set["slices"]:
            del pod_set["slices"]
        if not pod_set["avoid"]:
            del pod_set["avoid"], pod_set["is_avoid_required"]
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _manifest_of(
    data: dict[str, Any], overrides: dict[str, Any], options: ReadOptions
) -> dict[str, Any]:
    # `{queue: a, manifest: {...}}` is the short form too, around a whole manifest.
    if is_manifest(data):
        refuse_template_keys(overrides)
        return data
    document = underscored(data, TEMPLATE_KEYS)
    if "manifest" not in document:
        return render(apply_to_short_form(document, overrides), options)
    refuse_template_keys(overrides)
    return render(document, options)


def _check_object(document: Spot, counts: dict[str, int], options: ReadOptions) -> None:
    metadata = document.at("metadata")
    require_keys(metadata)
    refuse_reserved(metadata, ("labels",))
    require_name(metadata, counts.get(ReplicaType.WORKER, 0))
    if not metadata.at("namespace").is_missing:
        require_namespace(metadata)
    for _, replica in document.at("spec", "pytorchReplicaSpecs").entries():
        _check_template(replica.at("template"), options)


def _check_template(template: Spot, options: ReadOptions) -> None:
    check_template(template)
    check_reserved(template)
    if not options.allow_unsafe_templates:
        check_safety(template)
    node = template.at("spec", "nodeName")
    # Kubernetes takes no pod that names its node and waits behind a gate.
    node.demand(
        not node.text(),
        "a pod that names its node cannot wait for its devices",
        "use a nodeSelector on the label kubernetes.io/hostname",
    )


def _job_spec(
    manifest: dict[str, Any],
    settled: dict[str, Any],
    counts: dict[str, int],
    options: ReadOptions,
) -> JobSpec:
    for name, least in Spot(settled).given(["min_available"]):
        require_whole_gang(least, settled[name], sum(counts.values()))
    # Only what was said: the defaults live in JobSpec, in one place.
    fields = {name: spot.value for name, spot in Spot(settled).given(_SPEC_FIELDS)}
    document = Spot(manifest)
    metadata = document.at("metadata")
    try:
        return JobSpec(
            name=metadata.at("name").text(),
            namespace=require_namespace(metadata),
            labels=metadata.at("labels").text_map(),
            annotations=_own_annotations(metadata),
            pod_sets=_pod_sets(document, settled, counts, options),
            manifest=manifest,
            **fields,
        )
    # Every field was checked by then; this keeps a gap between the two checks from being a 500.
    except ValidationError as error:
        raise _invalid(error) from None


def _invalid(error: ValidationError) -> InvalidInput:
    first = error.errors()[0]
    return InvalidInput(
        f"{first['loc']}: {first['msg']}",
        pointer="/".join(["", *map(str, first["loc"])]),
        hint="correct the value",
    )


def _own_annotations(metadata: Spot) -> dict[str, str]:
    """Give the user's own annotations, without the gateway's fields."""
    annotations = metadata.at("annotations").text_map()
    return {key: text for key, text in annotations.items() if not key.startswith(LABEL_PREFIX)}


def _pod_sets(
    document: Spot, settled: dict[str, Any], counts: dict[str, int], options: ReadOptions
) -> tuple[PodSet, ...]:
    gang = {**slices_of(settled, options, sum(counts.values())), **avoided(settled)}
    sets = []
    for kind, count in counts.items():
        pod = document.at("spec", "pytorchReplicaSpecs", kind, "template", "spec")
        has_operator_init = kind == ReplicaType.WORKER and ReplicaType.MASTER in counts
        per_pod = effective_requests(pod, options, has_operator_init=has_operator_init)
        wishes = {**device_fields(settled, per_pod), **level_fields(settled, options), **gang}
        sets.append(
            PodSet.model_validate({"name": kind, "count": count, **wishes, **placement_of(pod)})
        )
    refuse_contradictions(settled, has_gpus=any(each.per_pod.get("gpu") for each in sets))
    return tuple(sets)
