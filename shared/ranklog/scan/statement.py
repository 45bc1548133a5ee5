"""One segment's SELECT: which rows to look at, which to leave to other segments, what to return.

Legend of the statement:

    SELECT <columns of the shape>
    FROM (SELECT *, <keys of near sets> FROM read_parquet(path) WHERE <rows, templates>) AS l
      ASOF LEFT JOIN near<i> …   -- the interval that begins last at or before the line
      ANTI JOIN skip … SEMI JOIN wanted …
    WHERE <the query's tree> AND <behind the cursor>
    GROUP BY … | ORDER BY … LIMIT …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ranklog.layout import schema
from ranklog.merge.numbers import BUCKET_OFFSET, LN_RATIO, PARTS, part_name
from ranklog.model import query as q
from ranklog.plan.tasks import Groups, LeafExpr, Lines, SegmentScan, Task
from ranklog.scan.fields import in_ranges, metadata_value, quoted
from ranklog.scan.sql import NEAR_COLUMNS, Compiler, Parameters

_KEYS = (schema.STREAM, schema.SEQ, schema.TS, schema.RANK, schema.ITERATION)
_BUCKET_COLUMNS = {"ts": schema.TS, "iteration": schema.ITERATION}
# Beyond this many skipped ranges a join is faster than a condition.
_SKIPS_INLINE_MAX = 8
# An IN list longer than this is slower than a semi-join with its values (index measurements).
_IN_LIST_MAX = 50


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with named parameters, and the names of the columns it returns."""

    sql: str
    parameters: dict[str, Any]
    columns: tuple[str, ...]


def build_statement(task: Task, segment: SegmentScan, path: str) -> Statement:
    """The statement that answers `task` from one segment, which DuckDB reads at `path`."""
    parameters = Parameters()
    compiler = Compiler(segment, parameters)
    predicate = "true" if segment.certain else compiler.predicate(task.expr)
    if _has_regex(task.expr) and segment.tids is not None and len(segment.tids) > _IN_LIST_MAX:
        predicate = _of_templates(segment.tids, predicate, parameters)
    where = [predicate] if predicate != "true" else []
    if segment.after is not None:
        where.append(_behind(segment, task.shape, parameters))
    columns = _columns(task.shape, segment)
    sql = [
        "SELECT " + ", ".join(f"{expr} AS {quoted(name)}" for name, expr in columns.items()),
        f"FROM ({_rows(task, segment, path, parameters)}) AS l",
        *_near_joins(task, parameters),
        *_row_joins(segment, parameters),
        "WHERE " + " AND ".join(where) if where else "",
        _ending(task.shape, segment, parameters),
    ]
    return Statement("\n".join(filter(None, sql)), parameters.values, tuple(columns))


def _rows(task: Task, segment: SegmentScan, path: str, parameters: Parameters) -> str:
    keys = [_near_keys(task, segment, i, parameters) for i in range(len(task.near))]
    options = ", file_row_number=true" if segment.rows is not None else ""
    source = f"read_parquet({parameters.add(path)}{options})"
    where = []
    if segment.rows is not None:
        where.append(in_ranges("file_row_number", segment.rows))
    if segment.tids is not None:
        if len(segment.tids) > _IN_LIST_MAX:
            ids = parameters.add(list(segment.tids))
            where.append(f"{schema.TID} IN (SELECT unnest({ids}::INTEGER[]))")
        else:
            where.append(in_ranges(schema.TID, tuple((tid, tid + 1) for tid in segment.tids)))
    if len(segment.skip) <= _SKIPS_INLINE_MAX:
        where += [
            f"NOT ({schema.STREAM} = {stream} AND {schema.SEQ} >= {first} AND {schema.SEQ} < {end})"
            for stream, first, end in segment.skip
        ]
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    everything = f"*{_replaced(segment)}"
    return f"SELECT {', '.join([everything, *keys])} FROM {source}{condition}"


def _replaced(segment: SegmentScan) -> str:
    """Floats as doubles: a segment may hold them as decimals."""
    floats = [quoted(name) for name in segment.columns if name.startswith("float:")]
    casts = [f"CAST({name} AS DOUBLE) AS {name}" for name in floats]
    return f" REPLACE ({', '.join(casts)})" if casts else ""


