"""The peer against a server that speaks as much of VictoriaLogs as the peer uses: a program of its own,
on the port it is given, which counts what is put in."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bench.victorialogs import VictoriaLogs

SERVER = """#!{python}
import json, sys, urllib.parse
from http.server import BaseHTTPRequestHandler, HTTPServer

options = dict(word[1:].partition("=")[::2] for word in sys.argv[1:])
rows = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        rows.extend(json.loads(line) for line in data.splitlines())
        self.answer(b"")

    def do_GET(self):
        path, _, asked = self.path.partition("?")
        query = urllib.parse.parse_qs(asked).get("query", [""])[0]
        if path != "/select/logsql/query":
            return self.answer(b"OK")
        found = [row for row in rows if query.startswith("*") or query in row["_msg"]]
        if "stats" in query:
            found = [dict(hits=str(len(found)))]
        self.answer("".join(json.dumps(row) + chr(10) for row in found).encode())


host, _, port = options["httpListenAddr"].partition(":")
HTTPServer((host, int(port)), Handler).serve_forever()
"""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.parquet"
    columns = {
        "ts": pa.array([1, 2, 3]),
        "rank": pa.array([0, 0, 1], pa.int32()),
        "level": pa.array([20, None, 40], pa.int16()),
        "iteration": pa.array([None, 7, 8], pa.int64()),
        "call_site": ["a.py:1", "a.py:2", None],
        "loss": [None, 0.5, None],
        "text": ['says "one"', "two", "three is one"],
    }
    pq.write_table(pa.table(columns), path)
    return path


def program(folder: Path, text: str) -> str:
    path = folder / "victoria-logs"
    path.write_text(text.replace("{python}", sys.executable))
    path.chmod(0o755)
    return str(path)


@pytest.mark.sockets
def test_rows_go_in_and_questions_come_back(plain: Path, tmp_path: Path) -> None:
    peer = VictoriaLogs(program(tmp_path, SERVER), plain, 3, tmp_path / "data")
    try:
        assert peer.run("one", grouped=False) == (2, 2)
        assert peer.run("* | stats count() hits", grouped=True) == (3, 1)
    finally:
        peer.close()


def test_a_server_that_does_not_start_is_told_with_its_log(plain: Path, tmp_path: Path) -> None:
    binary = program(tmp_path, "#!/bin/sh\necho no room\nexit 7\n")
    with pytest.raises(RuntimeError, match=r"does not start \(7\): no room"):
        VictoriaLogs(binary, plain, 3, tmp_path / "data")
