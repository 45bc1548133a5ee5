"""A producer and a root logger to measure with, for `tests.bench.produce`; and its training loop."""

from __future__ import annotations

import contextlib
import logging
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ranklog.produce import telemetry as produce_telemetry
from ranklog.produce.context import reset
from ranklog.produce.fast_log import FastLog
from ranklog.produce.handler import RanklogHandler
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer
from ranklog.produce.ring import TAIL, TAIL_RECORDS
from tests.bench.produce_peers import CALLS

IDENTITY = Identity("default", "bench", "l1", 0, "n0", 0, 0, 1)
FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")


def log_lines(logger: logging.Logger) -> None:
    """The usual line."""
    for number in range(CALLS):
        logger.info("iteration %d done", number)


class Bench:
    """A producer, a root logger of its own handlers, and cases over them."""

    def __init__(self, folder: Path) -> None:
        self.producer = Producer(folder / "spool", IDENTITY, rings=folder / "rings")
        self.ours = RanklogHandler(self.producer)
        self.fast = FastLog(self.ours)
        self.file = logging.FileHandler(folder / "plain.log")
        self.file.setFormatter(FORMAT)
        self.logger = logging.getLogger("bench.trainer")
        logging.getLogger().setLevel(logging.INFO)

    def drain(self) -> None:
        """What an agent does: all that is written is consumed."""
        ring = self.producer.ring
        if ring is not None:
            ring.words[TAIL], ring.words[TAIL_RECORDS] = ring.head, ring.records

    @contextlib.contextmanager
    def handlers(self, *handlers: logging.Handler, ours: bool = False) -> Iterator[None]:
        root = logging.getLogger()
        before, root.handlers[:] = root.handlers[:], handlers
        if ours:
            self.drain()
            root.addHandler(self.ours)
            self.fast.install()
            produce_telemetry.attach(self.producer)
        try:
            yield
        finally:
            if ours:
                self.fast.remove()
                produce_telemetry.attach(None)
            root.handlers[:] = before
            reset()

    def logged(
        self,
        *handlers: logging.Handler,
        ours: bool = False,
        log: Callable[[logging.Logger], None] | None = None,
    ) -> Callable[[], int]:
        def work() -> int:
            with self.handlers(*handlers, ours=ours):
                start = time.thread_time_ns()
                (log or log_lines)(self.logger)
                return time.thread_time_ns() - start

        return work

    def called(self, calls: Callable[[], None]) -> Callable[[], int]:
        def work() -> int:
            with self.handlers(ours=True):
                calls()  # what is defined once, is
                start = time.thread_time_ns()
                calls()
                return time.thread_time_ns() - start

        return work


# --- a training loop ----------------------------------------------------------------------------


def training(bench: Bench, pairs: int, steps: int = 30) -> None:
    """Blocks of steps in any order, with ten lines a step to us, to a FileHandler, and without (not even
    calls of logging); CPU of the thread. Blocks are short, so that neighbours meet both of a pair alike.
    """
    work, order, root = _step_of(1.3e-3), random.Random(1), logging.getLogger()
    kinds = ["ours", "file", "none"]
    took: dict[str, list[int]] = {kind: [] for kind in kinds}
    stalls: dict[str, list[int]] = {kind: [] for kind in kinds}
    with bench.handlers(ours=True):  # once, as in a job
        for turn in range(-1, pairs):
            order.shuffle(kinds)
            for kind in kinds:
                bench.drain()
                root.handlers[:] = [bench.file if kind == "file" else bench.ours]
                block, waits = _block(bench.logger, work, steps, kind != "none")
                if turn >= 0:
                    took[kind].append(block)
                    stalls[kind] += waits
    print(f"training loop, 10 lines a step of 1.3 ms, {pairs} pairs of blocks of {steps} steps")
    _show_share("ranklog, mark 1 %", took["ours"], took["none"])
    _show_share("a FileHandler", took["file"], took["none"])
    for kind, name in (
        ("ours", "longest stall of ten lines, mark 1 ms"),
        ("file", "  of a FileHandler's"),
        ("none", "  of ten empty calls"),
    ):
        waits = sorted(stalls[kind])
        print(
            f"  {name:50} {waits[-1] / 1e6:6.3f} ms (median {waits[len(waits) // 2] / 1e3:.1f} µs)"
        )


def _show_share(name: str, blocks: list[int], beside: list[int]) -> None:
    """What blocks took over their pairs, with the interval of the mean."""
    shares = [block / other - 1 for block, other in zip(blocks, beside, strict=True)]
    middle = statistics.fmean(shares)
    half = 1.96 * statistics.stdev(shares) / len(shares) ** 0.5
    low, high = 100 * (middle - half), 100 * (middle + half)
    print(f"  {name:50} {100 * middle:+6.2f} % (95 %: {low:+.2f} .. {high:+.2f})")


def _step_of(seconds: float) -> Callable[[], None]:
    numbers = 1000

    def work() -> None:
        total = 0
        for number in range(numbers):
            total += number * number

    start = time.thread_time()
    for _ in range(200):
        work()
    numbers = int(numbers * seconds / ((time.thread_time() - start) / 200))
    return work


def _nothing(*arguments: object) -> None: ...


def _block(
    logger: logging.Logger, work: Callable[[], None], steps: int, with_lines: bool
) -> tuple[int, list[int]]:
    """ns of thread CPU of the block, and of each step's ten lines."""
    log = logger.info if with_lines else _nothing
    waits = []
    start = time.thread_time_ns()
    for step in range(steps):
        work()
        before = time.thread_time_ns()
        for line in range(10):
            log("step %d line %d loss %.4f", step, line, 2.31)
        waits.append(time.thread_time_ns() - before)
    return time.thread_time_ns() - start, waits
