"""Reads one document, in either form, into a JobSpec; or says exactly what is wrong with it.

The order of checks is part of the behaviour: form first, then what is unsafe, then what the
gateway's own fields say, then what the pods ask for. Reading the result again gives the same.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from gateway.core.vocabulary import LABEL_PREFIX, PairRule, ReplicaType
from gateway.errors import GatewayError, InvalidInput
from gateway.manifests.claims import override_claims, settle
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
)
from gateway.manifests.placement_rules import placement_of
from gateway.manifests.plain import plain, without_nulls
from gateway.manifests.pod_requests import effective_requests
from gateway.manifests.pod_shape import check_template
from gateway.manifests.reading import Source, read_documents
from gateway.manifests.safety import check_reserved, check_safety
from gateway.manifests.short_form import render
from gateway.manifests.spot import Spot
from gateway.schemas.job_spec import JobSpec, PodSet

_DEFAULTS = ReadOptions()
_SPEC_FIELDS = (
    "queue",
    "priority",
    "hold",
    "queue_timeout_seconds",
    "run_timeout_seconds",
    "start_timeout_seconds",
)


def read_job(document: Mapping[str, Any], options: ReadOptions = _DEFAULTS) -> JobSpec:
    """Give the JobSpec of a PyTorchJob manifest or a short form.

    Raises InvalidInput with JSON pointer, value, allowed values and hint; its subclasses
    UnsafeTemplate and NotSupportedYet say why a known thing is refused.
    """
    data = plain(document)
    if not isinstance(data, dict):
        raise Spot(data).wrong_type("a mapping")
    overrides = overrides_of(options)
    manifest = _manifest_of(data, overrides, options)
    require_job_kind(manifest, "the document")
    drop_server_fields(manifest)
    refuse_meaningless_nulls(manifest)
    manifest = without_nulls(manifest)
    apply_to_manifest(manifest, overrides)
    counts = check_job(Spot(manifest))
    _check_object(Spot(manifest), counts, options)
    settled = settle(manifest, override_claims(overrides), options)
    write_implied(manifest, options.default_namespace)
    return _job_spec(manifest, settled, counts, options)


def read_jobs(source: Source, options: ReadOptions = _DEFAULTS) -> list[JobSpec]:
    """Give the JobSpec of every job in a source; the first one that is wrong refuses all."""
    documents = read_documents(source)
    specs = []
    for position, document in enumerate(documents):
        try:
            specs.append(read_job(document, options))
        except GatewayError as error:
            if len(documents) == 1:
                raise
            raise _numbered(error, position + 1, len(documents)) from None
    return specs


def digest(spec: JobSpec) -> str:
    """Give the SHA-256 of a JobSpec's canonical JSON, in hex; equal jobs give equal digests."""
    canonical = json.dumps(
        spec.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


def _manifest_of(
    data: dict[str, Any], overrides: dict[str, Any], options: ReadOptions
) -> dict[str, Any]:
    if not is_manifest(data) and "manifest" not in data:
        return render(apply_to_short_form(data, overrides), options)
    refuse_template_keys(overrides)
    return data if is_manifest(data) else render(data, options)


def _check_object(document: Spot, counts: dict[str, int], options: ReadOptions) -> None:
    metadata = document.at("metadata")
    require_keys(metadata)
    refuse_reserved(metadata, ("labels",))
    require_name(metadata, counts.get(ReplicaType.WORKER, 0))
    if not metadata.at("namespace").is_missing:
        require_namespace(metadata)
    for _, replica in document.at("spec", "pytorchReplicaSpecs").entries():
        check_template(replica.at("template"))
        check_reserved(replica.at("template"))
        if not options.allow_unsafe_templates:
            check_safety(replica.at("template"))
        _refuse_node_name(replica.at("template", "spec", "nodeName"))


def _refuse_node_name(spot: Spot) -> None:
    """Kubernetes takes no pod that names its node and waits behind a gate."""
    if spot.text():
        raise spot.refuse(
            "a pod that names its node cannot wait for its devices",
            hint="use a nodeSelector on the label kubernetes.io/hostname",
        )


def _job_spec(
    manifest: dict[str, Any],
    settled: dict[str, Any],
    counts: dict[str, int],
    options: ReadOptions,
) -> JobSpec:
    document = Spot(manifest)
    if "min_available" in settled:
        place = Spot(settled["min_available"], "/min_available")
        require_whole_gang(place, settled["min_available"], sum(counts.values()))
    fields = {name: settled[name] for name in _SPEC_FIELDS if name in settled}
    metadata = document.at("metadata")
    annotations = metadata.at("annotations").text_map()
    try:
        return JobSpec(
            name=metadata.at("name").text(),
            namespace=require_namespace(metadata),
            labels=metadata.at("labels").text_map(),
            annotations={
                key: value for key, value in annotations.items() if not key.startswith(LABEL_PREFIX)
            },
            pod_sets=_pod_sets(document, settled, counts, options),
            manifest=manifest,
            **fields,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(
            f"{first['loc']}: {first['msg']}",
            pointer="/" + "/".join(str(each) for each in first["loc"]),
            hint="correct the value",
        ) from None


def _pod_sets(
    document: Spot, settled: dict[str, Any], counts: dict[str, int], options: ReadOptions
) -> tuple[PodSet, ...]:
    pair = _pair(settled)
    sets = []
    for kind, count in counts.items():
        pod = document.at("spec", "pytorchReplicaSpecs", kind, "template", "spec")
        has_operator_init = kind == ReplicaType.WORKER and ReplicaType.MASTER in counts
        per_pod = effective_requests(pod, options, has_operator_init=has_operator_init)
        # A pod without GPUs pairs nothing; leaving the rule out keeps like requests alike.
        rule = pair if per_pod.get("gpu") else {}
        values = {"name": kind, "count": count, "per_pod": per_pod, **placement_of(pod), **rule}
        sets.append(PodSet.model_validate(values))
    return tuple(sets)


def _pair(settled: dict[str, Any]) -> dict[str, Any]:
    if "pair_required" in settled and "pair" not in settled:
        raise Spot(settled["pair_required"], "/pair_required").refuse(
            "pair_required says nothing without a pair rule",
            allowed=tuple(PairRule),
            hint="name the pair rule too, or remove pair_required",
        )
    names = {"pair": "pair", "pair_required": "is_pair_required"}
    found = {names[name]: settled[name] for name in names if name in settled}
    return {**found, "pair": PairRule(found["pair"])} if found else {}


def _numbered(error: GatewayError, position: int, total: int) -> GatewayError:
    """Give the same error, saying which of several documents it is about."""
    return type(error)(
        f"document {position} of {total}: {error.detail}",
        pointer=error.pointer,
        value=error.value,
        allowed=error.allowed,
        hint=error.hint,
    )
