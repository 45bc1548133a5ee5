"""Ranks of a run, or of two runs, side by side: fetch the lines, let spmd compare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ranklog import limits
from ranklog.answer.render import line_json, render_time
from ranklog.client.answer import Listing
from ranklog.client.earlier import earlier_run
from ranklog.client.lineage import asks_for_superseded, surviving
from ranklog.client.manifest_rows import manifest_rows
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin, scan_lines
from ranklog.client.words import Restrictions, parse_ranks, read_query
from ranklog.errors import BadInput, NotFound, Unavailable
from ranklog.model import query as q
from ranklog.model.answer import Completeness, Line, Report
from ranklog.plan.tree import all_of
from ranklog.spmd.compare import SIDES_MAX, Side, compare
from ranklog.spmd.hunks import Comparison

_STATES = ("complete", "behind", "gaps", "partial")


def compare_ranks(
    reader: Reader,
    query: str,
    given: Restrictions,
    *,
    ranks: str | None,
    with_: str | None,
    all_hunks: bool,
    limit: int | None,
) -> Listing:
    """One row per hunk. Console copies are left out. Raises BadInput for a side without a name."""
    if not given.get("run"):
        raise BadInput("ranks of which run?", hint="name it: run=… or --run NAME")
    first = begin(reader, _asked(reader, query, given))
    runs = [first]
    if with_ is not None:
        runs.append(_other(first, with_))
    for run in runs:
        if len(run.scope.run_ids) != 1:  # none: a term on runs, and no run
            raise BadInput(
                f"{len(run.scope.run_ids) or 'all'} launches",
                hint="compare takes one of a run: NAME, NAME@LAUNCH, NAME~1, NAME~ok",
            )
    asked = _sides(runs, parse_ranks(ranks))
    if not asked:
        first.report.notes.append("nothing was read of any rank: there is nothing to compare")
        return Listing([], _completeness(runs), first.report)
    most = max(_lines_of(run, rank) for run, rank in asked.values())
    if most > limits.COMPARE_COLUMN_LINES_MAX:
        raise BadInput(
            f"a rank has {most} lines, over the limit of {limits.COMPARE_COLUMN_LINES_MAX}",
            hint="narrow it: --since, or another run",
        )

    def peers() -> list[Line]:
        return _peers(first, [rank for _, rank in asked.values() if rank is not None])

    if most > limits.COMPARE_LINES_MAX:
        comparison = _by_columns(asked, peers, all_hunks=all_hunks, limit=limit)
    else:
        sides = [Side(label, _lines(run, rank)) for label, (run, rank) in asked.items()]
        comparison = compare(sides, peers=peers(), all_hunks=all_hunks)
    report = first.report
    _cut(comparison, limit, report)
    if not ranks:
        shown = dict.fromkeys(str(rank) for _, rank in asked.values() if rank is not None)
        if shown:
            report.notes.append(f"ranks {', '.join(shown)}: --ranks chooses others")
        if any(rank is None for _, rank in asked.values()):
            report.notes.append("a run names no ranks: its lines without one are compared")
    rows = manifest_rows(runs) if len(runs) > 1 else []
    rows += [hunk.to_json(line_json, render_time) for hunk in comparison.hunks]
    return Listing(rows, _completeness(runs), report)


def _by_columns(
    asked: Mapping[str, tuple[Search, int | None]],
    peers: Callable[[], list[Line]],
    *,
    all_hunks: bool,
    limit: int | None,
) -> Comparison:
    """Many lines: only those that are shown become lines."""
    try:
        from ranklog.client.comparison_columns import compare_sides
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"so many lines need {error.name}, which is not installed here",
            hint="narrow it, or ask a store: pip install 'ranklog[engine]'",
        ) from error
    sides = {label: (run, _of_rank(run, rank)) for label, (run, rank) in asked.items()}
    return compare_sides(sides, peers=peers, all_hunks=all_hunks, limit=limit)


def _cut(comparison: Comparison, limit: int | None, report: Report) -> None:
    """Leave the first `limit` hunks, and say what is left out."""
    if limit is not None and len(comparison.hunks) > limit:
        comparison.more += len(comparison.hunks) - limit
        del comparison.hunks[limit:]
    if comparison.more:
        counts = ", ".join(f"{count} {op}" for op, count in comparison.counts.items())
        report.notes.append(
            f"the first {len(comparison.hunks)} differing stretches; all places: {counts}. "
            "--limit 0 shows all"
        )


def _asked(reader: Reader, query: str, given: Restrictions) -> q.Query:
    """The question, of the surviving lineage unless an attempt is named."""
    asked = read_query(query, given, now_ns=reader.now_ns())
    if given.get("attempt") not in (None, "") or asks_for_superseded(asked.expr):
        return asked
    return replace(asked, expr=all_of([asked.expr, surviving()]))


def _other(first: Search, words: str) -> Search:
    """The same question to the run that the first is held against."""
    asked = first.query
    chosen = earlier_run(first.reader, asked.run, first.scope.launches, words)
    return begin(first.reader, replace(asked, run=chosen))


def _sides(
    runs: Sequence[Search], named: Sequence[int] | None
) -> dict[str, tuple[Search, int | None]]:
    """By label, whose lines: those of a rank, or of a run that names no ranks."""
    chosen = [list(named or own) for own in _default_ranks(runs)]
    count = sum(map(len, chosen))
    if count > SIDES_MAX:
        raise BadInput(
            f"{count} sides are over the limit of {SIDES_MAX}", hint="name fewer: --ranks 0,7"
        )
    asked: dict[str, tuple[Search, int | None]] = {}
    for run, own in zip(runs, chosen, strict=True):
        _check_ranks(run, own)
        for rank in own:
            label = str(rank) if len(runs) == 1 else run.scope.run_ids[0]
            asked[label if len(runs) == 1 or rank is None else f"{label}:{rank}"] = (run, rank)
    return asked


def _default_ranks(runs: Sequence[Search]) -> list[list[int | None]]:
    """Of each run: two ranks of one, or the first rank that two runs have in common, or, where one
    names none, what there is: its first rank, or its lines without one."""
    own = [sorted(_ranks(run)) for run in runs]
    common = sorted(set(own[0]).intersection(*own))
    if len(runs) == 1 or common:
        return [list[int | None](common[: 2 if len(runs) == 1 else 1])] * len(runs)
    return [[ranks[0] if ranks else None] for ranks in own]


def _check_ranks(run: Search, chosen: Sequence[int | None]) -> None:
    """A rank that nobody has heard of is a slip: beside it, every line would be missing."""
    known = _ranks(run)
    for rank in chosen:
        if rank is not None and rank not in known:
            has = f"it has {min(known)} to {max(known)}" if known else "it names no ranks"
            raise NotFound(f"{', '.join(run.scope.run_ids)} has no rank {rank}", hint=has)


def _ranks(run: Search) -> set[int]:
    found = {rank for e in run.scope.entries() for rank, _ in e.ranks if rank >= 0}
    own = {e.stream.rank for e in run.scope.entries() if e.stream.rank is not None}
    return found | own


def _lines_of(run: Search, rank: int | None) -> int:
    """At most so many lines of a rank, as the indexes count them; a line stored twice counts twice."""
    count = 0
    for entry in run.scope.entries():
        if entry.stream.copy:
            continue
        others = dict(entry.ranks)
        if entry.stream.rank == rank:
            count += entry.lines - sum(others.values())
        count += others.get(-1 if rank is None else rank, 0)
    return count


def _of_rank(run: Search, rank: int | None) -> q.Expr:
    """The lines of a rank, or of none, without console copies."""
    value = q.Null() if rank is None else q.Number(rank, str(rank))
    wanted = q.Field("rank", ":", (value,))
    copies = q.Field("copy", ":", (q.Exact("true"),))
    return all_of([run.expr(), wanted, q.Not(copies)])


def _lines(run: Search, rank: int | None, most: int | None = None) -> list[Line]:
    """Lines of a rank in order. Raises BadInput over the limit."""
    most = limits.COMPARE_LINES_MAX if most is None else most
    expr = _of_rank(run, rank)
    lines = scan_lines(run, expr, limit=most + 1, newest=False).lines()
    if len(lines) > most:
        raise BadInput(
            f"rank {rank} has over {most} lines here",
            hint="narrow it: --iteration A..B, --since, or terms",
        )
    return lines


def _peers(run: Search, chosen: Sequence[int]) -> list[Line]:
    """Lines of some other ranks, evenly chosen: what their values usually are."""
    others = sorted(_ranks(run) - set(chosen))
    step = max(1, -(-len(others) // limits.COMPARE_PEERS_MAX))
    peers: list[Line] = []
    for rank in others[::step]:
        try:
            peers += _lines(run, rank, limits.COMPARE_PEER_LINES_MAX)
        except BadInput:
            continue  # too many lines to stand beside; the others tell enough
    return peers


def _completeness(runs: Sequence[Search]) -> Completeness:
    """The worse of both runs'."""
    found = [run.completeness() for run in runs]
    return max(found, key=lambda item: _STATES.index(item.state))
