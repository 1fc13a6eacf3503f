"""Every error that the gateway raises on purpose, as one tree with stable codes.

    GatewayError
    ├── InvalidInput              422  what was submitted is wrong: pointer, value, allowed, hint
    │   ├── UnsafeTemplate             a field that is refused until security rules allow it
    │   ├── NotSupportedYet            a field or verb whose behaviour is not built
    │   ├── NeverFits                  no place of the known fleet could ever hold the gang
    │   └── KeyReused                  an idempotency key came back with another body
    ├── MalformedBody             400  not YAML, not JSON, not UTF-8
    ├── BodyTooLarge              413
    ├── UnsupportedMediaType      415  the body is of a type that this route does not read
    ├── MethodNotAllowed          405  the address exists, but not for this method
    ├── Unauthenticated           401
    ├── Denied                    403
    ├── NotFound                  404
    ├── Conflict                  409
    │   ├── InvalidTransition          the verb does not apply in this state
    │   ├── StaleVersion               somebody was faster
    │   ├── NameTaken                  a live job of that name exists in the namespace
    │   └── OverCap                    the queue takes no more, or none so large
    ├── Overloaded                429
    ├── Unavailable               503  try again later
    │   ├── DatabaseUnavailable
    │   └── ClusterUnreachable
    ├── ClusterRejected           502  the cluster refused for good
    ├── StaleLeader               503  a newer leader exists; the write was not made
    ├── StartupRefused            500  the server must not start like this
    ├── GatewayUnreachable             the SDK could not reach the server
    ├── JobFailed                      SDK: a waited-for job failed
    └── TimedOut                       SDK: waiting took longer than allowed

The server raises them, `gateway.api.problems` writes them as problem details, and the SDK raises
the same classes again. Fields carry the facts; nobody parses the text.
"""

from typing import ClassVar


# Codes are part of the public surface: clients, alerts and scripts branch on them. A code is never
# renamed or given to another class, and texts may change at any time.
class GatewayError(Exception):
    """Base of all: a text for people, a stable `code`, and where, why and what to do next."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500

    def __init__(
        self,
        detail: str,
        *,
        pointer: str = "",
        hint: str = "",
        value: object = None,
        allowed: tuple[str, ...] = (),
    ) -> None:
        """Keep the facts; `pointer` is a JSON pointer into what was submitted."""
        # The other facts stay out of args: a traceback should show one sentence, not a tuple.
        super().__init__(detail)
        self.detail = detail
        self.pointer = pointer
        self.hint = hint
        self.value = value
        self.allowed = allowed


# A built-in beside it where one fits, so that code without this package's names can catch it.
class InvalidInput(GatewayError, ValueError):
    """Something submitted is wrong."""

    code = "invalid"
    status = 422


class UnsafeTemplate(InvalidInput):
    """The pod template asks for something that could harm others."""

    code = "unsafe_template"


class NotSupportedYet(InvalidInput):
    """The field or verb is known, but its behaviour is not built."""

    code = "not_supported_yet"


class NeverFits(InvalidInput):
    """No place of the known fleet or quota could ever hold the gang."""

    code = "never_fits"


class KeyReused(InvalidInput):
    """The idempotency key was used before with another body."""

    code = "idempotency_key_reused"


class MalformedBody(GatewayError, ValueError):
    """The body or file cannot be read at all."""

    code = "malformed"
    status = 400


class BodyTooLarge(GatewayError, ValueError):
    """The body is longer than allowed."""

    code = "too_large"
    status = 413


class UnsupportedMediaType(GatewayError, ValueError):
    """The body is of a type that is not read here."""

    code = "unsupported_media_type"
    status = 415


class MethodNotAllowed(GatewayError):
    """The address exists, but not for this method."""

    code = "method_not_allowed"
    status = 405


class Unauthenticated(GatewayError):
    """No valid token."""

    code = "unauthenticated"
    status = 401


class Denied(GatewayError):
    """The caller may not do this."""

    code = "denied"
    status = 403


# 404 for what the caller may not see too: a 403 would tell that it exists.
class NotFound(GatewayError, LookupError):
    """No such object, or not for this caller."""

    code = "not_found"
    status = 404


class Conflict(GatewayError):
    """The object's state does not allow this now."""

    code = "conflict"
    status = 409


class InvalidTransition(Conflict):
    """The state machine has no step from this state by this event."""

    code = "invalid_transition"


class StaleVersion(Conflict):
    """The object changed since it was read."""

    code = "stale_version"


class NameTaken(Conflict):
    """A live job of this name exists in the namespace."""

    code = "name_taken"


class OverCap(Conflict):
    """A cap of the queue does not let this in; asking again at once gives the same answer."""

    code = "over_cap"


class Overloaded(GatewayError):
    """Too much at once; try again after a pause."""

    code = "overloaded"
    status = 429


class Unavailable(GatewayError):
    """A part that is needed does not answer now."""

    code = "unavailable"
    status = 503


class DatabaseUnavailable(Unavailable):
    """The database does not answer."""

    code = "database_unavailable"


class ClusterUnreachable(Unavailable):
    """The cluster does not answer, or asks to slow down."""

    code = "cluster_unreachable"


# 502, not 422: the gateway accepted the job, and the refusal is of a server behind it.
class ClusterRejected(GatewayError):
    """The cluster refused a request for good."""

    code = "rejected_by_cluster"
    status = 502


class StaleLeader(GatewayError):
    """A newer leader took over; this write was refused by its epoch."""

    code = "stale_leader"
    status = 503


class StartupRefused(GatewayError):
    """The server will not start like this; the text says what to do."""

    code = "startup_refused"


class GatewayUnreachable(GatewayError, ConnectionError):
    """The SDK could not reach the gateway."""

    code = "gateway_unreachable"


class JobFailed(GatewayError, RuntimeError):
    """A job that was waited for ended in failure."""

    code = "job_failed"


class TimedOut(GatewayError, TimeoutError):
    """Waiting took longer than the caller allowed."""

    code = "timed_out"


def error_class(code: str) -> type[GatewayError]:
    """Give the class of a stable code; GatewayError itself for a code of a newer server."""
    # From the root down, over subclasses of other modules too: one that keeps its parent's code
    # is not reached before the parent, so both ends of the wire agree on the class.
    pending: list[type[GatewayError]] = [GatewayError]
    while pending:
        candidate = pending.pop()
        if candidate.code == code:
            return candidate
        pending.extend(candidate.__subclasses__())
    return GatewayError
