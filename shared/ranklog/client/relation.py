"""Lines as one SQL relation: segments' columns joined with their stream tables, metadata merged.

`source` is SQL with a segment's columns and `segment`, its number. A metadata key is one column
`meta.<key>`: int64, or double where some values are floats; strings of a key that has numbers too
are `meta.<key>.str`. Values that a segment holds in its overflow column are among them, for as many
keys as a segment may have columns; `overflow` has them all, as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import duckdb
import pyarrow as pa

from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.limits import METADATA_COLUMNS_MAX
from ranklog.scan.fields import overflow_sql, quoted

_STREAM_COLUMNS = {
    "run": pa.string(),
    "run_id": pa.string(),
    "attempt": pa.int32(),
    "own_rank": pa.int32(),
    "local_rank": pa.int32(),
    "host": pa.string(),
    "stream_id": pa.string(),
    "channel": pa.string(),
    "copy": pa.bool_(),
    "source": pa.string(),
}
STREAMS_TABLE, SKIPS_TABLE = "segment_streams", "segment_skips"


def segment_columns(indexes: Iterable[SegmentIndex]) -> list[str]:
    """Metadata and optional columns that some segment has, metadata in order of the key.

    Names in SQL know no case: keys that differ in nothing else share a column.
    """
    metadata: set[str] = set()
    optional: set[str] = set()
    for index in indexes:
        metadata.update(index.head.columns)
        optional.update(*(group.chunks for group in index.head.row_groups[:1]))
    distinct = {name.lower(): name for name in sorted(metadata, reverse=True)}
    return [
        *sorted(distinct.values()),
        *(name for name in schema.OPTIONAL_COLUMNS if name in optional),
    ]


def overflow_columns(indexes: Iterable[SegmentIndex]) -> list[str]:
    """Metadata that some segment holds in its overflow column."""
    return sorted({name for index in indexes for name in index.head.overflow})


def lines_sql(
    source: str, columns: Iterable[str], *, overflow: Iterable[str] = (), typed: bool = False
) -> str:
    """The relation. `typed`: metadata under its segment names (`int:loss`), not merged.

    `overflow`: what some segment has in its overflow column.
    """
    there = set(columns)
    rank = (
        f"CASE WHEN f.rank IS NULL THEN t.own_rank "
        f"WHEN f.rank = {schema.NO_RANK} THEN NULL ELSE f.rank END"
    )
    shown = {
        "ts": "make_timestamp_ns(f.ts)",
        "ts_ns": "f.ts",
        "run": "t.run",
        "run_id": "t.run_id",
        "attempt": "t.attempt",
        "rank": rank,
        "local_rank": "t.local_rank",
        "host": "t.host",
        "stream": "t.stream_id",
        "channel": "t.channel",
        "seq": "f.seq",
        "group": f"f.{schema.GROUP}",
        "level": "f.level",
        "call_site": "f.call_site",
        "function": "f.function",
        "logger": "f.logger",
        "iteration": "f.iteration",
        "text": "f.text",
        "copy": "t.copy",
        "source": "t.source",
        "flags": "f.flags",
    }
    metadata = sorted(name for name in there if schema.parse_metadata_column(name))
    if typed:
        shown |= {name: _column(name) for name in metadata}
    else:
        shown |= _merged(_values(metadata, overflow if schema.OVERFLOW in there else ()))
    shown |= {name: f"f.{name}" for name in schema.OPTIONAL_COLUMNS if name in there}
    items = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in shown.items())
    return (
        f"SELECT {items} FROM {source} AS f "
        f"JOIN {STREAMS_TABLE} AS t ON t.segment = f.segment AND t.stream = f.stream"
    )


def _values(metadata: Iterable[str], overflow: Iterable[str]) -> dict[str, str]:
    """SQL of each metadata value, from the columns and the overflow column. Names know no case."""
    sources = {name.lower(): (name, [_column(name)]) for name in metadata}
    for name in overflow:
        if name.lower() in sources or len(sources) < METADATA_COLUMNS_MAX:
            sources.setdefault(name.lower(), (name, []))[1].append(overflow_sql(name, "f."))
    found = sorted(sources.values())
    return {
        name: parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"
        for name, parts in found
    }


def _column(name: str) -> str:
    """SQL of a metadata column; floats may be stored as decimals."""
    column = f"f.{quoted(name)}"
    return f"CAST({column} AS DOUBLE)" if name.startswith("float:") else column


def _merged(values: Mapping[str, str]) -> dict[str, str]:
    """SQL of each key's value."""
    types: dict[str, dict[str, str]] = {}
    spelled: dict[str, str] = {}
    for name in values:
        type_, _, key = name.partition(":")
        types.setdefault(spelled.setdefault(key.lower(), key), {})[type_] = values[name]
    merged: dict[str, str] = {}
    for key, found in types.items():
        numbers = [found[t] for t in ("int", "float") if t in found]
        if len(numbers) == 2:
            numbers = [f"coalesce({', '.join(f'CAST({n} AS DOUBLE)' for n in numbers)})"]
        if numbers:
            merged[f"meta.{key}"] = numbers[0]
        if "str" in found:
            name = f"meta.{key}.str" if numbers else f"meta.{key}"
            merged[name] = found["str"]
    return merged


def register_tables(
    connection: duckdb.DuckDBPyConnection,
    indexes: Mapping[int, SegmentIndex],
    skips: Mapping[int, Iterable[tuple[int, int, int]]],
) -> None:
    """Stream tables of the segments, and the rows that another segment answers."""
    connection.register("ranklog_streams_arrow", _streams_table(indexes))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {STREAMS_TABLE} AS FROM ranklog_streams_arrow"
    )
    connection.unregister("ranklog_streams_arrow")
    rows = [(number, *skip) for number, found in skips.items() for skip in found]
    names = ("segment", "stream", "first", "stop")
    columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(names)}
    connection.register("ranklog_skips_arrow", pa.table(columns))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {SKIPS_TABLE} AS FROM ranklog_skips_arrow")
    connection.unregister("ranklog_skips_arrow")


def _streams_table(indexes: Mapping[int, SegmentIndex]) -> pa.Table:
    rows = [
        (number, position, entry)
        for number, index in indexes.items()
        for position, entry in enumerate(index.head.streams)
    ]
    columns = {
        "segment": pa.array([number for number, _, _ in rows], pa.int32()),
        "stream": pa.array([position for _, position, _ in rows], pa.int32()),
    }
    for name, type_ in _STREAM_COLUMNS.items():
        if name == "stream_id":
            values = [entry.stream_id for _, _, entry in rows]
        else:
            attribute = "rank" if name == "own_rank" else name
            values = [getattr(entry.stream, attribute) for _, _, entry in rows]
        columns[name] = pa.array(values, type_)
    return pa.table(columns)
