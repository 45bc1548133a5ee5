"""`python -m tests.bench`: ingest, size and a suite of queries, beside its peers, in one run; then the marks.

    python -m tests.bench [--lines 4000000] [--repeat 5] [--folder .bench] [--json FILE] [--suite-only]

Builds an SPMD corpus, sends its frames through a disk stream, ingests them in batches of about one Lambda event
(4.5 MB of frames) unless --batch-mib says otherwise, and asks every question warm: the first answer of each is not
counted, the median of `--repeat` is. Ingest CPU is `time.process_time` from frame bytes to committed index. Ratios
compare within the run; absolute times belong to the machine. The marks of tests.bench.marks come last.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ranklog.client import Client
from tests.bench.asking import Peers, measure, ratio_figures, show_queries
from tests.bench.building import Ingested, build, ingest_figures
from tests.bench.figures import Figure, show
from tests.bench.marks import add_options, run_marks
from tests.bench.peers import PlainFiles
from tests.bench.suite import questions, take_sample


def run_suite(
    options: argparse.Namespace, plain: PlainFiles, total: Ingested
) -> tuple[list[dict[str, Any]], list[Figure]]:
    """Rows of the table of queries, and the figures of all: both are printed on the way."""
    figures = ingest_figures(total, plain.zstd_bytes())
    show(figures)
    with Client(store=str(options.folder / "store"), tenant="bench") as client:
        sample = take_sample(client, plain.text_path)
        with _opened(plain, total.lines, options.folder) as peers:
            show(peers.size_figures(plain.zstd_bytes()))
            rows = [measure(q, client, peers, options.repeat) for q in questions(sample)]
    show_queries(rows)
    ratios = ratio_figures(rows)
    show(ratios)
    return rows, [*figures, *ratios]


@contextmanager
def _opened(plain: PlainFiles, lines: int, folder: Path) -> Iterator[Peers]:
    peers = Peers.open(plain, lines, folder)
    try:
        yield peers
    finally:
        peers.close()


def main() -> int:
    """Build, measure, print; the folder is removed unless it is to be kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--batch-mib", type=float, default=4.5, help="frames per ingest batch")
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    parser.add_argument("--suite-only", action="store_true", help="without the other marks")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    add_options(parser)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    plain = PlainFiles(options.folder)
    total = build(options.folder, options.lines, int(options.batch_mib * 2**20), plain)
    rows, figures = run_suite(options, plain, total)
    if not options.suite_only:
        print()
        figures += run_marks(options)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures.append(Figure("memory of this run, chdb in it", peak_mb, "MB"))
    show(figures[-1:])
    missed = [figure.name for figure in figures if not figure.ok]
    print(f"\nmarks missed: {'; '.join(missed) or 'none'}")
    if options.json:
        found = {"queries": rows, "figures": [figure.to_json() for figure in figures]}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if not options.keep:
        shutil.rmtree(options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
