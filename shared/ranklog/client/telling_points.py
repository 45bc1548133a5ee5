"""Points that tell something, of very many: the newest, and where a series became or ceased to be finite.

Points that have dimensions are a part of something, and stand for no rank's loss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklog import limits
from ranklog.client.point_lines import lines_of
from ranklog.client.points import read_points
from ranklog.client.search import Search
from ranklog.client.series_points import names_in
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.answer import Line
from ranklog.plan.tree import all_of
from ranklog.spmd.table import I64, Flags

_COLUMNS = ("run_id", "attempt", "rank", "host", "stream", "seq", "ts_ns", "iteration", "series",
            "dims", "value")  # fmt: skip


def telling_points(run: Search, is_wanted: Callable[[str], bool], attempt: int) -> list[Line]:
    """Of the series that are wanted the newest points, and those where one became or ceased to be
    finite, in order of time. `run` was begun with points. Where not all are looked at a note says so.

    Raises BadQuery for a question that can't be asked of points.
    """
    names = frozenset(name for name in names_in(run).written if is_wanted(name))
    if not names:
        return []
    terms = [run.expr(), q.Field("series", ":", tuple(q.Exact(name) for name in sorted(names)))]
    terms.append(q.Field("attempt", ":", (q.Number(attempt, str(attempt)),)))
    from_ns = _newest_from_ns(run, names)
    if from_ns is not None:
        terms.append(q.Field("time", ":", (q.Range(from_ns, None),)))
        run.report.notes.append("the newest points were read, of more losses and times than are")
    table = read_points(run, all_of(terms), _COLUMNS)
    whole = pc.and_(pc.is_valid(table["value"]), pc.is_valid(table["iteration"]))
    table = table.filter(pc.and_(whole, pc.equal(table["dims"].cast(pa.string()), "{}")))
    return lines_of(_telling(table).to_pylist())


def _newest_from_ns(run: Search, names: frozenset[str]) -> int | None:
    """Where the points that are read begin, if not all are."""
    spans = [
        (*_times(index), rows)
        for index in run.scope.points.values()
        if (rows := _rows(index, names))
    ]
    read, from_ns = 0, None
    for _, begin, rows in sorted(spans, reverse=True):
        if read and read + rows > limits.TRIAGE_POINTS_MAX:
            return from_ns
        read, from_ns = read + rows, begin if from_ns is None else min(begin, from_ns)
    return None


def _times(index: SegmentIndex) -> tuple[int, int]:
    """Last and first time of a segment."""
    entries = index.head.streams
    first = min((e.min_ts for e in entries if e.min_ts is not None), default=0)
    return max((e.max_ts for e in entries if e.max_ts is not None), default=0), first


def _rows(index: SegmentIndex, names: frozenset[str]) -> int:
    series = index.series
    named = zip(series.name, series.rows, strict=True)
    return sum(rows for name, rows in named if series.names[name] in names)


def _telling(table: pa.Table) -> pa.Table:
    """At most TRIAGE_STEPS_MAX rows, and those at which a series of a rank changes."""
    codes = [
        np.unique(table[name].cast(pa.string()).to_numpy(), return_inverse=True)[1]
        for name in ("stream", "series")
    ]
    ts, seq = table["ts_ns"].to_numpy(), table["seq"].to_numpy()
    order = np.lexsort((seq, ts, *codes))
    finite: Flags = np.isfinite(table["value"].to_numpy())[order]
    own: I64 = np.stack(codes)[:, order]
    same = (own[:, 1:] == own[:, :-1]).all(axis=0)
    turns = np.flatnonzero(same & (finite[1:] != finite[:-1]))
    newest = np.argsort(ts, kind="stable")[-limits.TRIAGE_STEPS_MAX :]
    kept = np.unique(np.concatenate([order[turns], order[turns + 1], newest]))
    return table.take(pa.array(kept))
