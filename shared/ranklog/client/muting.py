"""What every rank says at the same rate, as terms that leave it out: what is left is what differs.

Told from the call sites of the launches in scope, whatever else the query asks for: from indexes where they
suffice, else by one count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ranklog.layout import schema
from ranklog.limits import MUTED_SITES_MAX
from ranklog.merge.lines import line_rank
from ranklog.model import query as q
from ranklog.plan.tasks import Groups, Outcome
from ranklog.plan.tree import all_of
from ranklog.spmd.callsites import common_keys
from ranklog.spmd.variables import shown_template

if TYPE_CHECKING:
    from ranklog.client.search import Search

_KEYS = (schema.STREAM, schema.RANK, schema.TID, schema.CALL_SITE)

# (call site, template) -> rank -> lines
Counts: TypeAlias = "dict[tuple[str | None, str], dict[int, int]]"


def muted_terms(run: Search) -> list[q.Expr]:
    """One negated term per call site; none where nothing is common. Over MUTED_SITES_MAX the most
    frequent ones, and the answer says so."""
    common = common_keys(_counts(run))
    if len(common) > MUTED_SITES_MAX:
        run.report.notes.append(f"of {len(common)} common templates {MUTED_SITES_MAX} are muted")
    templates: dict[str | None, list[str]] = defaultdict(list)
    for site, template in common[:MUTED_SITES_MAX]:
        templates[site].append(template)
    return [q.Not(_said(site, found)) for site, found in templates.items()]


def _said(site: str | None, templates: Iterable[str]) -> q.Expr:
    said = tuple(q.Exact(shown_template(template)) for template in templates)
    place = q.Null() if site is None else q.Exact(site)
    return q.And((q.Field("template", ":", said), q.Field("call_site", ":", (place,))))


def _counts(run: Search) -> Counts:
    counts: Counts = defaultdict(lambda: defaultdict(int))
    if _indexes_suffice(run):
        for index in run.scope.indexes.values():
            for item in run.sites_of(index) if index.head.segment is not None else ():
                if item.tid:
                    _add(counts, (item.call_site, index.templates[item.tid]), dict(item.ranks))
        return counts
    copies = q.Field("copy", ":", (q.Exact("true"),))
    plan = run.plan(all_of([*run.scope.restriction(), q.Not(copies)]), Groups(_KEYS))
    for wave in run.outcomes(plan):
        for _, outcome in wave:
            _add_groups(run, outcome, counts)
    return counts


def _indexes_suffice(run: Search) -> bool:
    """Whether every line of every index is in scope, once."""
    scope = run.scope
    if scope.skips or scope.listing.from_ns is not None or scope.listing.to_ns is not None:
        return False
    entries = (entry for index in scope.indexes.values() for entry in index.head.streams)
    return all(not e.lines or (scope.holds(e) and not e.stream.copy) for e in entries)


def _add(counts: Counts, key: tuple[str | None, str], ranks: Mapping[int, int]) -> None:
    for rank, lines in ranks.items():
        if rank != schema.NO_RANK:
            counts[key][rank] += lines


def _add_groups(run: Search, outcome: Outcome, counts: Counts) -> None:
    columns = outcome.columns
    for i, number in enumerate(columns.get("segment", ())):
        tid = columns[schema.TID][i]
        if not tid:
            continue
        index = run.scope.indexes[number]
        own = index.head.streams[columns[schema.STREAM][i]].stream.rank
        rank = line_rank(own, columns[schema.RANK][i])
        if rank is not None:
            key = (columns[schema.CALL_SITE][i], index.templates[tid])
            _add(counts, key, {rank: columns["count"][i]})
