"""Tables of points from few words, for tests of telemetry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranklog.telemetry.table import ABSENT, KINDS, Grouped, Names, PointTable


def table_of(*series: Sequence[float | None], iterations: Sequence[int] | None = None) -> Grouped:
    """One group per series; None is not measured. Iterations count from 0."""
    columns: dict[str, Any] = {}
    sizes = [len(one) for one in series]
    values = [value for one in series for value in one]
    for name, kind in KINDS.items():
        columns[name] = np.zeros(len(values), kind)
    columns["series"] = np.repeat(np.arange(len(series)), sizes).astype(np.int32)
    columns["iteration"] = np.array(
        [at for size in sizes for at in (iterations or range(size))], np.int64
    )
    columns["ts_ns"] = columns["iteration"] * 1_000
    columns["missing"] = np.array([value is None for value in values], np.bool_)
    columns["value"] = np.array([np.nan if v is None else v for v in values], np.float64)
    names = Names(
        ("r@1",), ("",), ("s",), tuple(f"s{i}" for i in range(len(series))), ("w",), ("{}",)
    )
    table = PointTable(**columns, names=names)
    return Grouped(table, np.cumsum([0, *sizes]).astype(np.int64))


NO_ITERATION = ABSENT
