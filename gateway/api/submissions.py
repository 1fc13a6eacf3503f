"""Reads a submission out of a body: JSON, YAML or the envelope. Batches are read elsewhere."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gateway.api.dependencies import JSON, YAML_TYPES, Ask
from gateway.api.reading import parse_json
from gateway.api.templates import Reading, Templates
from gateway.errors import InvalidInput
from gateway.manifests import ReadOptions, read_documents, read_job
from gateway.manifests.options import TOPOLOGY_LABELS
from gateway.manifests.remembering import KnownJobs, ReadJob, alone
from gateway.schemas.complaints import unknown_field
from gateway.schemas.job_spec import JobSpec

MAX_BATCH_JOBS = 1000
ENVELOPE = ("manifest", "overrides")
Document = Mapping[str, Any]
_TEXT = {"schema": {"type": "string", "description": "A PyTorchJob manifest or the short form."}}
_ONE = {
    "type": "object",
    "description": 'A manifest, the short form, or {"manifest": ..., "overrides": {...}}.',
}
_MANY = {
    "type": "object",
    "required": ["jobs"],
    "properties": {"jobs": {"type": "array", "maxItems": MAX_BATCH_JOBS, "items": _ONE}},
}
ONE_CONTENT = {JSON: {"schema": _ONE}, YAML_TYPES[0]: _TEXT}
"""What POST /jobs takes, for the OpenAPI document."""
BATCH_CONTENT = {JSON: {"schema": _MANY}, YAML_TYPES[0]: _TEXT}
"""What POST /jobs:batch takes."""


def read_submission(ask: Ask, overrides: Document) -> ReadJob:
    """Give the one job of a body; overrides of the query string join those of the envelope."""
    context = (*context_of(ask), tuple(sorted(overrides.items())))
    # Bytes that are no UTF-8 may be YAML of another encoding, and must come back as they were.
    text = ask.body.decode(errors="surrogateescape")
    return templates.read(context, text, partial(_read_text, ask, overrides)).job


def context_of(ask: Ask) -> tuple[object, ...]:
    """Give everything besides the body that reading depends on; refuses other media types."""
    kind = ask.require_type(JSON, *YAML_TYPES)
    # Whatever is added to how manifests are read belongs here too, or one caller's template would
    # be taken for another's.
    options = options_of(ask, {})
    return (kind, options.default_namespace, options.kueue_label, options.allow_unsafe_templates)


def _read_text(ask: Ask, overrides: Document, text: str) -> Reading:
    return Reading(_read_body(ask, overrides, text.encode(errors="surrogateescape")))


def _read_body(ask: Ask, overrides: Document, body: bytes) -> ReadJob:
    if ask.media_type == JSON:
        document, inner = open_envelope(parse_json(body), ENVELOPE)
    else:
        document, inner = body, {}
    twice = sorted(set(overrides) & set(inner))
    if twice:
        raise InvalidInput(
            f"{twice[0]} is given in the query string and in overrides",
            pointer=f"/overrides/{twice[0]}",
            hint="give it once",
        )
    return read_one(ask, document, {**inner, **overrides})


def open_envelope(body: Any, fields: tuple[str, ...]) -> tuple[Any, dict[str, Any]]:
    """Give the document of a body and its overrides; a bare document has none.

    The short form may hold a manifest too, beside fields of its own; that is no envelope.
    """
    if not isinstance(body, dict) or "manifest" not in body:
        return body, {}
    # Beside other fields `manifest` is one of the short form's own.
    if "overrides" not in body and not set(body) <= set(fields):
        return body, {}
    refuse_others(body, fields)
    overrides = body.get("overrides", {})
    if not isinstance(overrides, dict):
        raise InvalidInput(
            "overrides is an object", pointer="/overrides", value=overrides, hint="send {}"
        )
    return body["manifest"], overrides


def refuse_others(body: Document, known: tuple[str, ...]) -> None:
    """Refuse fields that are not known."""
    for key in body:
        if key not in known:
            raise unknown_field(key, known, f"/{key}")


def read_one(ask: Ask, document: Any, overrides: Document) -> ReadJob:
    """Give the job of a document that stands alone or in an envelope."""
    if not isinstance(document, bytes | dict):
        raise InvalidInput(
            "a job is an object: a PyTorchJob manifest or the short form",
            value=document,
            hint="send one JSON object",
        )
    options = options_of(ask, overrides)
    # Documents of equal data may be written in many ways, so they are remembered by their data.
    if isinstance(document, dict):
        return _known_jobs.read(document, options)
    return alone(_read_in_full(document, options))


def _read_in_full(document: Any, options: ReadOptions) -> JobSpec:
    found = read_documents(document)
    if len(found) != 1:
        raise InvalidInput(
            f"this holds {len(found)} jobs; one request submits one",
            hint="send several to /api/v1/jobs:batch",
        )
    return read_job(found[0], options)


_known_jobs = KnownJobs(_read_in_full)
templates = Templates()
"""Of this process; whoever reads says in the context what else reading depends on."""


def options_of(ask: Ask, overrides: Document) -> ReadOptions:
    """Give how manifests are read for this caller: the server's settings and the overrides."""
    settings = ask.gateway.settings
    first = ask.caller.namespaces[0] if ask.caller.namespaces else "default"
    return ReadOptions(
        allow_unsafe_templates=settings.allow_unsafe_templates,
        kueue_label=settings.kueue_label,
        topology_labels={**TOPOLOGY_LABELS, **settings.topology_labels},
        default_namespace="default" if first == "*" else first,
        overrides=dict(overrides),
    )
