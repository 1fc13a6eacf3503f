"""A small stateful API server in memory, for tests of the back end's decisions.

It knows creation, merge patches with preconditions, deletion by UID and label selectors; pods and
statuses are written by the test. What a real server does is tested in tests/cluster.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from gateway.backends.base import Launch
from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.client import Request
from gateway.backends.kubeflow.deadline import Deadline
from gateway.backends.kubeflow.json_paths import Json
from gateway.core.vocabulary import SCHEDULING_GATE
from gateway.errors import ClusterUnreachable

Fault = Callable[[Request], Answer | None]


def status(code: int, reason: str = "", message: str = "", **details: str) -> Answer:
    """Give an error as the API server writes it."""
    body = {"kind": "Status", "reason": reason, "message": message, "details": details}
    return Answer(status=code, body=json.dumps(body).encode())


def merged(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class ClusterInMemory:
    """Objects by path; `faults` may answer a request before it is looked at."""

    def __init__(self) -> None:
        """Begin empty."""
        self.objects: dict[str, Json] = {}
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.loses_answers_to: set[str] = set()
        """Methods that take effect although their answer is lost."""
        self.webhook: Json = {}
        """What a mutating webhook merges into every created object."""
        self.streams: list[tuple[Answer, list[bytes | Exception]]] = []
        self._counter = 0

    def send(self, request: Request, deadline: Deadline) -> Answer:
        """Answer one request."""
        deadline.left_seconds()
        self.requests.append(request)
        for fault in self.faults:
            answer = fault(request)
            if answer is not None:
                return answer
        answer = self._answer(request)
        if request.method in self.loses_answers_to:
            raise ClusterUnreachable("the answer was lost")
        return answer

    def stream(self, request: Request, idle_seconds: float) -> tuple[Answer, Iterator[bytes]]:
        """Answer with the next scripted stream; a piece that is an error is raised."""
        assert idle_seconds > 0
        self.requests.append(request)
        answer, pieces = self.streams.pop(0)
        return answer, _playing(pieces)

    def put(self, path: str, document: Json) -> Json:
        """Store an object with a fresh uid and version."""
        self._counter += 1
        metadata = {"uid": f"uid-{self._counter}", **document["metadata"]}
        metadata["resourceVersion"] = str(self._counter)
        self.objects[path] = {**document, "metadata": metadata}
        return self.objects[path]

    def sent(self, method: str) -> list[Request]:
        """Give the requests of one method."""
        return [request for request in self.requests if request.method == method]

    def _answer(self, request: Request) -> Answer:
        match request.method:
            case "POST":
                return self._create(request)
            case "PATCH":
                return self._patch(request)
            case "DELETE":
                return self._delete(request)
            case _:
                return self._get(request)

    def _get(self, request: Request) -> Answer:
        if request.path in self.objects:
            return good(self.objects[request.path])
        if request.path.rsplit("/", 1)[-1] in {"pods", "nodes"}:
            stem = f"{request.path}/"
            return good({"items": [o for p, o in self.objects.items() if p.startswith(stem)]})
        return status(404, "NotFound", "not found", name="it", kind="pytorchjobs")

    def _create(self, request: Request) -> Answer:
        assert request.body is not None
        path = f"{request.path}/{request.body['metadata']['name']}"
        if path in self.objects:
            return status(409, "AlreadyExists", "already exists", name="it")
        return good(self.put(path, merged(request.body, self.webhook)))

    def _patch(self, request: Request) -> Answer:
        assert request.body is not None
        found = self.objects.get(request.path)
        if found is None:
            return status(404, "NotFound", "not found", name="it", kind="pods")
        for key in ("uid", "resourceVersion"):
            if request.body["metadata"][key] != found["metadata"][key]:
                return status(409, "Conflict", f"{key} differs", name="it")
        return good(self.put(request.path, merged(found, request.body)))

    def _delete(self, request: Request) -> Answer:
        assert request.body is not None
        found = self.objects.get(request.path)
        if found is None:
            return status(404, "NotFound", "not found", name="it", kind="pytorchjobs")
        if request.body["preconditions"]["uid"] != found["metadata"]["uid"]:
            return status(409, "Conflict", "UID in precondition", name="it")
        return good(self.objects.pop(request.path))


def _playing(pieces: list[bytes | Exception]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, Exception):
            raise piece
        yield piece


def good(document: Json) -> Answer:
    """Give a good answer."""
    return Answer(status=200, body=json.dumps(document).encode())


def job_path(launch: Launch) -> str:
    """Give the path of a launch's PyTorchJob."""
    stem = f"/apis/kubeflow.org/v1/namespaces/{launch.namespace}/pytorchjobs"
    return f"{stem}/{launch.object_name}"


def a_pod(launch: Launch, rank: int, owner_uid: str, **status_fields: Any) -> Json:
    """Give a gated pod as the operator creates it."""
    planned = launch.pods[rank]
    kind = planned.pod_set.lower()
    return {
        "metadata": {
            "name": f"{launch.object_name}-{kind}-{planned.index}",
            "namespace": launch.namespace,
            "uid": f"pod-{rank}",
            "resourceVersion": "1",
            "labels": {
                "training.kubeflow.org/job-name": launch.object_name,
                "training.kubeflow.org/replica-type": kind,
                "training.kubeflow.org/replica-index": str(planned.index),
            },
            "ownerReferences": [{"kind": "PyTorchJob", "uid": owner_uid}],
        },
        "spec": {
            "containers": [{"name": "pytorch"}],
            "schedulingGates": [{"name": SCHEDULING_GATE}],
        },
        "status": {"phase": "Pending", **status_fields},
    }


def add_pods(cluster: ClusterInMemory, launch: Launch, owner_uid: str, *ranks: int) -> None:
    """Store gated pods of these ranks."""
    for rank in ranks:
        pod = a_pod(launch, rank, owner_uid)
        name = pod["metadata"]["name"]
        cluster.put(f"/api/v1/namespaces/{launch.namespace}/pods/{name}", pod)
