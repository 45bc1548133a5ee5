"""`python -m tests.bench.marks`: every mark beside the suite's, in one table.

    python -m tests.bench.marks [--folder .bench] [--growth-lines 1000000] [--segments 1000]

Memory of the functions, growth, concurrency, planning, the whole process, and the size of real logs where
they are there. The folder is one that
`python -m tests.bench --keep` left; where there is none, a store of a million lines is built in it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench import concurrency, growth, logs, memory, planning, process
from tests.bench.building import ingest_frames
from tests.bench.corpus import corpus
from tests.bench.figures import Figure, show

_LINES = 1_000_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the marks need to know."""
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    parser.add_argument(
        "--growth-lines",
        type=int,
        default=_LINES,
        help="growth compares so many lines with ten times as many",
    )
    parser.add_argument("--segments", type=int, default=planning.SEGMENTS, help="of planning")


def run_marks(options: argparse.Namespace) -> list[Figure]:
    """Measure and print, one after the other."""
    folder = options.folder
    measures: tuple[Callable[[], list[Figure]], ...] = (
        lambda: process.measure(folder),
        lambda: concurrency.measure(folder),
        lambda: memory.measure(folder),
        lambda: planning.measure(options.segments, folder),
        lambda: growth.measure(options.growth_lines, folder),
        lambda: logs.measure(logs.LOGS) if logs.LOGS.is_dir() else [],
    )
    figures = []
    for one in measures:
        found = one()
        show(found)
        figures += found
    return figures


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_options(parser)
    options = parser.parse_args()
    if not (options.folder / "store").exists():
        options.folder.mkdir(parents=True, exist_ok=True)
        ingest_frames(corpus(_LINES), options.folder / "store")
    run_marks(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
