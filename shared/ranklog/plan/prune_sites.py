"""Terms on call sites, levels and ranks together: which rows of the index's site table might match.

A template's cells answer each term by itself: rank 7 writes the template, and an ERROR has it. The
site table knows that no rank 7 wrote such an ERROR, and how many lines each rank wrote there: so a
count by these fields needs no scan where every site is decided.

A set of sites is a Python int, bit by position in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple, TypeAlias

from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.index import SiteCount, SiteTimes
from ranklog.plan.tables import bits, mask, tables_of
from ranklog.plan.tree import children
from ranklog.plan.values import numbers_hold

SITE_FIELDS: dict[str, Callable[[SiteCount], str | int | None]] = {
    "call_site": lambda site: site.call_site,
    "function": lambda site: site.function,
    "logger": lambda site: site.logger,
    "level": lambda site: site.level,
}
# Up to so many ranks are looked up in the sites; more are taken from all.
_FEW_RANKS = 32
# Fields that a count from the index can be grouped by.
COUNTED_FIELDS = frozenset([*SITE_FIELDS, "template", "rank"])

Buckets: TypeAlias = "tuple[tuple[int, int], ...]"
Sites: TypeAlias = "tuple[int, int]"
# Over all row groups: (templates that might match, templates all of whose rows match)
OverGroups: TypeAlias = "Callable[[q.Expr], tuple[int, int]]"
# Of a call-site field's term: the sites where it holds, None where nothing can say
SitesHold: TypeAlias = "Callable[[q.Field], int | None]"


class SiteLines(NamedTuple):
    """Lines of a site that match; of one rank where `by_rank` was asked (None: without a rank).
    `position`: of the site in its table.
    """

    site: SiteCount
    rank: int | None
    lines: int
    position: int


@dataclass(frozen=True, slots=True)
class Counted:
    """Lines that an index counted. Where buckets of time were asked: all in the one that begins at
    `bucket`, or (start, lines) by the position of the site."""

    lines: Sequence[SiteLines]
    bucket: int | None = None
    buckets: Sequence[Buckets] | None = None


def in_buckets(index: SegmentIndex, found: Sequence[SiteLines], every_ns: int) -> Counted | None:
    """The same lines by buckets of time, None where the index does not say when they were."""
    start = index.head.min_ts // every_ns
    if index.head.max_ts // every_ns == start:
        return Counted(found, bucket=start * every_ns)
    times = index.site_times
    if times is None or every_ns % times.width_ns:
        return None
    if any(item.lines != item.site.count for item in found):
        return None  # some of its ranks
    buckets = tables_of(index).known(("buckets", every_ns), lambda: _widened(times, every_ns))
    return Counted(found, buckets=buckets)


def _widened(times: SiteTimes, every_ns: int) -> list[Buckets]:
    """The lines of each site in buckets of a multiple of their width."""
    width_ns, first = times.width_ns, times.first
    starts = [(first + i) * width_ns // every_ns * every_ns for i in range(len(times.counts[0]))]
    made = []
    for counts in times.counts:
        lines: dict[int, int] = {}
        for start, count in zip(starts, counts, strict=True):
            if count:
                lines[start] = lines.get(start, 0) + count
        made.append(tuple(lines.items()))
    return made


class SiteTable:
    """An index's site table, turned so that terms are answered for all sites at once."""

    def __init__(self, index: SegmentIndex) -> None:
        self.sites = index.sites
        self.complete = sum(site.count for site in self.sites) == index.head.rows
        self.all = (1 << len(self.sites)) - 1

    @cached_property
    def by_rank(self) -> dict[int | None, int]:
        """Sites where a rank has lines; None: lines without a rank."""
        found: dict[int | None, list[int]] = {}
        for position, site in enumerate(self.sites):
            for rank, _ in site.ranks:
                found.setdefault(None if rank == schema.NO_RANK else rank, []).append(position)
        return {rank: mask(positions) for rank, positions in found.items()}

    @cached_property
    def by_template(self) -> dict[int, int]:
        found: dict[int, list[int]] = {}
        for position, site in enumerate(self.sites):
            found.setdefault(site.tid, []).append(position)
        return {tid: mask(positions) for tid, positions in found.items()}

    @cached_property
    def _all_templates(self) -> int:
        return mask(self.by_template)

    def templates(self, sites: int) -> int:
        """Templates of these sites."""
        return mask(self.sites[position].tid for position in bits(sites))

    def of_templates(self, templates: int) -> int:
        """Sites of these templates."""
        if not self._all_templates & ~templates:
            return self.all
        if not self._all_templates & templates:
            return 0
        return union(sites for tid, sites in self.by_template.items() if templates >> tid & 1)


def site_table(index: SegmentIndex) -> SiteTable:
    """The index's table, made when first asked for."""
    tables = tables_of(index)
    if not isinstance(tables.sites, SiteTable):
        tables.sites = SiteTable(index)
    return tables.sites


def union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)


def asks_sites(expr: q.Expr) -> bool:
    """Whether the site table can say more than the templates: a term is about sites or ranks."""
    if isinstance(expr, q.Field):
        return expr.key in SITE_FIELDS or expr.key == "rank"
    return any(asks_sites(item) for item in children(expr))


