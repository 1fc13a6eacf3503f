"""Every status of every verb: who must wait, who is refused, and what people are told to do."""

import json

import pytest

from gateway.backends.kubeflow.answers import (
    MOST_TEXT,
    AccessDenied,
    Answer,
    ClusterThrottled,
    ListExpired,
    ObjectAbsent,
    ObjectChanged,
    ObjectExists,
    read_answer,
)
from gateway.errors import ClusterRejected, ClusterUnreachable, GatewayError, error_class
from tests.unit.backends.kubeflow.a_cluster import status

VERBS = ("create", "get", "list", "patch", "delete")
WHAT = "pytorchjobs in namespace team-a"
RBAC = 'pytorchjobs.kubeflow.org is forbidden: User "gateway" cannot create resource "pytorchjobs"'
QUOTA = 'pods "x" is forbidden: exceeded quota: team-a, requested: cpu=8, used: cpu=1, limited: 2'
WEBHOOK = 'admission webhook "policy.example" denied the request: you cannot use this image'


def failure(answer: Answer, verb: str) -> Exception:
    with pytest.raises(Exception, match=r".") as caught:
        read_answer(answer, verb, WHAT)
    return caught.value


def refusal(answer: Answer, verb: str) -> GatewayError:
    error = failure(answer, verb)
    assert isinstance(error, GatewayError)
    return error


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("code", [200, 201, 202, 299])
def test_every_status_of_success_gives_the_object(code: int, verb: str) -> None:
    assert read_answer(Answer(status=code, body=b'{"kind": "x"}'), verb, WHAT) == {"kind": "x"}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_proxys_word_and_waited_out(code: int, verb: str) -> None:
    login = Answer(status=code, headers={"location": "https://login.example"}, body=b"<html>")
    error = refusal(login, verb)

    assert type(error) is ClusterUnreachable
    assert error.detail == f"the cluster could not {verb} {WHAT}: <html>"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("code", [401, 408, 500, 501, 502, 503, 504, 599])
def test_trouble_of_the_server_passes_whatever_was_asked(code: int, verb: str) -> None:
    error = refusal(status(code, message="etcd leader changed"), verb)

    assert type(error) is ClusterUnreachable
    assert error.detail == f"the cluster could not {verb} {WHAT}: etcd leader changed"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("code", [400, 405, 406, 413, 415, 422, 499])
def test_a_request_that_is_wrong_stays_wrong(code: int, verb: str) -> None:
    error = refusal(status(code, message="spec is invalid"), verb)

    assert type(error) is ClusterRejected
    assert error.detail == f"the cluster refused to {verb} {WHAT}: spec is invalid"
    assert error.hint == "correct in the manifest what the message names and submit again"


@pytest.mark.parametrize("verb", VERBS)
def test_forbidden_is_for_good_only_when_something_was_to_be_created(verb: str) -> None:
    error = refusal(status(403, "Forbidden", RBAC), verb)

    assert type(error) is (ClusterRejected if verb == "create" else AccessDenied)
    assert error.detail == f"the cluster refused to {verb} {WHAT}: {RBAC}"
    assert error.hint == "run `gateway doctor`; the permissions that it needs are in deploy/base"


@pytest.mark.parametrize(
    ("code", "message", "start_of_hint"),
    [
        (403, RBAC, "run `gateway doctor`"),
        (403, QUOTA, "correct in the manifest"),
        (403, WEBHOOK, "correct in the manifest"),
        (400, 'unknown field "spec.schedulingGates"', "correct the manifest, or update"),
        (400, "spec.runPolicy must be an object", "correct in the manifest"),
        (422, 'unknown field "x"', "correct in the manifest"),
    ],
)
def test_the_hint_of_a_refused_create_follows_who_refused_it(
    code: int, message: str, start_of_hint: str
) -> None:
    assert refusal(status(code, message=message), "create").hint.startswith(start_of_hint)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("wish", "seconds"),
    [("1", 1), ("0", 0), ("120", 120), ("-1", 0), ("1.5", 0), (" 3", 0), ("٣", 0), ("", 0)],
)
def test_a_throttled_verb_carries_a_wish_of_whole_seconds_only(
    verb: str, wish: str, seconds: int
) -> None:
    error = failure(Answer(status=429, headers={"retry-after": wish}, body=b"slow down"), verb)

    assert isinstance(error, ClusterThrottled)
    assert error.retry_after_seconds == seconds
    assert error.detail == f"the cluster throttles {verb} {WHAT}: slow down"
    assert error.hint == "it is tried again by itself"


def test_a_date_as_wish_counts_as_none() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}
    error = failure(Answer(status=429, headers=headers), "get")

    assert isinstance(error, ClusterThrottled)
    assert error.retry_after_seconds == 0
    assert error.detail.endswith(": status 429"), "without a body the status is the message"


