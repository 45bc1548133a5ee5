"""The API on this machine: HTTP requests become API Gateway v2 events for the one handler."""

from __future__ import annotations

import base64
import ipaddress
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ranklog.api.problems import PROBLEM, problem
from ranklog.errors import BadInput
from ranklog.limits import REQUEST_BYTES_MAX

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

# A client that sends nothing for so long loses its connection, and its thread comes back.
IDLE_S = 60


@dataclass(frozen=True, slots=True)
class Caller:
    """In place of Lambda's context: here an answer may come in parts."""

    can_stream: bool = True


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files of a certificate chain and its key."""

    certificate: Path
    key: Path


def parse_listen(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT`. Raises BadInput."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise BadInput(f"can't listen on {text!r}", hint="write HOST:PORT, such as 127.0.0.1:8080")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address. A name that is not `localhost` is not."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_server(
    handler: Handler, *, host: str, port: int, tls: Tls | None = None, has_keys: bool = False
) -> ThreadingHTTPServer:
    """A server that is bound and not yet serving. Port 0 takes a free one.

    Raises BadInput where others could reach it without a key or in the clear.
    """
    if not is_loopback(host) and not (tls and has_keys):
        raise BadInput(
            f"{host} can be reached from other machines, so it needs keys and TLS",
            hint="give --keys, --tls-cert and --tls-key, or listen on 127.0.0.1",
        )
    context = None if tls is None else _tls_context(tls)
    request_handler = type("BoundHandler", (_RequestHandler,), {"handler": staticmethod(handler)})
    server_class = type("Server", (_Server,), {"address_family": _family(host)})
    try:
        server: ThreadingHTTPServer = server_class((host, port), request_handler)
    except OSError as error:
        raise BadInput(f"can't listen on {host}:{port}: {error.strerror or error}") from error
    if context is not None:
        # the handshake is the connection's thread's, so that a slow one holds up nobody else
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # hundreds may come at once; the library's 5 makes them try again

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away or speaks no TLS is its own affair."""


def _family(host: str) -> int:
    import socket

    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise BadInput(f"can't use {tls.certificate} and {tls.key} for TLS: {error}") from error
    return context


class _RequestHandler(BaseHTTPRequestHandler):
    """One connection; `handler` is set by make_server."""

    handler: Handler
    protocol_version = "HTTP/1.1"
    server_version = "ranklog"
    sys_version = ""
    timeout = IDLE_S

    def _answer(self) -> None:
        body, refusal = self._body()
        if refusal:
            self._refuse(*refusal)
            return
        event = event_of(
            self.command, self.path, dict(self.headers.items()), body, self.client_address[0]
        )
        self._send(self.handler(event, Caller()))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = _answer

    def _body(self) -> tuple[bytes, tuple[int, str] | None]:
        """The body, or why it is not read: then the connection can't go on."""
        if self.headers.get("Transfer-Encoding"):
            return b"", (411, "a body needs a Content-Length")
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal():
            return b"", (400, f"Content-Length {length!r} is no number")
        if int(length) > REQUEST_BYTES_MAX:
            return b"", (413, f"a body of {length} bytes, limit {REQUEST_BYTES_MAX}")
        return self.rfile.read(int(length)), None

    def _refuse(self, status: int, detail: str) -> None:
        self.close_connection = True
        refused = problem(status, detail, kind=BadInput.kind)
        headers = {"Content-Type": PROBLEM, "Connection": "close"}
        self._send({"statusCode": status, "headers": headers, "body": refused.body})

    def _send(self, response: Mapping[str, Any]) -> None:
        if "parts" in response:
            self._send_parts(response, response["parts"])
            return
        raw = response.get("body") or ""
        coded = response.get("isBase64Encoded")
        body = base64.b64decode(raw) if coded else str(raw).encode("utf-8", "surrogatepass")
        self.send_response(int(response["statusCode"]))
        for name, value in (response.get("headers") or {}).items():
            self.send_header(name, str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_parts(self, response: Mapping[str, Any], parts: Iterable[str]) -> None:
        """Each part when it is ready. One that breaks ends the connection without the last chunk, which
        tells who reads that something is missing."""
        chunked = self.request_version != "HTTP/1.0"
        self.close_connection = True
        self.send_response(int(response["statusCode"]))
        for name, value in (response.get("headers") or {}).items():
            self.send_header(name, str(value))
        self.send_header(
            *(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close"))
        )
        self.end_headers()
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")
            self.close_connection = False

    def log_message(self, format: str, *args: Any) -> None:
        """The handler's own log says what it did."""


def event_of(
    method: str, target: str, headers: Mapping[str, str], body: bytes, source_ip: str
) -> dict[str, Any]:
    """A request as API Gateway (HTTP API, payload format 2.0) hands it to a function.

    Nothing a client sends becomes `requestContext.authorizer`: that is a real authorizer's.
    """
    parts = urlsplit(target)
    query: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    now = time.time()
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": parts.path,
        "rawQueryString": parts.query,
        "headers": {name.lower(): value for name, value in headers.items()},
        "queryStringParameters": query or None,
        "requestContext": {
            "http": {
                "method": method,
                "path": parts.path,
                "protocol": "HTTP/1.1",
                "sourceIp": source_ip,
                "userAgent": headers.get("User-Agent", ""),
            },
            "requestId": f"{time.monotonic_ns():x}",
            "stage": "$default",
            "timeEpoch": int(now * 1000),
        },
        "body": base64.b64encode(body).decode() if body else None,
        "isBase64Encoded": bool(body),
    }
