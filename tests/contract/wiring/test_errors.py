"""The tree of errors is a contract: codes, statuses and classes mean the same on both ends."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gateway.backends.kubeflow
from gateway import errors
from gateway.backends.base import ForeignObject
from gateway.errors import (
    ClusterRejected,
    ClusterUnreachable,
    Conflict,
    GatewayError,
    InvalidInput,
    NotFound,
    Overloaded,
    Unavailable,
    error_class,
)

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "errors.md"
PUBLIC = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, GatewayError)
]
FACTS = {
    InvalidInput: ("invalid", 422),
    errors.UnsafeTemplate: ("unsafe_template", 422),
    errors.NotSupportedYet: ("not_supported_yet", 422),
    errors.NeverFits: ("never_fits", 422),
    errors.KeyReused: ("idempotency_key_reused", 422),
    errors.MalformedBody: ("malformed", 400),
    errors.BodyTooLarge: ("too_large", 413),
    errors.UnsupportedMediaType: ("unsupported_media_type", 415),
    errors.MethodNotAllowed: ("method_not_allowed", 405),
    errors.Unauthenticated: ("unauthenticated", 401),
    errors.Denied: ("denied", 403),
    NotFound: ("not_found", 404),
    Conflict: ("conflict", 409),
    errors.InvalidTransition: ("invalid_transition", 409),
    errors.StaleVersion: ("stale_version", 409),
    errors.NameTaken: ("name_taken", 409),
    errors.OverCap: ("over_cap", 409),
    Overloaded: ("overloaded", 429),
    Unavailable: ("unavailable", 503),
    errors.DatabaseUnavailable: ("database_unavailable", 503),
    ClusterUnreachable: ("cluster_unreachable", 503),
    ClusterRejected: ("rejected_by_cluster", 502),
    errors.StaleLeader: ("stale_leader", 503),
    errors.StartupRefused: ("startup_refused", 500),
    errors.GatewayUnreachable: ("gateway_unreachable", 500),
    errors.JobFailed: ("job_failed", 500),
    errors.TimedOut: ("timed_out", 500),
}
"""Released codes: a line is never changed, and never leaves while a client may meet it."""


def every_class(root: type[GatewayError] = GatewayError) -> Iterator[type[GatewayError]]:
    yield root
    for below in root.__subclasses__():
        yield from every_class(below)


@pytest.mark.parametrize(
    ("kind", "facts"), FACTS.items(), ids=lambda each: getattr(each, "code", "")
)
def test_a_released_code_and_its_status_stay(
    kind: type[GatewayError], facts: tuple[str, int]
) -> None:
    assert (kind.code, kind.status) == facts


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: str(kind.code))
def test_a_code_finds_its_class_again(kind: type[GatewayError]) -> None:
    assert error_class(kind.code) is kind


@pytest.mark.parametrize("code", ["", "of_a_newer_server", "INVALID", "invalid "])
def test_a_code_of_a_newer_server_is_still_an_error_of_the_gateway(code: str) -> None:
    assert error_class(code) is GatewayError


def test_finer_classes_of_other_modules_do_not_change_what_a_code_means() -> None:
    assert gateway.backends.kubeflow.KubeflowBackend.name == "kubeflow"
    finer = set(every_class()) - set(PUBLIC)
    assert {kind.__name__ for kind in finer} >= {
        "AccessDenied",
        "ClusterThrottled",
        "ForeignObject",
    }

    for kind in finer:
        assert error_class(kind.code) in kind.__mro__


def test_a_foreign_object_has_a_code_of_its_own_and_is_a_refusal() -> None:
    assert error_class("foreign_object") is ForeignObject
    assert issubclass(ForeignObject, ClusterRejected)
    assert ForeignObject.status == ClusterRejected.status == 502


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (InvalidInput, ValueError),
        (errors.KeyReused, ValueError),
        (errors.MalformedBody, ValueError),
        (errors.BodyTooLarge, ValueError),
        (errors.UnsupportedMediaType, ValueError),
        (NotFound, LookupError),
        (errors.GatewayUnreachable, ConnectionError),
        (errors.JobFailed, RuntimeError),
        (errors.TimedOut, TimeoutError),
    ],
)
def test_an_error_is_caught_by_the_built_in_that_people_try_first(
    kind: type[GatewayError], builtin: type[Exception]
) -> None:
    with pytest.raises(builtin) as caught:
        raise kind("what happened")
    assert str(caught.value) == "what happened"


@pytest.mark.parametrize(
    ("general", "kinds"),
    [
        (InvalidInput, {"UnsafeTemplate", "NotSupportedYet", "NeverFits", "KeyReused"}),
        (Conflict, {"InvalidTransition", "StaleVersion", "NameTaken", "OverCap"}),
        (Unavailable, {"DatabaseUnavailable", "ClusterUnreachable"}),
    ],
)
def test_a_general_error_catches_its_finer_ones(
    general: type[GatewayError], kinds: set[str]
) -> None:
    assert {kind.__name__ for kind in PUBLIC if issubclass(kind, general)} - {
        general.__name__
    } == kinds


def test_an_error_carries_its_facts_beside_the_text() -> None:
    error = InvalidInput(
        "gpus is -1", pointer="/gpus", hint="use 0 or more", value=-1, allowed=("0", "1")
    )

    assert str(error) == error.detail == "gpus is -1"
    assert (error.pointer, error.hint, error.value) == ("/gpus", "use 0 or more", -1)
    assert error.allowed == ("0", "1")
    assert error.args == ("gpus is -1",)


def test_an_error_without_facts_has_empty_ones() -> None:
    error = GatewayError("it broke")

    assert (error.pointer, error.hint, error.value, error.allowed) == ("", "", None, ())
    assert (error.code, error.status) == ("internal", 500)


def test_the_tree_in_the_modules_text_is_the_tree_of_the_classes() -> None:
    drawn = re.findall(r"^ +[│├└─ ]*── (\w+) *(\d{3})?", errors.__doc__ or "", re.MULTILINE)

    assert {name for name, _ in drawn} == {kind.__name__ for kind in PUBLIC} - {"GatewayError"}
    for name, status in drawn:
        assert not status or int(status) == getattr(errors, name).status


def test_the_reference_page_lists_every_code_with_its_status() -> None:
    page = dict(re.findall(r"^\| `(\w+)` \| (\d{3}) \|", REFERENCE.read_text(), re.MULTILINE))

    assert {code: int(status) for code, status in page.items()}.items() >= {
        kind.code: kind.status for kind in PUBLIC if kind is not GatewayError
    }.items()
