"""Fewer points for a picture, none of the extremes lost.

A series longer than wanted is cut into stretches of equal width in iterations (in time where it has
none), and of each stretch the first, the last, the smallest and the largest number stay: what a line
drawn through them shows at that width is what all points show (Jugel et al., M4, VLDB 2014). Values
that are no numbers (NaN, both infinities, not measured) stay by kind, the first and the last of each in
a stretch, so that none of their stretches is lost.

Shapes: n points in g groups, as in `table.Grouped`; a mask is bool[n].
"""

from __future__ import annotations

import numpy as np

from ranklog.telemetry.table import ABSENT, F64, I64, Grouped, Mask

PER_BUCKET = 4
METHOD = "min-max: first, last, smallest and largest of each stretch, and what is no number"


def chosen(points: Grouped, most: int) -> Mask:
    """Which points stay, at most `most` numbers a group (at least 8)."""
    table, starts = points.table, points.starts
    keep = np.ones(len(table), np.bool_)
    sizes = np.diff(starts)
    if not (sizes > most).any():
        return keep
    long = np.repeat(sizes > most, sizes)
    bucket = _buckets(points, max(2, most // PER_BUCKET))
    finite = table.finite
    rows = np.flatnonzero(long & finite)
    keep[long] = False
    keep[_extremes(rows, bucket[rows], table.value[rows])] = True
    for kind in (table.missing, np.isnan(table.value) & ~table.missing, table.value == np.inf,
                 table.value == -np.inf):  # fmt: skip
        rows = np.flatnonzero(long & kind)
        keep[_ends(rows, bucket[rows])] = True
    return keep


def _buckets(points: Grouped, count: int) -> I64:
    """Every point's stretch, numbered over all groups."""
    table, starts = points.table, points.starts
    sizes = np.diff(starts)
    group = np.repeat(np.arange(len(sizes)), sizes)
    has = np.logical_and.reduceat(table.iteration != ABSENT, starts[:-1])
    axis = np.where(has[group], table.iteration, table.ts_ns)
    low = np.minimum.reduceat(axis, starts[:-1])
    span = np.maximum.reduceat(axis, starts[:-1]) - low + 1
    # a float holds where in the span a point lies well enough to tell stretches apart
    part = ((axis - low[group]) / span[group] * count).astype(np.int64)
    found: I64 = group * count + np.clip(part, 0, count - 1)
    return found


def _runs(bucket: I64) -> tuple[I64, I64]:
    """First and last position of each bucket; rows of a bucket stand together but for attempts."""
    order = np.argsort(bucket, kind="stable")
    ordered = bucket[order]
    new = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return order, new.astype(np.int64)


def _extremes(rows: I64, bucket: I64, value: F64) -> I64:
    """First, last, smallest and largest row of each bucket."""
    if not len(rows):
        return rows
    order, new = _runs(bucket)
    by_value = np.lexsort([value, bucket])
    ends = np.append(new[1:], len(rows)) - 1
    places = [order[new], order[ends], by_value[new], by_value[ends]]
    found: I64 = rows[np.unique(np.concatenate(places))]
    return found


def _ends(rows: I64, bucket: I64) -> I64:
    """First and last row of each bucket."""
    if not len(rows):
        return rows
    order, new = _runs(bucket)
    ends = np.append(new[1:], len(rows)) - 1
    found: I64 = rows[np.unique(np.concatenate([order[new], order[ends]]))]
    return found
