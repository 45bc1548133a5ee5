"""`python -m tests.bench.concurrency`: many warm queries at once against one after the other.

    python -m tests.bench.concurrency [--folder .bench] [--queries 200]

The same questions to `ranklog serve`, in the processes it has by default: first one at a time, then all
of them at once, a thread each. Its workers have the indexes in memory, and no question was asked
before, so that no kept answer is given: each pass asks of another iteration on. Throughput is questions
per wall second, the client's own work in it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ranklog.client import Client
from tests.bench.corpus import NEEDLE
from tests.bench.figures import Figure, show
from tests.bench.suite import RUN

QUERIES = 200
_QUESTIONS = (
    "rank:{n} level>=ERROR iteration>={k}",
    "rank:{n} iteration:10{k}..110",
    f'"{NEEDLE}" rank:{{n}} iteration>={{k}}',
    f'"{NEEDLE}" rank:{{n}}-{{m}} iteration>={{k}}',
    '"failed its checksum" rank:{n}-{m} iteration>={k}',
)


def measure(folder: Path, queries: int = QUERIES) -> list[Figure]:
    """Ratio of throughputs, and the slowest of a hundred on either side."""
    with _served(folder / "store") as url:
        client = Client(api=url)

        def asking(k: int) -> Callable[[int], None]:
            return lambda n: _ask(client, n, k)

        for k in (1, 2):  # every worker has met every kind of question
            _at_once(asking(k), queries)
        single = _one_by_one(asking(3), queries)
        together_s, together = _at_once(asking(4), queries)
    single_s = sum(single)
    return [
        Figure(
            f"{queries} queries at once, throughput", single_s / together_s, "x", 1.5, least=True
        ),
        Figure("  one at a time, queries per second", queries / single_s),
        Figure("  at once, queries per second", queries / together_s),
        Figure("  one at a time, p99", _p99(single) * 1e3, "ms"),
        Figure("  at once, p99", _p99(together) * 1e3, "ms"),
    ]


@contextmanager
def _served(store: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "ranklog.cli.main", "serve", "--store", str(store)]
    command += ["--tenant", "bench", "--listen", "127.0.0.1:0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def _ask(client: Client, n: int, k: int) -> None:
    question = _QUESTIONS[n % len(_QUESTIONS)]
    client.search(question.format(n=n, m=n + 255, k=k), run=RUN)


def _p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def _one_by_one(ask: Callable[[int], None], queries: int) -> list[float]:
    """Seconds of each."""
    times = []
    for n in range(queries):
        start = time.perf_counter()
        ask(n)
        times.append(time.perf_counter() - start)
    return times


def _at_once(ask: Callable[[int], None], queries: int) -> tuple[float, list[float]]:
    """(seconds in all, seconds of each)."""
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
