"""Credentials of every form, and bodies that break, stall or are no answer."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.client import KubernetesTransport, Request
from gateway.backends.kubeflow.deadline import Deadline
from gateway.errors import ClusterUnreachable, StartupRefused

GET = Request(method="GET", path="/a")
LOG = Request(method="GET", path="/a/log", query={"container": "pytorch", "follow": "true"})


class Scripted:
    """A server that answers each connection's first request with given bytes, and hangs up."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.heads: list[str] = []
        self.held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            try:
                peer, _ = self._server.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += peer.recv(4096)
            self.heads.append(head.decode())
            peer.sendall(answer.removesuffix(b"HOLD"))
            if answer.endswith(b"HOLD"):
                self.held.append(peer)
                continue
            peer.shutdown(socket.SHUT_RDWR)
            peer.close()

    def close(self) -> None:
        """Stop serving; the shutdown wakes a thread that waits for a connection."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(5)
        for peer in self.held:
            peer.close()

    def header(self, name: str) -> str | None:
        """Give a header of the last request."""
        lines = [line.partition(": ") for line in self.heads[-1].splitlines()]
        return next((value for key, _, value in lines if key.lower() == name), None)


@pytest.fixture
def serve() -> Iterator[Callable[..., Scripted]]:
    servers: list[Scripted] = []

    def start(*answers: bytes) -> Scripted:
        servers.append(Scripted(*answers))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def ok(body: bytes, *headers: str, length: int | None = None) -> bytes:
    told = ["HTTP/1.1 200 OK", f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*told, *headers]).encode() + b"\r\n\r\n" + body


def kubeconfig(folder: Path, port: int = 1, **user: Any) -> Path:
    path = folder / "config"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


Serve = Callable[..., Scripted]


@pytest.mark.parametrize(
    ("user", "authorization"),
    [({"token": "t-1"}, "Bearer t-1"), ({}, None), ({"token": ""}, None)],
)
def test_a_request_carries_the_credential_that_there_is(
    serve: Serve, tmp_path: Path, user: dict[str, str], authorization: str | None
) -> None:
    server = serve(ok(b"{}"))

    KubernetesTransport(kubeconfig(tmp_path, server.port, **user)).send(GET, Deadline(5))

    assert server.header("authorization") == authorization
    assert server.header("user-agent") == "training-gateway"


def test_a_token_file_is_read(serve: Serve, tmp_path: Path) -> None:
    server = serve(ok(b"{}"))
    (tmp_path / "token").write_text("from-file")
    path = kubeconfig(tmp_path, server.port, tokenFile=str(tmp_path / "token"))

    KubernetesTransport(path).send(GET, Deadline(5))

    assert server.header("authorization") == "Bearer from-file"


@pytest.mark.parametrize(
    ("request_", "accept", "content_type"),
    [
        (GET, "application/json", None),
        (LOG, "*/*", None),
        (Request(method="POST", path="/a", body={}), "application/json", "application/json"),
    ],
)
def test_what_is_accepted_and_sent_follows_the_request(
    serve: Serve, tmp_path: Path, request_: Request, accept: str, content_type: str | None
) -> None:
    server = serve(ok(b"{}"))

    KubernetesTransport(kubeconfig(tmp_path, server.port)).send(request_, Deadline(5))

    assert (server.header("accept"), server.header("content-type")) == (accept, content_type)


@pytest.mark.parametrize("head", ["302 Found", "307 Temporary Redirect"])
def test_a_redirect_is_an_answer_and_not_followed(serve: Serve, tmp_path: Path, head: str) -> None:
    elsewhere = "Location: http://127.0.0.1:1/login"
    answer = ok(b"log in", elsewhere).replace(b"200 OK", head.encode())
    server = serve(answer)

    found = KubernetesTransport(kubeconfig(tmp_path, server.port)).send(GET, Deadline(5))

    assert (found.status, found.body) == (int(head[:3]), b"log in")
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    "broken",
    [b"", b"garbage\r\n\r\n", ok(b"half", length=100), b"HTTP/1.1 2"],
)
def test_an_answer_that_breaks_off_is_no_answer(
    serve: Serve, tmp_path: Path, broken: bytes
) -> None:
    server = serve(broken, broken)

    with pytest.raises(ClusterUnreachable, match="the cluster does not answer: "):
        KubernetesTransport(kubeconfig(tmp_path, server.port)).send(GET, Deadline(5))


def test_a_read_that_met_a_closed_connection_gets_its_answer_from_a_new_one(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(b"", ok(b'{"a": 1}'))

    answer = KubernetesTransport(kubeconfig(tmp_path, server.port)).send(GET, Deadline(5))

    assert answer == Answer(status=200, headers={"content-length": "8"}, body=b'{"a": 1}')
    assert len(server.heads) == 2


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_change_whose_answer_breaks_off_is_not_sent_again(
    serve: Serve, tmp_path: Path, method: str
) -> None:
    server = serve(b"", ok(b"{}"))

    with pytest.raises(ClusterUnreachable):
        KubernetesTransport(kubeconfig(tmp_path, server.port)).send(
            Request(method=method, path="/a", body={}), Deadline(5)
        )
    assert len(server.heads) == 1


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "500 Oops", "206 Part"])
def test_a_stream_that_is_refused_is_a_whole_answer_without_pieces(
    serve: Serve, tmp_path: Path, status: str
) -> None:
    server = serve(ok(b"why", "Retry-After: 2").replace(b"200 OK", status.encode()))

    answer, pieces = KubernetesTransport(kubeconfig(tmp_path, server.port)).stream(LOG, 5)

    assert (answer.status, answer.body) == (int(status[:3]), b"why")
    assert answer.headers["retry-after"] == "2"
    assert list(pieces) == []
    assert server.heads[0].startswith("GET /a/log?container=pytorch&follow=true HTTP/1.1")


def test_a_stream_that_falls_silent_is_told_after_what_came(serve: Serve, tmp_path: Path) -> None:
    server = serve(ok(b"line\n", length=100) + b"HOLD")
    _, pieces = KubernetesTransport(kubeconfig(tmp_path, server.port)).stream(LOG, 0.3)

    assert next(pieces) == b"line\n"
    with pytest.raises(ClusterUnreachable, match="the cluster does not answer"):
        next(pieces)


def test_a_stream_that_breaks_off_is_told_after_what_came(serve: Serve, tmp_path: Path) -> None:
    server = serve(ok(b"line\n", length=100))
    _, pieces = KubernetesTransport(kubeconfig(tmp_path, server.port)).stream(LOG, 5)

    assert next(pieces) == b"line\n"
    with pytest.raises(ClusterUnreachable):
        next(pieces)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        "apiVersion: v1\nkind: Config\n",
        "current-context: gone\ncontexts: []\nclusters: []\nusers: []\n",
        "current-context: it\ncontexts: [{name: it, context: {cluster: no, user: no}}]\n",
        "current-context: it\ncontexts: 3\nclusters: text\n",
        "text",
        "- 1",
        "key: [unclosed",
        "\t",
        "a: b: c",
    ],
)
def test_a_kubeconfig_without_a_usable_context_is_refused_by_name(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "config"
    path.write_text(content)

    with pytest.raises(StartupRefused) as caught:
        KubernetesTransport(path)
    assert caught.value.value == str(path)
    assert caught.value.detail.startswith("no access to a cluster: ")


def test_a_folder_is_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match="no access to a cluster"):
        KubernetesTransport(tmp_path)


def test_nobody_listening_is_told_with_the_reason(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as closed:
        port = closed.getsockname()[1]

    with pytest.raises(ClusterUnreachable) as caught:
        KubernetesTransport(kubeconfig(tmp_path, port)).stream(LOG, 1)
    assert "Connection refused" in caught.value.detail
    assert (
        caught.value.hint == "is the API server up, and does the network let the gateway through?"
    )
