"""What an answer of the API server means: the object, or one of the few errors that matter. Pure.

Only a refused create is for good. Forbidden reads and changes mean that somebody took a permission
away from the gateway, which must neither fail nor lose jobs that already run, so they count as
"try again later" and name the missing permission.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from gateway.backends.kubeflow.json_paths import Json, text_at
from gateway.backends.kubeflow.names import CRD_NAME
from gateway.errors import ClusterRejected, ClusterUnreachable, Overloaded

MOST_TEXT = 600
DOCTOR_HINT = "run `gateway doctor`; the permissions that it needs are in deploy/base"
WEBHOOK_WORDS = "admission webhook"
# 401 passes: a bound service account token lives about an hour (KEP-1205), and a request may be
# sent with the old one just before its file is replaced.
TRANSIENT = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.UNAUTHORIZED})
# Retry-After may also be a date (RFC 9110, section 10.2.3), which counts as no wish. ASCII only,
# since str.isdigit() holds for "²" and int() then raises.
SECONDS = re.compile("[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status, headers (lower-case names) and body of one answer."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class ObjectAbsent(LookupError):
    """The object does not exist (404 about the object itself)."""


class ObjectExists(RuntimeError):
    """An object of this name exists (409 to a create)."""


class ObjectChanged(RuntimeError):
    """The object is another one or another version than the request named (409)."""


class ListExpired(RuntimeError):
    """The continue token of a paged list is too old (410)."""


class AccessDenied(ClusterUnreachable):
    """The gateway lacks a right on what exists already; it may be given (back) later."""

    # Told apart inside the back end only: clients know one code, and find its class by it.
    # Overloaded among the bases slows the caller down; code and status stay those of an outage, for
    # it is not the gateway that is overloaded.
    code = ClusterUnreachable.code


class ClusterThrottled(ClusterUnreachable, Overloaded):
    """The cluster asked to slow down; `retry_after_seconds` is its wish, 0 without one."""

    code = ClusterUnreachable.code
    status = ClusterUnreachable.status
    retry_after_seconds: int = 0


def read_answer(answer: Answer, verb: str, what: str) -> Json:
    """Give the JSON object of a good answer.

    `verb` and `what` (such as "create", "pytorchjobs in namespace team-a") go into the texts.

    Raises:
        ObjectAbsent, ObjectExists, ObjectChanged, ListExpired: the caller decides what it means.
        ClusterUnreachable: try again later. ClusterRejected: refused for good.
    """
    if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return _document(answer, verb, what)
    status = _json_of(answer) or {}
    message = _message(status, answer)
    match answer.status:
        case HTTPStatus.NOT_FOUND:
            raise _absent(status, verb, what, message)
        case HTTPStatus.CONFLICT:
            raise _conflict(status, verb, what, message)
        case HTTPStatus.GONE if verb == "list":
            raise ListExpired(message)
    raise _refusal(answer, verb, what, message)


def _document(answer: Answer, verb: str, what: str) -> Json:
    document = _json_of(answer)
    if document is None:
        raise ClusterUnreachable(
            f"the answer to {verb} {what} is not a JSON object",
            hint="is there a proxy between the gateway and the API server?",
        )
    return document


def _json_of(answer: Answer) -> Json | None:
    """Give the JSON object of an answer; None when it is something else."""
    try:
        document: Any = json.loads(answer.body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _message(status: Json, answer: Answer) -> str:
    text = text_at(status, "message") or answer.body[:MOST_TEXT].decode("utf-8", "replace")
    text = " ".join(text.split()) or f"status {answer.status}"
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def _absent(status: Json, verb: str, what: str, message: str) -> Exception:
    if not (text_at(status, "kind") and text_at(status, "details", "name")):
        # Plain "404 page not found": the path is not served, so the kind is not installed.
        return ClusterUnreachable(
            f"cannot {verb} {what}: the cluster does not serve {CRD_NAME}",
            hint="install the training operator (kubeflow.org/v1) into the cluster",
        )
    if text_at(status, "details", "kind") == "namespaces":
        return ClusterRejected(f"cannot {verb} {what}: {message}", hint="create the namespace")
    return ObjectAbsent(message)


def _conflict(status: Json, verb: str, what: str, message: str) -> Exception:
    if text_at(status, "reason") == "AlreadyExists":
        return ObjectExists(message)
    if verb == "create":
        # A namespace's quota that somebody else charges at the same moment: nothing was created.
        return ClusterUnreachable(f"the cluster could not {verb} {what}: {message}")
    return ObjectChanged(message)


def _refusal(answer: Answer, verb: str, what: str, message: str) -> Exception:
    detail = f"the cluster refused to {verb} {what}: {message}"
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return _throttled(answer, f"the cluster throttles {verb} {what}: {message}")
    if _is_passing(answer.status):
        return ClusterUnreachable(f"the cluster could not {verb} {what}: {message}")
    if answer.status == HTTPStatus.FORBIDDEN and verb != "create":
        return AccessDenied(detail, hint=DOCTOR_HINT)
    return ClusterRejected(detail, hint=_hint(answer.status, message))


def _is_passing(status: int) -> bool:
    # The API server redirects nobody: a status below 400 is a proxy's word, such as a login page.
    is_of_the_server = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return status in TRANSIENT or not is_of_the_server


def _hint(status: int, message: str) -> str:
    # RBAC says "User X cannot create resource Y"; quotas and webhooks answer 403 too, and there the
    # doctor would send people to look for a permission that is not missing.
    if status == HTTPStatus.FORBIDDEN and " cannot " in message and WEBHOOK_WORDS not in message:
        return DOCTOR_HINT
    if status == HTTPStatus.BAD_REQUEST and "unknown field" in message:
        return "correct the manifest, or update the training operator's CRD if it lacks the field"
    return "correct in the manifest what the message names and submit again"


def _throttled(answer: Answer, detail: str) -> ClusterThrottled:
    error = ClusterThrottled(detail, hint="it is tried again by itself")
    wish = answer.headers.get("retry-after", "")
    error.retry_after_seconds = int(wish) if SECONDS.fullmatch(wish) else 0
    return error