def test_one_wish_does_not_stick_to_later_errors() -> None:
    first = failure(Answer(status=429, headers={"retry-after": "9"}), "get")
    second = failure(Answer(status=429), "get")

    assert isinstance(first, ClusterThrottled)
    assert isinstance(second, ClusterThrottled)
    assert (first.retry_after_seconds, second.retry_after_seconds) == (9, 0)


@pytest.mark.parametrize(
    ("verb", "answer", "kind"),
    [
        ("get", status(404, "NotFound", "gone", name="j", kind="pytorchjobs"), ObjectAbsent),
        ("patch", status(404, "NotFound", "gone", name="j", kind="pods"), ObjectAbsent),
        ("create", status(409, "AlreadyExists", "taken"), ObjectExists),
        ("patch", status(409, "Conflict", "newer"), ObjectChanged),
        ("delete", status(409, "Conflict", "another UID"), ObjectChanged),
        ("patch", status(409, "", "no reason"), ObjectChanged),
        ("patch", Answer(status=409, body=b"conflict"), ObjectChanged),
        ("list", status(410, "Expired", "too old"), ListExpired),
        ("list", Answer(status=410), ListExpired),
    ],
)
def test_what_the_caller_decides_is_no_error_of_the_gateway(
    verb: str, answer: Answer, kind: type[Exception]
) -> None:
    error = failure(answer, verb)

    assert type(error) is kind
    assert not isinstance(error, GatewayError)


def test_a_create_that_met_others_at_the_namespaces_quota_is_tried_again() -> None:
    words = 'Operation cannot be fulfilled on resourcequotas "team-a": the object has been modified'
    error = refusal(status(409, "Conflict", words), "create")

    assert type(error) is ClusterUnreachable
    assert error.detail == f"the cluster could not create {WHAT}: {words}"


@pytest.mark.parametrize(
    "body",
    [b"404 page not found\n", b"", b"{}", b'{"kind": "Status"}', b'{"details": {"name": 1}}'],
)
def test_a_404_about_no_object_means_that_the_kind_is_not_served(body: bytes) -> None:
    error = refusal(Answer(status=404, body=body), "get")

    assert type(error) is ClusterUnreachable
    assert error.detail == f"cannot get {WHAT}: the cluster does not serve pytorchjobs.kubeflow.org"
    assert error.hint == "install the training operator (kubeflow.org/v1) into the cluster"


@pytest.mark.parametrize("verb", VERBS)
def test_a_missing_namespace_is_for_good_and_named(verb: str) -> None:
    answer = status(404, "NotFound", 'namespaces "a" not found', name="a", kind="namespaces")
    error = refusal(answer, verb)

    assert type(error) is ClusterRejected
    assert error.detail == f'cannot {verb} {WHAT}: namespaces "a" not found'
    assert error.hint == "create the namespace"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"plain words", "plain words"),
        (b"  two\n\n lines\t", "two lines"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", "status 422"),
        (b" \n ", "status 422"),
        (b'{"message": ""}', '{"message": ""}'),
        (b'{"message": 7}', '{"message": 7}'),
        (b"[1, 2]", "[1, 2]"),
        ('{"message": "größe"}'.encode(), "größe"),
    ],
)
def test_the_words_of_any_body_reach_people_on_one_line(body: bytes, words: str) -> None:
    assert refusal(Answer(status=422, body=body), "create").detail.endswith(f": {words}")


@pytest.mark.parametrize("length", [MOST_TEXT - 1, MOST_TEXT, MOST_TEXT + 1, 10 * MOST_TEXT])
def test_words_are_cut_exactly_where_they_are_too_long(length: int) -> None:
    body = json.dumps({"message": "x" * length}).encode()
    words = refusal(Answer(status=422, body=body), "create").detail.rpartition(": ")[2]

    is_cut = length > MOST_TEXT
    assert words == "x" * min(length, MOST_TEXT) + ("…" if is_cut else "")


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"3", b'"text"', b"\xff", b"{"])
def test_a_success_that_is_no_object_names_the_likely_proxy(body: bytes) -> None:
    error = refusal(Answer(status=200, body=body), "list")

    assert type(error) is ClusterUnreachable
    assert error.detail == f"the answer to list {WHAT} is not a JSON object"
    assert error.hint == "is there a proxy between the gateway and the API server?"


@pytest.mark.parametrize("kind", [AccessDenied, ClusterThrottled])
def test_finer_kinds_of_outage_are_one_code_to_clients(kind: type[GatewayError]) -> None:
    assert (kind.code, kind.status) == ("cluster_unreachable", 503)
    assert error_class(kind.code) is ClusterUnreachable
