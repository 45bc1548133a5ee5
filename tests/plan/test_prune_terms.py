"""What a segment remembers of terms is what they say of it anew."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.errors import BadQuery
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.plan.prune import Pruned, Pruner, prune
from ranklog.plan.prune_terms import Segment, term_of
from ranklog.plan.tables import tables_of
from tests.plan.corpus import Row, build
from tests.plan.test_prune import CORPORA, QUERIES, expression, regexes


def fresh(index: SegmentIndex) -> SegmentIndex:
    """The same index, of which nobody has asked anything."""
    return SegmentIndex.open(index.data, index.key)


def asked(index: SegmentIndex, expr: q.Expr) -> list[Pruned]:
    """With and without what runs regexes on fields."""
    return [prune(index, expr, regexes), Pruner(expr).prune(index)]


@settings(max_examples=60, deadline=None)
@given(CORPORA, st.lists(QUERIES, min_size=1, max_size=6))
def test_a_segment_that_was_asked_before_says_the_same(rows: list[Row], queries: list[str]) -> None:
    index = build(rows).index
    for _ in range(2):
        for text in queries:
            try:
                expr = expression(text)
                assert asked(index, expr) == asked(fresh(index), expr)
            except BadQuery:  # the pieces of a regex may not fit each other
                continue


@settings(max_examples=60, deadline=None)
@given(CORPORA, st.lists(QUERIES, min_size=1, max_size=3))
def test_what_surely_matches_might_and_both_are_there(rows: list[Row], queries: list[str]) -> None:
    index = build(rows).index
    present = tables_of(index).present
    for text in queries:
        try:
            might, surely = term_of(expression(text), regexes=False).answer(_segment(index))
        except BadQuery:
            continue
        assert len(might) == len(surely) == len(present)
        assert all(a & ~there == 0 for a, there in zip(might, present, strict=True))
        assert all(b & ~a == 0 for a, b in zip(might, surely, strict=True))


def test_long_lists_are_not_kept() -> None:
    index = build([Row("step 1 done"), Row("step 2 done")]).index
    names = ",".join(f'"{"0" * 30}{number}"' for number in range(64))
    Pruner(expression(f"stream:{names}")).prune(index)
    known = tables_of(index)._known
    assert not [key for key in known if isinstance(key, tuple) and key[0] == "cells"]
    Pruner(expression("done")).prune(index)
    assert [key for key in known if isinstance(key, tuple) and key[0] == "cells"]


def _segment(index: SegmentIndex) -> Segment:
    return Pruner(q.Everything())._segment(index)
