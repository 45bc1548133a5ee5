"""`python -m tests.bench`: ingest, size and a suite of queries, beside rg and DuckDB, in one run.

    python -m tests.bench [--lines 4000000] [--repeat 5] [--folder .bench] [--json FILE]

Builds an SPMD corpus, sends its frames through a disk stream, ingests them in batches of about one Lambda event
(4.5 MB of frames) unless --batch-mib says otherwise, and asks every question warm: the first answer of each is not
counted, the median of `--repeat` is. Ingest CPU is `time.process_time` from frame bytes to committed index. Ratios
compare within the run; absolute times belong to the machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranklog.client import Client
from ranklog.ingest.batch import Record, ingest_batch
from ranklog.rules.ruleset import RuleSet
from ranklog.store.open import open_store
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame
from tests.bench.corpus import corpus
from tests.bench.peers import ClickHouse, Duck, PlainFiles, Rg
from tests.bench.suite import Question, questions

RUN = "llama-70b"
# Below this, a time counts as this on either side: it is noise.
FLOOR_S = 0.02


@dataclass(slots=True)
class Ingested:
    """What building the store cost."""

    lines: int = 0
    text_bytes: int = 0
    frame_bytes: int = 0
    segment_bytes: int = 0
    index_bytes: int = 0
    segments: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0


def build(folder: Path, lines: int, batch_bytes: int, plain: PlainFiles) -> Ingested:
    """Frames into a disk stream, and from there into a store, batch by batch."""
    stream = DiskStream(folder / "stream")
    for frame in plain.write(corpus(lines)):
        stream.put(f"{frame.tenant}/{frame.agent}", encode_frame(frame))
    store, rules, total = open_store(str(folder / "store"), create=True), RuleSet.load(), Ingested()
    pending: list[Record] = []
    for record in stream.read():
        pending.append(record)
        if sum(len(one.data) for one in pending) >= batch_bytes:
            _ingest(pending, store, rules, total)
            pending = []
    if pending:
        _ingest(pending, store, rules, total)
    return total


def _ingest(records: list[Record], store: Any, rules: RuleSet, total: Ingested) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    first, last = records[0].sequence, records[-1].sequence
    report = ingest_batch(records, store=store, rules=rules, source="bench", first=first, last=last)
    total.cpu_s += time.process_time() - cpu
    total.wall_s += time.perf_counter() - wall
    total.lines += report.lines
    total.text_bytes += report.text_bytes
    total.frame_bytes += sum(len(one.data) for one in records)
    total.segment_bytes += report.segment_bytes
    total.index_bytes += report.index_bytes
    total.segments += len(report.committed)


def median_s(action: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Median wall seconds of `repeat` calls after one that is not counted, and the last result."""
    result = action()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def ask_ranklog(client: Client, question: Question) -> tuple[int, int]:
    """(matching lines, bytes read)."""
    if question.mode == "lines":
        answer = client.search(question.query, run=RUN, limit=0)
        return len(answer.lines), answer.report.bytes_read
    by = ("call_site",) if question.mode == "groups" else ()
    counted = client.count(question.query, run=RUN, by=by)
    return counted.count, counted.report.bytes_read


def count_rows(rows: list[Any], question: Question) -> int:
    """Matching lines of a peer's answer."""
    return len(rows) if question.mode == "lines" else sum(int(row[-1]) for row in rows)


@dataclass(slots=True)
class Peers:
    """Who else is asked; chdb only where it is installed."""

    rg: Rg
    duckdb: Duck
    chdb: ClickHouse | None

    def actions(self, question: Question) -> dict[str, Callable[[], int]]:
        """Name -> asks the question and returns the number of matching lines."""
        arguments, chdb = question.rg, self.chdb
        found: dict[str, Callable[[], int]] = {
            "duckdb": lambda: count_rows(self.duckdb.run(question.duckdb), question)
        }
        if chdb is not None:
            found["chdb"] = lambda: count_rows(chdb.run(question.clickhouse), question)
        if arguments is not None:
            found["rg"] = lambda: self.rg.run(arguments)
        return found


