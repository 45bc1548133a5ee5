"""What logging costs a training process: `python -m tests.bench.produce [--quick]`.

Every figure is a ratio to one line of a `FileHandler` with a usual format, measured in the same run:
all of them in turn, many times over, the least CPU time of the thread counts. Peers that are
installed are measured beside it. Then a training loop with ten lines a step of about 1.3 ms, in
blocks with and without ranklog by turns; the longest stall of the thread; memory; `import ranklog`.
Run it on a machine that does nothing else, or read the intervals. With `RANKLOG_COMPILED=0` it
measures the Python form.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ranklog
from ranklog.produce.compiled import hot
from ranklog.produce.ring import HEADER_BYTES
from tests.bench.produce_peers import CALLS, peers
from tests.bench.produce_rig import Bench, training

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Case:
    """`mark` is the largest ratio; `beside` names the case whose cost is taken off."""

    name: str
    work: Callable[[], int]  # ns of thread CPU for CALLS calls
    mark: float | None = None
    beside: str | None = None


# The same call at the end of a function of some 600 lines.
_LONG: dict[str, Callable[[logging.Logger], None]] = {}
exec(
    "def log(logger):\n"
    + "    if not logger: raise ValueError\n" * 600
    + f"    for number in range({CALLS}):\n"
    + "        logger.info('iteration %d done', number)\n",
    _LONG,
)


def _log_text(logger: logging.Logger) -> None:
    for number in range(CALLS):
        logger.info(f"iteration {number} done")


def _log_three(logger: logging.Logger) -> None:
    for number in range(CALLS):
        logger.info("iteration %d loss %.4f lr %.2e", number, 2.3125, 1e-4)


def _one_value() -> None:
    telemetry = ranklog.telemetry
    for _ in range(CALLS):
        telemetry({"loss": 2.31})


def _value_with_dims() -> None:
    telemetry = ranklog.telemetry
    for _ in range(CALLS):
        telemetry({"grad_norm": 2.31}, layer="h.3")


def _twenty_values() -> None:
    telemetry = ranklog.telemetry
    values = {f"layer.{n}.grad_norm": n * 1.37 for n in range(20)}
    for _ in range(CALLS):
        telemetry(values)


def _context_change() -> None:
    context = ranklog.context
    for number in range(CALLS):
        context(shard=number & 7)


def _phase() -> None:
    for _ in range(CALLS // 2):  # each is two changes
        with ranklog.phase("forward"):
            pass


def cases(bench: Bench, folder: Path) -> list[Case]:
    """Ours, with their marks, and the peers that are installed."""
    null = logging.NullHandler()
    return [
        Case("logging to a FileHandler", bench.logged(bench.file)),
        Case("logging, ours the only sink", bench.logged(ours=True), 0.12),
        Case("  in a function of 600 lines", bench.logged(ours=True, log=_LONG["log"]), 0.12),
        Case("  three arguments", bench.logged(ours=True, log=_log_three)),
        Case("  an f-string", bench.logged(ours=True, log=_log_text)),
        Case("logging to nothing", bench.logged(null)),
        Case(
            "  ours added to the FileHandler",
            bench.logged(bench.file, ours=True),
            0.08,
            "logging to a FileHandler",
        ),
        Case("  ours added to nothing", bench.logged(null, ours=True), 0.08, "logging to nothing"),
        Case("telemetry, one value", bench.called(_one_value), 0.05),
        Case("telemetry, one value of a dimension", bench.called(_value_with_dims)),
        Case("telemetry, 20 values", bench.called(_twenty_values), 0.15),
        Case("context change", bench.called(_context_change), 0.1),
        Case("phase, one end of it", bench.called(_phase), 0.1),
        *[Case(f"peer: {name}", work) for name, work in peers(bench.logged, bench.file, folder)],
    ]


def measure(chosen: list[Case], rounds: int) -> dict[str, float]:
    """Least ns a call of each, all of them in turn."""
    least = dict.fromkeys((case.name for case in chosen), float("inf"))
    for _ in range(rounds):
        for case in chosen:
            least[case.name] = min(least[case.name], case.work() / CALLS)
    return least


def show(chosen: list[Case], least: dict[str, float]) -> None:
    unit = least["logging to a FileHandler"]
    print(f"\n{'one call':50} {'ns':>8} {'ratio':>7} {'mark':>6}")
    for case in chosen:
        taken_off = least[case.beside] if case.beside else 0.0
        cost = least[case.name] - taken_off
        mark = "" if case.mark is None else f"{case.mark:6.2f}"
        print(f"{case.name:50} {cost:8.0f} {cost / unit:7.3f} {mark}")


_MEMORY = """
import sys, json
def kib(name):
    for line in open("/proc/self/status"):
        if line.startswith(name): return int(line.split()[1])
import logging, threading, traceback, dataclasses, subprocess, tempfile, socket, hashlib, json, inspect
before = kib("RssAnon"), kib("RssShmem")
import ranklog
ranklog.init(run="bench", spool_dir=sys.argv[1])
for n in range(200_000):
    logging.info("iteration %d done", n)
    ranklog.telemetry({"loss": 1.5})
print(kib("RssAnon") - before[0], kib("RssShmem") - before[1])
"""


def memory(folder: Path, rings: Path) -> None:
    """Of a rank that logged for a while, over one that has the same of the standard library."""
    environ = {
        **os.environ,
        "RANKLOG_RINGS": str(rings),
        "RANKLOG_MANIFEST": "0",
        "PYTHONPATH": str(Path(ranklog.__file__).parents[1]),
    }
    for name in ("RANKLOG_DESTINATION", "RANKLOG_RING_MIB"):
        environ.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY, str(folder / "memory-spool")],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    own, shared = map(int, done.stdout.split())
    print(
        f"\nmemory of a rank: {own / 1024:.1f} MiB, mark 5, and a ring of {shared / 1024:.1f} MiB"
    )


def imports(rounds: int) -> None:
    """CPU of an interpreter that imports, over one that doesn't; the least of each."""
    programs = {"bare": "pass", "import": "import ranklog", "init": "import ranklog; ranklog.init"}
    least = dict.fromkeys(programs, float("inf"))
    environ = {**os.environ, "PYTHONPATH": str(Path(ranklog.__file__).parents[1])}
    for _ in range(rounds):
        for name, program in programs.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", program], env=environ, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            least[name] = min(least[name], 1000 * cpu)
    print(
        f"import ranklog: {least['import'] - least['bare']:.1f} ms of CPU over bare Python, mark 15; "
        f"with what init needs: {least['init'] - least['bare']:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.produce", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds")
    quick = parser.parse_args().quick
    print("the compiled form" if hot else "the Python form (no compiled one)")
    # Rings belong on tmpfs, as in a job; the rest beside what a FileHandler would write to.
    on_tmpfs = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "rings").symlink_to(on_tmpfs)
            bench = Bench(folder)
            ring = bench.producer.ring
            if ring is None or ring.path.stat().st_size < MIB + HEADER_BYTES:
                raise SystemExit("no room for a ring")
            training(bench, 60 if quick else 240)  # before peers have threads here
            chosen = cases(bench, folder)
            show(chosen, measure(chosen, 6 if quick else 30))
            memory(folder, on_tmpfs / "memory")
            imports(5 if quick else 20)
            bench.producer.close()
    finally:
        shutil.rmtree(on_tmpfs, ignore_errors=True)


if __name__ == "__main__":
    main()
