"""Which row groups and templates of a segment might match a query, from its index alone.

For each cell (`tables`: the rows of one template in one row group) a query is answered with two
bits: it *might* match a row, it *surely* matches every row. NOT swaps them, so that a negated term
prunes what its term surely matches. Doubt is "might, not surely", and keeps.

Shapes: a `Cells` is (might, surely), two sets of templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Protocol, TypeAlias

from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.plan.literals import AllOf, AnyOf, Anything, LiteralTree, Required, required_literals
from ranklog.plan.prune_fields import FieldTerm, SegmentFacts, globs
from ranklog.plan.prune_sites import SiteLines, SiteTerms, asks_sites
from ranklog.plan.prune_text import Dictionary, LiteralTerm
from ranklog.plan.re2_parse import Unknown
from ranklog.plan.render import render_expr
from ranklog.plan.scope import StreamTerms
from ranklog.plan.shapes import Shape
from ranklog.plan.tables import bits, mask, tables_of
from ranklog.plan.values import Regexes

Cells: TypeAlias = "tuple[int, int]"
Reason: TypeAlias = "tuple[str, str]"
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
    """A query that prunes segment after segment; its regexes are read once."""

    def __init__(
        self,
        expr: q.Expr,
        regexes: Regexes | None = None,
        streams: StreamTerms | None = None,
    ) -> None:
        self._expr = expr
        self._regexes = regexes
        self._streams = streams or StreamTerms(regexes or globs)
        self._required: dict[q.Matches, Required] = {}
        self._shapes: dict[q.Matches, Shape | None] = {}
        self._asks_sites = asks_sites(expr)

    def prune(self, index: SegmentIndex, *, explain: bool = True) -> Pruned:
        """Raises Corrupt where a section of the index is damaged. Witnesses only with `explain`."""
        tables = tables_of(index)
        facts = SegmentFacts(index, self._regexes, self._streams)
        term = self._term(self._expr, facts, Dictionary(index))
        present = tables.present
        sites = self._site_terms(index).might(self._expr) if self._asks_sites else -1
        left, skipped, certain = [], [], True
        for group, templates in enumerate(present):
            might, surely = term.cells(group)
            left.append(might & templates & sites)
            certain = certain and not left[group] & ~surely
            if explain and not left[group]:
                both = might & templates
                by, what = term.reason(group, templates) if not both else ("site", _NO_SITE)
                skipped.append(Witness(group, by, what))
        kept = tuple(group for group, templates in enumerate(left) if templates)
        everywhere = all(left[group] == present[group] for group in kept)
        tids = None if everywhere else tuple(bits(reduce(or_, left, 0)))
        return Pruned(kept, tids, tables.row_ranges(left), certain, tuple(skipped))

    def counts(self, index: SegmentIndex, *, by_rank: bool) -> list[SiteLines] | None:
        """Matching lines by call site (and rank), None where the index can't say."""
        return self._site_terms(index).counts(self._expr, by_rank=by_rank)

    def _site_terms(self, index: SegmentIndex) -> SiteTerms:
        facts = SegmentFacts(index, self._regexes, self._streams)
        dictionary, present = Dictionary(index), tables_of(index).present

        def over_groups(expr: q.Expr) -> Cells:
            term, might, fails = self._term(expr, facts, dictionary), 0, 0
            for group, templates in enumerate(present):
                group_might, group_surely = term.cells(group)
                might |= group_might & templates
                fails |= templates & ~group_surely
            return might, might & ~fails

        return SiteTerms(index, facts.sites_hold, over_groups)

    def _term(self, expr: q.Expr, facts: SegmentFacts, dictionary: Dictionary) -> Term:
        if isinstance(expr, q.Everything):
            return _Constant(dictionary.all, dictionary.all)
        if isinstance(expr, (q.And, q.Or)):
            items = [self._term(item, facts, dictionary) for item in expr.items]
            return _Every(items) if isinstance(expr, q.And) else _Some(items)
        if isinstance(expr, q.Not):
            shown = render_expr(expr.item)
            return _Never(self._term(expr.item, facts, dictionary), shown, dictionary.all)
        if isinstance(expr, q.Contains):
            if not expr.literal:
                return _Constant(dictionary.all, dictionary.all)
            return LiteralTerm(dictionary, expr.literal)
        if isinstance(expr, q.Matches):
            return self._matches(expr, dictionary)
        if isinstance(expr, (q.Field, q.NearSet)):
            return FieldTerm(facts, expr, dictionary.all)
        return _Constant(dictionary.all, 0)

    def _matches(self, expr: q.Matches, dictionary: Dictionary) -> Term:
        if expr not in self._required:
            self._required[expr] = required_literals(expr.pattern, expr.flags)
        required = self._required[expr]
        if required.exact and required.tree == Anything():
            return _Constant(dictionary.all, dictionary.all)
        tree = _tree_term(required.tree, dictionary)
        if required.exact:
            return tree
        shape = self._shape(expr)
        if shape is None:
            return _AtMost(tree)
        return _Shaped(expr, tree, shape, dictionary)

    def _shape(self, expr: q.Matches) -> Shape | None:
        if expr not in self._shapes:
            try:
                self._shapes[expr] = Shape(expr.pattern, expr.flags)
            except Unknown:
                self._shapes[expr] = None
        return self._shapes[expr]


