"""Points of the store as series: the names in scope, and tables of numpy from tables of Arrow.

Shapes: as in telemetry/table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.client.points import read_points
from ranklog.client.search import Search
from ranklog.client.series_names import Asked, NameTable, questions, restrict_names
from ranklog.client.series_terms import Terms
from ranklog.layout import point_schema as ps
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.point import canonical_json, context_values
from ranklog.plan.tree import all_of
from ranklog.telemetry.names import known
from ranklog.telemetry.table import ABSENT, I32, Names, PointTable, joined

_COLUMNS = ("run_id", "attempt", "rank", "host", "stream", "seq", "ts_ns", "iteration", "series",
            "dims", "value")  # fmt: skip
# Points of which all are looked at to know when a rank began an iteration.
STEP_POINTS_MAX = 4_000_000
_BUILT_IN_BY = frozenset(["rank", "attempt", "host", "run"])


def names_in(run: Search) -> NameTable:
    """Written names of the points in scope; worked out once for the same indexes."""
    points = run.scope.points.values()
    place = ("series names", tuple(index.key for index in points))
    known_table: NameTable | None = run.reader.facts.get(place)
    if known_table is None:
        known_table = NameTable(name for index in points for name in index.series.names)
        run.reader.facts.put(place, known_table)
    return known_table


def stored_points(
    run: Search,
    within: Sequence[q.Expr],
    expr: q.Expr,
    terms: Terms,
    by: Sequence[str] = (),
    stat: str = "mean",
) -> PointTable:
    """Points `within` that match. `by`: metadata of contexts that is a dimension here, too; `stat`: what
    stands for a tensor."""
    if not run.scope.points:
        return joined([])
    names = names_in(run)
    terms = replace(terms, value_key=lambda written: "value", stored=True)
    tables = [_read(run, within, one, names, by, stat) for one in questions(names, expr, terms)]
    return joined(tables)


def _read(
    run: Search,
    within: Sequence[q.Expr],
    asked: Asked,
    names: NameTable,
    by: Sequence[str],
    stat: str,
) -> PointTable:
    columns = [*_COLUMNS]
    if any(map(_has_summaries, run.scope.points.values())):
        columns.append("summary")
    if any(name not in _BUILT_IN_BY for name in by):
        columns.append("metadata")
    wanted = all_of([*within, restrict_names(asked, names), asked.expr])
    return table_of(read_points(run, wanted, columns), by, stat)


def _has_summaries(index: SegmentIndex) -> bool:
    groups = index.head.row_groups
    return any(name in group.chunks for group in groups for name in ps.SUMMARY_COLUMNS)


def table_of(points: pa.Table, by: Sequence[str] = (), stat: str = "mean") -> PointTable:
    """Columns of Arrow as columns of numpy, under stable names and in their units."""
    coded = {name: _codes(points[name]) for name in ("run_id", "host", "stream", "series", "dims")}
    codes, written = coded["series"]
    of = [known(name) for name in written]
    stable = tuple(dict.fromkeys(one.series for one in of))
    series = np.array([stable.index(one.series) for one in of], np.int32)
    value, missing, summary, kept = _values(points, stat)
    factor = np.array([one.factor for one in of])
    never = np.array([one.minus_one for one in of], np.bool_)
    if len(codes):
        missing = missing | ((value == -1.0) & never[codes])
        value = np.where(missing, np.nan, value * factor[codes])
    dims, texts = _dims(points, *coded["dims"], by)
    names = Names(
        coded["run_id"][1], coded["host"][1], coded["stream"][1], stable, written, texts, kept
    )
    return PointTable(
        coded["run_id"][0], _numbers(points["attempt"], np.int32),
        _numbers(points["rank"], np.int32), coded["host"][0], coded["stream"][0],
        _numbers(points["seq"], np.int64), _numbers(points["ts_ns"], np.int64),
        _numbers(points["iteration"], np.int64), series[codes] if len(codes) else codes, codes,
        dims, value, missing, names, summary,
    )  # fmt: skip


def point_steps(run: Search) -> dict[tuple[str, int | None], list[tuple[int, int]]]:
    """Per run and rank, the time at which each iteration is first met in points. Of more than
    STEP_POINTS_MAX points the series that has most tells it."""
    terms = [t for t in run.scope.restriction() if not (isinstance(t, q.Field) and t.key == "time")]
    terms.append(q.Field("iteration", ":", (q.Present(),)))
    if sum(index.head.rows for index in run.scope.points.values()) > STEP_POINTS_MAX:
        name = _longest(run.scope.points.values())
        terms.append(q.Field("series", ":", (q.Exact(name, quoted=True),)))
        run.report.notes.append(f"points of {name} say in which iteration a rank was")
    points = read_points(run, all_of(terms), ["run_id", "rank", "iteration", "ts_ns"])
    runs, names = _codes(points["run_id"])
    rank, iteration, ts = (_numbers(points[n], np.int64) for n in ("rank", "iteration", "ts_ns"))
    order = np.lexsort((ts, iteration, rank, runs))
    keys = np.stack([runs.astype(np.int64), rank, iteration])[:, order]
    first = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]
    steps: dict[tuple[str, int | None], list[tuple[int, int]]] = {}
    rows = zip(*keys[:, first].tolist(), ts[order][first].tolist(), strict=True)
    for run_at, of, at, when in rows:
        steps.setdefault((names[run_at], None if of == ABSENT else of), []).append((when, at))
    return steps


def _longest(points: Iterable[SegmentIndex]) -> str:
    """Name of the series with the most points."""
    found: Counter[tuple[str, str]] = Counter()
    for index in points:
        table = index.series
        for name, dim, rows in zip(table.name, table.dim, table.rows, strict=True):
            found[table.names[name], table.dims[dim]] += rows
    return found.most_common(1)[0][0][0]


def _codes(column: Any) -> tuple[I32, tuple[str, ...]]:
    """Codes and the texts that they mean, "" for none."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else array.type.storage_type
    texts = array.dictionary.to_pylist()
    indices = array.indices
    if indices.null_count:
        indices, texts = indices.fill_null(len(texts)), [*texts, ""]
    found = indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return found, tuple(texts)


