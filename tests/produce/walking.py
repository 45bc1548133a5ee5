"""Calls every public function of a training process, and prints what each cost. Run in a process of
its own: `python -m tests.produce.walking CONDITION`; the folder of the spool is in the environment.

Conditions: `stopped` (the agent is there and gets no processor), `ring` (full, nobody reads it),
`disk` (the spool's file system has no byte left).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy

import ranklog
from ranklog.produce import spool

ROUNDS, ODD_ROUNDS = 30, 2
WAIT_S = 0.2
LOG = logging.getLogger("walk")
ARRAY = numpy.ones(1024, numpy.float32)


def _handle() -> None:
    handle = ranklog.context(shard=1)
    handle.close()


def _scoped() -> None:
    with ranklog.context(rank=3), ranklog.iteration(4), ranklog.phase("checkpoint"):
        ranklog.log("inside")


def _timed() -> None:
    with ranklog.timer("forward"):
        pass


def _raised() -> None:
    try:
        raise ValueError("expected")
    except ValueError:
        LOG.exception("caught")


def _warned() -> None:
    with contextlib.suppress(UserWarning):
        warnings.warn("a warning", stacklevel=1)


def _uncaught_in_thread() -> None:
    """What a thread's uncaught exception costs the hook, without the thread."""
    try:
        raise RuntimeError("expected")
    except RuntimeError as error:
        words = (type(error), error, error.__traceback__, threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(words))


# Name among ranklog's public ones -> what a job does with it.
PUBLIC: dict[str, list[Callable[[], Any]]] = {
    "init": [lambda: ranklog.init(run="again", config={"a": 1})],
    "Handle": [_handle],
    "context": [_handle, lambda: ranklog.context(dataset="c4/en", shard=3), _scoped],
    "iteration": [lambda: ranklog.iteration(120), lambda: ranklog.iteration(121).close()],
    "phase": [lambda: ranklog.phase("forward").close()],
    "timer": [_timed, lambda: list(ranklog.timer("data").each([1]))],
    "tensor": [
        lambda: ranklog.tensor("activations", ARRAY, every=1, module="mlp"),
        lambda: ranklog.tensor("activations", [1.0]),
    ],
    "watch": [lambda: ranklog.watch(object()).close()],
    "mirror": [lambda: ranklog.mirror("comet")],
    "SummaryWriter": [lambda: _writer.add_scalar("loss", 2.5, 3)],
    "monitor": [ranklog.monitor],  # what runs already: the first starts a thread
    "log": [
        lambda: ranklog.log("text"),
        lambda: ranklog.log("text", "error", loss=2.5, name="x" * 2000),
        lambda: ranklog.log("two\nlines", 30),
        lambda: ranklog.log("x" * 100_000),
    ],
    "telemetry": [
        lambda: ranklog.telemetry({"loss": 2.31}),
        lambda: ranklog.telemetry({f"layer{n}": float(n) for n in range(20)}, module="mlp"),
    ],
    "attach": [
        lambda: ranklog.attach("/no/such/trace.json"),
        lambda: ranklog.attach(sys.executable, "image"),
    ],
    "handler": [ranklog.handler, lambda: ranklog.handler().handle(_record())],
}
# Asked for once, when a job sets its logging up; what they give is called for every line.
_writer = ranklog.SummaryWriter.__new__(ranklog.SummaryWriter)  # without its `init`
_sink, _processor = ranklog.loguru_sink(), ranklog.structlog_processor
PUBLIC |= {
    "loguru_sink": [lambda: _sink(_loguru_message()), ranklog.loguru_sink],
    "structlog_processor": [lambda: _processor(None, "info", {"event": "text", "loss": 1.5})],
}
# What libraries call that know nothing of us.
LIBRARIES: dict[str, list[Callable[[], Any]]] = {
    "logging": [
        lambda: LOG.info("step %d loss %.4f", 12, 2.31),
        lambda: LOG.warning("with extra", extra={"loss": 1.5}),
        lambda: LOG.error("no arguments"),
        lambda: LOG.debug("too low"),
        _raised,
    ],
    "warnings": [_warned],
    "threading.excepthook": [_uncaught_in_thread],
}


def _record() -> logging.LogRecord:
    return logging.LogRecord("walk", logging.INFO, __file__, 1, "a record", None, None)


def _loguru_message() -> Any:
    """What loguru hands to a sink."""
    level, file = SimpleNamespace(no=20), SimpleNamespace(path=__file__)
    record = {"file": file, "line": 1, "function": "f", "name": "walk", "level": level}
    record |= {"message": "text", "extra": {"loss": 1.5}, "exception": None}
    return SimpleNamespace(record=record)


def stop_agent(folder: Path) -> int:
    """Stop the agent that works on the spool; its pid."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        with contextlib.suppress(OSError, ValueError):
            pid = int((folder / "collector.lock").read_text())
            if pid > 1 and spool.has_collector(folder):
                os.kill(pid, signal.SIGSTOP)
                return pid
        time.sleep(0.01)
    raise SystemExit("no agent came")


def fill_ring() -> None:
    for _ in range(40_000):
        LOG.info("x" * 200)


def fill_disk(folder: Path) -> None:
    fd = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
    for size in (65536, 4096, 1):
        with contextlib.suppress(OSError):
            while os.write(fd, b"x" * size):
                pass


def cost(call: Callable[[], Any]) -> tuple[float, float]:
    """Of ROUNDS calls: milliseconds of this thread's processor time, all but ODD_ROUNDS took less, and the
    most of the wall's.

    A call during which the kernel gave our processor away for long says nothing of wall time; the
    processor's time is this thread's alone, but for what others make of its caches and its clock.
    """
    cpu_ms, wall_ms = [], []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        call()
        cpu_ms.append((time.thread_time_ns() - cpu) / 1e6)
        wall_ms.append((time.perf_counter_ns() - wall) / 1e6)
    return sorted(cpu_ms)[-1 - ODD_ROUNDS], max(wall_ms)


def main(condition: str) -> None:
    """Set the condition up, walk, print costs as JSON."""
    folder = Path(os.environ["RANKLOG_SPOOL"])
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    ranklog.init(run="walk")
    logging.raiseExceptions = True
    for name in PUBLIC:  # a name is imported when it is first asked for: not what calling it costs
        getattr(ranklog, name)
    ranklog.monitor(every_s=60)
    agent = 0
    if condition == "stopped":
        agent = stop_agent(folder)
    elif condition == "ring":
        fill_ring()
    elif condition == "disk":
        fill_disk(folder)
        fill_ring()
    costs = {
        f"{name} {at}": cost(call)
        for calls in (PUBLIC, LIBRARIES)
        for name, several in calls.items()
        for at, call in enumerate(several)
    }
    waits = {}
    for name, wait in (("flush", ranklog.flush), ("close", ranklog.close)):
        start = time.perf_counter()
        left = wait(WAIT_S)
        waits[name] = (left, time.perf_counter() - start)
    after = {"log": cost(lambda: ranklog.log("after the end")), "flush": cost(ranklog.flush)}
    if agent:
        os.kill(agent, signal.SIGKILL)  # a stopped process ends at once, and may be gone here
    print(json.dumps({"costs": costs, "waits": waits, "after": after}))


if __name__ == "__main__":
    main(sys.argv[1])
