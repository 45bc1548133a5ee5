"""Bulk download: every matching line into files, however many there are.

Each segment's rows are staged once on disk; DuckDB then sorts them, out of memory where it must, and
they stream into the files. Memory holds a batch of rows, not the export.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.answer.render import line_json
from ranklog.answer.runs import sum_streams
from ranklog.client.answer import Listing
from ranklog.client.lineage import mark_superseded
from ranklog.client.pins import Pin
from ranklog.client.reader import Reader
from ranklog.client.relation import (
    lines_sql,
    overflow_columns,
    register_tables,
    segment_columns,
)
from ranklog.client.search import Search, begin, timed
from ranklog.errors import BadInput, RanklogError, StoreFull
from ranklog.layout import schema
from ranklog.merge.lines import typed_metadata
from ranklog.model import query as q
from ranklog.model.answer import Line
from ranklog.model.frame import NO_LF
from ranklog.plan.tasks import Lines, Outcome, Task
from ranklog.scan.engine import Engine, shared_engine
from ranklog.scan.evaluate import read_batches
from ranklog.scan.fields import text_literal

# Disk full, over a quota, over the size a file may have.
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FORMATS = ("parquet", "jsonl", "text")
_BATCH_ROWS = 10_000
_STREAM_NAMES = ("run_id", "attempt", "own_rank", "channel")
_TIME_ORDER = "ts_ns, stream, seq"


def export_lines(
    reader: Reader, query: q.Query, out: Path, format: str, *, pin: Pin | None = None
) -> Listing:
    """Write all matching lines below `out`, which must be new or empty. One row per file. `pin`: as
    they were then.

    Where that fails nothing is left in `out`. Raises BadInput, StoreFull.
    """
    if format not in FORMATS:
        raise BadInput(f"no export format {format}", hint=", ".join(FORMATS))
    run = begin(reader, query, pin=pin)
    claim(out)
    try:
        files = _export(run, out, format)
    except BaseException as error:
        clear(out)
        if isinstance(error, OSError | _CannotWriteError):
            raise _refused(out, error) from error
        raise
    return Listing(files, run.completeness(), run.report)


def _export(run: Search, out: Path, format: str) -> list[dict[str, Any]]:
    engine = shared_engine()
    with tempfile.TemporaryDirectory(prefix=".ranklog-stage-", dir=out) as folder:
        rows = _stage(run, engine, Path(folder))
        with timed(run.report, "merge"):
            files = _write(run, engine, Path(folder), out, format) if rows else []
    if format == "text" and isinstance(run.query.expr, q.Everything):
        files += _write_empty_streams(run, out)
    return files


class _CannotWriteError(Exception):
    """Ends a scan, which notes what can't be read and raises none of it."""


def _refused(out: Path, error: Exception) -> RanklogError:
    cause = error.__cause__ if isinstance(error, _CannotWriteError) else error
    number = getattr(cause, "errno", None)
    message = f"can't write to {out}: {os.strerror(number).lower() if number else cause}"
    if number in DISK_FULL:
        return StoreFull(message, hint="free space, then repeat the command")
    return BadInput(message)


def clear(out: Path) -> None:
    """Take back what was written: `out` was new or empty."""
    for path in out.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def claim(out: Path) -> None:
    """A new or empty folder. Raises BadInput."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is there and not an empty folder", hint="name a new one with --out")
    out.mkdir(parents=True, exist_ok=True)


def _stage(run: Search, engine: Engine, folder: Path) -> int:
    """Rows of every segment as a Parquet file of its own; how many there are."""
    plan = run.plan(run.expr(), Lines(limit=None))
    total = 0
    for scan in plan.scans:
        task = Task(plan.expr, (scan,), plan.shape, plan.near, run.reader.deadline_s)
        outcome = Outcome()
        path = folder / f"{scan.number}.parquet"
        with timed(run.report, "scan"):
            take = partial(_write_staged, path=path, number=scan.number)
            rows = read_batches(task, scan, run.reader.store, engine, outcome, take)
        run.note(task, outcome)
        if not rows:
            path.unlink(missing_ok=True)
        total += rows or 0
    return total


def _write_staged(batches: Any, *, path: Path, number: int) -> int:
    """One segment's rows with its number; how many there are."""
    staged = batches.schema.append(pa.field("segment", pa.int32()))
    rows = 0
    with _writing(), pq.ParquetWriter(path, staged, compression="lz4") as writer:
        for batch in batches:
            segment = pa.repeat(pa.scalar(number, pa.int32()), len(batch))
            writer.write_batch(pa.record_batch([*batch.columns, segment], schema=staged))
            rows += len(batch)
    return rows


