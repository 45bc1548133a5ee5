"""Two ranks of many lines side by side, as the scan leaves them: columns, and text as Arrow.

Ranks say forty things an iteration. Every iteration one of them has a time of day that differs; in some the loss
differs, one rank lacks a line, says one more, or says two in another order. The first 1,000 hunks become lines, as
in a command; behind them places are counted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from ranklog.client.comparison_columns import ColumnTexts, SideColumns, order_side
from ranklog.layout import schema
from ranklog.model.answer import Line
from ranklog.spmd.columns import Column, Keyed
from ranklog.spmd.compare import WINDOW_NS
from ranklog.spmd.compare_columns import compare_columns
from ranklog.spmd.hunks import Comparison
from ranklog.spmd.table import ABSENT, I64
from ranklog.spmd.walk import walk

PER_ITERATION = 40
LIMIT = 1_000
_SECOND = 1_000_000_000
_EXTRA = PER_ITERATION  # the key of what one rank says beside the others


@dataclass(frozen=True, slots=True)
class Job:
    """What scans leave of both sides, clustered by key, and the keys that their columns count."""

    tables: list[Any]
    keys: list[Keyed]


def make_job(lines: int, *, lost: float = 0) -> Job:
    """Two sides of about `lines` lines; the second lost a share of its lines, any of them."""
    names = [f"part {i} of the forward pass took \x00 ms" for i in range(PER_ITERATION)]
    names[3], names[5] = "loss: \x00", "\x00 barrier passed"
    keys = [Keyed(f"train.py:{i}", name) for i, name in enumerate([*names, "retry of a fetch"])]
    first, second = (_side(rank, lines // PER_ITERATION) for rank in range(2))
    kept = np.random.default_rng(2).random(len(second)) >= lost
    return Job([first, second.filter(pa.array(kept))], keys)


def _side(rank: int, iterations: int) -> Any:
    rng = np.random.default_rng(rank)
    key = np.tile(np.arange(PER_ITERATION, dtype=np.int32), iterations)
    iteration = np.repeat(np.arange(iterations, dtype=np.int64), PER_ITERATION)
    if rank:
        swapped = np.flatnonzero((key == 7) & (iteration % 59 == 11))
        key[swapped], key[swapped + 1] = 8, 7
        key[(key == 9) & (iteration % 83 == 5)] = _EXTRA
        kept = ~((key == 2) & (iteration % 97 == 5))
        key, iteration = key[kept], iteration[kept]
    count = len(key)
    ts = iteration * _SECOND + np.sort(rng.integers(0, _SECOND // 50, count)) % 1_000
    text = _texts(key, iteration, rank)
    columns = {
        schema.TS: np.sort(ts),
        schema.SEQ: np.arange(count, dtype=np.int64),
        schema.ITERATION: iteration,
        "own:stream": np.zeros(count, np.int32),
        "own:key": key,
        "own:body": text,
    }
    by_key = np.argsort(key, kind="stable")
    return pa.table(columns).take(pa.array(by_key))


def _texts(key: Any, iteration: I64, rank: int) -> Any:
    """What the lines say: the loss differs in one iteration of 20, the barrier's time always."""
    said = [
        f"part {k} of the forward pass took {k * 7 % 13}.5 ms on the stream of the rank"
        for k in range(PER_ITERATION + 1)
    ]
    text = pa.array(said, pa.large_string()).take(pa.array(key)).to_pandas().to_numpy(object)
    for row in np.flatnonzero(key == 3).tolist():
        i = int(iteration[row])
        text[row] = f"loss: {i % 7 + (rank if i % 20 == 3 else 0)}.25"
    for row in np.flatnonzero(key == 5).tolist():
        i = int(iteration[row])
        text[row] = f"2026-05-01 12:{i // 60 % 60:02d}:{i % 60:02d},{rank:03d} barrier passed"
    return pa.array(text, pa.large_string())


class _Texts(ColumnTexts):
    """Lines from the columns, where a command scans for them."""

    def __init__(self, sides: Sequence[SideColumns], keys: Sequence[Keyed]) -> None:
        super().__init__(sides)
        self._own = sides
        self._keys = keys

    def lines(self, rows: I64) -> list[list[Line | None]]:
        return [
            [None if row == ABSENT else self._line(side, row) for side, row in enumerate(place)]
            for place in rows.tolist()
        ]

    def _line(self, at: int, row: int) -> Line:
        side = self._own[at]
        key = self._keys[int(side.column.key[row])]
        return Line(
            side.ids[0],
            int(side.seq[row]),
            int(side.column.ts_ns[row]),
            "r",
            "l",
            0,
            at,
            at,
            "gpu-1",
            "stdout",
            None,
            20,
            key.call_site,
            None,
            None,
            side.text[row].as_py(),
            int(side.column.iteration[row]),
            template=key.shape,
        )


def compare_job(job: Job) -> Comparison:
    """All that a command does behind the scan, but to scan for the lines that it shows."""
    none = cast(Any, None)  # lines come from columns here
    sides = [
        order_side(none, "r@l", table, [f"{rank:032x}"], {0: 0})
        for rank, table in enumerate(job.tables)
    ]
    columns: Sequence[Column] = [side.column for side in sides]
    found = walk(columns, job.keys, origins=[0, 0], window_ns=WINDOW_NS)
    return compare_columns(
        ["0", "1"],
        found,
        _Texts(sides, job.keys),
        peers=lambda: (),
        all_hunks=False,
        limit=LIMIT,
        window_ns=WINDOW_NS,
    )


def measure(lines: int, *, lost: float = 0) -> tuple[float, float, Comparison]:
    """(wall, processor seconds) of the comparison, and what it found."""
    job = make_job(lines, lost=lost)
    began, spent = time.perf_counter(), time.process_time()
    found = compare_job(job)
    return time.perf_counter() - began, time.process_time() - spent, found
