"""Anomalies by rank and time."""

from __future__ import annotations

import numpy as np

from ranklog.spmd.outliers.heat import heat_of
from ranklog.spmd.outliers.verdict import Outliers, find_outliers
from ranklog.spmd.table import ABSENT
from tests.spmd.outliers.jobs import ERROR, ITERATIONS, SECOND, attempt_of, healthy, key


def test_silence_lasts_to_the_end_and_an_error_is_where_it_was() -> None:
    rows = [row for row in healthy() if row[0] != 2 or row[2] < 5]
    rows.append((6, 85 * SECOND, ABSENT, key("broken"), ERROR))
    attempt = attempt_of(rows)
    heat = heat_of(attempt, find_outliers(attempt))
    assert heat.axis == "iteration"
    assert (heat.edges[0], heat.edges[-1], len(heat.edges)) == (0, ITERATIONS, ITERATIONS + 1)
    assert heat.ranks == tuple((rank, rank) for rank in range(8))
    assert (heat.cells[2] > 0).tolist() == [i >= 4 for i in range(ITERATIONS)]
    assert np.flatnonzero(heat.cells.any(axis=1)).tolist() == [2, 6]


def test_many_ranks_share_rows_and_no_line_is_an_empty_map() -> None:
    attempt = attempt_of(healthy(100, 3), 100)
    heat = heat_of(attempt, Outliers(), rows=30)
    assert heat.ranks[:2] == ((0, 3), (4, 7))
    assert heat.ranks[-1] == (96, 99)
    assert heat.cells.shape == (25, 3)
    empty = attempt_of([], 0)
    assert heat_of(empty, Outliers()).cells.shape == (0, 1)
