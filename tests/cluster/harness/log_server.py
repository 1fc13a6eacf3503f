"""Serves /containerLogs over TLS on loopback: the one thing the API server asks a kubelet for."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.cluster.harness.certificates import Certificates
from tests.cluster.harness.log_book import LogBook, Reading


class LogServer:
    """A TLS server in a thread, on a free loopback port, for the logs of all fake nodes."""

    def __init__(self, book: LogBook, certificates: Certificates) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.server, certificates.server_key)
        self._book = book
        self._server = QuietServer(("127.0.0.1", 0), handler_for(book))
        # The handshake belongs to the request's own thread: a silent client must block nobody.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="kubelet-logs")

    @property
    def port(self) -> int:
        """Give the port that nodes must name as their kubelet's."""
        return self._server.server_port

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End all followers and the server."""
        self._book.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class QuietServer(ThreadingHTTPServer):
    """A server that does not print the traces of clients that went away."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a reader that hung up is no news."""


def handler_for(book: LogBook) -> type[BaseHTTPRequestHandler]:
    """Give a request handler that reads from this book."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            parts = address.path.strip("/").split("/")
            if len(parts) != 4 or parts[0] != "containerLogs":
                return self.send_error(404)
            _, namespace, pod, container = parts
            reading = Reading.from_query(dict(parse_qsl(address.query)))
            lines = book.read((namespace, pod, container), reading)
            if lines is None:
                return self.send_error(404, f"container {container} of {pod} has no log")
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in lines:
                self.send_chunk(line.encode())
            return self.send_chunk(b"")

        def send_chunk(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            """Print nothing for each request."""

    return Handler
