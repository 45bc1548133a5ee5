"""What the node agent costs: `python -m tests.bench.agent`.

CPU a line from rings and from captured output to frames in the log, masking on; bytes a line on the
wire; memory with eight ranks; replay of a spool. CPU is the process's own, the best of some repeats.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ranklog.agent.collector import Collector
from ranklog.agent.sinks import TAKEN, Frame, Outcome
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import WalFrame
from ranklog.produce import records, spool
from ranklog.produce.identity import Identity
from ranklog.produce.ring import ARGUMENTS, BODY, TEXT, Ring
from ranklog.produce.spool import ProcessFiles
from ranklog.stream.frames import encode_frame
from tests.bench.corpus import MESSAGES, corpus, text_lines

LINES = 60_000
# A process of its own, that has nothing but the agent: its high-water mark in MiB.
MEMORY = """
import sys, time
from pathlib import Path
from ranklog.agent.collector import Collector
from ranklog.agent.sinks import open_sink
folder = Path(sys.argv[1])
collector = Collector(folder, open_sink(str(folder / "out"), {}, sync=False))
while collector.poll():
    pass
collector.finish(60.0)
status = Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""
RANKS = 8
LINES_A_SECOND = 10_000
REPEATS = 3
RING_BYTES = 64 << 20


class Nowhere:
    """A sink that takes everything, and counts."""

    def __init__(self) -> None:
        self.bytes = self.frames = 0

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        self.bytes += sum(len(data) for _, data in frames)
        self.frames += len(frames)
        return [TAKEN] * len(frames)


def corpus_lines(count: int) -> list[str]:
    """Lines of the benchmark corpus."""
    lines: list[str] = []
    for frame in corpus(64 * 16 * 500):
        lines += text_lines(frame).decode().splitlines()
        if len(lines) >= count:
            break
    return lines[:count]


