"""The terms of a query over segment after segment: built once, answered for all row groups of a segment at
once, and what one term says of a segment is kept with its index.

Who looks into a run asks again and again in other words: the run, the level and half of the words are those
of the question before. So each term's answer is kept by itself (`tables.known`), not the query's.

Shapes: G row groups; `Sets` is int[G], a set of templates each, of those that the row group has;
an `Answer` is (might, surely).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import and_, or_
from typing import Protocol, TypeAlias

from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.plan.literals import AllOf, AnyOf, Anything, LiteralTree, required_literals
from ranklog.plan.prune_fields import FieldTerm, SegmentFacts
from ranklog.plan.prune_text import Dictionary, LiteralTerm
from ranklog.plan.re2_parse import Unknown
from ranklog.plan.render import render_expr
from ranklog.plan.shapes import Shape
from ranklog.plan.tables import bits, mask, tables_of

Sets: TypeAlias = "Sequence[int]"
Answer: TypeAlias = "tuple[Sets, Sets]"
Reason: TypeAlias = "tuple[str, str]"
# Answers of longer terms (lists of ids, intervals near others) are not kept.
_KEY_MAX = 1_024


class Segment:
    """One segment as the terms of one query look at it."""

    def __init__(self, facts: SegmentFacts) -> None:
        self.index: SegmentIndex = facts.index
        self.facts = facts
        self.tables = tables_of(facts.index)
        self.dictionary = Dictionary(facts.index)
        self.present = self.tables.present
        self.none: Sets = (0,) * len(self.present)
        self._looking: dict[_Kept, InSegment] = {}

    def looking(self, term: _Kept) -> InSegment:
        """What looks the term up in this segment."""
        found = self._looking.get(term)
        if found is None:
            found = self._looking[term] = term.over(self)
        return found


class InSegment(Protocol):
    """A term over one segment, row group by row group."""

    def cells(self, group: int) -> tuple[int, int]:
        """(might, surely) over the templates of a row group; bits of other templates say nothing."""
        ...

    def reason(self, group: int, templates: int) -> Reason:
        """Why none of these templates of the row group might match."""
        ...


class Term(Protocol):
    """A query's term, or terms. `cost`: of those that are joined the cheaper are asked first."""

    cost: int

    def answer(self, segment: Segment) -> Answer:
        """(might, surely) of each row group."""
        ...

    def reason(self, segment: Segment, group: int, templates: int) -> Reason:
        """Why none of these templates of the row group might match."""
        ...


class _Constant:
    cost = 0

    def __init__(self, *, might: bool, surely: bool) -> None:
        self._might, self._surely = might, surely

    def answer(self, segment: Segment) -> Answer:
        whole, none = segment.present, segment.none
        return whole if self._might else none, whole if self._surely else none

    def reason(self, segment: Segment, group: int, templates: int) -> Reason:
        return "terms", "no line matches"


class _Kept:
    """A term whose answer is kept with the segment, unless `key` is long; `over` looks it up."""

    def __init__(self, key: str, over: Callable[[Segment], InSegment], cost: int) -> None:
        self._key = ("cells", key) if len(key) <= _KEY_MAX else None
        self.over = over
        self.cost = cost

    def answer(self, segment: Segment) -> Answer:
        if self._key is None:
            return self._look_up(segment)
        return segment.tables.known(self._key, lambda: self._look_up(segment))

    def _look_up(self, segment: Segment) -> Answer:
        term, present = segment.looking(self), segment.present
        cells = [term.cells(group) for group in range(len(present))]
        might = tuple(cell[0] & there for cell, there in zip(cells, present, strict=True))
        return might, tuple(cell[1] & some for cell, some in zip(cells, might, strict=True))

    def reason(self, segment: Segment, group: int, templates: int) -> Reason:
        return segment.looking(self).reason(group, templates)


class _Every:
    def __init__(self, items: Sequence[Term]) -> None:
        self._items = items
        self._cheapest_first = sorted(items, key=lambda item: item.cost)
        self.cost = max(item.cost for item in items)

    def answer(self, segment: Segment) -> Answer:
        might, surely = segment.present, segment.present
        for item in self._cheapest_first:
            item_might, item_surely = item.answer(segment)
            might = tuple(map(and_, might, item_might))
            if not any(might):
                return segment.none, segment.none
            surely = tuple(map(and_, surely, item_surely))
        return might, surely

    def reason(self, segment: Segment, group: int, templates: int) -> Reason:
        left, reasons = templates, []
        for item in self._items:
            might = item.answer(segment)[0][group]
            if not might & templates:
                return item.reason(segment, group, templates)
            if left & ~might:
                reasons.append(item.reason(segment, group, left & ~might)[1])
            left &= might
        return "terms", "no template fits all terms: " + "; ".join(reasons)


class _Some:
    def __init__(self, items: Sequence[Term]) -> None:
        self._items = items
        self.cost = max(item.cost for item in items)

    def answer(self, segment: Segment) -> Answer:
        might, surely = segment.none, segment.none
        for item in self._items:
            item_might, item_surely = item.answer(segment)
            might = tuple(map(or_, might, item_might))
            surely = tuple(map(or_, surely, item_surely))
        return might, surely

    def reason(self, segment: Segment, group: int, templates: int) -> Reason:
        reasons = [item.reason(segment, group, templates) for item in self._items]
        kinds = {by for by, _ in reasons}
        by = kinds.pop() if len(kinds) == 1 else "terms"
        return by, "; ".join(what for _, what in reasons)


