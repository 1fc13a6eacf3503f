"""Sends requests to the API server. The only file that imports the Kubernetes client.

It takes from the official client what is hard to do well (kubeconfig, in-cluster tokens and their
rotation, TLS, proxies) and leaves out what differs between its versions (typed models, content
types, hidden retries): JSON goes in and comes out as it is.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes import client, config

from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.deadline import Deadline
from gateway.errors import ClusterUnreachable, StartupRefused

JSON_TYPE = "application/json"
MERGE_PATCH_TYPE = "application/merge-patch+json"
# Linux repeats a lost SYN after 1 s and again 2 s later; one loss must not be an outage.
CONNECT_SECONDS = 3.0
MOST_BYTES = 256 * 1024 * 1024
CHUNK_BYTES = 1 << 16
USER_AGENT = "training-gateway"
# The client checks the parts of a kubeconfig only as it stumbles over them.
UNREADABLE = (
    *(config.ConfigException, yaml.YAMLError),
    *(OSError, ValueError, TypeError, KeyError, AttributeError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; `path` begins with a slash, `body` is JSON or None."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content_type: str = JSON_TYPE


class Transport(Protocol):
    """Carries requests to one API server."""

    def send(self, request: Request, deadline: Deadline) -> Answer:
        """Give the answer, whatever its status; raises ClusterUnreachable without one."""

    def stream(self, request: Request, idle_seconds: float) -> tuple[Answer, Iterator[bytes]]:
        """Give the head of an answer and its body in pieces, as they come."""


class KubernetesTransport:
    """The connection pool of the official client, used without its generated calls."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        """Read the kubeconfig file, or without one the pod's own service account.

        Raises:
            StartupRefused: neither can be read; the text says what to do.
        """
        self._configuration = _configuration(kubeconfig)
        self._pool = client.ApiClient(self._configuration).rest_client.pool_manager

    def send(self, request: Request, deadline: Deadline) -> Answer:
        """Send once; a read that met a closed connection is sent once more."""
        with _telling_outages():
            return self._sent(request, deadline)

    def _sent(self, request: Request, deadline: Deadline) -> Answer:
        try:
            return self._send(request, deadline)
        # The server may have closed an idle connection, which shows only when it is used. What
        # is no read may have acted before its answer was lost, so its caller has to look.
        except urllib3.exceptions.ProtocolError:
            if request.method != "GET":
                raise
        return self._send(request, deadline)

    def stream(self, request: Request, idle_seconds: float) -> tuple[Answer, Iterator[bytes]]:
        """Send once; a pause longer than `idle_seconds` raises ClusterUnreachable."""
        with _telling_outages():
            response = self._open(request, idle_seconds)
        if response.status != 200:  # noqa: PLR2004 - OK
            return _whole(response, None), iter(())
        return Answer(status=response.status), _pieces(response)

    def _send(self, request: Request, deadline: Deadline) -> Answer:
        return _whole(self._open(request, deadline.left_seconds()), deadline)

    def _open(self, request: Request, read_seconds: float) -> urllib3.BaseHTTPResponse:
        query = f"?{urlencode(request.query)}" if request.query else ""
        body = None if request.body is None else json.dumps(request.body).encode()
        response: urllib3.BaseHTTPResponse = self._pool.request(
            request.method,
            f"{self._configuration.host}{request.path}{query}",
            body=body,
            headers=self._headers(request),
            preload_content=False,
            redirect=False,
            timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, read_seconds), read=read_seconds),
        )
        return response

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Accept": JSON_TYPE, "User-Agent": USER_AGENT}
        if request.path.endswith("/log"):
            headers["Accept"] = "*/*"
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        # Asked for at each request: a service account's token is replaced every hour.
        credential = self._configuration.auth_settings().get("BearerToken")
        if credential and credential["value"]:
            headers[credential["key"]] = credential["value"]
        return headers


def _configuration(kubeconfig: Path | None) -> client.Configuration:
    found = client.Configuration()
    # The client has no types of its own here.
    inside: Callable[..., object] = config.load_incluster_config
    outside: Callable[..., object] = config.load_kube_config
    try:
        if kubeconfig is None:
            inside(client_configuration=found)
        else:
            outside(str(kubeconfig), client_configuration=found)
    except UNREADABLE as error:
        raise StartupRefused(
            f"no access to a cluster: {error}",
            value=str(kubeconfig or ""),
            hint="set TRAINING_GATEWAY_KUBECONFIG to a kubeconfig file, or run inside the cluster",
        ) from error
    # urllib3 would otherwise repeat requests by itself and multiply every timeout by four.
    found.retries = False
    return found


def _whole(response: urllib3.BaseHTTPResponse, deadline: Deadline | None) -> Answer:
    try:
        body = _body(response, deadline)
        response.release_conn()
    finally:
        response.close()  # of a half-read answer also the connection, of a whole one no more
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(status=response.status, headers=headers, body=body)


def _body(response: urllib3.BaseHTTPResponse, deadline: Deadline | None) -> bytes:
    body = bytearray()
    while piece := response.read1(CHUNK_BYTES):  # `read` would wait for a whole chunk
        body += piece
        if deadline is not None:
            deadline.left_seconds()  # a peer that trickles must not hold the call
        if len(body) > MOST_BYTES:
            raise ClusterUnreachable("the answer of the cluster is too large")
    return bytes(body)


def _pieces(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    with closing(response), _telling_outages():
        while piece := response.read1(CHUNK_BYTES):
            yield piece


@contextmanager
def _telling_outages() -> Iterator[None]:
    try:
        yield
    except urllib3.exceptions.HTTPError as error:
        raise _unreachable(error) from error


def _unreachable(error: Exception) -> ClusterUnreachable:
    # MaxRetryError says only that it gave up; why stands in `reason`.
    reason = getattr(error, "reason", None) or error
    return ClusterUnreachable(
        f"the cluster does not answer: {type(error).__name__}: {reason}",
        hint="is the API server up, and does the network let the gateway through?",
    )
