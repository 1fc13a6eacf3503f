"""Exactly what is asked of the API server: paths, selectors, preconditions, pages."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.backends.base import ObjectRef
from gateway.backends.kubeflow.answers import Answer, ObjectChanged
from gateway.backends.kubeflow.calls import MOST_PAGES, PAGE_SIZE, Calls
from gateway.backends.kubeflow.client import MERGE_PATCH_TYPE, Request
from gateway.backends.kubeflow.deadline import Deadline
from gateway.backends.kubeflow.json_paths import Json
from gateway.errors import ClusterRejected, ClusterUnreachable
from tests.unit.backends.kubeflow.a_cluster import ClusterInMemory, good, status

ROOT = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
REF = ObjectRef(namespace="team-a", name="digits-1", uid="u-1")
SEEN: Json = {
    "metadata": {"name": "digits-1", "namespace": "team-a", "uid": "u-1", "resourceVersion": "7"}
}


class Cluster:
    """Answers every request alike and keeps it."""

    def __init__(self, *answers: Answer) -> None:
        self.memory = ClusterInMemory()
        left = list(answers)
        self.memory.faults = [lambda _: left.pop(0) if len(left) > 1 else left[0]]
        self.calls = Calls(self.memory, page_seconds=5.0)

    @property
    def asked(self) -> list[Request]:
        """Give the requests so far."""
        return self.memory.requests


def soon() -> Deadline:
    return Deadline(5.0)


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [
        (lambda calls: calls.create_job(SEEN, soon()), "POST", ROOT),
        (lambda calls: calls.get_job("team-a", "digits-1", soon()), "GET", f"{ROOT}/digits-1"),
        (lambda calls: calls.patch_job(SEEN, {}, soon()), "PATCH", f"{ROOT}/digits-1"),
        (lambda calls: calls.delete_job(REF, soon()), "DELETE", f"{ROOT}/digits-1"),
        (lambda calls: calls.pods_of(REF, soon()), "GET", "/api/v1/namespaces/team-a/pods"),
        (
            lambda calls: calls.patch_pod(SEEN, {}, soon()),
            "PATCH",
            "/api/v1/namespaces/team-a/pods/digits-1",
        ),
        (lambda calls: calls.nodes(), "GET", "/api/v1/nodes"),
        (lambda calls: calls.bound_pods(), "GET", "/api/v1/pods"),
        (lambda calls: calls.read("/version", "version", soon()), "GET", "/version"),
        (
            lambda calls: calls.review_access({}, soon()),
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        ),
    ],
)
def test_each_call_is_one_request_to_its_path(
    call: Callable[[Calls], object], method: str, path: str
) -> None:
    cluster = Cluster(good({}))

    call(cluster.calls)

    [request] = cluster.asked
    assert (request.method, request.path) == (method, path)


@pytest.mark.parametrize("odd", ["a/../b", "a b", "a?x=1", "a#b", "ä", "%2e"])
def test_no_name_leaves_its_place_in_a_path(odd: str) -> None:
    cluster = Cluster(good({}))

    cluster.calls.get_job("team-a", odd, soon())

    path = cluster.asked[0].path
    assert path.startswith(f"{ROOT}/")
    assert not set(" ?#") & set(path)
    assert path.isascii()


def test_a_create_is_strict_and_sends_the_document_as_it_is() -> None:
    cluster = Cluster(good({}))

    cluster.calls.create_job(SEEN, soon())

    assert cluster.asked[0].query == {"fieldValidation": "Strict"}
    assert cluster.asked[0].body == SEEN


@pytest.mark.parametrize("which", ["patch_job", "patch_pod"])
def test_a_patch_applies_to_what_was_seen_or_not_at_all(which: str) -> None:
    cluster = Cluster(good({}))
    change = {"metadata": {"annotations": {"a": "b"}}, "spec": {"x": None}}

    getattr(cluster.calls, which)(SEEN, change, soon())

    [request] = cluster.asked
    assert request.content_type == MERGE_PATCH_TYPE
    assert request.body == {
        "metadata": {"annotations": {"a": "b"}, "uid": "u-1", "resourceVersion": "7"},
        "spec": {"x": None},
    }
    assert change == {"metadata": {"annotations": {"a": "b"}}, "spec": {"x": None}}


def test_a_deletion_names_the_uid_and_waits_for_the_pods() -> None:
    cluster = Cluster(good({}))

    cluster.calls.delete_job(REF, soon())

    assert cluster.asked[0].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u-1"},
        "propagationPolicy": "Foreground",
    }


@pytest.mark.parametrize(
    "answer",
    [status(404, name="digits-1", kind="pytorchjobs"), status(409, "Conflict", "other UID")],
)
def test_a_deletion_of_what_is_gone_or_replaced_is_done(answer: Answer) -> None:
    cluster = Cluster(answer)

    cluster.calls.delete_job(REF, soon())

    assert len(cluster.asked) == 1


@pytest.mark.parametrize(
    ("answer", "error"), [(status(403), ClusterUnreachable), (status(422), ClusterRejected)]
)
def test_a_deletion_that_did_not_happen_is_told(answer: Answer, error: type[Exception]) -> None:
    with pytest.raises(error, match="delete pytorchjobs in namespace team-a"):
        Cluster(answer).calls.delete_job(REF, soon())


@pytest.mark.parametrize(
    ("owners", "is_own"),
    [
        ([{"uid": "u-1"}], True),
        ([{"uid": "other"}, {"uid": "u-1"}], True),
        ([{"uid": "other"}], False),
        ([], False),
        (None, False),
        ("u-1", False),
        ([{"name": "digits-1"}], False),
    ],
)
def test_pods_are_told_by_their_owner_and_not_by_their_label(
    owners: object, *, is_own: bool
) -> None:
    pod = {"metadata": {"ownerReferences": owners}}
    cluster = Cluster(good({"items": [pod]}))

    found = cluster.calls.pods_of(REF, soon())

    assert found == ([pod] if is_own else [])
    assert cluster.asked[0].query == {
        "labelSelector": "training.kubeflow.org/job-name=digits-1",
        "limit": str(PAGE_SIZE),
    }


def test_only_bound_pods_that_still_run_are_asked_for() -> None:
    cluster = Cluster(good({"items": []}))

    cluster.calls.bound_pods()

    assert cluster.asked[0].query["fieldSelector"] == (
        "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
    )


def page(*names: str, following: str = "") -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return good({"items": items, "metadata": {"continue": following}})


def names(nodes: list[Json]) -> list[Any]:
    return [node["metadata"]["name"] for node in nodes]


def test_pages_are_put_together_in_their_order() -> None:
    cluster = Cluster(page("a", "b", following="x"), page("c", following="y"), page("d"))

    assert names(cluster.calls.nodes()) == ["a", "b", "c", "d"]
    assert [request.query.get("continue") for request in cluster.asked] == [None, "x", "y"]
    assert {request.query["limit"] for request in cluster.asked} == {str(PAGE_SIZE)}


def test_a_list_that_expired_begins_anew_and_gives_nothing_twice() -> None:
    cluster = Cluster(page("a", following="x"), status(410, "Expired"), page("a", "b"))

    assert names(cluster.calls.nodes()) == ["a", "b"]
    assert "continue" not in cluster.asked[2].query


def test_a_list_that_expires_again_is_left_to_the_next_pass() -> None:
    expired = status(410, "Expired", "too old")

    with pytest.raises(ClusterUnreachable, match="the list of nodes expired again while"):
        Cluster(page("a", following="x"), expired, page("a", following="x"), expired).calls.nodes()


def test_a_list_without_an_end_is_given_up() -> None:
    cluster = Cluster(page(following="again"))

    with pytest.raises(ClusterUnreachable, match="the list of nodes does not end"):
        cluster.calls.nodes()
    assert len(cluster.asked) == MOST_PAGES


@pytest.mark.parametrize("answer", [status(500), status(403), status(429)])
def test_half_a_list_is_no_list(answer: Answer) -> None:
    with pytest.raises(ClusterUnreachable):
        Cluster(page("a", following="x"), answer).calls.nodes()


@pytest.mark.parametrize("items", [None, {}, "x", [None, 3, "pod", []]])
def test_entries_that_are_no_objects_are_left_out(items: object) -> None:
    assert Cluster(good({"items": items})).calls.nodes() == []


def test_a_patch_of_what_changed_meanwhile_is_the_callers_to_judge() -> None:
    with pytest.raises(ObjectChanged, match="newer"):
        Cluster(status(409, "Conflict", "newer")).calls.patch_job(SEEN, {}, soon())


def test_an_access_review_asks_about_the_gateway_itself() -> None:
    cluster = Cluster(good({"status": {"allowed": True}}))

    cluster.calls.review_access({"verb": "list", "resource": "nodes"}, soon())

    assert json.dumps(cluster.asked[0].body) == json.dumps(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "list", "resource": "nodes"}},
        }
    )
