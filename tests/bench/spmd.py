"""Outliers of many ranks, and two long ranks side by side, after the scan: `python -m tests.bench.spmd`.

A table as the scan leaves it: each rank says five things an iteration and ten at its start; one rank lacks
lines, one says an error, one falls silent. Time is wall and processor time of the analysis, memory the peak of
this process, the table in it.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from ranklog.model.stream import Stream
from ranklog.spmd.outliers.evidence import Attempt
from ranklog.spmd.outliers.heat import heat_of
from ranklog.spmd.outliers.values import Sample, wanted_rows
from ranklog.spmd.outliers.verdict import Outliers, find_outliers
from ranklog.spmd.table import Key, LineTable
from ranklog.spmd.topology import make_topology
from tests.bench.figures import Figure, show
from tests.bench.spmd_compare import measure

_PER_ITERATION, _START = 5, 10
_LACKS, _FAILS, _SILENT = 37, 101, 200
_SECOND = 1_000_000_000


def make_table(ranks: int, lines: int) -> LineTable:
    """Columns of `ranks` x `lines` lines, ranks one after the other."""
    iterations = (lines - _START) // _PER_ITERATION
    lines = _START + iterations * _PER_ITERATION
    own_key = np.concatenate([np.arange(_START), _START + np.arange(lines - _START) % 5])
    own_iteration = np.concatenate(
        [np.full(_START, -1), np.repeat(np.arange(iterations), _PER_ITERATION)]
    )
    rank = np.repeat(np.arange(ranks, dtype=np.int32), lines)
    key = np.tile(own_key.astype(np.int32), ranks)
    iteration = np.tile(own_iteration.astype(np.int64), ranks)
    rng = np.random.default_rng(7)
    ts = np.tile(np.maximum(own_iteration, 0) * _SECOND, ranks)
    ts += rng.integers(0, _SECOND // 10, len(ts))
    level = np.full(len(rank), 20, np.int16)
    seq = np.tile(np.arange(lines, dtype=np.int64), ranks)
    error = (_FAILS + 1) * lines - 1
    key[error], level[error] = _START + 5, 40
    kept = np.ones(len(rank), np.bool_)
    kept[(rank == _SILENT) & (iteration > iterations // 2)] = False
    kept[(rank == _LACKS) & (key == _START + 2) & (iteration % 97 == 5)] = False
    names = [f"start {i} of \x00" for i in range(_START)]
    names += [f"iteration \x00 part {i} took \x00.\x00 ms" for i in range(5)]
    keys = [Key(f"train.py:{i}", name) for i, name in enumerate((*names, "CUDA error"))]
    streams = [
        (f"{r:032x}", Stream("t", "r", "l", 0, f"gpu-{r // 8}", r, r % 8, "stdout", "0"))
        for r in range(ranks)
    ]
    table = LineTable(rank, ts, iteration, key, level, seq, rank, keys, streams)
    return table.where(kept)


def analyse(table: LineTable, ranks: int) -> Outliers:
    """All that a query does behind the scan but its few texts, which are made up here."""
    topology = make_topology(
        range(ranks),
        hosts={r: f"gpu-{r // 8}" for r in range(ranks)},
        local_ranks={r: r % 8 for r in range(ranks)},
        groups={r: {"tp": r % 8, "pp": r // 8 % 4, "dp": r // 32} for r in range(ranks)},
    )
    attempt = Attempt(table, topology)
    samples = [
        Sample(row, f"iteration {table.iteration[row]} part 1 took {row % 7 + 10}.5 ms")
        for row in wanted_rows(attempt).tolist()
    ]
    found = find_outliers(attempt, samples)
    heat_of(attempt, found)
    return found


def main() -> int:
    """Build, analyse, print beside the marks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--compared", type=int, default=1_000_000, help="lines of each side")
    options = parser.parse_args()
    table = make_table(options.ranks, options.lines)
    began, spent = time.perf_counter(), time.process_time()
    found = analyse(table, options.ranks)
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"odd: {[(item.rank, item.score) for item in found.odd]}")
    figures = [
        Figure(f"outliers of {options.ranks} x {options.lines} lines", wall, "s", 3.0),
        Figure("its processor time", cpu, "s", 6.0),
        Figure("memory", peak, "MB", 1024.0),
    ]
    del table
    for what, lost in (("", 0.0), (", one in 20 lost on one side", 0.05)):
        wall, cpu, compared = measure(options.compared, lost=lost)
        print(f"compared: {compared.counts}")
        figures.append(Figure(f"compare of 2 x {options.compared} lines{what}", wall, "s", 2.0))
        figures.append(Figure("its processor time, both cores", cpu, "s", 4.0))
    show(figures)
    return 0 if all(figure.ok for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
