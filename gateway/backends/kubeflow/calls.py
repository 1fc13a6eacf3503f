"""The few requests that the back end makes, in and out as raw JSON.

Knows paths, selectors and preconditions; what an object means is decided elsewhere.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from gateway.backends.base import ObjectRef
from gateway.backends.kubeflow.answers import (
    Answer,
    ListExpired,
    ObjectAbsent,
    ObjectChanged,
    read_answer,
)
from gateway.backends.kubeflow.client import MERGE_PATCH_TYPE, Request, Transport
from gateway.backends.kubeflow.deadline import Deadline
from gateway.backends.kubeflow.json_paths import Json, at, entry_with, items_at, text_at
from gateway.backends.kubeflow.names import GROUP, JOB_NAME_LABEL, PLURAL, VERSION
from gateway.errors import ClusterUnreachable

PAGE_SIZE = 500
MOST_PAGES = 2000
LIST_TRIES = 2
JOBS_ROOT = f"/apis/{GROUP}/{VERSION}"


class Calls:
    """Requests to one cluster; every one raises as `read_answer` says."""

    def __init__(self, transport: Transport, page_seconds: float) -> None:
        """`page_seconds` bounds each page of a long list."""
        self._transport = transport
        self._page_seconds = page_seconds

    def create_job(self, body: Json, deadline: Deadline) -> Json:
        """Create a PyTorchJob; a field that the installed CRD would drop is refused."""
        namespace = text_at(body, "metadata", "namespace")
        # Strict (KEP-2885): the API server would else prune what an older CRD lacks without a word,
        # and a pod that lost its gate would start wherever the scheduler likes.
        request = Request(
            method="POST",
            path=_jobs(namespace),
            query={"fieldValidation": "Strict"},
            body=body,
        )
        return self._send(request, "create", f"{PLURAL} in namespace {namespace}", deadline)

    def get_job(self, namespace: str, name: str, deadline: Deadline) -> Json | None:
        """Give a PyTorchJob; None when there is none of this name."""
        request = Request(method="GET", path=f"{_jobs(namespace)}/{quote(name)}")
        try:
            return self._send(request, "get", f"{PLURAL} in namespace {namespace}", deadline)
        except ObjectAbsent:
            return None

    def patch_job(self, job: Json, change: Mapping[str, Any], deadline: Deadline) -> Json:
        """Merge `change` into exactly the PyTorchJob that was read; else ObjectChanged."""
        namespace = text_at(job, "metadata", "namespace")
        path = f"{_jobs(namespace)}/{quote(text_at(job, 'metadata', 'name'))}"
        return self._patch(path, job, change, (f"{PLURAL} in namespace {namespace}", deadline))

    def delete_job(self, ref: ObjectRef, deadline: Deadline) -> None:
        """Delete the PyTorchJob with this UID and then its pods; gone already is success."""
        request = Request(
            method="DELETE",
            path=f"{_jobs(ref.namespace)}/{quote(ref.name)}",
            body={
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": ref.uid},
                # The object outlives its pods (the operator sets blockOwnerDeletion), so its name
                # stays taken while they still hold devices.
                "propagationPolicy": "Foreground",
            },
        )
        try:
            self._send(request, "delete", f"{PLURAL} in namespace {ref.namespace}", deadline)
        except (ObjectAbsent, ObjectChanged):
            return  # gone, or another object has the name now

    def pods_of(self, ref: ObjectRef, deadline: Deadline) -> list[Json]:
        """Give the pods that this very PyTorchJob owns, also after it is gone itself."""
        found = self._list(
            f"/api/v1/namespaces/{quote(ref.namespace)}/pods",
            {"labelSelector": f"{JOB_NAME_LABEL}={ref.name}"},
            (f"pods in namespace {ref.namespace}", deadline),
        )
        # Labels alone would also find pods of an earlier object of this name that still terminate.
        return [pod for pod in found if _is_owned_by(pod, ref.uid)]

    def patch_pod(self, pod: Json, change: Mapping[str, Any], deadline: Deadline) -> Json:
        """Merge `change` into exactly the pod that was read; else ObjectChanged."""
        namespace = text_at(pod, "metadata", "namespace")
        path = (
            f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(text_at(pod, 'metadata', 'name'))}"
        )
        return self._patch(path, pod, change, (f"pods in namespace {namespace}", deadline))

    def nodes(self) -> list[Json]:
        """Give every node."""
        return self._list("/api/v1/nodes", {}, ("nodes", None))

    def bound_pods(self) -> list[Json]:
        """Give every pod of the cluster that is bound to a node and has not ended."""
        chosen = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
        return self._list("/api/v1/pods", {"fieldSelector": chosen}, ("pods", None))

    def read(self, path: str, what: str, deadline: Deadline) -> Json:
        """Give whatever JSON object stands at a path."""
        return self._send(Request(method="GET", path=path), "get", what, deadline)

    def review_access(self, attributes: Mapping[str, str], deadline: Deadline) -> Json:
        """Ask whether the gateway itself may do something (SelfSubjectAccessReview)."""
        request = Request(
            method="POST",
            path="/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            body={
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": dict(attributes)},
            },
        )
        return self._send(request, "create", "selfsubjectaccessreviews", deadline)

    def stream_log(
        self, namespace: str, pod: str, query: Mapping[str, str], idle_seconds: float
    ) -> tuple[Answer, Iterator[bytes]]:
        """Begin to read a pod's log."""
        path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/log"
        return self._transport.stream(Request(method="GET", path=path, query=query), idle_seconds)

    def _send(self, request: Request, verb: str, what: str, deadline: Deadline) -> Json:
        return read_answer(self._transport.send(request, deadline), verb, what)

    def _patch(
        self, path: str, seen: Json, change: Mapping[str, Any], about: tuple[str, Deadline]
    ) -> Json:
        body = dict(change)
        # Both together make the patch apply to what was looked at, or not at all.
        body["metadata"] = {
            **body.get("metadata", {}),
            "uid": at(seen, "metadata", "uid"),
            "resourceVersion": at(seen, "metadata", "resourceVersion"),
        }
        request = Request(method="PATCH", path=path, body=body, content_type=MERGE_PATCH_TYPE)
        return self._send(request, "patch", *about)

    def _list(
        self, path: str, query: Mapping[str, str], about: tuple[str, Deadline | None]
    ) -> list[Json]:
        for _ in range(LIST_TRIES):
            # A consistent list has to begin anew when its token has expired.
            with suppress(ListExpired):
                # Without a resourceVersion, so no older than a pod that was bound a moment ago.
                return self._pages(path, query, about)
        raise ClusterUnreachable(f"the list of {about[0]} expired again while it was read")

    def _pages(
        self, path: str, query: Mapping[str, str], about: tuple[str, Deadline | None]
    ) -> list[Json]:
        what, deadline = about
        found: list[Json] = []
        page = {**query, "limit": str(PAGE_SIZE)}
        # A million objects. A proxy that answers every page with the same token must not hold us.
        for _ in range(MOST_PAGES):
            request = Request(method="GET", path=path, query=page)
            answer = self._send(request, "list", what, deadline or Deadline(self._page_seconds))
            found += items_at(answer, "items")
            following = text_at(answer, "metadata", "continue")
            if not following:
                return found
            page = {**page, "continue": following}
        raise ClusterUnreachable(f"the list of {what} does not end")


def _jobs(namespace: str) -> str:
    return f"{JOBS_ROOT}/namespaces/{quote(namespace)}/{PLURAL}"


def _is_owned_by(pod: Json, uid: str) -> bool:
    owners = items_at(pod, "metadata", "ownerReferences")
    return entry_with(owners, uid=uid) is not None
