"""Turns what a user hands over into request bodies: read here, judged by the server.

Files, stdin and model objects exist only on the user's side, so documents are read here and travel
as plain JSON. What they mean is decided in one place, the server.
"""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from gateway.errors import InvalidInput
from gateway.manifests import read_documents

Source = str | bytes | Path | Mapping[str, Any] | object
"""A path, `-` for stdin, YAML or JSON text, a mapping, or a kubeflow-training model."""


class Overrides(TypedDict, total=False):
    """What may be said beside a manifest; wins over what it says."""

    name: str
    namespace: str
    queue: str
    priority: int
    priority_class: str
    hold: bool
    not_before_at: str
    deadline_at: str
    expected_seconds: int
    queue_timeout_seconds: int
    run_timeout_seconds: int
    start_timeout_seconds: int
    labels: dict[str, str]
    annotations: dict[str, str]


def new_key() -> str:
    """Give a fresh idempotency key."""
    # Random, never derived from the manifest: the same training sent twice on purpose is two jobs.
    return uuid.uuid4().hex


def envelope(source: Source, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Give the body for one job.

    Raises:
        InvalidInput: the source holds another number of jobs than one.
        MalformedBody: it cannot be read.
    """
    documents = read_documents(source)
    if len(documents) != 1:
        raise InvalidInput(
            f"this holds {len(documents)} jobs; submit takes one",
            hint="submit several with Client.batch",
        )
    return wrap(documents[0], overrides)


def wrap(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Give a document with its overrides; those that are None were not said."""
    # A wrapper that passes its own optional arguments on must not overrule the manifest with None.
    said = {name: value for name, value in overrides.items() if value is not None}
    return {"manifest": dict(document), "overrides": said}
