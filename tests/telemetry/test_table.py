"""Tables of points: what is joined keeps its names, what is grouped its order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranklog.telemetry.table import SUMMARIES, empty_table, grouped, joined
from tests.telemetry.tables import table_of


def test_joined_tables_keep_what_their_codes_mean() -> None:
    one = table_of([1.0], [2.0]).table
    other = replace(table_of([3.0]).table, names=replace(one.names, series=("s1",)))
    whole = joined([one, empty_table(), other])
    assert [whole.names.series[code] for code in whole.series.tolist()] == ["s0", "s1", "s1"]
    assert whole.value.tolist() == [1.0, 2.0, 3.0]


def test_joined_tables_keep_their_own_summaries() -> None:
    def tensor(name: str) -> object:
        table = table_of([0.5]).table
        names = replace(table.names, summaries=((name,),))
        return replace(table, names=names, summary=np.zeros(1, np.int64))

    whole = joined([tensor("a"), table_of([1.0]).table, tensor("b")])  # type: ignore[list-item]
    assert whole.summary is not None
    places = [divmod(place, SUMMARIES) for place in whole.summary.tolist()]
    assert [places[0], places[1][0] < 0, places[2]] == [(0, 0), True, (1, 0)]
    assert whole.names.summaries == (("a",), ("b",))


def test_groups_stand_in_the_order_of_names_and_their_points_in_that_of_iterations() -> None:
    table = table_of([1.0, 2.0], [3.0, 4.0]).table
    names = replace(table.names, series=("z", "a"))
    shuffled = replace(table, names=names).take(np.array([3, 1, 0, 2]))
    points = grouped(shuffled)
    assert [points.table.names.series[c] for c in points.table.series.tolist()] == ["a"] * 2 + [
        "z"
    ] * 2
    assert points.table.value.tolist() == [3.0, 4.0, 1.0, 2.0]
    assert points.starts.tolist() == [0, 2, 4]


def test_no_points_are_no_groups() -> None:
    assert len(grouped(empty_table())) == 0
