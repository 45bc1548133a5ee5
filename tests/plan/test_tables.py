"""Tables of an index live as long as it does, and not until the collector comes."""

from __future__ import annotations

import gc
from weakref import ref

from ranklog.layout.index import SegmentIndex
from ranklog.plan.prune_sites import site_table
from ranklog.plan.tables import tables_of
from tests.layout.test_index import HEAD, TEMPLATES, encoded


def test_an_index_and_its_tables_go_with_the_last_reader() -> None:
    index = SegmentIndex.open(encoded(), "k")
    tables = tables_of(index)
    assert tables_of(index) is tables
    assert tables.having(b"loss", folded=False) == 0b10
    assert len(tables.present) == len(HEAD.row_groups) and tables.all == (1 << len(TEMPLATES)) - 1
    assert len(site_table(index).sites) == 2 and len(index.head.frames) == 2
    left = [ref(index), ref(tables)]
    gc.disable()
    try:
        del index, tables
        assert [one() for one in left] == [None, None]
    finally:
        gc.enable()
