"""Which row groups and templates of a segment might match a query, from its index alone.

For each cell (`tables`: the rows of one template in one row group) a query is answered with two
bits: it *might* match a row, it *surely* matches every row. NOT swaps them, so that a negated term
prunes what its term surely matches. Doubt is "might, not surely", and keeps. `prune_terms` answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.plan.prune_fields import SegmentFacts, globs
from ranklog.plan.prune_sites import SiteLines, SiteTerms, asks_sites
from ranklog.plan.prune_terms import Reason, Segment, Term, term_of
from ranklog.plan.scope import StreamTerms
from ranklog.plan.tables import bits
from ranklog.plan.values import Regexes

# At most that many reasons of one segment are shown.
WITNESSES_MAX = 100
_NO_SITE = "no call site, level and rank of these lines fit together"


@dataclass(frozen=True, slots=True)
class Witness:
    """Why a row group is left out. `by`: template | token | bloom | bound | stream | site | terms."""

    row_group: int
    by: str
    what: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is left of a segment.

    `row_groups` by position and `tids` might hold a match; `tids` None: every template of them.
    `rows`: the same as half-open row ranges, exact per row group and template. `certain`: every row
    in `rows` matches. `skipped`: one witness for each row group that is left out.
    """

    row_groups: tuple[int, ...]
    tids: tuple[int, ...] | None
    rows: tuple[tuple[int, int], ...]
    certain: bool
    skipped: tuple[Witness, ...]

    def witnesses(self) -> list[dict[str, Any]]:
        """Row groups by reason, as `explain` shows them."""
        grouped: dict[Reason, list[int]] = {}
        for witness in self.skipped:
            grouped.setdefault((witness.by, witness.what), []).append(witness.row_group)
        return [
            {"by": by, "what": what, "row_groups": groups}
            for (by, what), groups in list(grouped.items())[:WITNESSES_MAX]
        ]


def prune(index: SegmentIndex, expr: q.Expr, regexes: Regexes | None = None) -> Pruned:
    """One segment. Without `regexes`, regexes on fields (`host:/…/`) are doubt."""
    return Pruner(expr, regexes).prune(index)


class Pruner:
    """A query that prunes segment after segment; its terms are made once."""

    def __init__(
        self,
        expr: q.Expr,
        regexes: Regexes | None = None,
        streams: StreamTerms | None = None,
    ) -> None:
        self._expr = expr
        self._regexes = regexes
        self._streams = streams or StreamTerms(regexes or globs)
        self._term = term_of(expr, regexes=regexes is not None)
        self._asks_sites = asks_sites(expr)
        self._parts: dict[int, Term] = {}

    def prune(self, index: SegmentIndex, *, explain: bool = True) -> Pruned:
        """Raises Corrupt where a section of the index is damaged. Witnesses only with `explain`."""
        segment = self._segment(index)
        might, surely = self._term.answer(segment)
        left = might
        if self._asks_sites and any(might):
            sites = self._site_terms(segment).might(self._expr)
            left = might if sites == -1 else tuple(templates & sites for templates in might)
        skipped = self._skipped(segment, might, left) if explain else ()
        if not any(left):
            return Pruned((), (), (), True, skipped)
        certain = not any(some & ~sure for some, sure in zip(left, surely, strict=True))
        kept = tuple(group for group, templates in enumerate(left) if templates)
        if all(left[group] == segment.present[group] for group in kept):
            tids = None
        else:
            tids = tuple(bits(reduce(or_, left)))
        return Pruned(kept, tids, segment.tables.row_ranges(left), certain, skipped)

    def _skipped(
        self, segment: Segment, might: Sequence[int], left: Sequence[int]
    ) -> tuple[Witness, ...]:
        """Why each row group that is left out is."""
        found = []
        for group, templates in enumerate(segment.present):
            if not left[group]:
                by, what = "site", _NO_SITE
                if not might[group]:
                    by, what = self._term.reason(segment, group, templates)
                found.append(Witness(group, by, what))
        return tuple(found)

    def counts(self, index: SegmentIndex, *, by_rank: bool) -> list[SiteLines] | None:
        """Matching lines by call site (and rank), None where the index can't say."""
        return self._site_terms(self._segment(index)).counts(self._expr, by_rank=by_rank)

    def _segment(self, index: SegmentIndex) -> Segment:
        return Segment(SegmentFacts(index, self._regexes, self._streams))

    def _site_terms(self, segment: Segment) -> SiteTerms:
        def over_groups(expr: q.Expr) -> tuple[int, int]:
            might, surely = self._part(expr).answer(segment)
            fails = (whole & ~some for whole, some in zip(segment.present, surely, strict=True))
            found = reduce(or_, might, 0)
            return found, found & ~reduce(or_, fails, 0)

        return SiteTerms(segment.index, segment.facts.sites_hold, over_groups)

    def _part(self, expr: q.Expr) -> Term:
        """A term inside the query's tree, which lives as long as this."""
        found = self._parts.get(id(expr))
        if found is None:
            found = self._parts[id(expr)] = term_of(expr, regexes=self._regexes is not None)
        return found