@contextmanager
def _writing() -> Iterator[None]:
    """What the disk refuses is no fault of the segment: reading one raises DuckDB's errors."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise _CannotWriteError from error


def _write(
    run: Search, engine: Engine, folder: Path, out: Path, format: str
) -> list[dict[str, Any]]:
    columns = segment_columns(run.scope.indexes.values())
    staged = f"read_parquet({text_literal(f'{folder}/*.parquet')}, union_by_name=true)"
    staged_columns = _staged_columns(folder)
    columns = [name for name in columns if name in staged_columns]
    with engine.cursor() as cursor:
        register_tables(cursor, run.scope.indexes, {})
        overflow = overflow_columns(run.scope.indexes.values())
        relation = lines_sql(staged, columns, overflow=overflow, typed=format == "jsonl")
        if format == "text":
            relation = relation.replace("SELECT ", "SELECT t.own_rank, ", 1)
            rows = cursor.execute(f"SELECT * FROM ({relation}) ORDER BY stream, seq")
            return _write_text(rows, out)
        ordered = f"SELECT * FROM ({relation}) ORDER BY {_TIME_ORDER}"
        if format == "jsonl":
            return [_write_jsonl(run, cursor.execute(ordered), out)]
        return [_write_parquet(cursor.sql(ordered), out)]


def _staged_columns(folder: Path) -> set[str]:
    return {name for path in folder.glob("*.parquet") for name in pq.read_schema(path).names}


def _write_parquet(rows: Any, out: Path) -> dict[str, Any]:
    path, written = out / "lines.parquet", 0
    writer: pq.ParquetWriter | None = None
    for batch in rows.to_arrow_reader(_BATCH_ROWS * 10):
        if writer is None:
            writer = pq.ParquetWriter(path, batch.schema, compression="zstd")
        writer.write_batch(batch)
        written += batch.num_rows
    if writer is not None:
        writer.close()
    return _file(path, out, written)


def _write_jsonl(run: Search, rows: Any, out: Path) -> dict[str, Any]:
    path, written = out / "lines.jsonl", 0
    with path.open("wb") as file:
        for lines in _lines(rows):
            for line in mark_superseded(run, lines):
                shown = json.dumps(line_json(line), ensure_ascii=False, separators=(",", ":"))
                file.write(shown.encode() + b"\n")
            written += len(lines)
    return _file(path, out, written)


def _batches(rows: Any) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
    names = [column[0] for column in rows.description]
    while batch := rows.fetchmany(_BATCH_ROWS):
        yield names, batch


def _lines(rows: Any) -> Iterator[list[Line]]:
    """Rows of the typed relation as lines, batch by batch."""
    for names, batch in _batches(rows):
        metadata = [name for name in names if schema.parse_metadata_column(name)]
        lines = []
        for values in batch:
            row = dict(zip(names, values, strict=True))
            found = {name: row[name] for name in metadata if row[name] is not None}
            found |= json.loads(row["overflow"]) if row.get("overflow") else {}
            lines.append(_line(row, typed_metadata(found)))
        yield lines


def _line(row: dict[str, Any], metadata: dict[str, int | float | str]) -> Line:
    return Line(
        stream_id=row["stream"],
        seq=row["seq"],
        ts_ns=row["ts_ns"],
        run=row["run"],
        launch=row["run_id"].removeprefix(row["run"] + "@"),
        attempt=row["attempt"],
        rank=row["rank"],
        local_rank=row["local_rank"],
        host=row["host"],
        channel=row["channel"],
        group=row["group"],
        level=row["level"],
        call_site=row["call_site"],
        function=row["function"],
        logger=row["logger"],
        text=row["text"],
        iteration=row["iteration"],
        metadata=metadata,
        flags=row["flags"],
        raw=row.get("raw"),
        copy=row["copy"],
        source=row["source"],
    )


# --- text ---------------------------------------------------------------------------------------
def _write_text(rows: Any, out: Path) -> list[dict[str, Any]]:
    """A file per stream, in order of its lines, byte for byte as they came."""
    files: list[dict[str, Any]] = []
    current, file, written = "", None, 0
    path = out
    try:
        for names, batch in _batches(rows):
            at = {name: i for i, name in enumerate(names)}
            for values in batch:
                if values[at["stream"]] != current:
                    _close(file, path, out, written, files)
                    current, written = values[at["stream"]], 0
                    named = (values[at[name]] for name in _STREAM_NAMES)
                    path, file = _open_stream(out, current, *named)
                assert file is not None
                file.write(_original(values, at))
                written += 1
    finally:
        _close(file, path, out, written, files)
    return files


def _original(values: Sequence[Any], at: dict[str, int]) -> bytes:
    raw = values[at["raw"]] if "raw" in at else None
    data = values[at["text"]].encode() if raw is None else bytes(raw)
    return data if values[at["flags"]] & NO_LF else data + b"\n"


def _open_stream(
    out: Path, stream_id: str, run_id: str, attempt: int, rank: int | None, channel: str
) -> tuple[Path, BinaryIO]:
    """`<run_id>/<attempt>/rank<r>/<channel>`; another stream of that name gets its id appended."""
    place = "no-rank" if rank is None else f"rank{rank}"
    folder = out / _name(run_id) / str(attempt) / place
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _name(channel)
    if path.exists():
        path = folder / f"{path.name}.{stream_id[:12]}"
    return path, path.open("xb")


def _write_empty_streams(run: Search, out: Path) -> list[dict[str, Any]]:
    """Streams without a line are files without one."""
    files: list[dict[str, Any]] = []
    for item in sum_streams(run.scope.entries()):
        if not item.ranges and run.query.since_ns is None and run.query.until_ns is None:
            stream = item.stream
            names = (stream.run_id, stream.attempt, stream.rank, stream.channel)
            path, file = _open_stream(out, item.stream_id, *names)
            _close(file, path, out, 0, files)
    return files


def _name(text: str) -> str:
    """A file's name: no separator, never hidden, never longer than a file system takes."""
    name = quote(text, safe=" @=+,")[:180]
    return "%2E" + name[1:] if name.startswith(".") else name or "_"


def _close(
    file: BinaryIO | None, path: Path, out: Path, written: int, files: list[dict[str, Any]]
) -> None:
    if file is not None:
        file.close()
        files.append(_file(path, out, written))


def _file(path: Path, out: Path, lines: int) -> dict[str, Any]:
    size = path.stat().st_size if path.exists() else 0
    return {"file": str(path.relative_to(out)), "lines": lines, "bytes": size}
