"""One question to ranklog and to its peers: times, ratios, and whether all found the same."""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ranklog.client import Client
from tests.bench.figures import Figure
from tests.bench.peers import ClickHouse, Duck, PlainFiles, Rg
from tests.bench.suite import BUCKET, RUN, Question
from tests.bench.victorialogs import VARIABLE, VictoriaLogs

# Below this, a time counts as this on either side: it is noise.
FLOOR_S = 0.02
# Ratios of time to keep: (geometric mean, worst, worst of parts of tokens).
MARKS = {"duckdb": (0.2, 0.8, 0.8), "victorialogs": (0.4, 1.0, 1.0), "chdb": (0.8, 2.0, 3.0)}
NAMES = ("duckdb", "chdb", "victorialogs", "rg")

# Matching lines, and what must be equal beside them: the sum of the lines' times, or the number of
# groups; None where the peer does not say.
Found: TypeAlias = "tuple[int, int | None]"
T = TypeVar("T")


def median_s(action: Callable[[], T], repeat: int) -> tuple[float, T]:
    """Median wall seconds of `repeat` calls after one that is not counted, and the last result."""
    result = action()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def ask_ranklog(client: Client, question: Question) -> Any:
    """The answer."""
    if question.mode == "lines":
        shape: dict[str, Any] = {"limit": question.limit, "context": question.context}
        return client.search(question.query, run=RUN, **shape)
    if question.mode == "count":
        return client.count(question.query, run=RUN)
    every = BUCKET if question.mode == "buckets" else None
    return client.count(question.query, run=RUN, by="call_site", every=every)


def found_by_ranklog(answer: Any, question: Question) -> Found:
    """What its answer says."""
    if question.mode == "lines":
        return len(answer.lines), sum(line.ts_ns for line in answer.lines)
    groups = sum(count > 0 for _, count in answer.rows)
    return answer.count, None if question.mode == "count" else groups


def found_in_rows(rows: list[Any], question: Question) -> Found:
    """What a peer's rows say."""
    if question.mode == "lines":
        return len(rows), sum(int(row[0]) for row in rows)
    return sum(int(row[-1]) for row in rows), None if question.mode == "count" else len(rows)


@dataclass(slots=True)
class Peers:
    """Who else is asked; chdb and VictoriaLogs only where they are."""

    rg: Rg
    duckdb: Duck
    chdb: ClickHouse | None
    victorialogs: VictoriaLogs | None

    @classmethod
    def open(cls, plain: PlainFiles, lines: int, folder: Path) -> Peers:
        """All that are there; one line for each that is not."""
        chdb = victorialogs = None
        if importlib.util.find_spec("chdb") is None:
            print("chdb is not installed: the dependency group bench sets it beside the others")
        else:
            chdb = ClickHouse(plain, folder / "chdb")
        if binary := os.environ.get(VARIABLE):
            victorialogs = VictoriaLogs(binary, plain.parquet_path, lines, folder / "victorialogs")
        else:
            print(f"VictoriaLogs is skipped: ${VARIABLE} names no binary")
        return cls(Rg(plain), Duck(plain), chdb, victorialogs)

    def close(self) -> None:
        """Stop what was started."""
        if self.victorialogs is not None:
            self.victorialogs.close()

    def size_figures(self, zstd_bytes: int) -> list[Figure]:
        """What the peers store."""
        peers = [peer for peer in (self.chdb, self.victorialogs) if peer is not None]
        return [
            Figure(f"{peer.name} stored, against the same", peer.stored_bytes() / zstd_bytes)
            for peer in peers
        ]

    def actions(self, question: Question) -> dict[str, Callable[[], Found]]:
        """Name -> asks the question and says what was found."""
        chdb, victorialogs, arguments = self.chdb, self.victorialogs, question.rg
        found: dict[str, Callable[[], Found]] = {
            "duckdb": lambda: found_in_rows(self.duckdb.run(question.duckdb), question)
        }
        if chdb is not None:
            found["chdb"] = lambda: found_in_rows(chdb.run(question.clickhouse), question)
        if victorialogs is not None:
            grouped = question.mode != "lines"
            found["victorialogs"] = lambda: (
                victorialogs.run(question.victorialogs, grouped=grouped)[0],
                None,
            )
        if arguments is not None:
            found["rg"] = lambda: (self.rg.run(arguments), None)
        return found


def measure(question: Question, client: Client, peers: Peers, repeat: int) -> dict[str, Any]:
    """One row of the table. Raises RuntimeError where they do not find the same."""
    ours_s, answer = median_s(lambda: ask_ranklog(client, question), repeat)
    ours = found_by_ranklog(answer, question)
    row: dict[str, Any] = {"query": question.name, "hits": ours[0], "inside": question.inside}
    row |= {"bytes_read": answer.report.bytes_read, "ranklog_s": ours_s}
    for name, action in peers.actions(question).items():
        row[f"{name}_s"], theirs = median_s(action, repeat)
        row[f"{name}_ratio"] = max(ours_s, FLOOR_S) / max(row[f"{name}_s"], FLOOR_S)
        if theirs[0] != ours[0] or (None not in (theirs[1], ours[1]) and theirs[1] != ours[1]):
            raise RuntimeError(f"{question.name}: ranklog finds {ours}, {name} {theirs}")
    return row


def show_queries(rows: list[dict[str, Any]]) -> None:
    """Print the table of queries in ms; ratios count less than 20 ms as 20."""
    names = [name for name in NAMES if any(f"{name}_s" in row for row in rows)]
    print("\nwall time in ms, median; a ratio counts less than 20 ms as 20 ms on either side")
    heads = "".join(f"{name:>13} {'ratio':>6}" for name in names)
    print(f"\n{'query':30} {'hits':>9} {'read MB':>8} {'ranklog':>9}{heads}")
    for row in rows:
        cells = "".join(
            f"{row[f'{name}_s'] * 1e3:>13.1f} {row[f'{name}_ratio']:>6.2f}"
            if f"{name}_s" in row
            else f"{'-':>13} {'-':>6}"
            for name in names
        )
        head = f"{row['query']:30} {row['hits']:>9,} {row['bytes_read'] / 1e6:>8.2f}"
        print(f"{head} {row['ranklog_s'] * 1e3:>9.1f}{cells}")
    print()


def ratio_figures(rows: list[dict[str, Any]]) -> list[Figure]:
    """Geometric mean and worst against each peer; parts of tokens have a worst of their own."""
    figures = []
    for name in NAMES:
        of_peer = [row for row in rows if f"{name}_ratio" in row]
        if not of_peer:
            continue
        mean, worst, inside = MARKS.get(name, (None, None, None))
        ratios = [row[f"{name}_ratio"] for row in of_peer]
        parts = [row[f"{name}_ratio"] for row in of_peer if row["inside"]]
        others = [row[f"{name}_ratio"] for row in of_peer if not row["inside"]]
        figures += [
            Figure(
                f"query time / {name}, geometric mean", statistics.geometric_mean(ratios), "", mean
            ),
            Figure(f"query time / {name}, worst", max(others), "", worst),
            Figure(f"query time / {name}, worst of parts of ids", max(parts), "", inside),
        ]
    return figures