def _has_regex(expr: LeafExpr) -> bool:
    if isinstance(expr, (q.And, q.Or)):
        return any(map(_has_regex, expr.items))
    if isinstance(expr, q.Not):
        return _has_regex(expr.item)
    return isinstance(expr, q.Matches)


def _of_templates(tids: Sequence[int], predicate: str, parameters: Parameters) -> str:
    """The predicate, asked of rows of these templates only: DuckDB runs a regex before a semi-join."""
    chosen = [False] * (max(tids) + 1)
    for tid in tids:
        chosen[tid] = True
    flags = f"({parameters.add(chosen)}::BOOLEAN[])[{schema.TID} + 1]"
    return f"CASE WHEN {flags} THEN {predicate} ELSE false END"


def _near_keys(task: Task, segment: SegmentScan, i: int, parameters: Parameters) -> str:
    """The line's key and rank in near set `i`."""
    at = f"[{schema.STREAM} + 1]"
    key = f"({parameters.add(list(segment.keys[i]))}::INTEGER[]){at} AS key{i}"
    if not task.near[i].by_rank:
        return f"{key}, 0 AS rank{i}"
    own = f"({parameters.add(list(segment.ranks))}::INTEGER[]){at}"
    host = f"({parameters.add(list(segment.hosts))}::INTEGER[]){at}"
    override = f"nullif({schema.RANK}, {schema.NO_RANK})"
    rank = f"CASE WHEN {schema.RANK} IS NULL THEN {own} ELSE {override} END"
    return f"{key}, coalesce({rank}, -2 - {host}) AS rank{i}"


def _near_joins(task: Task, parameters: Parameters) -> list[str]:
    joins = []
    for i, near in enumerate(task.near):
        columns = ", ".join(
            f"unnest({parameters.add(list(values))}::{kind}[]) AS {name}"
            for name, kind, values in (
                ("near_key", "INTEGER", near.key),
                ("near_rank", "INTEGER", near.rank),
                ("low", "BIGINT", near.low),
                ("high", "BIGINT", near.high),
            )
        )
        axis = NEAR_COLUMNS[near.axis]
        joins.append(
            f"ASOF LEFT JOIN (SELECT {columns}) AS near{i} ON l.key{i} = near{i}.near_key"
            f" AND l.rank{i} = near{i}.near_rank AND l.{axis} >= near{i}.low"
        )
    return joins


def _row_joins(segment: SegmentScan, parameters: Parameters) -> list[str]:
    joins = []
    if len(segment.skip) > _SKIPS_INLINE_MAX:
        table = _ranges_table(segment.skip, ("at", "first", "stop"), parameters)
        joins.append(f"ANTI JOIN {table} AS skip ON {_in_range('skip')}")
    if segment.wanted is not None:
        table = _ranges_table(segment.wanted, ("at", "first", "stop", "head"), parameters)
        joins.append(
            f"SEMI JOIN {table} AS wanted ON {_in_range('wanted')}"
            f" AND (wanted.head = -1 OR l.{schema.GROUP} = wanted.head)"
        )
    return joins


def _in_range(table: str) -> str:
    return (
        f"l.{schema.STREAM} = {table}.at AND l.{schema.SEQ} >= {table}.first"
        f" AND l.{schema.SEQ} < {table}.stop"
    )


def _ranges_table(
    rows: tuple[tuple[int, ...], ...], names: tuple[str, ...], parameters: Parameters
) -> str:
    columns = ", ".join(
        f"unnest({parameters.add([row[i] for row in rows])}::BIGINT[]) AS {name}"
        for i, name in enumerate(names)
    )
    return f"(SELECT {columns})"


def _place(segment: SegmentScan, parameters: Parameters) -> str:
    """The line's stream in the order of stream ids."""
    if segment.order is None:
        return schema.STREAM
    return f"({parameters.add(list(segment.order))}::INTEGER[])[{schema.STREAM} + 1]"