def _numbers(column: Any, kind: Any) -> Any:
    array = column.combine_chunks()
    filled = array.fill_null(ABSENT) if array.null_count else array
    return filled.to_numpy().astype(kind, copy=False)


def _values(points: pa.Table, stat: str) -> tuple[Any, Any, Any, tuple[Any, ...]]:
    """(values, which were not measured, places of summaries, where these are)."""
    column = points["value"].combine_chunks()
    value = column.fill_null(np.nan).to_numpy(zero_copy_only=False).astype(np.float64, copy=True)
    missing = column.is_null().to_numpy(zero_copy_only=False).copy()
    if "summary" not in points.column_names:
        return value, missing, None, ()
    found = points["summary"].combine_chunks()
    there = found.is_valid().to_numpy(zero_copy_only=False)
    if not there.any():
        return value, missing, None, ()
    of = pc.struct_field(found, stat).cast(pa.float64()).fill_null(np.nan)
    value[there] = of.to_numpy(zero_copy_only=False)[there]
    missing[there] = False
    return value, missing, np.where(there, np.arange(len(there)), -1), (found,)


def _dims(
    points: pa.Table, codes: I32, texts: tuple[str, ...], by: Sequence[str]
) -> tuple[I32, tuple[str, ...]]:
    """Dimensions with the metadata that `by` names and that they have not."""
    if "metadata" not in points.column_names:
        return codes, texts
    contexts, metadata = _codes(points["metadata"])
    pairs = codes.astype(np.int64) * max(1, len(metadata)) + contexts
    distinct, place = np.unique(pairs, return_inverse=True)
    merged = [
        _merged(texts[pair // len(metadata)], metadata[pair % len(metadata)], by)
        for pair in distinct.tolist()
    ]
    return place.astype(np.int32), tuple(merged)


def _merged(dims: str, metadata: str, by: Iterable[str]) -> str:
    own, context = context_values(dims), context_values(metadata or "{}")
    return canonical_json({**{key: context[key] for key in by if key in context}, **own})
