"""Series: which points, which of them survive a restart, folded, thinned out, and what happens in them.

begin        scope, bounds, patterns                                   (client/search)
read_points  near, spike and superseded answered; lines and points     (client/series_read)
fold         over ranks, dimensions and buckets, if asked              (here, telemetry/aggregate)
detect       over all points, before any is left out                   (telemetry/detect)
thin         down-sampling that keeps extremes                         (telemetry/downsample)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin, timed
from ranklog.client.series_answer import SeriesAnswer, cut_groups
from ranklog.client.series_options import SeriesOptions
from ranklog.client.series_read import name_batches, read_points
from ranklog.client.words import parse_every
from ranklog.model import query as q
from ranklog.plan.tree import all_of
from ranklog.telemetry.aggregate import aggregated
from ranklog.telemetry.detect import detect, event_rows
from ranklog.telemetry.downsample import METHOD, chosen
from ranklog.telemetry.names import better_of
from ranklog.telemetry.table import ABSENT, I32, I64, Grouped, Names, PointTable, grouped

_BUILT_IN_BY = ("rank", "attempt", "host", "run")


def read_series(reader: Reader, query: q.Query, options: SeriesOptions) -> SeriesAnswer:
    """All series that match, in order of run, name, dimensions and rank."""
    run = begin(reader, query, points=True)
    with reader.turn(run.ends_s):
        table = read_points(run, query.expr, options)
        if not len(table):
            run.report.warnings += _why_none(query.expr)
        else:
            run.report.warnings += _nowhere(table, options.by or ())
        return _answer(run, table, options)


def _why_none(expr: q.Expr) -> list[str]:
    """What may have been meant, where nothing was found."""
    items = expr.items if isinstance(expr, q.And) else (expr,)
    names = [item for item in items if isinstance(item, q.Field) and item.key == "series"]
    if len(names) > 1:
        return ["no point is of two series; for either write loss OR grad_norm"]
    return ["no such series here; `ranklog series '*' --list` names all"] if names else []


def _nowhere(table: PointTable, by: Sequence[str]) -> list[str]:
    """Fields to keep apart that no series has: often a slip."""
    known = {key for text in table.names.dims for key in json.loads(text)}
    return [f"no series has the dimension {n}" for n in by if n not in known.union(_BUILT_IN_BY)]


def stream_series(reader: Reader, query: q.Query, options: SeriesOptions) -> Iterator[SeriesAnswer]:
    """The same in parts, each as it is ready, series in an order that is random but always the same; the
    last part has the whole report."""
    run = begin(reader, query, points=True)
    for names in name_batches(run, query.expr):
        with reader.turn(run.ends_s):
            part = _answer(run, read_points(run, _of_names(query.expr, names), options), options)
        if len(part):
            yield in_random_order(part)
    yield SeriesAnswer(completeness=run.completeness(), report=run.report, stat=options.stat)


def _of_names(expr: q.Expr, names: Sequence[str] | None) -> q.Expr:
    if names is None:
        return expr
    return all_of([expr, q.Field("series", ":", tuple(q.Exact(name) for name in names))])


def _answer(run: Search, table: PointTable, options: SeriesOptions) -> SeriesAnswer:
    with timed(run.report, "merge"):
        points, counts = _folded(table, options)
        events: list[dict[str, Any]] = []
        if options.detect and len(points):
            ways = [better_of(points.table.names.series[s]) for s in _first(points, "series")]
            events = event_rows(points, detect(points, options.detect, ways))
        read = np.diff(points.starts)
        points, counts = _thinned(points, counts, options.max_points)
    answer = SeriesAnswer(
        points, read, run.completeness(), run.report, [_clean(e) for e in events], counts,
        aggregate=options.folds, method=METHOD if options.max_points else None, stat=options.stat,
    )  # fmt: skip
    if answer.left_out:
        note = f"{len(points.table)} of {int(read.sum())} points: {METHOD}"
        run.report.notes[:] = [n for n in run.report.notes if METHOD not in n] + [note]
    return answer


def _clean(event: dict[str, Any]) -> dict[str, Any]:
    low, high = event["iterations"]
    known = None if low == ABSENT else low, None if high == ABSENT else high
    return {name: item for name, item in event.items() if name != "rows"} | {"iterations": known}


def _first(points: Grouped, column: str) -> list[int]:
    found: list[int] = getattr(points.table, column)[points.first()].tolist()
    return found


def _thinned(
    points: Grouped, counts: dict[str, I64], most: int | None
) -> tuple[Grouped, dict[str, I64]]:
    if most is None or not len(points):
        return points, counts
    keep = chosen(points, most)
    if keep.all():
        return points, counts
    sizes = np.add.reduceat(keep.astype(np.int64), points.starts[:-1])
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    kept = {name: counted[keep] for name, counted in counts.items()}
    return Grouped(points.table.take(keep), starts), kept


# --- folding ------------------------------------------------------------------------------------
def _folded(table: PointTable, options: SeriesOptions) -> tuple[Grouped, dict[str, I64]]:
    how = options.folds
    if how is None or not len(table):
        return grouped(table), {}
    by = _by(table, options.by or ())
    places, bucket = _places(table, options.every)
    parts = grouped(replace(table, iteration=places), [*by.keys, _coded(bucket)])
    folded = aggregated(parts, how)
    first, last = parts.first(), parts.starts[1:] - 1
    one = parts.table.take(first)
    whole = replace(
        one,
        ts_ns=one.ts_ns if options.every else parts.table.ts_ns[last],
        value=folded.value,
        missing=(folded.count == 0) & (folded.nan == 0) & (folded.inf == 0),
        summary=None,
        **by.shown(one),
    )
    whole = replace(whole, value=_no_number(whole, folded.nan, folded.inf))
    order = np.arange(len(whole))
    again = grouped(replace(whole, seq=order.astype(np.int64)))
    place = again.table.seq
    counts = {n: getattr(folded, n)[place] for n in ("count", "nan", "inf", "missing")}
    counts["not_measured"] = counts.pop("missing")
    return again, counts


def _no_number(whole: PointTable, nan: I64, inf: I64) -> Any:
    """Where no rank has a number: NaN if one has that, else an infinity."""
    only_inf = ~np.isfinite(whole.value) & (nan == 0) & (inf > 0)
    return np.where(only_inf, np.inf, whole.value)


def _coded(values: I64) -> I32:
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def _places(table: PointTable, every: str | None) -> tuple[I64, I64]:
    """(iteration that stands for the bucket, what tells buckets apart)."""
    ns, iterations = parse_every(every)
    known = table.iteration != ABSENT
    if ns is not None:
        return np.full(len(table), ABSENT, np.int64), table.ts_ns - table.ts_ns % ns
    width = iterations or 1
    bucket = np.where(known, table.iteration - table.iteration % width, ABSENT)
    # points without an iteration fold by time, apart from all that have one
    return bucket, np.where(known, 2 * bucket, 2 * table.ts_ns + 1)


class _By:
    """What stays apart: run, series, and fields that were named."""

    def __init__(self, table: PointTable, names: Sequence[str]) -> None:
        self.names = names
        dims = [json.loads(text) for text in table.names.dims]
        kept = [{key: item[key] for key in names if key in item} for item in dims]
        place: dict[str, int] = {}
        code = [place.setdefault(json.dumps(d, sort_keys=True, ensure_ascii=False,
                                            separators=(",", ":")), len(place)) for d in kept]  # fmt: skip
        self.texts = tuple(place)
        self.to = np.array(code, np.int32)
        self.keys: list[I32] = [table.run, table.series, self.to[table.dims]]
        self.keys += [getattr(table, name) for name in ("rank", "attempt", "host") if name in names]

    def shown(self, one: PointTable) -> dict[str, Any]:
        """Columns of what was folded: what differs within a group is none."""
        shown: dict[str, Any] = {"dims": self.to[one.dims]}
        names = replace(one.names, dims=self.texts)
        if "rank" not in self.names:
            shown["rank"] = np.full(len(one), ABSENT, np.int32)
        if "host" not in self.names and "rank" not in self.names:
            shown["host"] = np.zeros(len(one), np.int32)
            names = replace(names, host=("",))
        shown["stream"] = np.zeros(len(one), np.int32)
        return shown | {"names": Names(names.run, names.host, ("",), names.series, names.written,
                                       names.dims)}  # fmt: skip


def _by(table: PointTable, names: Sequence[str]) -> _By:
    return _By(table, names)


# --- order --------------------------------------------------------------------------------------
def in_random_order(answer: SeriesAnswer, behind: str | None = None) -> SeriesAnswer:
    """Series by the hash of their identity: spread over all plots of a dashboard, and the same each time.
    `behind`: only those behind this place."""
    places = sorted((place_of(answer, group), group) for group in range(len(answer)))
    return cut_groups(answer, [group for place, group in places if place > (behind or "")])


def place_of(answer: SeriesAnswer, group: int) -> str:
    """A series' place in that order."""
    one = answer[group]
    identity = json.dumps([one.run_id, one.name, one.rank, one.host, one.dims], sort_keys=True)
    return hashlib.blake2b(identity.encode(), digest_size=12).hexdigest()
