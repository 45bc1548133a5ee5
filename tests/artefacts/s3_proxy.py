"""Between the functions and the object store: notes every request, answers what the store answers."""

from __future__ import annotations

import http.client
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from tests.artefacts.http import HttpServer, Request, Response

_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One request. `kind`: LIST, GET, PUT, DELETE, HEAD; `key`: of the object, or the prefix of a LIST;
    `keys`: what a LIST named."""

    kind: str
    key: str
    status: int
    bytes: int
    keys: int = 0
    range: str = ""


class S3Proxy:
    """One address more for the store at `upstream`. Signatures cover the Host header, which is passed on."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[http.client.HTTPConnection] = []
        self._seen: list[Seen] = []
        # Called with each request before it is passed on; a test that waits in it holds the request up.
        self.before: Callable[[Request], None] = lambda _: None
        self._server = HttpServer(self._answer)

    @property
    def url(self) -> str:
        """For AWS_ENDPOINT_URL_S3."""
        return self._server.url

    def take(self) -> list[Seen]:
        """The requests since the last call."""
        with self._lock:
            taken, self._seen = self._seen, []
        return taken

    def close(self) -> None:
        """Take no more requests."""
        self._server.close()
        with self._lock:
            for connection in self._connections:
                connection.close()

    def _answer(self, request: Request) -> Response:
        self.before(request)
        headers = {n: v for n, v in request.headers.items() if n not in ("connection", "expect")}
        headers.pop("transfer-encoding", None)
        for last in (False, True):
            try:
                connection = self._connection()
                connection.putrequest(
                    request.method, request.target, skip_host=True, skip_accept_encoding=True
                )
                for name, value in headers.items():
                    connection.putheader(name, value)
                connection.endheaders(request.body)
                answer = connection.getresponse()
                body = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self._connection().close()  # it was closed for being idle, and is opened again
                if last:
                    raise
        kept = {n: v for n, v in answer.getheaders() if n.lower() not in _HOP}
        if request.method == "HEAD":
            kept["Content-Length"] = answer.getheader("Content-Length", "0")
        with self._lock:
            self._seen.append(_seen(request, answer.status, body))
        return Response(answer.status, body, kept)

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if found is None:
            assert self._upstream.hostname is not None
            found = http.client.HTTPConnection(self._upstream.hostname, self._upstream.port)
            self._local.connection = found
            with self._lock:
                self._connections.append(found)
        return found


def _seen(request: Request, status: int, body: bytes) -> Seen:
    query = parse_qs(request.query, keep_blank_values=True)
    key = unquote(request.path).lstrip("/").partition("/")[2]
    if request.method == "GET" and "list-type" in query:
        named = len(re.findall(rb"<Contents>|<CommonPrefixes>", body))
        return Seen("LIST", query.get("prefix", [""])[0], status, len(body), named)
    size = len(request.body) if request.method == "PUT" else len(body)
    return Seen(request.method, key, status, size, range=request.headers.get("range", ""))


def tally(seen: list[Seen]) -> dict[str, int]:
    """Requests by kind; GETs by what they read: an index, a segment, the rest."""
    counts: Counter[str] = Counter()
    for one in seen:
        part = one.key.split("/")[1] if one.kind == "GET" and "/" in one.key else ""
        counts[f"GET {part}" if part in ("index", "data") else one.kind] += 1
        counts["listed keys"] += one.keys
    return dict(counts)