class _Never:
    """NOT: the exact complement."""

    def __init__(self, item: Term, shown: str) -> None:
        self._item, self._shown = item, shown
        self.cost = item.cost + 1  # it rarely leaves a row group out

    def answer(self, segment: Segment) -> Answer:
        might, surely = self._item.answer(segment)
        return _without(segment, surely), _without(segment, might)

    def reason(self, segment: Segment, group: int, templates: int) -> Reason:
        return "terms", f"every line matches {self._shown}"


def _without(segment: Segment, sets: Sets) -> Sets:
    return tuple(whole & ~some for whole, some in zip(segment.present, sets, strict=True))


class _AtMost:
    """What the tree requires is necessary, and may not be enough."""

    def __init__(self, item: Term) -> None:
        self._item = item
        self.cost = item.cost

    def answer(self, segment: Segment) -> Answer:
        return self._item.answer(segment)[0], segment.none

    def reason(self, segment: Segment, group: int, templates: int) -> Reason:
        return self._item.reason(segment, group, templates)


class _Shaped:
    """A regex with more than literals: of the templates that have those, which the rest might fit."""

    def __init__(self, expr: q.Matches, tree: Term, shape: Shape, segment: Segment) -> None:
        self._expr, self._tree, self._shape, self._segment = expr, tree, shape, segment

    def cells(self, group: int) -> tuple[int, int]:
        might = self._tree.answer(self._segment)[0][group]
        if not might or self._segment.index.head.envelopes is None:
            return might, 0
        return self._fitting(might), 0

    def _fitting(self, asked: int) -> int:
        """Templates, of those asked, that a matching text might have."""
        index = self._segment.index
        templates, envelopes = index.templates, index.head.envelopes or ("",)
        longest = index.longest_variables
        known = self._segment.tables.known(("shape", self._expr), dict[int, bool])
        for tid in bits(asked):
            if tid not in known:
                lengths = None if longest is None else longest[tid]
                known[tid] = not tid or self._shape.might(templates[tid], envelopes, lengths)
        return mask(tid for tid in bits(asked) if known[tid])

    def reason(self, group: int, templates: int) -> Reason:
        if not self._tree.answer(self._segment)[0][group] & templates:
            return self._tree.reason(self._segment, group, templates)
        return "template", f"no template fits /{self._expr.pattern}/"


# --- from a query's tree --------------------------------------------------------------------------
def term_of(expr: q.Expr, *, regexes: bool) -> Term:
    """The tree as terms. `regexes`: whether regexes on fields can be run; else they are doubt."""
    if isinstance(expr, (q.And, q.Or)):
        items = [term_of(item, regexes=regexes) for item in expr.items]
        if not items:
            everything = isinstance(expr, q.And)
            return _Constant(might=everything, surely=everything)
        return _Every(items) if isinstance(expr, q.And) else _Some(items)
    if isinstance(expr, q.Not):
        return _Never(term_of(expr.item, regexes=regexes), render_expr(expr.item))
    if isinstance(expr, q.Contains) and expr.literal:
        return _literal(expr.literal)
    if isinstance(expr, q.Matches):
        return _matches(expr)
    if isinstance(expr, (q.Field, q.NearSet)):
        return _field(expr, regexes=regexes)
    surely = isinstance(expr, (q.Everything, q.Contains))
    return _Constant(might=True, surely=surely)


def _literal(
    text: str, *, folded: bool = False, token_start: bool = False, token_end: bool = False
) -> Term:
    def over(segment: Segment) -> InSegment:
        return LiteralTerm(
            segment.dictionary,
            text,
            folded=folded,
            token_start=token_start,
            token_end=token_end,
        )

    return _Kept(f"literal {folded:d}{token_start:d}{token_end:d} {text}", over, cost=1)


def _field(term: q.Field | q.NearSet, *, regexes: bool) -> Term:
    def over(segment: Segment) -> InSegment:
        return FieldTerm(segment.facts, term, segment.tables.all)

    return _Kept(f"field {regexes:d} {term!r}", over, cost=1)


def _matches(expr: q.Matches) -> Term:
    required = required_literals(expr.pattern, expr.flags)
    if required.exact and required.tree == Anything():
        return _Constant(might=True, surely=True)
    tree = _tree_term(required.tree)
    if required.exact:
        return tree
    try:
        shape = Shape(expr.pattern, expr.flags)
    except Unknown:
        return _AtMost(tree)
    return _Kept(f"{expr!r}", lambda segment: _Shaped(expr, tree, shape, segment), cost=3)


def _tree_term(tree: LiteralTree) -> Term:
    if isinstance(tree, Anything):
        return _Constant(might=True, surely=False)
    if isinstance(tree, AllOf):
        return _Every([_tree_term(item) for item in tree.items])
    if isinstance(tree, AnyOf):
        return _Some([_tree_term(item) for item in tree.items])
    return _literal(
        tree.text,
        folded=tree.folded,
        token_start=tree.token_start,
        token_end=tree.token_end,
    )
