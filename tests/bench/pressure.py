"""What one rank that floods costs the others: `python -m tests.bench.pressure`.

    python -m tests.bench.pressure [--rounds 3] [--seconds 12] [--ranks 8] [--rate 20] [--times 200] [--kib N]

Ranks are processes that log through `ranklog.init`, at a steady rate, to one node agent; frames go to a
stream on disk, and are ingested in batches with a window, as a Kinesis event source is. Freshness is from
the call of logging to the commit that makes the line searchable. In each round there is a run in which all
ranks say as much, and one in which the last rank says `--times` as much; which comes first changes. The
ratio is that of the 99th percentiles of the other ranks' lines, the median of the rounds.

`--kib`: what is between agent and stream takes no more than so much a second, as a Kinesis shard that others
use as well (all of one: 1,024); 0: as much as comes.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np

from ranklog.ingest.local import ingest_stream
from ranklog.ingest.parts import IngestReport
from ranklog.store.disk import DiskStore
from ranklog.stream.disk import DiskStream
from tests.bench.figures import Figure, show
from tests.servers import answering

MARK = 1.2
WINDOW_S = 1.0
WARM_S = 3.0
# Of a run: until the last lines are stored, or it has failed.
DRAIN_S = 60.0
LINE = "step %d loss %.6f lr %.2e tokens/s %d grad norm %.4f of shard %d"


@dataclass(slots=True)
class Freshness:
    """Seconds from call to commit, of lines of the ranks that don't flood; lines stored of each rank."""

    seconds: list[np.ndarray] = field(default_factory=list)
    lines: dict[int, int] = field(default_factory=dict)

    def add(self, report: IngestReport, now_ns: int, from_ns: int, loud: int) -> None:
        """What a batch committed."""
        for share in report.shares.values():
            for item in share.frames:
                frame = item.frame
                if frame.points is not None:
                    continue
                ts = np.frombuffer(frame.ts, "<i8")
                place = np.frombuffer(frame.stream, "<u2")
                for at, entry in enumerate(frame.streams):
                    rank = entry.stream.rank
                    if rank is None or entry.stream.channel != "logging":
                        continue
                    own = ts[place == at]
                    self.lines[rank] = self.lines.get(rank, 0) + len(own)
                    if rank != loud:
                        self.seconds.append((now_ns - own[own >= from_ns]) / 1e9)

    def percentile(self, share: float) -> float:
        """Of all lines behind the warm-up."""
        return float(np.percentile(np.concatenate(self.seconds), share))


# --- a rank -------------------------------------------------------------------------------------
def say(rank: int, options: argparse.Namespace) -> None:
    """Log at a steady rate, as a rank does; what it could not say in time it says at once."""
    import ranklog

    ranklog.init(
        run="pressure",
        rank=rank,
        world_size=options.ranks,
        spool_dir=options.spool,
        destination=options.destination,
    )
    logger = logging.getLogger("trainer")
    logger.setLevel(logging.INFO)
    rate = options.rate * (options.times if rank == options.loud else 1)
    begun = time.monotonic()
    said, total = 0, int(rate * options.seconds)
    while said < total:
        due = min(total, int((time.monotonic() - begun) * rate))
        for step in range(said, due):
            logger.info(
                LINE, step, 1 / (step + 2), 3e-4, 51_200 + step % 97, step % 7 / 3, step % 11
            )
        said = due
        time.sleep(0.01)
    ranklog.close()


# --- a run --------------------------------------------------------------------------------------
def run_once(options: argparse.Namespace, *, floods: bool) -> Freshness:
    """All ranks, one agent, ingest beside them."""
    with tempfile.TemporaryDirectory(prefix="pressure-") as name:
        folder = Path(name)
        with way(options.kib, folder / "stream") as destination:
            loud = options.ranks - 1 if floods else -1
            ranks = [
                _start(rank, loud, folder / "spool", destination, options)
                for rank in range(options.ranks)
            ]
            try:
                return _ingest(ranks, folder, options)
            finally:
                for process in ranks:
                    process.kill()
                    process.wait()
                _end_agent(folder / "spool")


