"""Small jobs as tables: ranks that say the same at each iteration, and what a test changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ranklog.model.stream import Stream
from ranklog.spmd.outliers.evidence import Attempt
from ranklog.spmd.outliers.values import Sample
from ranklog.spmd.outliers.verdict import Outliers, find_outliers
from ranklog.spmd.table import ABSENT, Key, LineTable, table_of
from ranklog.spmd.topology import make_topology

SECOND = 1_000_000_000
INFO, WARNING, ERROR = 20, 30, 40
ITERATIONS = 12

# (rank, ns, iteration, key, level)
Row = tuple[int, int, int, Key, int]


def key(template: str, site: str | None = "train.py:1") -> Key:
    return Key(site, template)


STEP = key("iteration \x00 loss \x00")
START = key("joined", "train.py:0")


def healthy(ranks: int = 8, iterations: int = ITERATIONS) -> list[Row]:
    """A line at the start, then one an iteration, ten seconds apart."""
    rows: list[Row] = [(r, r, ABSENT, START, INFO) for r in range(ranks)]
    rows += [
        (r, (i + 1) * 10 * SECOND + r, i, STEP, INFO)
        for i in range(iterations)
        for r in range(ranks)
    ]
    return rows


def attempt_of(
    rows: list[Row],
    ranks: int = 8,
    *,
    per_node: int = 4,
    places: Callable[[int], Mapping[str, int]] | None = None,
    ended_well: frozenset[int] = frozenset(),
) -> Attempt:
    """Each rank's lines are a stream of its own."""
    streams = [
        (f"{r:032x}", Stream("t", "r", "l", 0, None, r, None, "stdout", "0")) for r in range(ranks)
    ]
    table = table_of(rows, streams)
    table = LineTable(
        table.rank,
        table.ts_ns,
        table.iteration,
        table.key,
        table.level,
        table.seq,
        table.rank,
        table.keys,
        table.streams,
    )
    topology = make_topology(
        range(ranks),
        hosts={r: f"gpu-{r // per_node}" for r in range(ranks)},
        local_ranks={r: r % per_node for r in range(ranks)},
        groups={} if places is None else {r: places(r) for r in range(ranks)},
    )
    return Attempt(table, topology, ended_well)


def outliers(rows: list[Row], ranks: int = 8, **shape: object) -> Outliers:
    return find_outliers(attempt_of(rows, ranks, **shape))  # type: ignore[arg-type]


def odd(found: Outliers) -> list[int]:
    return [item.rank for item in found.odd]


def samples(attempt: Attempt, text: Callable[[int, int], str]) -> list[Sample]:
    """The text of each rank's line of STEP, by rank and iteration."""
    table = attempt.table
    number = table.keys.index(STEP)
    return [
        Sample(row, text(int(table.rank[row]), int(table.iteration[row])))
        for row in range(len(table))
        if table.key[row] == number
    ]
