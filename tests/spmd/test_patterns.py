"""Patterns of segments added up come in one order, whichever segment is added first."""

from __future__ import annotations

from itertools import permutations

from ranklog.model.index import SiteCount
from ranklog.spmd.patterns import Patterns

TEMPLATES = ("", "", "loss \x00")  # 0 says nothing of the text, 1 is an empty line


def counted(tid: int) -> SiteCount:
    return SiteCount(None, None, None, None, tid, 2, 10, 5, 9, ((0, 2),))


def test_patterns_of_as_many_lines_are_in_one_order() -> None:
    orders = set()
    for tids in permutations(range(3)):
        patterns = Patterns()
        for number, tid in enumerate(tids):
            patterns.add(number, [counted(tid)], TEMPLATES)
        orders.add(tuple(item.template for item in patterns.largest_first()))
    assert orders == {(None, "", "loss \x00")}
