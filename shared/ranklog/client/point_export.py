"""Bulk download of points: task by task into one file, so that memory holds a task's points."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.client.answer import Listing
from ranklog.client.export import claim, clear
from ranklog.client.point_columns import SCHEMA
from ranklog.client.point_page import point_objects
from ranklog.client.points import COLUMNS, point_tables
from ranklog.client.reader import Reader
from ranklog.client.search import begin
from ranklog.errors import BadInput
from ranklog.model import query as q

FORMATS = ("parquet", "jsonl")


def export_points(reader: Reader, query: q.Query, out: Path, format: str) -> Listing:
    """Write all matching points below `out`, which must be new or empty: `points.parquet` with the columns
    of client/points, or `points.jsonl`. Clustered by series within a segment, not sorted as a whole.

    Where that fails nothing is left in `out`. Raises BadInput.
    """
    if format not in FORMATS:
        raise BadInput(f"no export format {format} for points", hint=", ".join(FORMATS))
    run = begin(reader, query, points=True)
    claim(out)
    path = out / f"points.{format}"
    write = _write_parquet if format == "parquet" else _write_jsonl
    try:
        rows = write(path, point_tables(run, run.expr(), COLUMNS))
    except BaseException:
        clear(out)
        raise
    files = [{"file": path.name, "points": rows, "bytes": path.stat().st_size}]
    return Listing(files, run.completeness(), run.report)


def _write_parquet(path: Path, tables: Iterator[pa.Table]) -> int:
    named = pa.types.is_dictionary
    schema = pa.schema(
        [pa.field(one.name, pa.string() if named(one.type) else one.type) for one in SCHEMA]
    )
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.cast(schema))
            rows += table.num_rows
    return rows


def _write_jsonl(path: Path, tables: Iterator[pa.Table]) -> int:
    rows = 0
    with path.open("wb") as file:
        for table in tables:
            for point in point_objects(table):
                shown = json.dumps(point, ensure_ascii=False, separators=(",", ":"))
                file.write(shown.encode() + b"\n")
            rows += table.num_rows
    return rows
