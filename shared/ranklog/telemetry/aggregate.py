"""Many points into one: over ranks, over dimensions, over buckets of iterations or time.

Shapes: n points, g groups of `table.Grouped`; what comes back is [g] each. Only numbers are
aggregated; how many values were NaN, infinite or not measured is counted beside them. A group without
a number has NaN, which `count` 0 tells from a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ranklog.errors import BadInput
from ranklog.telemetry.table import F64, I64, Grouped

Aggregate: TypeAlias = "Callable[[F64, I64, I64], F64]"


@dataclass(frozen=True, slots=True)
class Aggregated:
    """`count`, `nan`, `inf`, `missing` are int64[g]."""

    value: F64
    count: I64
    nan: I64
    inf: I64
    missing: I64


def aggregated(points: Grouped, how: str) -> Aggregated:
    """One value a group. `how` is a name of AGGREGATES. Raises BadInput."""
    work = AGGREGATES.get(how)
    if work is None:
        raise BadInput(f"no aggregate {how!r}", hint=" ".join(AGGREGATES))
    table, starts = points.table, points.starts[:-1]
    finite = table.finite
    nan, inf = np.isnan(table.value) & ~table.missing, np.isinf(table.value) & ~table.missing
    count = _sums(finite, starts)
    rows = np.flatnonzero(finite)
    edges = np.cumsum(count) - count
    value = np.full(len(starts), np.nan)
    full = count > 0
    if len(rows):
        value[full] = work(table.value[rows], edges[full].astype(np.int64), count[full])
    return Aggregated(
        value, count, _sums(nan, starts), _sums(inf, starts), _sums(table.missing, starts)
    )


def _sums(flags: object, starts: I64) -> I64:
    if not len(starts):
        return np.zeros(0, np.int64)
    return np.add.reduceat(np.asarray(flags, np.int64), starts)


def _mean(value: F64, starts: I64, count: I64) -> F64:
    """Around the group's first value, so that large offsets cost no digits."""
    first = value[starts]
    found: F64 = first + np.add.reduceat(value - np.repeat(first, count), starts) / count
    return found


def _std(value: F64, starts: I64, count: I64) -> F64:
    """Of the whole group, as numpy has it."""
    distance = value - np.repeat(_mean(value, starts, count), count)
    found: F64 = np.sqrt(np.add.reduceat(distance * distance, starts) / count)
    return found


def _median(value: F64, starts: I64, count: I64) -> F64:
    group = np.repeat(np.arange(len(starts)), count)
    ordered = value[np.lexsort([value, group])]
    found: F64 = (ordered[starts + (count - 1) // 2] + ordered[starts + count // 2]) / 2
    return found


AGGREGATES: dict[str, Aggregate] = {
    "mean": _mean,
    "min": lambda value, starts, _: np.minimum.reduceat(value, starts),
    "max": lambda value, starts, _: np.maximum.reduceat(value, starts),
    "spread": lambda value, starts, _: (
        np.maximum.reduceat(value, starts) - np.minimum.reduceat(value, starts)
    ),
    "std": _std,
    "median": _median,
    "sum": lambda value, starts, _: np.add.reduceat(value, starts),
    "count": lambda value, starts, count: count.astype(np.float64),
    "last": lambda value, starts, count: value[starts + count - 1],
}
