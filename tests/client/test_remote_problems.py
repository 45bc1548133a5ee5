"""What an API refuses is the same error on this side."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ranklog import errors
from ranklog.client import Client

KINDS = sorted({one.kind for one in vars(errors).values() if hasattr(one, "kind")} - {"error"})


class Refusing(BaseHTTPRequestHandler):
    """Answers with a problem of the kind that the question names."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        problem = {"status": 429, "detail": "no", "kind": body["query"], "hint": "why"}
        data = json.dumps({**problem, "position": 3}).encode()
        self.send_response(429)
        self.send_header("Retry-After", "1135")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing on the console."""


@pytest.fixture
def api() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_problem_is_raised_as_itself(api: str, kind: str) -> None:
    with pytest.raises(errors.RanklogError) as raised:
        Client(api=api).search(kind)
    found = raised.value
    assert (found.kind, found.message, found.hint, found.position) == (kind, "no", "why", 3)
    if isinstance(found, errors.OverQuota):
        assert found.retry_after_s == 1135
