"""The transport against a server on this machine: credentials, time limits, closed connections."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from gateway.backends.kubeflow.client import (
    MERGE_PATCH_TYPE,
    KubernetesTransport,
    Request,
)
from gateway.backends.kubeflow.deadline import Deadline
from gateway.errors import ClusterUnreachable, StartupRefused


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked; paths choose a fault."""

    protocol_version = "HTTP/1.1"
    seen: list[str]

    def answer(self) -> None:
        """Answer any method."""
        self.server.seen.append(self.command)  # type: ignore[attr-defined] # set by the fixture
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/drop"):
            self.close_connection = True
            return
        self.send_response(418 if self.path.startswith("/teapot") else 200)
        told = "|".join(
            [
                self.path,
                self.headers.get("Authorization", ""),
                self.headers.get("Content-Type", ""),
                body.decode(),
            ]
        ).encode()
        self.send_header("Content-Length", str(len(told)))
        self.send_header("Retry-After", "4")
        self.end_headers()
        if self.path.startswith("/trickle"):
            for index in range(len(told)):
                self.wfile.write(told[index : index + 1])
                self.wfile.flush()
                time.sleep(0.05)
            return
        self.wfile.write(told)

    do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - names of the base class

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base class
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Notes the methods that it saw."""

    daemon_threads = True
    seen: list[str]

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet about connections that a test closes."""


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Echo)
    found.seen = []
    thread = threading.Thread(target=found.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join(5)


def kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "config"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "it", "user": {"token": "secret-token"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_request_carries_the_token_its_query_and_its_content_type(
    server: Server, tmp_path: Path
) -> None:
    transport = KubernetesTransport(kubeconfig(tmp_path, server.server_port))
    request = Request(
        method="PATCH",
        path="/a",
        query={"q": "x y"},
        body={"b": 1},
        content_type=MERGE_PATCH_TYPE,
    )

    answer = transport.send(request, Deadline(5))

    assert answer.status == 200
    assert answer.body == b'/a?q=x+y|Bearer secret-token|application/merge-patch+json|{"b": 1}'


def test_an_error_status_is_an_answer_with_its_headers(server: Server, tmp_path: Path) -> None:
    transport = KubernetesTransport(kubeconfig(tmp_path, server.server_port))

    answer = transport.send(Request(method="GET", path="/teapot"), Deadline(5))

    assert answer.status == 418
    assert answer.headers["retry-after"] == "4"


def test_only_a_read_is_sent_again_when_the_connection_was_closed(
    server: Server, tmp_path: Path
) -> None:
    transport = KubernetesTransport(kubeconfig(tmp_path, server.server_port))

    for method in ("GET", "POST", "PATCH", "DELETE"):
        with pytest.raises(ClusterUnreachable):
            transport.send(Request(method=method, path="/drop"), Deadline(5))

    assert server.seen == ["GET", "GET", "POST", "PATCH", "DELETE"]


def test_a_silent_peer_holds_a_call_no_longer_than_its_deadline(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        transport = KubernetesTransport(kubeconfig(tmp_path, silent.getsockname()[1]))
        begun = time.monotonic()

        with pytest.raises(ClusterUnreachable):
            transport.send(Request(method="GET", path="/a"), Deadline(0.3))
        with pytest.raises(ClusterUnreachable):
            transport.stream(Request(method="GET", path="/a/log"), 0.3)

        assert time.monotonic() - begun < 3


def test_a_trickling_peer_holds_a_call_no_longer_than_its_deadline(
    server: Server, tmp_path: Path
) -> None:
    transport = KubernetesTransport(kubeconfig(tmp_path, server.server_port))
    begun = time.monotonic()

    with pytest.raises(ClusterUnreachable):
        transport.send(Request(method="GET", path=f"/trickle/{'x' * 100}"), Deadline(0.5))

    assert time.monotonic() - begun < 3


def test_a_closed_port_is_unreachable_and_says_so(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as closed:
        port = closed.getsockname()[1]
    transport = KubernetesTransport(kubeconfig(tmp_path, port))

    with pytest.raises(ClusterUnreachable, match="does not answer"):
        transport.send(Request(method="GET", path="/a"), Deadline(5))


def test_a_stream_comes_piece_by_piece(server: Server, tmp_path: Path) -> None:
    transport = KubernetesTransport(kubeconfig(tmp_path, server.server_port))

    answer, pieces = transport.stream(Request(method="GET", path="/trickle/log"), 5)

    assert answer.status == 200
    assert next(pieces) == b"/"
    assert b"".join(pieces).startswith(b"trickle/log|")


@pytest.mark.parametrize("content", [None, "not: a kubeconfig", ""])
def test_without_access_the_server_refuses_to_start(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "missing"
    if content is not None:
        path.write_text(content)

    with pytest.raises(StartupRefused) as caught:
        KubernetesTransport(path)
    assert "TRAINING_GATEWAY_KUBECONFIG" in caught.value.hint


def test_outside_a_cluster_there_is_no_service_account() -> None:
    with pytest.raises(StartupRefused):
        KubernetesTransport(None)
