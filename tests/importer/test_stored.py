"""From files to committed segments, with the real ingest."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ranklog.importer import import_paths
from ranklog.layout.keys import imports_prefix
from ranklog.store.memory import MemoryStore
from tests.importer.analysed import write
from tests.importer.imported import NOW_NS


def _stored_rows(store: MemoryStore) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for info in store.list("t/data/"):
        rows += pq.read_table(io.BytesIO(store.get(info.key))).to_pylist()
    return sorted(rows, key=lambda row: (row["stream"], row["seq"]))


def test_imported_lines_are_in_segments_once(tmp_path: Path) -> None:
    write(tmp_path, {"a.log": "2024-01-01 00:00:01,000 - m - ERROR - x\n[rank2]: y\n"})
    store = MemoryStore()
    for number in range(2):
        report = import_paths(
            [str(tmp_path)], store=store, tenant="t", run="r", now_ns=NOW_NS + number
        )
        assert (report.lines, report.stored + report.known) == (2, 2)
    rows = _stored_rows(store)
    assert [(r["seq"], r["text"], r["level"], r["rank"], r["logger"]) for r in rows] == [
        (0, "2024-01-01 00:00:01,000 - m - ERROR - x", 40, None, "m"),
        (1, "[rank2]: y", None, 2, None),
    ]
    assert len(list(store.list("t/quarantine/"))) == 0
    assert len(list(store.list(imports_prefix("t", "r", "import")))) == 2


def test_an_empty_file_is_a_stream_of_no_lines(tmp_path: Path) -> None:
    write(tmp_path, {"a.log": ""})
    store = MemoryStore()
    report = import_paths([str(tmp_path / "a.log")], store=store, tenant="t", run="r", now_ns=1)
    assert (report.lines, report.files[0].stream_id is not None) == (0, True)
    assert [info.key for info in store.list("t/index/")] != []