def _start(
    rank: int, loud: int, spool: Path, destination: str, options: argparse.Namespace
) -> subprocess.Popen[bytes]:
    words = [f"--rank={rank}", f"--loud={loud}", f"--spool={spool}", f"--destination={destination}"]
    for name in ("ranks", "rate", "times", "seconds"):
        words.append(f"--{name}={getattr(options, name)}")
    return subprocess.Popen([sys.executable, "-m", "tests.bench.pressure", *words])


def _ingest(
    ranks: list[subprocess.Popen[bytes]], folder: Path, options: argparse.Namespace
) -> Freshness:
    """Batches, a window after each other, until every line of every rank is stored."""
    store, stream = DiskStore(str(folder / "store"), create=True), folder / "stream"
    found = Freshness()
    from_ns = time.time_ns() + int(WARM_S * 1e9)
    until = time.monotonic() + options.seconds + DRAIN_S
    last = False
    while not last and time.monotonic() < until:
        begun = time.monotonic()
        last = all(process.poll() is not None for process in ranks)
        if (stream / "records").is_dir():
            for report in ingest_stream(DiskStream(stream, sync=False), store):
                found.add(report, time.time_ns(), from_ns, options.ranks - 1)
        time.sleep(max(0.0, WINDOW_S - (time.monotonic() - begun)))
    return found


def _end_agent(spool: Path) -> None:
    """The agent would end by itself; this run's must not slow the next one."""
    try:
        pid = int((spool / "collector.lock").read_text())
        os.kill(pid, signal.SIGTERM)
    except (OSError, ValueError):
        return
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.1)


# --- the way between ----------------------------------------------------------------------------
@contextmanager
def way(kib_per_s: int, folder: Path) -> Iterator[str]:
    """What the agent sends to: the stream, or a server before it that takes so much a second."""
    if not kib_per_s:
        yield str(folder)
        return
    stream = DiskStream(folder, sync=False)
    turn = threading.Lock()

    class Frames(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            with turn:
                time.sleep(len(data) / (kib_per_s * 1024))
                stream.put("", data)
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with answering(Frames) as url:
        yield url


# --- the figures --------------------------------------------------------------------------------
def measure(options: argparse.Namespace) -> list[Figure]:
    """Pairs of runs, in turns."""
    ratios, quiet, loud = [], [], []
    for number in range(options.rounds):
        pair: dict[bool, Freshness] = {}
        for floods in (False, True) if number % 2 == 0 else (True, False):
            pair[floods] = run_once(options, floods=floods)
        p99 = {floods: found.percentile(99) for floods, found in pair.items()}
        for floods, found in sorted(pair.items()):
            print(
                f"round {number + 1} {'flood' if floods else 'usual'}: p50 "
                f"{found.percentile(50):.3f} s, p99 {p99[floods]:.3f} s, lines of others "
                f"{sum(n for rank, n in found.lines.items() if rank != options.ranks - 1):,}, "
                f"of the last rank {found.lines.get(options.ranks - 1, 0):,}",
                flush=True,
            )
        quiet.append(p99[False])
        loud.append(p99[True])
        ratios.append(p99[True] / p99[False])
    times = f"one rank of {options.ranks} at {options.times:g} times the rate"
    way_ = f", {options.kib} KiB/s" if options.kib else ""
    return [
        Figure(f"freshness p99 of the others, usual{way_}", statistics.median(quiet), "s"),
        Figure(f"freshness p99 of the others, flood{way_}", statistics.median(loud), "s"),
        Figure(f"ratio, {times}{way_}", statistics.median(ratios), "", MARK),
    ]


def main() -> int:
    """Measure and print; with `--rank`, be one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rate", type=float, default=20.0, help="lines a second of a rank")
    parser.add_argument("--times", type=float, default=200.0)
    parser.add_argument("--kib", type=int, default=0, help="KiB/s to the stream; 0: no limit")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--loud", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--spool", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--destination", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        say(options.rank, options)
        return 0
    figures = measure(options)
    show(figures)
    return 0 if all(figure.ok for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