def measure(question: Question, client: Client, peers: Peers, repeat: int) -> dict[str, Any]:
    """One row of the table. All who can answer must agree on the number of lines."""
    ours_s, (hits, bytes_read) = median_s(lambda: ask_ranklog(client, question), repeat)
    row: dict[str, Any] = {"query": question.name, "hits": hits, "bytes_read": bytes_read}
    row["ranklog_s"] = ours_s
    for name, action in peers.actions(question).items():
        row[f"{name}_s"], their_hits = median_s(action, repeat)
        row[f"{name}_ratio"] = max(ours_s, FLOOR_S) / max(row[f"{name}_s"], FLOOR_S)
        if their_hits != hits:
            raise RuntimeError(f"{question.name}: ranklog finds {hits}, {name} {their_hits}")
    return row


def show_ingest(total: Ingested, zstd_bytes: int) -> dict[str, Any]:
    """Print and return the figures of ingest and size."""
    stored = total.segment_bytes + total.index_bytes
    figures = {
        "lines": total.lines,
        "lines_per_cpu_s": total.lines / total.cpu_s,
        "us_per_line": total.cpu_s / total.lines * 1e6,
        "text_mb_per_s": total.text_bytes / 1e6 / total.wall_s,
        "segments": total.segments,
        "stored_bytes": stored,
        "index_share": total.index_bytes / total.segment_bytes,
        "zstd3_bytes": zstd_bytes,
        "stored_ratio": stored / zstd_bytes,
    }
    for name, value in figures.items():
        print(
            f"{name:18} {value:>16,.3f}" if isinstance(value, float) else f"{name:18} {value:>16,}"
        )
    return figures


def show_queries(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Print the table of queries in ms (ratios count less than 20 ms as 20), and return geometric mean and worst of the ratios."""
    names = [name for name in ("duckdb", "chdb", "rg") if any(f"{name}_s" in row for row in rows)]
    print("\nwall time in ms, median; a ratio counts less than 20 ms as 20 ms on either side")
    heads = "".join(f"{name:>9} {'ratio':>6}" for name in names)
    print(f"\n{'query':30} {'hits':>9} {'read MB':>8} {'ranklog':>9}{heads}")
    for row in rows:
        cells = "".join(
            f"{row[f'{name}_s'] * 1e3:>9.1f} {row[f'{name}_ratio']:>6.2f}"
            if f"{name}_s" in row
            else f"{'-':>9} {'-':>6}"
            for name in names
        )
        head = f"{row['query']:30} {row['hits']:>9,} {row['bytes_read'] / 1e6:>8.2f}"
        print(f"{head} {row['ranklog_s'] * 1e3:>9.1f}{cells}")
    totals: dict[str, Any] = {}
    for name in names:
        ratios = [row[f"{name}_ratio"] for row in rows if f"{name}_ratio" in row]
        totals[name] = {"geometric_mean": statistics.geometric_mean(ratios), "worst": max(ratios)}
        mean, worst = totals[name]["geometric_mean"], totals[name]["worst"]
        print(f"ranklog / {name:7} geometric mean {mean:.3f}, worst {worst:.2f}")
    return totals


def _clickhouse(plain: PlainFiles, folder: Path) -> ClickHouse | None:
    """chdb where it is installed: the group `bench` has it."""
    if importlib.util.find_spec("chdb") is None:
        print("chdb is not installed: the dependency group bench sets it beside the others")
        return None
    peer = ClickHouse(plain, folder)
    print(f"{'chdb_bytes':18} {peer.stored_bytes():>16,}")
    return peer


def main() -> int:
    """Build, measure, print; the folder is removed unless it was named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--batch-mib", type=float, default=4.5, help="frames per ingest batch")
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    parser.add_argument("--json", type=Path, help="write the figures there, not below the table")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    plain = PlainFiles(options.folder)
    total = build(options.folder, options.lines, int(options.batch_mib * 2**20), plain)
    figures: dict[str, Any] = {"ingest": show_ingest(total, plain.zstd_bytes())}
    client = Client(store=str(options.folder / "store"), tenant="bench")
    peers = Peers(Rg(plain), Duck(plain), _clickhouse(plain, options.folder / "chdb"))
    asked = questions(plain.text_path)
    figures["queries"] = [measure(q, client, peers, options.repeat) for q in asked]
    figures["ratios"] = show_queries(figures["queries"])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    else:
        print(json.dumps(figures))
    if not options.keep:
        shutil.rmtree(options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
