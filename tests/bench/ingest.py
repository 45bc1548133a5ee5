"""Lines per CPU second from frame bytes to committed segment and index, and the bytes stored.

    python -m tests.bench.ingest --lines 524288 [--seed 1] [--batch-rows 524288] [--rules]

CPU is `time.process_time`, all threads; the store is in memory. Encoding the frames is the
producer's work and is not counted. Bytes are compared with `zstd -3` of the bare text, as one
stream in the order of the frames.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import zstandard

from ranklog.ingest import batch, parts, records
from ranklog.ingest.batch import IngestReport, ingest_batch
from ranklog.ingest.records import Record
from ranklog.layout import build
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.bench.corpus import corpus, text_lines

STAGES = (
    (records, "decode_frame"),
    (records, "check_frame"),
    (batch, "gather"),
    (batch, "distinct_rows"),
    (build, "extract"),
    (build, "number_templates"),
    (build, "opaque_rows"),
    (batch, "_apply_rules"),
    (batch, "split_hours"),
    (build, "order_rows"),
    (build, "write_segment"),
    (build, "describe_groups"),
    (build, "site_counts"),
    (build, "stream_entries"),
    (build, "encode_index"),
    (parts, "put_segment"),
)


class Stages:
    """CPU seconds by function, measured from outside."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def watch(self) -> None:
        for module, name in STAGES:
            setattr(module, name, self._timed(name, getattr(module, name)))

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **options)
            finally:
                self.seconds[name] += time.process_time() - start

        return timed


def batches(lines: int, seed: int, rows: int, bare: BareText) -> Iterator[list[Record]]:
    """Records in batches of about `rows` lines; the bare text goes to `bare` on the way."""
    found: list[Record] = []
    held = 0
    for number, frame in enumerate(corpus(lines, seed), 1):
        bare.add(text_lines(frame))
        arrival_ns = int.from_bytes(frame.ts[-8:], "little")
        found.append(Record(encode_frame(frame), arrival_ns, str(number)))
        held += frame.rows
        if held >= rows:
            yield found
            found, held = [], 0
    if found:
        yield found


class BareText:
    """`zstd -3` of all lines, as one stream."""

    def __init__(self) -> None:
        self._compress = zstandard.ZstdCompressor(level=3).compressobj()
        self.text_bytes = self.bytes = 0

    def add(self, text: bytes) -> None:
        self.text_bytes += len(text)
        self.bytes += len(self._compress.compress(text))

    def finish(self) -> None:
        self.bytes += len(self._compress.flush())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=524_288)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch-rows", type=int, default=524_288)
    parser.add_argument("--rules", action="store_true", help="apply the presets")
    options = parser.parse_args()
    rules = None
    if options.rules:
        from ranklog.rules.ruleset import RuleSet

        rules = RuleSet.load()
    stages, bare, store, total = Stages(), BareText(), MemoryStore(), IngestReport()
    stages.watch()
    cpu_s = 0.0
    for found in batches(options.lines, options.seed, options.batch_rows, bare):
        start = time.process_time()
        first, last = found[0].sequence, found[-1].sequence
        report = ingest_batch(
            found, store=store, rules=rules, source="bench", first=first, last=last
        )
        cpu_s += time.process_time() - start
        total.lines += report.lines
        total.segment_bytes += report.segment_bytes
        total.index_bytes += report.index_bytes
        total.committed += report.committed
    bare.finish()
    show(total, stages, bare, cpu_s)


def show(total: IngestReport, stages: Stages, bare: BareText, cpu_s: float) -> None:
    lines = total.lines
    print(
        f"{lines:,} lines in {len(total.committed)} segments, {bare.text_bytes / lines:.1f} bytes a line"
    )
    print(f"{lines / cpu_s:,.0f} lines per CPU second, {cpu_s / lines * 1e6:.2f} us a line")
    for name, seconds in stages.seconds.most_common():
        print(f"  {seconds / lines * 1e6:6.3f} us  {name}")
    stored = total.segment_bytes + total.index_bytes
    print(
        f"stored {stored:,} = segments {total.segment_bytes:,} + indexes {total.index_bytes:,}; "
        f"zstd -3 of the text {bare.bytes:,}; ratio {stored / bare.bytes:.3f}"
    )


if __name__ == "__main__":
    main()
