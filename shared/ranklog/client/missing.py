"""`missing`: who did not say what matches, from counts and from how complete the same scope is."""

from __future__ import annotations

from collections.abc import Iterable

from ranklog import limits
from ranklog.answer.completeness import judge
from ranklog.answer.negative import BY, NO, RANK, Asked, Speaker, negative_rows, speakers
from ranklog.client.answer import Listing
from ranklog.client.counting import count_in
from ranklog.client.manifests import load_manifests
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin
from ranklog.errors import BadInput
from ranklog.model import query as q
from ranklog.model.answer import Completeness
from ranklog.model.index import StreamEntry
from ranklog.plan.scope import STREAM_FIELDS, streams_hold
from ranklog.plan.values import numbers_hold

# Terms that say where a process was: of what never arrived, nobody knows it.
_OF_PLACE = frozenset(["host", "local_rank", "source"])


def list_missing(reader: Reader, query: q.Query, *, by: str, everyone: bool = False) -> Listing:
    """Ranks, hosts or streams that did not say it, and those of which it is unknown; `everyone`: and
    those that did. The query counts by run_id and `by`. Raises BadInput for another `by`."""
    run = begin(reader, query)
    counted = count_in(run)
    entries = list(run.scope.entries())
    judged, expected = _judged(run, entries, counted.completeness)
    fitting = _fitting(run, entries)
    heard = speakers(fitting, judged)
    ranks = _in_question(run, expected, heard)
    asked = Asked(by, ranks, frozenset(judged.absent), bool(judged.skipped_tasks))
    counts = {(str(run_id), value): lines for (run_id, value), lines in counted.rows}
    rows = negative_rows(asked, heard, counts)
    said = sum(row["count"] > 0 for row in rows)
    silent = sum(row["said"] == NO for row in rows)
    run.report.notes.append(
        f"{said} of {len(rows)} {by}s said it, {silent} did not, of {len(rows) - said - silent} it is "
        "unknown"
    )
    return Listing([r for r in rows if everyone or not r["count"]], judged, run.report)


def checked_by(by: str) -> str:
    """Raises BadInput for what nobody can be missing by."""
    if by not in BY:
        raise BadInput(f"missing by {by}?", hint=", ".join(BY))
    return by


def _judged(
    run: Search, entries: list[StreamEntry], answered: Completeness
) -> tuple[Completeness, dict[str, frozenset[int]]]:
    """Completeness that knows of the ranks that manifests speak of; all these ranks by run_id."""
    launches = {(entry.stream.run, entry.stream.launch) for entry in entries}
    launches |= {(one.run, one.launch) for one in run.scope.launches or ()}
    told = load_manifests(run.reader.store, run.reader.tenant, launches, whole=False).told
    declared = {
        (*launch, attempt): ranks
        for launch in launches
        for attempt, ranks in told[f"{launch[0]}@{launch[1]}"].ranks.items()
    }
    window, gone = run.scope.window(), run.scope.gone()
    contested = run.scope.contested
    judged = judge(entries, window, answered.skipped_tasks, declared, gone, contested)
    expected: dict[str, set[int]] = {}
    for (name, launch, _), ranks in declared.items():
        expected.setdefault(f"{name}@{launch}", set()).update(ranks)
    for run_id, size in {(e.stream.run_id, e.stream.world_size or 0) for e in entries}:
        if size <= limits.WORLD_RANKS_MAX:
            expected.setdefault(run_id, set()).update(range(size))
    return judged, {run_id: frozenset(ranks) for run_id, ranks in expected.items()}


def _terms(run: Search) -> list[q.Field]:
    """Terms that every match fulfils."""
    expr = run.query.expr
    items: Iterable[q.Expr] = expr.items if isinstance(expr, q.And) else (expr,)
    return [item for item in items if isinstance(item, q.Field)]


def _fitting(run: Search, entries: list[StreamEntry]) -> list[StreamEntry]:
    """Entries of streams that may hold a match; a term on ranks is asked of ranks, not of streams."""
    for term in _terms(run):
        if term.key in STREAM_FIELDS:
            held = streams_hold(term, entries, run.reader.regexes)
            entries = [entry for entry, holds in zip(entries, held, strict=True) if holds]
    return entries


def _in_question(
    run: Search, expected: dict[str, frozenset[int]], heard: list[Speaker]
) -> dict[str, frozenset[int]]:
    """Ranks that the query is about: those that were to say something, or did."""
    terms = _terms(run)
    spoke: dict[str, set[int]] = {}
    for one in heard:
        known = spoke.setdefault(one.stream.run_id, set())
        known.update(one.ranks)
        known.update(() if one.stream.rank is None else (one.stream.rank,))
    placed = any(term.key in _OF_PLACE for term in terms)
    found: dict[str, frozenset[int]] = {}
    for run_id in expected.keys() | spoke.keys():
        others = frozenset() if placed else expected.get(run_id, frozenset())
        wanted = sorted(spoke.get(run_id, set()) | others)
        for term in terms:
            if term.key == RANK:
                held = numbers_hold(term, wanted)
                wanted = [rank for rank, holds in zip(wanted, held, strict=True) if holds]
        found[run_id] = frozenset(wanted)
    return found
