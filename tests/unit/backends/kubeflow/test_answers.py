"""What each status of the API server means for a job."""

import json

import pytest

from gateway.backends.kubeflow.answers import (
    Answer,
    ClusterThrottled,
    ListExpired,
    ObjectAbsent,
    ObjectChanged,
    ObjectExists,
    read_answer,
)
from gateway.errors import ClusterRejected, ClusterUnreachable, Overloaded
from tests.unit.backends.kubeflow.a_cluster import status

FORBIDDEN = 'pytorchjobs.kubeflow.org is forbidden: User "g" cannot create resource'


def failure(answer: Answer, verb: str = "create") -> Exception:
    with pytest.raises(Exception, match=r".") as caught:
        read_answer(answer, verb, "pytorchjobs in namespace a")
    return caught.value


def test_a_good_answer_is_its_object() -> None:
    assert read_answer(Answer(status=201, body=b'{"a": 1}'), "create", "it") == {"a": 1}


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff"])
def test_a_good_answer_that_is_no_object_is_no_answer(body: bytes) -> None:
    assert isinstance(failure(Answer(status=200, body=body)), ClusterUnreachable)


@pytest.mark.parametrize("code", [400, 403, 413, 422])
def test_a_refused_create_is_for_good_and_carries_the_servers_words(code: int) -> None:
    error = failure(status(code, message=FORBIDDEN))

    assert isinstance(error, ClusterRejected)
    assert "refused to create pytorchjobs in namespace a" in error.detail
    assert FORBIDDEN in error.detail
    assert error.hint


@pytest.mark.parametrize("verb", ["get", "list", "patch", "delete"])
def test_a_permission_taken_away_later_neither_fails_nor_loses_jobs(verb: str) -> None:
    error = failure(status(403, message=FORBIDDEN), verb)

    assert isinstance(error, ClusterUnreachable)
    assert f"refused to {verb} pytorchjobs" in error.detail
    assert "gateway doctor" in error.hint


@pytest.mark.parametrize("code", [401, 408, 500, 502, 503, 504])
def test_trouble_of_the_server_is_tried_again(code: int) -> None:
    assert isinstance(failure(status(code, message="webhook down")), ClusterUnreachable)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("soon", 0), ("", 0), ("²", 0)])
def test_throttling_is_told_apart_and_keeps_the_wished_pause(header: str, seconds: int) -> None:
    error = failure(Answer(status=429, headers={"retry-after": header}))

    assert isinstance(error, ClusterThrottled)
    assert isinstance(error, ClusterUnreachable)
    assert isinstance(error, Overloaded)
    assert error.retry_after_seconds == seconds


def test_a_missing_object_a_missing_namespace_and_a_missing_kind_are_three_things() -> None:
    gone = failure(status(404, name="j", kind="pytorchjobs"), "get")
    assert isinstance(gone, ObjectAbsent)

    namespace = failure(status(404, message='"a" not found', name="a", kind="namespaces"))
    assert isinstance(namespace, ClusterRejected)
    assert "create the namespace" in namespace.hint

    kind = failure(Answer(status=404, body=b"404 page not found\n"))
    assert isinstance(kind, ClusterUnreachable)
    assert "does not serve pytorchjobs.kubeflow.org" in kind.detail
    assert "training operator" in kind.hint


def test_conflicts_are_told_apart() -> None:
    assert isinstance(failure(status(409, "AlreadyExists")), ObjectExists)
    assert isinstance(failure(status(409, "Conflict"), "patch"), ObjectChanged)
    assert isinstance(failure(status(410, "Expired"), "list"), ListExpired)


def test_long_words_of_the_server_are_trimmed() -> None:
    error = failure(status(422, message="x" * 5000))

    assert isinstance(error, ClusterRejected)
    assert len(error.detail) < 800


@pytest.mark.parametrize("body", [b"\xff\xfe", b"[]", json.dumps({"message": 3}).encode()])
def test_a_malformed_error_is_still_an_error(body: bytes) -> None:
    assert isinstance(failure(Answer(status=422, body=body)), ClusterRejected)
