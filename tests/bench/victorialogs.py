"""VictoriaLogs as a peer: the binary that `$RANKLOG_BENCH_VICTORIALOGS` names, on the loopback.

A server of its own on a free port and an empty folder; the plain table goes in as JSON lines, one
stream a rank, its rows in order of arrival. Questions are LogsQL over HTTP, over one kept connection,
on two threads. The server is stopped when the peer is closed.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

VARIABLE = "RANKLOG_BENCH_VICTORIALOGS"
_INSERT = "/insert/jsonline?_stream_fields=rank&_time_field=_time&_msg_field=_msg"
_ROWS_A_REQUEST = 200_000
_START_S, _SEARCHABLE_S = 30.0, 300.0


class VictoriaLogs:
    """The server, with `rows` lines in it and all of them searchable. Raises RuntimeError."""

    name = "victorialogs"

    def __init__(self, binary: str, parquet_path: Path, rows: int, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder = folder
        port = _free_port()
        command = [
            binary,
            f"-httpListenAddr=127.0.0.1:{port}",
            f"-storageDataPath={folder / 'data'}",
            "-retentionPeriod=100y",  # the corpus is older than the default keeps
            "-loggerLevel=ERROR",
        ]
        environment = os.environ | {"GOMAXPROCS": "2"}
        with (folder / "server.log").open("wb") as log:
            self._server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=_SEARCHABLE_S)
        try:
            self._wait_until_up()
            for body in _json_lines(parquet_path):
                self._ask("POST", _INSERT, body)
            self._wait_until_searchable(rows)
        except BaseException:
            self.close()
            raise

    def _wait_until_up(self) -> None:
        ends_s = time.monotonic() + _START_S
        while True:
            try:
                self._ask("GET", "/health")
                return
            except OSError as error:
                self._http.close()
                ended = self._server.poll()
                if ended is not None or time.monotonic() > ends_s:
                    log = (self._folder / "server.log").read_text(errors="replace")
                    raise RuntimeError(f"VictoriaLogs does not start ({ended}): {log}") from error
            time.sleep(0.1)

    def _wait_until_searchable(self, rows: int) -> None:
        """New lines wait in memory for a second or so before a query sees them."""
        self._ask("GET", "/internal/force_flush")
        ends_s = time.monotonic() + _SEARCHABLE_S
        while (found := self.run("* | stats count() hits", grouped=True)[0]) != rows:
            if time.monotonic() > ends_s:
                raise RuntimeError(f"VictoriaLogs has {found} of {rows} lines")
            time.sleep(0.5)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        self._http.request(method, path, body)
        answer = self._http.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"VictoriaLogs answers {answer.status}: {data.decode()}")
        return data

    def run(self, logsql: str, *, grouped: bool) -> tuple[int, int]:
        """(matching lines, rows of the answer)."""
        query = urllib.parse.urlencode({"query": logsql})
        data = self._ask("GET", f"/select/logsql/query?{query}")
        rows = [json.loads(line) for line in data.splitlines() if line]
        if not grouped:
            return len(rows), len(rows)
        return sum(int(row["hits"]) for row in rows), len(rows)

    def cpu_s(self) -> float:
        """CPU seconds of the server since its start, by /proc."""
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stored_bytes(self) -> int:
        """What its folder takes on disk."""
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def close(self) -> None:
        """Stop the server."""
        self._http.close()
        self._server.terminate()
        try:
            self._server.wait(30)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _json_lines(parquet_path: Path) -> Iterator[bytes]:
    """The plain table as JSON lines, so many rows at once."""
    with duckdb.connect(config={"threads": 2}) as connection:
        rows: Any = connection.sql(
            "SELECT to_json({_time: ts::VARCHAR, _msg: text, rank: rank, level: level, "
            "iteration: iteration, call_site: call_site, loss: loss})::VARCHAR "
            "FROM read_parquet($path)",
            params={"path": str(parquet_path)},
        )
        for batch in rows.to_arrow_reader(_ROWS_A_REQUEST):
            yield "\n".join(batch.column(0).to_pylist()).encode() + b"\n"
