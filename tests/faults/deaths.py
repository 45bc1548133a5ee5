"""Lines lost, and stored twice, of those said before a process died: `python -m tests.faults.deaths`.

Every death, of a process that logs (through the ring) or prints (through fd 1), with an agent that
lives and with one that is killed while the process speaks. Each process says 2,000 lines.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import ranklog
from ranklog.produce.starting import ensure_agent
from tests.agent.reading import lines_in

LINES = 2_000
DEATHS = {
    "exit": ("pass", 0),
    "exception": ("raise RuntimeError('the end')", 1),
    "os._exit": ("os._exit(3)", 3),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "SIGSEGV": ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV),
    "abort": ("os.abort()", -signal.SIGABRT),
}
PATHS = {
    "ring": ("None", "logging.info('process %s line %d', {name}, line)", "logging"),
    "fd": ("'fd'", "print('process', {name}, 'line', line)", "stdout"),
}
PROGRAM = """import logging, os, signal, sys, ranklog
ranklog.init(run='deaths', capture={capture})
print('speaks', file=sys.__stderr__, flush=True)
for line in range({lines}): {say}
{die}
"""
DELIVER_S = 120.0


@dataclass(frozen=True, slots=True)
class Count:
    """Of `said` lines."""

    said: int
    lost: int
    doubled: int
    wrong_ends: int  # processes that did not end as they should have


# Path, and whether the agent is killed while processes speak.
WAYS = tuple(product(PATHS, (False, True)))


def try_deaths(
    path: str, kill_agent: bool, times: int, folder: Path, lines: int = LINES
) -> dict[str, Count]:
    """Let processes speak and die one after the other, so many of each death; count what arrives."""
    spool, stream = folder / "spool", folder / "stream"
    wrong: Counter[str] = Counter()
    for number, death in product(range(times), DEATHS):
        name = f"{death}-{number}"
        kill_after_s = 0.004 * (number % 8) if kill_agent else None
        code = _live_and_die(path, death, name, spool, stream, lines, kill_after_s)
        wrong[death] += code != DEATHS[death][1]
    _deliver(spool, stream)
    _signal_agent(spool, signal.SIGTERM)
    seen: Counter[str] = Counter()
    stored = set()
    for line in lines_in(stream):
        # What is sent twice has the same stream and seq, and is stored once.
        if line.channel == PATHS[path][2] and (line.incarnation, line.seq) not in stored:
            stored.add((line.incarnation, line.seq))
            seen[line.text] += 1
    counts = {}
    for death in DEATHS:
        said = [f"process {death}-{n} line {line}" for n in range(times) for line in range(lines)]
        lost = sum(seen[text] == 0 for text in said)
        doubled = sum(max(0, seen[text] - 1) for text in said)
        counts[death] = Count(len(said), lost, doubled, wrong[death])
    return counts


def _live_and_die(
    path: str,
    death: str,
    name: str,
    spool: Path,
    stream: Path,
    lines: int,
    kill_after_s: float | None,
) -> int:
    capture, say, _ = PATHS[path]
    program = PROGRAM.format(
        capture=capture, lines=lines, say=say.format(name=repr(name)), die=DEATHS[death][0]
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env=_environment(spool, stream),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert child.stderr is not None
    child.stderr.readline()
    if kill_after_s is not None:
        # Sometimes before its first line, sometimes amid, sometimes after its last.
        time.sleep(kill_after_s)
        _signal_agent(spool, signal.SIGKILL)
    with contextlib.closing(child.stderr):
        child.stderr.read()
        return child.wait(timeout=60)


def _environment(spool: Path, stream: Path) -> dict[str, str]:
    package = str(Path(ranklog.__file__).parents[1])
    names = ("RANK", "SLURM", "PMI", "OMPI")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(names)}
    return kept | {
        "PYTHONPATH": package,
        "RANKLOG_SPOOL": str(spool),
        "RANKLOG_DESTINATION": str(stream),
    }


def _signal_agent(spool: Path, number: int) -> None:
    """The one that works on this spool, if one does."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((spool / "collector.lock").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if os.fsencode(spool) in words:
            os.kill(pid, number)


def _deliver(spool: Path, stream: Path) -> None:
    """What an agent that was killed has left, the next one delivers."""
    deadline = time.monotonic() + DELIVER_S
    while list(spool.glob("*.process")):
        if time.monotonic() > deadline:
            return  # it is counted as lost
        ensure_agent(spool, str(stream))
        time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.deaths", description=__doc__)
    parser.add_argument("--times", type=int, default=50, help="of each death (default: 50)")
    times = parser.parse_args().times
    print(
        f"{'death':<10} {'path':<5} {'agent':<7} {'said':>8} {'lost':>6} {'doubled':>8} {'ends':>8}"
    )
    good = True
    for path, kill_agent in WAYS:
        with tempfile.TemporaryDirectory(
            prefix="ranklog-deaths-", ignore_cleanup_errors=True
        ) as folder:
            counts = try_deaths(path, kill_agent, times, Path(folder))
        for death, count in counts.items():
            agent = "killed" if kill_agent else "lives"
            ends = "right" if not count.wrong_ends else f"{count.wrong_ends} wrong"
            print(
                f"{death:<10} {path:<5} {agent:<7} {count.said:>8,} {count.lost:>6,} "
                f"{count.doubled:>8,} {ends:>8}",
                flush=True,
            )
            good = good and (count.lost, count.doubled, count.wrong_ends) == (0, 0, 0)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