class SiteTerms:
    """One query over one segment's site table."""

    def __init__(self, index: SegmentIndex, hold: SitesHold, over_groups: OverGroups) -> None:
        self._index = index
        self.table = site_table(index)
        self._hold = hold
        self._over_groups = over_groups

    def might(self, expr: q.Expr) -> int:
        """Templates of sites that might match."""
        table = self.table
        if not table.complete:
            return -1
        sites = self._sites(expr, {})[0]
        if sites == table.all:
            return -1
        known = tables_of(self._index).known
        return known(("templates of", sites), lambda: table.templates(sites))

    def counts(self, expr: q.Expr, *, by_rank: bool) -> list[SiteLines] | None:
        """Matching lines per site, None where a site is in doubt."""
        if not self.table.complete:
            return None
        found: list[SiteLines] = []
        for truths, ranks in self._classes(expr):
            might, surely = self._sites(expr, truths)
            if ranks is None:
                reach = self.table.all
            else:
                reach = union(self.table.by_rank[rank] for rank in ranks)
            if might & ~surely & reach:
                return None
            sites = self.table.sites
            if ranks is None and not by_rank:
                found += [SiteLines(sites[i], None, sites[i].count, i) for i in bits(surely)]
                continue
            for position in bits(surely & reach):
                found += _lines(sites[position], position, ranks, by_rank)
        return found

    def _classes(
        self, expr: q.Expr
    ) -> Iterator[tuple[Mapping[q.Field, bool], frozenset[int | None] | None]]:
        """Ranks for which every term on rank says the same; (nothing, None) without such terms."""
        terms = list(dict.fromkeys(_rank_terms(expr)))
        if not terms:
            yield {}, None
            return
        ranks = list(self.table.by_rank)
        classes: dict[tuple[bool, ...], list[int | None]] = {}
        for rank, *truths in zip(ranks, *(numbers_hold(t, ranks) for t in terms), strict=True):
            classes.setdefault(tuple(truths), []).append(rank)
        for key, members in classes.items():
            yield dict(zip(terms, key, strict=True)), frozenset(members)

    def _sites(self, expr: q.Expr, truths: Mapping[q.Field, bool]) -> Sites:
        """(might, surely); `truths` of terms on rank where one class of ranks is looked at."""
        everything = self.table.all
        if isinstance(expr, q.Not):
            might, surely = self._sites(expr.item, truths)
            return everything & ~surely, everything & ~might
        if isinstance(expr, (q.And, q.Or)):
            pairs = [self._sites(item, truths) for item in expr.items]
            if isinstance(expr, q.Or):
                return union(m for m, _ in pairs), union(s for _, s in pairs)
            might = surely = everything
            for item_might, item_surely in pairs:
                might, surely = might & item_might, surely & item_surely
            return might, surely
        if isinstance(expr, q.Field) and expr.key == "rank":
            if expr in truths:
                return (everything, everything) if truths[expr] else (0, 0)
            return self._rank(expr)
        if isinstance(expr, q.Field) and expr.key in SITE_FIELDS:
            return self._field(expr)
        might, surely = self._over_groups(expr)
        return self.table.of_templates(might), self.table.of_templates(surely)

    def _rank(self, term: q.Field) -> Sites:
        def work_out() -> Sites:
            by_rank = self.table.by_rank
            held = numbers_hold(term, list(by_rank))
            hits = {rank for rank, hit in zip(by_rank, held, strict=True) if hit}
            might = union(by_rank[rank] for rank in hits)
            if (
                len(hits) <= _FEW_RANKS
            ):  # then few sites are theirs alone, most say so by their size
                sites = ((at, self.table.sites[at].ranks) for at in bits(might))
                alone = (at for at, ranks in sites if _are_all(ranks, hits))
                return might, mask(alone)
            others = (sites for rank, sites in by_rank.items() if rank not in hits)
            return might, might & ~union(others)

        return tables_of(self._index).known(("rank sites", term), work_out)

    def _field(self, term: q.Field) -> Sites:
        held = self._hold(term)
        return (self.table.all, 0) if held is None else (held, held)


def _are_all(ranks: tuple[tuple[int, int], ...], hits: set[int | None]) -> bool:
    """Whether a site has no lines but of these ranks."""
    return len(ranks) <= len(hits) and all(
        (None if rank == schema.NO_RANK else rank) in hits for rank, _ in ranks
    )


def _rank_terms(expr: q.Expr) -> Iterator[q.Field]:
    if isinstance(expr, q.Field):
        if expr.key == "rank":
            yield expr
        return
    for item in children(expr):
        yield from _rank_terms(item)


def _lines(
    site: SiteCount, position: int, ranks: frozenset[int | None] | None, by_rank: bool
) -> Iterator[SiteLines]:
    """The site's lines of these ranks (None: all of them)."""
    pairs = [(None if rank == schema.NO_RANK else rank, lines) for rank, lines in site.ranks]
    chosen = pairs if ranks is None else [pair for pair in pairs if pair[0] in ranks]
    if by_rank:
        yield from (SiteLines(site, rank, lines, position) for rank, lines in chosen)
    else:
        yield SiteLines(site, None, sum(lines for _, lines in chosen), position)
