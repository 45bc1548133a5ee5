"""Which points a restart left standing, told by the points alone."""

from __future__ import annotations

import numpy as np

from ranklog.telemetry.table import ABSENT, Mask, PointTable


def surviving(table: PointTable) -> Mask:
    """Points whose iteration no later attempt of their run did again: one of iteration i is superseded
    where a later attempt has points of iterations up to i."""
    keep = np.ones(len(table), np.bool_)
    if not len(table) or (table.attempt == table.attempt[0]).all():
        return keep
    known = table.iteration != ABSENT
    for run in np.unique(table.run):
        of_run, back = (table.run == run) & known, np.iinfo(np.int64).max
        for attempt in np.unique(table.attempt[of_run])[::-1]:
            rows = of_run & (table.attempt == attempt)
            keep[rows] = table.iteration[rows] < back
            back = min(back, int(table.iteration[rows].min()))
    return keep
