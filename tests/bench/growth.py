"""`python -m tests.bench.growth`: what a rare literal reads when its haystack grows tenfold.

    python -m tests.bench.growth [--growth-lines 1000000]        # and tenfold; 10000000 for the mark itself

Two stores of the same job over the same hours, the larger of ten times the lines; both have the same
number of lines with the needle, spread evenly. Bytes of indexes are counted apart.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from ranklog.client import Client
from tests.bench.building import ingest_frames
from tests.bench.corpus import NEEDLE, corpus
from tests.bench.figures import Figure, show
from tests.bench.suite import RUN

HITS = 8


def measure(lines: int, folder: Path | None = None) -> list[Figure]:
    """Bytes read at `lines` and at ten times as many."""
    small, small_index = _bytes_read(lines, folder)
    large, large_index = _bytes_read(10 * lines, folder)
    return [
        Figure(f"rare literal, bytes read at {lines:,} lines", small),
        Figure(f"rare literal, bytes read at {10 * lines:,} lines", large),
        Figure("growth of bytes read, ten times the lines", large / small, "x", 2.0),
        Figure("  growth of the indexes' bytes", large_index / small_index, "x"),
    ]


def _bytes_read(lines: int, folder: Path | None) -> tuple[int, int]:
    """(bytes of segments, bytes of all indexes in scope) of one cold query."""
    work = Path(tempfile.mkdtemp(dir=folder))
    try:
        ingest_frames(corpus(lines, planted=HITS), work / "store")
        with Client(store=str(work / "store"), tenant="bench") as client:
            client.count(run=RUN)  # loads the indexes: the next question reads segments only
            # Of 100 M lines not all indexes stay in memory: what asking reads of them is apart.
            planned = client.search(f'"{NEEDLE}"', run=RUN, limit=0, explain=True).report
            answer = client.search(f'"{NEEDLE}"', run=RUN, limit=0)
            read = answer.report.bytes_read - planned.bytes_read
        if len(answer.lines) != HITS or read <= 0:
            raise RuntimeError(f"{len(answer.lines)} hits, {HITS} are there")
        indexes = sum(path.stat().st_size for path in (work / "store").rglob("*.idx"))
        return read, indexes
    finally:
        shutil.rmtree(work)


def main() -> int:
    """Build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--growth-lines", type=int, default=1_000_000)
    show(measure(parser.parse_args().growth_lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