class Term(Protocol):
    """A query's term, or terms, over one segment."""

    def cells(self, group: int) -> Cells:
        """(might, surely) over the templates of a row group; bits of other templates say nothing."""
        ...

    def reason(self, group: int, templates: int) -> Reason:
        """Why none of these templates of the row group might match."""
        ...


@dataclass(frozen=True, slots=True)
class _Constant:
    might: int
    surely: int

    def cells(self, group: int) -> Cells:
        return self.might, self.surely

    def reason(self, group: int, templates: int) -> Reason:
        return "terms", "no line matches"


@dataclass(frozen=True, slots=True)
class _Every:
    items: Sequence[Term]

    def cells(self, group: int) -> Cells:
        might, surely = -1, -1
        for item in self.items:
            item_might, item_surely = item.cells(group)
            might &= item_might
            surely &= item_surely
        return might, surely

    def reason(self, group: int, templates: int) -> Reason:
        left, reasons = templates, []
        for item in self.items:
            might = item.cells(group)[0]
            if not might & templates:
                return item.reason(group, templates)
            if left & ~might:
                reasons.append(item.reason(group, left & ~might)[1])
            left &= might
        return "terms", "no template fits all terms: " + "; ".join(reasons)


@dataclass(frozen=True, slots=True)
class _Some:
    items: Sequence[Term]

    def cells(self, group: int) -> Cells:
        might, surely = 0, 0
        for item in self.items:
            item_might, item_surely = item.cells(group)
            might |= item_might
            surely |= item_surely
        return might, surely

    def reason(self, group: int, templates: int) -> Reason:
        reasons = [item.reason(group, templates) for item in self.items]
        kinds = {by for by, _ in reasons}
        by = kinds.pop() if len(kinds) == 1 else "terms"
        return by, "; ".join(what for _, what in reasons)


@dataclass(frozen=True, slots=True)
class _Never:
    """NOT: the exact complement."""

    item: Term
    shown: str
    everything: int

    def cells(self, group: int) -> Cells:
        might, surely = self.item.cells(group)
        return self.everything & ~surely, self.everything & ~might

    def reason(self, group: int, templates: int) -> Reason:
        return "terms", f"every line matches {self.shown}"


@dataclass(frozen=True, slots=True)
class _AtMost:
    """What the tree requires is necessary, and may not be enough."""

    item: Term

    def cells(self, group: int) -> Cells:
        return self.item.cells(group)[0], 0

    def reason(self, group: int, templates: int) -> Reason:
        return self.item.reason(group, templates)


@dataclass(slots=True)
class _Shaped:
    """A regex with more than literals: of the templates that have those, which the rest might fit."""

    expr: q.Matches
    tree: Term
    shape: Shape
    dictionary: Dictionary

    def cells(self, group: int) -> Cells:
        might = self.tree.cells(group)[0]
        if self.dictionary.index.head.envelopes is None:
            return might, 0
        present = tables_of(self.dictionary.index).present[group]
        return might & (self._fitting(might & present) | ~present), 0

    def _fitting(self, asked: int) -> int:
        """Templates, of those asked, that a matching text might have."""
        index = self.dictionary.index
        templates, envelopes = index.templates, index.head.envelopes or ("",)
        longest = index.longest_variables
        known = tables_of(index).known(("shape", self.expr), dict[int, bool])
        for tid in bits(asked):
            if tid not in known:
                lengths = None if longest is None else longest[tid]
                known[tid] = not tid or self.shape.might(templates[tid], envelopes, lengths)
        return mask(tid for tid in bits(asked) if known[tid])

    def reason(self, group: int, templates: int) -> Reason:
        if not self.tree.cells(group)[0] & templates:
            return self.tree.reason(group, templates)
        return "template", f"no template fits /{self.expr.pattern}/"


def _tree_term(tree: LiteralTree, dictionary: Dictionary) -> Term:
    if isinstance(tree, Anything):
        return _Constant(dictionary.all, 0)
    if isinstance(tree, AllOf):
        return _Every([_tree_term(item, dictionary) for item in tree.items])
    if isinstance(tree, AnyOf):
        return _Some([_tree_term(item, dictionary) for item in tree.items])
    return LiteralTerm(
        dictionary,
        tree.text,
        folded=tree.folded,
        token_start=tree.token_start,
        token_end=tree.token_end,
    )
