"""Over real logs, pruned answers equal a full scan and RE2 over each physical line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.ingest.batch import ingest_batch
from ranklog.model.frame import INVALID_UTF8
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame
from tests.oracle import re2_search

FILES = 24
LINES_PER_FILE = 400
LITERALS = [
    "error",
    "loss",
    "NCCL",
    "rank",
    "Traceback",
    "0x",
    "1e-",
    "cuda",
    ":12",
    "a1",
    " - ",
    "[",
]
PATTERNS = [
    ("(?:nccl|rccl).*(warn|error)", "i"),
    (r"iteration +\d+/", ""),
    (r"loss[:=] *\d", "i"),
    (r"\b[0-9a-f]{8}\b", ""),
    (r"^\[?rank", "i"),
    (r"(\d+\.){3}\d+", ""),
    ("Error$|exit", ""),
    ("[A-Z]{4}_[A-Z]+=", ""),
    (r"\x1b\[", ""),
    ("", ""),
]


def _rows(path: Path, rank: int) -> list[Row]:
    stream = Stream("acme", "real", "1", 0, "h", rank, None, path.name, "0", certified="import")
    rows = []
    with path.open("rb") as file:
        for data, _ in zip(file, range(LINES_PER_FILE), strict=False):
            body = data.removesuffix(b"\n")
            if len(body) > 50_000:
                continue
            text = body.decode(errors="replace")
            same = text.encode() == body
            raw, flags = (None, 0) if same else (body, INVALID_UTF8)
            rows.append(Row(text, ts=T0 + len(rows), stream=stream, raw=raw, flags=flags))
    return rows


@pytest.mark.data
def test_real_lines_are_found_as_re2_finds_them(data_dir: Path) -> None:
    suffixes = {".log", ".txt", ".out", ".err"}
    paths = sorted(p for p in data_dir.rglob("*") if p.is_file() and p.suffix in suffixes)
    rows = []
    for rank, path in enumerate(paths[:: max(1, len(paths) // FILES)]):
        rows += _rows(path, rank)
    store = MemoryStore()
    for i in range(0, len(rows), 4_000):
        part = rows[i : i + 4_000]
        firsts = {row.stream: sum(r.stream == row.stream for r in rows[:i]) for row in part[:1]}
        data = encode_frame(make_frame(part, first_seq=firsts, number=i + 1))
        name = str(i)
        report = ingest_batch(
            [Record(data, T0, name)], store=store, source="k", first=name, last=name
        )
        assert report.bad == []
    client = Client(store=store, tenant="acme")
    for literal in LITERALS:
        wanted = sum(literal in row.text for row in rows)  # type: ignore[operator]
        quoted = '"' + literal + '"'
        assert client.count(quoted, run="real").count == wanted, literal
        assert client.count(quoted, run="real", full_scan=True).count == wanted, literal
    for pattern, flags in PATTERNS:
        wanted = sum(re2_search(pattern, flags, row.text) for row in rows)  # type: ignore[arg-type]
        query = "/" + pattern.replace("/", "\\/") + "/" + flags
        assert client.count(query, run="real").count == wanted, pattern
        assert client.count(query, run="real", full_scan=True).count == wanted, pattern
