"""HTTP/1.1 on loopback: a function from requests to responses behind a socket, a thread a connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """`target` is the path with its query as they came; header names are lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """Without the query, still percent-encoded."""
        return urlsplit(self.target).path

    @property
    def query(self) -> str:
        """Behind the question mark."""
        return urlsplit(self.target).query


@dataclass(frozen=True, slots=True)
class Response:
    """A Content-Length is added."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Request], Response | None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a worker that waits for its next event holds its connection
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """A peer that was killed is no error of ours."""


class HttpServer:
    """Serves `answer` until it is closed. `answer` returns None to drop the connection."""

    def __init__(self, answer: Answer) -> None:
        self._server = _Server(("127.0.0.1", 0), _handler(answer))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.daemon = True
        self._thread.start()

    @property
    def address(self) -> str:
        """`127.0.0.1:port`."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http://{self.address}"

    def close(self) -> None:
        """Take no more requests; those under way end by themselves."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def _handler(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet
        disable_nagle_algorithm = True

        def do(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, self._body(headers))
            response = answer(request)
            if response is None:
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response_only(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            length = {name.lower() for name in response.headers} & {"content-length"}
            if response.status != 204 and not length:
                self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = do

        def handle_expect_100(self) -> bool:
            answered = super().handle_expect_100()
            self.wfile.flush()  # who asks waits a second for it
            return answered

        def _body(self, headers: Mapping[str, str]) -> bytes:
            if "chunked" not in headers.get("transfer-encoding", ""):
                return self.rfile.read(int(headers.get("content-length", "0")))
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(chunks)

        def log_message(self, *_: object) -> None:
            """Whoever answers keeps the log that it needs."""

    return Handler
