"""Problem details (RFC 9457): an error as a document, and the error again from the document.

The server writes it, a batch answer carries it, the SDK reads it. Facts travel as fields, so that
the class raised by the SDK equals the one that the server raised.
"""

from collections.abc import Mapping
from typing import Any

from gateway.errors import GatewayError, error_class
from gateway.schemas.base import JsonObject, View

MAX_SHOWN = 200
"""Longest value shown back; a body is never echoed whole."""


class Problem(View):
    """An error as every route answers it (application/problem+json)."""

    # The value that RFC 9457 gives to a problem without a type of its own.
    type: str = "about:blank"
    """A URN that names the code."""
    title: str = ""
    status: int
    code: str
    """Stable; programs branch on this."""
    detail: str
    pointer: str = ""
    """JSON pointer into what was submitted."""
    hint: str = ""
    """What to do next."""
    value: Any = None
    """What stood there, cut short."""
    allowed: tuple[str, ...] = ()
    request_id: str = ""


def problem_of(error: GatewayError, request_id: str = "") -> JsonObject:
    """Give the document of an error; empty fields are left out."""
    problem = Problem(
        type=f"urn:training-gateway:problem:{error.code}",
        title=error.code.replace("_", " ").capitalize(),
        status=error.status,
        code=error.code,
        detail=error.detail,
        pointer=error.pointer,
        hint=error.hint,
        value=shown(error.value),
        allowed=error.allowed,
        request_id=request_id,
    )
    # Told fields only: `value: false` says something, `hint: ""` says nothing.
    return {key: value for key, value in problem.model_dump(mode="json").items() if is_told(value)}


def is_told(value: object) -> bool:
    """Whether a field says anything."""
    return value is not None and value not in ("", (), [])


def shown(value: object) -> object:
    """Give a value as it may stand in an answer: plain and short."""
    # Numbers as numbers, so that a client may compare them; everything else as text, cut short.
    if value is None or isinstance(value, bool | int | float):
        return value
    # Half of a surrogate pair has no UTF-8: the answer that shows it could not be sent.
    text = str(value).encode(errors="replace").decode() if isinstance(value, str) else repr(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def error_of(document: Mapping[str, Any], status: int) -> GatewayError:
    """Give the error that a document describes; a plain GatewayError for an unknown code."""
    code = _text_in(document, "code")
    allowed = document.get("allowed")
    # Fields are read one by one and with defaults: between client and gateway may stand a proxy, or
    # a gateway of another version.
    error = error_class(code)(
        _text_in(document, "detail") or f"the gateway answered {status}",
        pointer=_text_in(document, "pointer"),
        hint=_text_in(document, "hint"),
        value=document.get("value"),
        allowed=tuple(map(str, allowed)) if isinstance(allowed, list | tuple) else (),
    )
    request_id = document.get("request_id")
    if request_id:
        # A note, not a field: tracebacks print it, and errors of equal facts stay equal.
        error.add_note(f"request id {request_id}")
    return error


def _text_in(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""
