"""`kind:point` in a search and in a count: points as objects, cut at the limit, and how many there are."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.answer.render import json_number, render_time
from ranklog.client.answer import CountAnswer
from ranklog.client.point_answer import PointPage
from ranklog.client.points import read_points
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin
from ranklog.client.warn import terms
from ranklog.errors import BadInput
from ranklog.model import query as q
from ranklog.plan.point_terms import VALUE, values_of

# Columns of a count's fields; any other field is a dimension, or metadata of the context.
_COLUMNS = {
    "series": "series",
    "rank": "rank",
    "host": "host",
    "run_id": "run_id",
    "run": "run_id",
    "attempt": "attempt",
    "iteration": "iteration",
    "stream": "stream",
    "dims": "dims",
}


def search_page(reader: Reader, query: q.Query, fields: Sequence[str] = ()) -> PointPage:
    """The points that a query matches, at most `query.limit`: the newest unless the oldest are asked
    for; printed oldest first unless the newest are asked for. Raises BadInput."""
    if query.cursor or query.context:
        raise BadInput("points have no pages and no neighbours", hint="narrow it, or --limit 0")
    run = begin(reader, query, points=True)
    _warn_unknown(run)
    table = read_points(run, run.expr())
    ts, seq = table["ts_ns"].to_numpy(), table["seq"].to_numpy()
    order = np.lexsort((seq, ts))
    cut = query.limit is not None and len(order) > query.limit
    if cut:
        assert query.limit is not None
        order = order[: query.limit] if query.order == "oldest" else order[-query.limit :]
    if query.order == "newest":
        order = order[::-1]
    table = table.take(pa.array(order))
    points = list(point_objects(table))
    return PointPage(
        fields=tuple(fields),
        completeness=run.completeness(),
        report=run.report,
        truncated=cut,
        points=points,
        table=table,
    )


def _warn_unknown(run: Search) -> None:
    """A key that no point in scope has is no error, but often a slip."""
    asked = {term.key for term in terms(run.query.expr) if isinstance(term, q.Field)}
    asked -= {VALUE, *q.BUILTIN_FIELDS}
    if not asked:
        return
    tables = [i.series for i in run.scope.points.values() if i.head.segment is not None]
    known = {name for table in tables for name in table.names}
    texts = {text for table in tables for text in (*table.dims, *table.contexts)}
    known |= {key for text in texts for key in values_of(text)}
    for key in sorted(asked - known):
        run.report.warnings.append(f"no point in scope has the key {key}")


def point_objects(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows of the table as answers show points (docs/query-language.md)."""
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield _object(row)


def _object(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "point",
        "time": render_time(row["ts_ns"]),
        "ts_ns": row["ts_ns"],
        "run": row["run_id"].rpartition("@")[0],
        "run_id": row["run_id"],
        "attempt": row["attempt"],
        "rank": row["rank"],
        "host": row["host"],
        "stream": row["stream"],
        "seq": row["seq"],
        "iteration": row["iteration"],
        "series": row["series"],
        "dims": values_of(row["dims"]),
        "value": None if row["value"] is None else json_number(row["value"]),
        "summary": _summary(row["summary"]),
        "metadata": {} if row["metadata"] is None else values_of(row["metadata"]),
    }


def _summary(summary: dict[str, Any] | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    shown = {
        name: json_number(value) if isinstance(value, float) else value
        for name, value in summary.items()
    }
    if shown["quantiles"] is not None:
        shown["quantiles"] = {share: json_number(value) for share, value in shown["quantiles"]}
    if shown["histogram"] is not None:
        parts = shown["histogram"].items()
        shown["histogram"] = {name: [json_number(v) for v in values] for name, values in parts}
    return shown


# --- counts -------------------------------------------------------------------------------------
def count_points(reader: Reader, query: q.Query) -> CountAnswer:
    """Matching points, by fields and buckets where the query names them. Raises BadInput."""
    if query.stats:
        raise BadInput("a count of points tells no numbers", hint="ask ranklog series for them")
    run = begin(reader, query, points=True)
    _warn_unknown(run)
    bucket, width = _bucket(query)
    fields = (*query.by, *([bucket[0]] if bucket else []))
    columns = {column for name in query.by for column in _read_for(name)}
    columns |= {bucket[1]} if bucket else set()
    table = read_points(run, run.expr(), sorted(columns or {"seq"}))
    if not fields:
        return CountAnswer((), [((), table.num_rows)], *_beside(run), total=table.num_rows)
    keys = [_values(table, name) for name in query.by]
    if bucket:
        keys.append([_start(value, width) for value in table[bucket[1]].to_pylist()])
    counts = Counter(zip(*keys, strict=True))
    rows = sorted(counts.items(), key=lambda item: _order(item[0]))
    if query.top is not None:
        rows = heapq.nlargest(query.top, rows, key=lambda item: item[1])
    return CountAnswer(fields, rows, *_beside(run), total=table.num_rows)


def _beside(run: Search) -> tuple[Any, Any]:
    return run.completeness(), run.report


def _bucket(query: q.Query) -> tuple[tuple[str, str] | None, int]:
    """(name of the field, column) of the buckets, and their width."""
    if query.every_ns is not None:
        return ("bucket_ns", "ts_ns"), query.every_ns
    if query.every_iterations is not None:
        return ("bucket_iteration", "iteration"), query.every_iterations
    return None, 1


def _start(value: int | None, width: int) -> int | None:
    return None if value is None else value // width * width


def _read_for(name: str) -> tuple[str, ...]:
    return (_COLUMNS[name],) if name in _COLUMNS else ("dims", "metadata")


def _values(table: pa.Table, name: str) -> list[Any]:
    if name == "run":
        return _each(table["run_id"], lambda text: text.rpartition("@")[0])
    if name in _COLUMNS:
        return list(table[_COLUMNS[name]].to_pylist())
    dims = _each(table["dims"], lambda text: values_of(text).get(name))
    told = _each(table["metadata"], lambda text: values_of(text).get(name))
    return [a if a is not None else b for a, b in zip(dims, told, strict=True)]


def _each(column: Any, read: Callable[[str], Any]) -> list[Any]:
    """What is read of each distinct text, by row."""
    known: dict[str | None, Any] = {None: None}
    found = []
    for text in column.to_pylist():
        if text not in known:
            known[text] = read(text)
        found.append(known[text])
    return found


def _order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers, then texts, absent last."""
    return tuple(
        (2, 0) if value is None else (1, value) if isinstance(value, str) else (0, value)
        for value in key
    )
