"""Anomalies by rank and time, as a picture's numbers.

Shapes: `cells` F64[rows, columns], 0..1; row i covers `ranks[i]` (several ranks where there are more
than rows), column j the iterations or times [edges[j], edges[j + 1]).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.spmd.outliers.evidence import SILENT, SLOW, Attempt, Evidence
from ranklog.spmd.outliers.verdict import Outliers

ROWS_MAX, COLUMNS = 64, 60


@dataclass(frozen=True, slots=True)
class Heat:
    """`axis`: iteration | time (ns)."""

    axis: str
    ranks: tuple[tuple[int, int], ...]  # first and last rank of each row
    edges: tuple[int, ...]
    cells: npt.NDArray[np.float64]


def heat_of(
    attempt: Attempt, outliers: Outliers, *, rows: int = ROWS_MAX, columns: int = COLUMNS
) -> Heat:
    """Each deviation's weight in the cell where it is; silence and slowness from the beginning to the end."""
    iterations = attempt.table.iteration
    axis = "iteration" if (iterations >= 0).any() else "time"
    values = iterations[iterations >= 0] if axis == "iteration" else attempt.table.ts_ns
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    columns = max(1, min(columns, high - low + 1))
    edges = [low + (high + 1 - low) * i // columns for i in range(columns + 1)]
    per_row = max(1, -(-attempt.count // rows))
    groups = [
        (attempt.rank(at), attempt.rank(min(at + per_row, attempt.count) - 1))
        for at in range(0, attempt.count, per_row)
    ]
    cells = np.zeros((len(groups), columns))
    place = {rank: at for at, rank in enumerate(attempt.topology.ranks)}
    for outlier in outliers.ranks:
        row = place[outlier.rank] // per_row
        for item in outlier.evidence:
            at = _column(item, axis, edges, attempt)
            lasting = item.kind in (SILENT, SLOW)
            span = slice(at, None) if lasting else slice(at, at + 1)
            part = cells[row, span]
            cells[row, span] = 1 - (1 - part) * (1 - item.weight)
    return Heat(axis, tuple(groups), tuple(edges), cells)


def _column(item: Evidence, axis: str, edges: Sequence[int], attempt: Attempt) -> int:
    at = item.iteration
    if axis == "iteration" and at is None and item.ts_ns is not None:
        at = _iteration_at(attempt, item.ts_ns)
    elif axis == "time":
        at = item.ts_ns
    if at is None:
        return len(edges) - 2 if item.kind != SILENT else 0
    return int(np.clip(np.searchsorted(edges, at, "right") - 1, 0, len(edges) - 2))


def _iteration_at(attempt: Attempt, ns: int) -> int | None:
    """The last iteration that anybody had begun."""
    begun = (attempt.table.iteration >= 0) & (attempt.table.ts_ns <= ns)
    return int(attempt.table.iteration[begun].max()) if begun.any() else None
