"""Where points come from: from lines' metadata, and from the store's points.

Joins are answered first, as in a search: a near() becomes intervals, a spike() the records it is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from ranklog import limits
from ranklog.client.carried import Carried
from ranklog.client.joins import resolve_joins, restriction
from ranklog.client.lineage import asks_for_superseded
from ranklog.client.search import Search
from ranklog.client.series_lines import line_points, numeric_keys
from ranklog.client.series_names import NameTable
from ranklog.client.series_options import SeriesOptions
from ranklog.client.series_points import names_in, stored_points
from ranklog.client.series_terms import Terms, names_exactly
from ranklog.client.spiked import Hits, SpikeIds, spike_ids
from ranklog.errors import BadQuery
from ranklog.merge.groups import GroupMerge
from ranklog.model import query as q
from ranklog.plan.tree import all_of
from ranklog.plan.typed import text_value
from ranklog.telemetry.lineage import surviving
from ranklog.telemetry.names import is_series_key, known
from ranklog.telemetry.spikes import spike_mask
from ranklog.telemetry.table import ABSENT, I64, PointTable, grouped, joined, set_apart

_EVERYTHING = SeriesOptions(superseded=True)
# Names of the first part of an answer that comes bit by bit.
_FIRST_NAMES = 16


def read_points(
    run: Search, expr: q.Expr, options: SeriesOptions, *, slack_ns: int = 0
) -> PointTable:
    """Points that match, in no order."""
    course = not (options.superseded or asks_for_superseded(expr))
    if course:
        expr = all_of([expr, q.Field("superseded", ":", (q.Exact("false"),))])
    hits: Hits = {}
    for term in _spikes_in(expr):
        spike_ids(run, term, hits)
    asked = resolve_joins(run, expr, spikes=False, hits=hits)
    terms = Terms(run.reader.regexes, hits)
    within, by = restriction(run, slack_ns), options.by or ()
    lines = _with_iterations(run, line_points(run, within, asked, terms, by))
    stored = stored_points(run, within, asked, terms, by, options.stat)
    if course:  # a job may log points and no line that names an iteration
        stored = stored.take(surviving(stored))
    found = set_apart(joined([lines, stored]))
    if len(found) > limits.SERIES_READ_POINTS_MAX:
        raise BadQuery(f"over {limits.SERIES_READ_POINTS_MAX} points", hint="narrow it")
    return found


def _with_iterations(run: Search, table: PointTable) -> PointTable:
    """Points of lines that name no iteration (timers, memory) carry the last one: of their own stream
    where it names some, else of their rank at their time."""
    if not (table.iteration == ABSENT).any():
        return table
    iteration = table.iteration.copy()
    steps = _stream_steps(run)
    for at in np.unique(table.stream[iteration == ABSENT]).tolist():
        found = steps.get(table.names.stream[at])
        if found:
            rows = np.flatnonzero((iteration == ABSENT) & (table.stream == at))
            iteration[rows] = _last(found, table.seq[rows])
    silent = np.isin(table.stream, [i for i, s in enumerate(table.names.stream) if s not in steps])
    unknown = (iteration == ABSENT) & silent & (table.rank != ABSENT)
    carried = Carried(run) if unknown.any() else None
    for at, rank in np.unique(np.stack([table.run, table.rank])[:, unknown], axis=1).T.tolist():
        assert carried is not None
        rows = np.flatnonzero(unknown & (table.run == at) & (table.rank == rank))
        iteration[rows] = _last(carried.steps(table.names.run[at], rank), table.ts_ns[rows])
    return replace(table, iteration=iteration)


def _stream_steps(run: Search) -> dict[str, list[tuple[int, int]]]:
    """Per stream, from which of its lines on it names which iteration."""
    merge = GroupMerge(run.scope.indexes, ("stream", "iteration"), extent=True, seqs=True)
    known = q.Field("iteration", ":", (q.Present(),))
    try:
        for wave in run.outcomes(run.plan(all_of([*run.scope.restriction(), known]), merge.shape)):
            for _, outcome in wave:
                merge.add(outcome)
    except BadQuery:
        run.report.notes.append("too many iterations: points of lines without one have none")
        return {}
    steps: dict[str, list[tuple[int, int]]] = {}
    for (stream_id, iteration), total in merge.groups.items():
        assert total.first_seq is not None
        steps.setdefault(stream_id, []).append((total.first_seq, iteration))
    return {stream: sorted(found) for stream, found in steps.items()}


def _last(steps: Sequence[tuple[int, int]], places: I64) -> I64:
    """The iteration of the last step at or before each place, ABSENT before the first."""
    if not steps:
        return np.full(len(places), ABSENT, np.int64)
    at, iterations = (np.array(column, np.int64) for column in zip(*steps, strict=True))
    found = np.searchsorted(at, places, side="right") - 1
    return np.where(found >= 0, iterations[np.maximum(found, 0)], ABSENT)


def _spikes_in(expr: q.Expr) -> list[q.Spike]:
    """Spikes outside near()."""
    if isinstance(expr, q.Spike):
        return [expr]
    if isinstance(expr, (q.And, q.Or)):
        return [term for item in expr.items for term in _spikes_in(item)]
    return _spikes_in(expr.item) if isinstance(expr, q.Not) else []


def spike_ids_of(run: Search, spike: q.Spike) -> SpikeIds:
    """Records of the points that stand out of their own series: run, rank, name and dimensions."""
    name = q.Field("series", ":", (text_value(spike.series, quoted=False),))
    points = grouped(read_points(run, all_of([name, spike.where]), _EVERYTHING))
    if len(points.table) > limits.SPIKE_POINTS_MAX:
        raise BadQuery(
            f"spike({spike.series}) looks at more than {limits.SPIKE_POINTS_MAX} points",
            hint="narrow it, or bound the time",
        )
    table = points.table
    hit = table.take(spike_mask(table.value, points.starts, spike.factor, ratio=spike.ratio))
    found: dict[str, list[str]] = {}
    for written, stream, seq in zip(
        hit.written.tolist(), hit.stream.tolist(), hit.seq.tolist(), strict=True
    ):
        found.setdefault(table.names.written[written], []).append(
            f"{table.names.stream[stream]}:{seq}"
        )
    return {name: tuple(ids) for name, ids in found.items()}


def matches_of(
    run: Search, expr: q.Expr, slack_ns: int
) -> Iterator[tuple[str, str | None, int | None, int | None, int]]:
    """(run id, host, rank, iteration, time) of the points that match, each place once: the earliest of
    those of one iteration, all of those without one."""
    table = read_points(run, expr, _EVERYTHING, slack_ns=slack_ns)
    keys = np.stack([table.run, table.host, table.rank, table.iteration, table.ts_ns])
    places = np.unique(keys, axis=1)
    if places.shape[1] > limits.NEAR_MATCHES_MAX:
        raise BadQuery(
            f"the query in near() has more than {limits.NEAR_MATCHES_MAX} matches",
            hint="narrow it, or bound the time",
        )
    names = table.names
    for run_at, host, rank, iteration, ts in places.T.tolist():
        yield (
            names.run[run_at],
            names.host[host] or None,
            None if rank == ABSENT else rank,
            None if iteration == ABSENT else iteration,
            ts,
        )


def name_batches(run: Search, expr: q.Expr) -> Iterator[list[str] | None]:
    """Names of series in parts for answers that come bit by bit, the first ones small, in an order that
    is random but always the same; None: all at once, as nothing says which they are."""
    held = {term for term in _positive(expr) if term.key == "series"}
    names = names_in(run) if run.scope.points else None
    if names is None or len(held) != 1 or any(True for _ in _spikes_in(expr)):
        yield None
        return
    (term,) = held
    wanted = {known(name).series for name in names.holding(term, run.reader.regexes)}
    numeric = numeric_keys(run.scope.indexes.values())
    keys = NameTable(key for key in numeric if is_series_key(key) or names_exactly(expr, key))
    wanted |= {known(name).series for name in keys.holding(term, run.reader.regexes)}
    ordered = sorted(wanted, key=lambda name: blake2b(name.encode(), digest_size=8).digest())
    at, width = 0, _FIRST_NAMES
    while at < len(ordered):
        yield ordered[at : at + width]
        at, width = at + width, 4 * width


def _positive(expr: q.Expr) -> Iterator[q.Field]:
    """Terms that every match fulfils."""
    items = expr.items if isinstance(expr, q.And) else (expr,)
    return (item for item in items if isinstance(item, q.Field))
