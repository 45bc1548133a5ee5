"""What ranklog is measured against: rg over the bare text, DuckDB over plain Parquet in arrival order,
ClickHouse in process (chdb: MergeTree with a text index). VictoriaLogs has a module of its own.

All read what `PlainFiles` wrote beside the store, from a warm page cache, on two threads. The plain
table has, as a careful user's would, the loss of lines that name it as a number.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from ranklog.model.frame import NO_ITERATION, NO_LEVEL, Frame
from tests.bench.corpus import REPORT_SITE, text_lines

RG = Path(sys.executable).with_name("rg")


def plain_table(frame: Frame) -> pa.Table:
    """What a careful user would write without ranklog: one row a line, the fields as columns."""
    lengths = np.frombuffer(frame.text_length, "<u4")
    offsets = np.zeros(frame.rows + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    text = pa.StringArray.from_buffers(frame.rows, pa.py_buffer(offsets), pa.py_buffer(frame.text))
    sites = pa.array([None, *(site.site for site in frame.sites)], pa.string())
    ranks = np.array(
        [s.stream.rank if s.stream.rank is not None else -1 for s in frame.streams], np.int32
    )
    level, iteration = np.frombuffer(frame.level, "<i2"), np.frombuffer(frame.iteration, "<i8")
    call_site = sites.take(pa.array(np.frombuffer(frame.site, "<u4")))
    columns = {
        "ts": pa.array(np.frombuffer(frame.ts, "<i8")),
        "rank": pa.array(ranks[np.frombuffer(frame.stream, "<u2")]),
        "level": pa.array(level, mask=level == NO_LEVEL),
        "iteration": pa.array(iteration, mask=iteration == NO_ITERATION),
        "call_site": call_site,
        "loss": _losses(text, call_site),
        "text": text,
    }
    return pa.table(columns)


def _losses(text: Any, call_site: Any) -> Any:
    """The number behind `loss ` in the lines of the one call site that reports it."""
    rows = np.flatnonzero(pc.equal(call_site, REPORT_SITE).to_numpy(zero_copy_only=False))
    found = pc.extract_regex(text.take(pa.array(rows)), r" loss (?P<loss>[0-9.]+) ")
    places = np.full(len(text), -1)
    places[rows] = np.arange(len(rows))
    numbers = pc.struct_field(found, "loss").cast(pa.float64())
    return numbers.take(pa.array(places, mask=places < 0))


class PlainFiles:
    """Writes the bare text and the plain Parquet file while frames pass by."""

    def __init__(self, folder: Path) -> None:
        self.text_path = folder / "bare.log"
        self.parquet_path = folder / "plain.parquet"

    def write(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield every frame after it was written."""
        writer: pq.ParquetWriter | None = None
        pending: list[pa.Table] = []
        with self.text_path.open("wb") as text:
            for frame in frames:
                text.write(text_lines(frame))
                pending.append(plain_table(frame))
                writer = writer or pq.ParquetWriter(
                    self.parquet_path, pending[0].schema, compression="zstd", compression_level=3
                )
                if sum(len(table) for table in pending) >= 122_880:  # DuckDB's own row group size
                    writer.write_table(pa.concat_tables(pending))
                    pending = []
                yield frame
        if writer is not None:
            if pending:
                writer.write_table(pa.concat_tables(pending))
            writer.close()

    def zstd_bytes(self) -> int:
        """Size of `zstd -3` of the bare text, as one stream."""
        total = 0
        with self.text_path.open("rb") as text:
            for block in zstandard.ZstdCompressor(level=3).read_to_iter(text, read_size=1 << 20):
                total += len(block)
        return total


class Rg:
    """rg -a over the bare text, two threads, as a process: its start is part of its time."""

    name = "rg"

    def __init__(self, files: PlainFiles) -> None:
        self._path = files.text_path

    def run(self, arguments: tuple[str, ...]) -> int:
        """Number of matching lines."""
        command = [
            str(RG),
            "-a",
            "-c",
            "--no-config",
            "--threads",
            "2",
            *arguments,
            str(self._path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode > 1:
            raise RuntimeError(done.stderr)
        return int(done.stdout or 0)


class Duck:
    """DuckDB over the plain Parquet file, one warm connection."""

    name = "duckdb"

    def __init__(self, files: PlainFiles) -> None:
        self._connection = duckdb.connect(config={"threads": 2})
        path = str(files.parquet_path).replace("'", "''")
        self._connection.execute(f"CREATE VIEW plain AS FROM read_parquet('{path}')")

    def run(self, sql: str) -> Any:
        """All rows of the statement, in which `plain` is the file."""
        return self._connection.execute(sql).fetchall()


class ClickHouse:
    """chdb in this process: a MergeTree in order of time with a full-text index on the text."""

    name = "chdb"

    def __init__(self, files: PlainFiles, folder: Path) -> None:
        from chdb import session

        shutil.rmtree(folder, ignore_errors=True)
        self._session = session.Session(str(folder))
        self._ask("SET max_threads = 2")
        self._ask("CREATE DATABASE bench")
        self._ask(
            "CREATE TABLE bench.plain (ts Int64, rank Int32, level Nullable(Int16), "
            "iteration Nullable(Int64), call_site LowCardinality(Nullable(String)), "
            "loss Nullable(Float64), text String CODEC(ZSTD(3)), "
            "INDEX words text TYPE text(tokenizer = 'splitByNonAlpha')) "
            "ENGINE = MergeTree ORDER BY ts"
        )
        self._ask(
            "INSERT INTO bench.plain SELECT ts, rank, level, iteration, call_site, loss, text "
            f"FROM file('{files.parquet_path.resolve()}', Parquet)"
        )
        self._ask("OPTIMIZE TABLE bench.plain FINAL")
        self._ask("USE bench")

    def _ask(self, sql: str) -> str:
        return str(self._session.query(sql, "TabSeparated"))

    def run(self, sql: str) -> list[list[str]]:
        """All rows of the statement, as text."""
        answer = self._ask(sql)
        return [line.split("\t") for line in answer.split("\n")[:-1]]

    def stored_bytes(self) -> int:
        """Data and indexes on disk."""
        sql = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = 'plain'"
        return int(self._ask(sql))