def _behind(segment: SegmentScan, shape: Lines | Groups, parameters: Parameters) -> str:
    """Rows that come after the cursor in the answer's order."""
    assert segment.after is not None and isinstance(shape, Lines)
    ts, place, present, seq = segment.after
    sign = "<" if shape.newest else ">"
    stream = _place(segment, parameters)
    if present:
        tie = f"({stream} {sign} {place} OR ({stream} = {place} AND {schema.SEQ} {sign} {seq}))"
    else:
        tie = f"({stream} {'<' if shape.newest else '>='} {place})"
    return f"({schema.TS} {sign}= {ts} AND ({schema.TS} {sign} {ts} OR {tie}))"


def _columns(shape: Lines | Groups, segment: SegmentScan) -> dict[str, str]:
    """Name -> SQL of what the statement returns."""
    if isinstance(shape, Groups):
        return _group_columns(shape, segment)
    if not shape.whole:
        values = {f"value:{key}": _number(segment, key) for key in shape.values}
        texts = {
            f"text:{key}": metadata_value(segment, "str", key) or "CAST(NULL AS VARCHAR)"
            for key in shape.texts
        }
        return {name: name for name in (*_KEYS, *shape.columns)} | values | texts
    names = (*schema.BASE_COLUMNS, *segment.columns, schema.TEXT)
    return {name: quoted(name) for name in names}


def _number(segment: SegmentScan, key: str) -> str:
    parts = [metadata_value(segment, type_, key) for type_ in ("int", "float")]
    casts = [f"CAST({part} AS DOUBLE)" for part in parts if part is not None]
    return f"coalesce({', '.join(casts)})" if casts else "CAST(NULL AS DOUBLE)"


def _group_columns(shape: Groups, segment: SegmentScan) -> dict[str, str]:
    columns: dict[str, str] = {}
    for key in shape.keys:
        name, slash, width = key.partition("/")
        if key.startswith("meta:"):
            for type_ in schema.METADATA_TYPES:
                value = metadata_value(segment, type_, key.removeprefix("meta:"))
                columns[f"{type_}/{key}"] = value or "NULL"
        elif slash:
            column = _BUCKET_COLUMNS[name]
            columns[key] = f"{column} - (({column} % {width}) + {width}) % {width}"
        else:
            columns[key] = key
    columns["count"] = "count(*)"
    if shape.extent:
        columns["bytes"] = f"CAST(coalesce(sum(strlen({schema.TEXT})), 0) AS BIGINT)"
        columns["first_ns"] = f"min({schema.TS})"
        columns["last_ns"] = f"max({schema.TS})"
    if shape.seqs:
        columns["first_seq"] = f"min({schema.SEQ})"
        columns["last_seq"] = f"max({schema.SEQ})"
    for key in shape.stats:
        columns |= _stat_columns(key, _stat_value(segment, key))
    return columns


def _stat_value(segment: SegmentScan, key: str) -> str:
    if key == schema.ITERATION:
        return f"CAST({schema.ITERATION} AS DOUBLE)"
    return _number(segment, key)


def _stat_columns(key: str, value: str) -> dict[str, str]:
    """What merge/numbers adds up: name -> SQL."""
    finite = f"FILTER (isfinite({value}))"
    bucket = (
        f"CASE WHEN {value} = 0 THEN 0 WHEN isfinite({value}) THEN CAST(sign({value}) * "
        f"(ceil(ln(nullif(abs({value}), 0)) / {LN_RATIO!r}) + {BUCKET_OFFSET}) AS INTEGER) END"
    )
    found = {
        "count": f"count(*) {finite}",
        "nan": f"count(*) FILTER (isnan({value}))",
        "inf": f"count(*) FILTER (isinf({value}))",
        "min": f"min({value}) {finite}",
        "max": f"max({value}) {finite}",
        "sum": f"fsum({value}) {finite}",
        "buckets": f"histogram({bucket}) {finite}",
    }
    return {part_name(part, key): found[part] for part in PARTS}


def _ending(shape: Lines | Groups, segment: SegmentScan, parameters: Parameters) -> str:
    if isinstance(shape, Groups):
        return "GROUP BY ALL" if shape.keys else ""
    if shape.limit is None:
        return ""
    way = "DESC" if shape.newest else "ASC"
    place = _place(segment, parameters)
    return f"ORDER BY {schema.TS} {way}, {place} {way}, {schema.SEQ} {way} LIMIT {int(shape.limit)}"