class SpoolOfRings:
    """A spool of ranks that logged into rings, as `ranklog.init` does."""

    def __init__(
        self,
        folder: Path,
        ranks: int = RANKS,
        ring_bytes: int = RING_BYTES,
        ring_folder: Path | None = None,
    ) -> None:
        self.folder = folder
        ring_folder = ring_folder or folder
        self.rings: list[Ring] = []
        self._defs: list[int] = []
        self._has_calls = False
        spool.make_spool(folder)
        for rank in range(ranks):
            name = f"{rank:016x}"
            ring = ring_folder / f"{name}.ring"
            self.rings.append(Ring.create(ring, ring_bytes))
            self._defs.append(spool.open_append(folder / f"{name}.defs"))
            who = Identity("default", "bench", "l1", 0, "n0", rank, rank, ranks)
            files = {spool.RING: str(ring), spool.DEFS: f"{name}.defs"}
            start = spool.process_start(os.getpid())
            spool.announce(folder, ProcessFiles(who, name, os.getpid(), start, files))

    def define(self, fields: list[object]) -> None:
        """In every rank."""
        from ranklog.produce.journal import append, encode_record

        for fd in self._defs:
            append(fd, encode_record(fields))

    def texts(self, lines: Sequence[str]) -> None:
        """Lines that were formatted by the rank, of the call sites of the corpus."""
        for number, message in enumerate(() if self._has_calls else MESSAGES, 1):
            site = message.site
            self.define([records.SITE, number, site.site, site.function, site.logger])
            self.define([records.CALL, number, number, message.level, None])
        self._has_calls = True
        sites = len(MESSAGES)
        for at, line in enumerate(lines):
            word = (at % sites + 1) << 8 | TEXT
            ring = self.rings[at % len(self.rings)]
            ring.write(word, time.time_ns(), at // 100, 0, line.encode(), False)

    def at_levels(self, lines: Sequence[str], levels: Sequence[int]) -> None:
        """Lines of one call site at each level."""
        for number in range(0, 60, 10):
            if not self._has_calls:
                self.define([records.SITE, number + 1, f"a.py:{number}", None, None])
                self.define([records.CALL, number + 1, number + 1, number, None])
        self._has_calls = True
        for at, (line, level) in enumerate(zip(lines, levels, strict=True)):
            word = (level + 1) << 8 | TEXT
            ring = self.rings[at % len(self.rings)]
            ring.write(word, time.time_ns(), 0, 0, line.encode(), False)

    def arguments(self, count: int) -> None:
        """Lines whose formatting waits for the agent."""
        self.define([records.SITE, 1, "train/loop.py:88", "step", "train"])
        template = "iteration %d micro batch %d done in %.2f ms, loss %.4f tokens %d"
        self.define([records.CALL, 1, 1, 20, template])
        word = 1 << 8 | ARGUMENTS
        for at in range(count):
            payload = records.encode([at // 100, at % 32, 20 + at % 977 / 100, 8 / (at + 1), 16000])
            ring = self.rings[at % len(self.rings)]
            ring.write(word, time.time_ns(), at // 100, 0, payload, False)

    def with_metadata(self, count: int) -> None:
        """Lines with a context and metadata of their own, as a journal's records in the ring."""
        self.define([records.SITE, 1, "train/loop.py:88", "step", "train"])
        self.define([records.CONTEXT, 1, None, {"dataset": "c4/en", "shard": 3}])
        for at in range(count):
            fields = [records.LINE, time.time_ns(), 20, 1, 1, at // 100, "step done", {"loss": 2.5}]
            self.rings[at % len(self.rings)].write(BODY, 0, 0, 0, records.encode(fields), False)

    def close(self) -> None:
        for ring in self.rings:
            ring.close()
        for fd in self._defs:
            os.close(fd)


def main() -> None:
    lines = corpus_lines(LINES)
    print(f"{'':<52}{'mark':>12}")
    _cpu_row("rings, texts of the corpus", lambda one: one.texts(lines))
    _cpu_row("rings, formatting left to the agent", lambda one: one.arguments(LINES))
    _cpu_row("rings, with metadata and context", lambda one: one.with_metadata(LINES))
    _captured_row(lines)
    _wire_row()
    _memory_row(lines)
    _replay_row()


def _cpu_row(name: str, write: Callable[[SpoolOfRings], None]) -> None:
    best, wire = _best(lambda folder: _ring_spool(folder, write))
    _print_cpu(name, best, wire)


def _ring_spool(folder: Path, write: Callable[[SpoolOfRings], None]) -> None:
    one = SpoolOfRings(folder)
    write(one)
    one.close()


def _captured_row(lines: Sequence[str]) -> None:
    def write(folder: Path) -> None:
        spool.make_spool(folder)
        for rank in range(RANKS):
            name = f"{rank:016x}"
            text = "".join(f"{line}\n" for line in lines[rank::RANKS])
            (folder / f"{name}.stdout").write_text(text)
            who = Identity("default", "bench", "l1", 0, "n0", rank, rank, RANKS)
            start = spool.process_start(os.getpid())
            files = {"stdout": f"{name}.stdout"}
            spool.announce(folder, ProcessFiles(who, name, os.getpid(), start, files))

    best, wire = _best(write)
    _print_cpu("captured output, lines of the corpus", best, wire)


def _print_cpu(name: str, ns: float, wire: float) -> None:
    share = ns * LINES_A_SECOND / 1e9
    print(f"{name:<40}{ns:8.0f} ns {100 * share:5.2f} %  <= 5 % of a core   {wire:5.1f} bytes/line")


def _best(write: Callable[[Path], None]) -> tuple[float, float]:
    """(ns of CPU a line, bytes a line in the log)."""
    best, wire = float("inf"), 0.0
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "spool"
            write(folder)
            sink = Nowhere()
            collector = Collector(folder, sink)
            start = time.process_time_ns()
            while collector.poll():
                pass
            collector.poll(hurry=True)
            best = min(best, (time.process_time_ns() - start) / LINES)
            wire = sink.bytes / LINES
            collector.close()
    return best, wire


def _wire_row() -> None:
    """Frames of 1,000 lines of the corpus, as the agent encodes them."""
    frames = []
    for frame in corpus(64 * 16 * 500, frame_rows=1_000):
        frames.append(frame)
        if len(frames) == 60:
            break
    total = sum(len(encode_frame(frame)) for frame in frames)
    rows = sum(frame.rows for frame in frames)
    print(f"{'bytes a line, frames of 1,000':<40}{total / rows:8.1f}{'':10}<= 45")


def _memory_row(lines: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "spool"
        one = SpoolOfRings(folder, ring_bytes=16 << 20)
        for _ in range(12):
            one.texts(lines)
        one.close()
        command = [sys.executable, "-c", MEMORY, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"{'memory, 8 ranks with full rings':<40}{done.stdout.strip():>8} MiB{'':6}<= 96 MiB")


def _replay_row() -> None:
    from ranklog.agent.replay import replay

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "spool"
        wal = Wal(folder / "wal")
        rows = 0
        for frame in corpus(64 * 16 * 500, frame_rows=1_000):
            wal.append([WalFrame(0, "bench/llama/n", encode_frame(frame))], {})
            rows += frame.rows
            if rows >= 500_000:
                break
        wal.close()
        start = time.perf_counter()
        report = replay(folder, str(Path(name) / "stream"), {}, timeout_s=60.0)
        took = time.perf_counter() - start
        assert report.left == 0
        print(f"{'replay into a directory':<40}{rows / took:8.0f} lines/s   >= 500,000")


if __name__ == "__main__":
    main()
