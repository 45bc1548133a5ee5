"""`python -m tests.bench.concurrency`: many warm queries at once against one after the other.

    python -m tests.bench.concurrency [--folder .bench] [--queries 200]

The same questions through one client without a cache of results: first one at a time, then all of them
at once, a thread each. Three of five are of another rank each; two are what everybody asks, and are
answered once where they are asked at the same time. Throughput is questions per wall second; beside it
stands that of the distinct questions alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ranklog.client import Client
from tests.bench.corpus import NEEDLE
from tests.bench.figures import Figure, show
from tests.bench.suite import RUN

QUERIES = 200
_DISTINCT = (
    "rank:{n} level>=ERROR",
    "rank:{n} iteration:100..110",
    f'"{NEEDLE}" rank:{{n}}',
)
_QUESTIONS = (*_DISTINCT, f'"{NEEDLE}"', '"failed its checksum"')


def measure(folder: Path, queries: int = QUERIES) -> list[Figure]:
    """Ratio of throughputs, and the slowest of a hundred on either side."""
    with Client(store=str(folder / "store"), tenant="bench") as client:
        single_s, single, together_s, together = _compared(client, _QUESTIONS, queries)
        distinct_s, _, distinct_together_s, _ = _compared(client, _DISTINCT, queries)
    return [
        Figure(
            f"{queries} queries at once, throughput", single_s / together_s, "x", 1.5, least=True
        ),
        Figure("  of distinct questions alone", distinct_s / distinct_together_s, "x"),
        Figure("  one at a time, queries per second", queries / single_s),
        Figure("  at once, queries per second", queries / together_s),
        Figure("  one at a time, p99", _p99(single) * 1e3, "ms"),
        Figure("  at once, p99", _p99(together) * 1e3, "ms"),
    ]


def _compared(
    client: Client, questions: Sequence[str], queries: int
) -> tuple[float, list[float], float, list[float]]:
    """Seconds in all and of each, one at a time and at once."""
    asked = [questions[n % len(questions)].format(n=n) for n in range(queries)]

    def ask(n: int) -> None:
        client.search(asked[n], run=RUN)

    _one_by_one(ask, queries)  # warm
    return *_one_by_one(ask, queries), *_at_once(ask, queries)


def _p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def _one_by_one(ask: Callable[[int], None], queries: int) -> tuple[float, list[float]]:
    """(seconds in all, seconds of each)."""
    times = []
    for n in range(queries):
        start = time.perf_counter()
        ask(n)
        times.append(time.perf_counter() - start)
    return sum(times), times


def _at_once(ask: Callable[[int], None], queries: int) -> tuple[float, list[float]]:
    times = [0.0] * queries
    go = threading.Barrier(queries + 1)

    def one(n: int) -> None:
        go.wait()
        start = time.perf_counter()
        ask(n)
        times[n] = time.perf_counter() - start

    threads = [threading.Thread(target=one, args=(n,)) for n in range(queries)]
    for thread in threads:
        thread.start()
    go.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start, times


def main() -> int:
    """Ask and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    parser.add_argument("--queries", type=int, default=QUERIES)
    options = parser.parse_args()
    show(measure(options.folder, options.queries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
