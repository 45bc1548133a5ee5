"""`python -m tests.bench.planning`: choosing among 1,000 segments, with warm indexes and from disk.

    python -m tests.bench.planning [--segments 1000]

A store of so many small segments of one run. `explain` plans and reads no segment: warm is the median of
later calls of one client, cold the first call of a new client, whose indexes are files that the page
cache holds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from ranklog.client import Client
from ranklog.ingest.batch import Record, ingest_batch
from ranklog.rules.ruleset import RuleSet
from ranklog.store.open import open_store
from ranklog.stream.frames import encode_frame
from tests.bench.corpus import NEEDLE, corpus
from tests.bench.figures import Figure, show
from tests.bench.suite import RUN

SEGMENTS = 1_000
_QUERIES = (f'"{NEEDLE}"', "rank:7 level>=ERROR", "zookeeper")
_FRAME_ROWS = 1_024


def measure(segments: int = SEGMENTS, folder: Path | None = None) -> list[Figure]:
    """The slowest of a few questions, warm and cold."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        _build(Path(work), segments)
        cold = [_cold_s(work, query) for query in _QUERIES]
        with Client(store=work, tenant="bench") as client:
            warm = [_warm_s(client, query) for query in _QUERIES]
    return [
        Figure(f"planning over {segments:,} segments, warm", max(warm) * 1e3, "ms", 100),
        Figure(f"planning over {segments:,} segments, cold on disk", max(cold), "s", 1.0),
    ]


def _build(folder: Path, segments: int) -> None:
    """A frame a segment."""
    store, rules = open_store(str(folder), create=True), RuleSet.load()
    frames = corpus(segments * _FRAME_ROWS, frame_rows=_FRAME_ROWS, planted=20)
    made = 0
    for number, frame in enumerate(frames, 1):
        arrival_ns = int.from_bytes(frame.ts[-8:], "little")
        record = Record(encode_frame(frame), arrival_ns, f"{number:09d}")
        name = record.sequence
        report = ingest_batch(
            [record], store=store, rules=rules, source="bench", first=name, last=name
        )
        made += len(report.committed)
        if made >= segments:
            return


def _cold_s(store: str, query: str) -> float:
    with Client(store=store, tenant="bench") as client:
        start = time.perf_counter()
        client.search(query, run=RUN, explain=True)
        return time.perf_counter() - start


def _warm_s(client: Client, query: str) -> float:
    client.search(query, run=RUN)
    times = []
    for _ in range(7):
        report = client.search(query, run=RUN).report
        times.append((report.ms["list"] + report.ms["plan"]) / 1e3)
    return statistics.median(times)


def main() -> int:
    """Build, plan, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--segments", type=int, default=SEGMENTS)
    show(measure(parser.parse_args().segments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
