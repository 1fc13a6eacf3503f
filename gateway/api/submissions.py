"""Reads submissions out of bodies: one job, or a batch of them; JSON, YAML or the envelope."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gateway.api.dependencies import JSON, YAML_TYPES, Ask
from gateway.api.reading import parse_json, unknown_field
from gateway.api.templates import Templates
from gateway.errors import BodyTooLarge, GatewayError, InvalidInput
from gateway.manifests import ReadOptions, digest, read_documents, read_job
from gateway.manifests.remembering import KnownJobs, ReadJob
from gateway.schemas.job_spec import JobSpec
from gateway.schemas.problems import problem_of
from gateway.schemas.views import BatchAnswer, BatchItem
from gateway.service.prepared import Prepared
from gateway.service.submit import submit_batch

MAX_BATCH_JOBS = 1000
ENVELOPE = ("manifest", "overrides")
BATCH_ENTRY = (*ENVELOPE, "idempotency_key")
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


def read_submission(ask: Ask, overrides: Document) -> Prepared:
    """Give the one job of a body; overrides of the query string join those of the envelope."""
    kind = ask.require_type(JSON, *YAML_TYPES)
    options = options_of(ask, overrides)
    told = (kind, options.default_namespace, options.kueue_label, options.allow_unsafe_templates)
    context = (*told, tuple(sorted(overrides.items())))
    return _templates.read(context, ask.body, partial(_read_body, ask, overrides))


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
    return _read_one(ask, document, {**inner, **overrides})


def read_batch(ask: Ask) -> list[Any]:
    """Give the entries of a batch, not yet looked into.

    Raises:
        InvalidInput: no list of jobs, or an empty one.
        BodyTooLarge: more jobs than a batch may have.
    """
    if ask.require_type(JSON, *YAML_TYPES) == JSON:
        body = parse_json(ask.body)
        if not isinstance(body, dict) or not isinstance(body.get("jobs"), list):
            raise InvalidInput(
                "a batch is an object with a list of jobs",
                pointer="/jobs",
                hint='send {"jobs": [MANIFEST, ...]}',
            )
        _refuse_others(body, ("jobs",), "")
        entries: list[Any] = body["jobs"]
    else:
        entries = list(read_documents(ask.body))
    if not entries:
        raise InvalidInput("the batch is empty", pointer="/jobs", hint="send at least one job")
    if len(entries) > MAX_BATCH_JOBS:
        raise BodyTooLarge(
            f"a batch holds at most {MAX_BATCH_JOBS} jobs, this one {len(entries)}",
            pointer="/jobs",
            value=len(entries),
            allowed=(f"at most {MAX_BATCH_JOBS} jobs",),
            hint="send several batches",
        )
    return entries


def submit_entries(ask: Ask) -> BatchAnswer:
    """Submit a batch; an entry that cannot be read fails alone, like one that is refused."""
    outcomes: dict[int, BatchItem] = {}
    readable: list[tuple[ReadJob, str | None]] = []
    places: list[int] = []
    for index, entry in enumerate(read_batch(ask)):
        try:
            readable.append(read_entry(ask, entry))
            places.append(index)
        except GatewayError as error:
            outcomes[index] = BatchItem(index=index, error=problem_of(error, ask.request_id))
    if readable:
        stored = submit_batch(ask.gateway, ask.caller, readable)
        for place, item in zip(places, stored.items, strict=True):
            same = item.index == place
            outcomes[place] = item if same else item.model_copy(update={"index": place})
    return BatchAnswer(items=tuple(outcomes[index] for index in sorted(outcomes)))


def read_entry(ask: Ask, entry: Any) -> tuple[ReadJob, str | None]:
    """Give one job of a batch with its idempotency key."""
    document, overrides = open_envelope(entry, BATCH_ENTRY)
    key = entry.get("idempotency_key") if document is not entry else None
    if key is not None and not isinstance(key, str):
        raise InvalidInput(
            "an idempotency key is text", pointer="/idempotency_key", value=key, hint="use a UUID"
        )
    return _read_one(ask, document, overrides), key


def open_envelope(body: Any, fields: tuple[str, ...]) -> tuple[Any, dict[str, Any]]:
    """Give the document of a body and its overrides; a bare document has none.

    The short form may hold a manifest too, beside fields of its own; that is no envelope.
    """
    if not isinstance(body, dict) or "manifest" not in body:
        return body, {}
    if "overrides" not in body and not set(body) <= set(fields):
        return body, {}
    _refuse_others(body, fields, "")
    overrides = body.get("overrides", {})
    if not isinstance(overrides, dict):
        raise InvalidInput(
            "overrides is an object", pointer="/overrides", value=overrides, hint="send {}"
        )
    return body["manifest"], overrides


def _refuse_others(body: Document, known: tuple[str, ...], place: str) -> None:
    for key in body:
        if key not in known:
            raise unknown_field(key, known, f"{place}/{key}")


def _read_one(ask: Ask, document: Any, overrides: Document) -> ReadJob:
    if not isinstance(document, bytes | dict):
        raise InvalidInput(
            "a job is an object: a PyTorchJob manifest or the short form",
            value=document,
            hint="send one JSON object",
        )
    options = options_of(ask, overrides)
    if isinstance(document, dict):
        return _known_jobs.read(document, options)
    spec = _read_in_full(document, options)
    return ReadJob(spec, digest(spec))


def _read_in_full(document: Any, options: ReadOptions) -> JobSpec:
    found = read_documents(document)
    if len(found) != 1:
        raise InvalidInput(
            f"this holds {len(found)} jobs; one request submits one",
            hint="send several to /api/v1/jobs:batch",
        )
    return read_job(found[0], options)


_known_jobs = KnownJobs(_read_in_full)
_templates = Templates()


def options_of(ask: Ask, overrides: Document) -> ReadOptions:
    """Give how manifests are read for this caller: the server's settings and the overrides."""
    settings = ask.gateway.settings
    first = ask.caller.namespaces[0] if ask.caller.namespaces else "default"
    return ReadOptions(
        allow_unsafe_templates=settings.allow_unsafe_templates,
        kueue_label=settings.kueue_label,
        default_namespace="default" if first == "*" else first,
        overrides=dict(overrides),
    )
