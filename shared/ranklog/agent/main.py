"""The agent as a process: one per spool, in its own session, until nobody logs any more."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ranklog.agent import status
from ranklog.agent.collector import Collector, Options
from ranklog.agent.host import HostStreams
from ranklog.agent.host_logs import parse_host_logs
from ranklog.agent.sending import Sender
from ranklog.agent.settings import options_from
from ranklog.agent.sinks import Sink, open_sink
from ranklog.agent.tail import Tail, TailStreams
from ranklog.agent.watchdog import keep_alive
from ranklog.errors import RanklogError
from ranklog.produce import spool
from ranklog.produce.starting import resolved

# What is left when the agent is told to stop has this long to be sent; a request in flight a little
# longer. Slurm kills 30 s after SIGTERM.
STOP_S, LAST_REQUEST_S = 12.0, 3.0
# An agent that nobody needs any more ends; the next process starts another.
IDLE_S = 2.0
# Who only asks whether an agent works takes the lock for a moment: that is no other agent.
LOOKS, LOCK_LOOK_S = 4, 0.03
# One that is to stay takes over when the other ends.
STAY_LOOK_S = 0.5
# With no process alive and the destination down for this long, the spool is left to a later agent.
ABANDON_S = 3600.0
# Between two looks of the sending thread while there is nothing to send.
SEND_LOOK_S = 0.02
ONCE_S = 30.0


class SendingThread:
    """Sends beside the reading, so that a destination that hangs holds nothing up but itself."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._ended = threading.Event()
        self.hurry = False
        self._thread = threading.Thread(target=self._run, name="ranklog-send", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Whether it ended in time."""
        self._ended.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ended.is_set():
            if not self._sender.step(hurry=self.hurry):
                self._ended.wait(SEND_LOOK_S)


def run(
    folder: Path,
    sink: Sink,
    stop: threading.Event,
    options: Options,
    destination: str = "",
    *,
    stay: bool = False,
) -> None:
    """Work until nobody logs any more (IDLE_S; with `stay` for as long as it takes until somebody does),
    `stop` is set, or there is no way out."""
    collector = Collector(folder, sink, options, destination=destination)
    sending = SendingThread(collector.sender)
    started_at, told_at = time.time(), 0.0
    busy_at = time.monotonic()
    while not stop.is_set() and (stay or time.monotonic() - busy_at < IDLE_S):
        more = collector.poll(send=False)
        now = time.monotonic()
        if not collector.is_idle:
            busy_at = now
        if now - told_at >= status.PERIOD_S:
            told_at = now
            _tell(folder, collector, destination, started_at)
        if _is_abandoned(collector, now) and not stay:
            break
        if not (folder / "wal").is_dir():  # somebody removed the spool: nothing can be kept
            return
        if not more:
            stop.wait(collector.pause_s)
    sending.hurry = True
    collector.drain(STOP_S if not _is_abandoned(collector, time.monotonic()) else 0.0, send=False)
    _tell(folder, collector, destination, started_at)
    if sending.stop(LAST_REQUEST_S):
        collector.close()


def _is_abandoned(collector: Collector, now: float) -> bool:
    since = collector.sender.failing_since
    return since is not None and now - since > ABANDON_S and not collector.processes.anyone_alive()


def _tell(folder: Path, collector: Collector, destination: str, started_at: float) -> None:
    spool.tell_denied(folder, collector.sender.denied)
    with contextlib.suppress(OSError):  # a full disk: lines matter more
        status.write(folder, status.describe(collector, destination, started_at))


def work(
    folder: Path,
    destination: str,
    *,
    once: bool = False,
    mirror: bool = False,
    host_logs: Sequence[str] = (),
    tails: Sequence[Tail] = (),
    stay: bool = False,
) -> int:
    """An agent for the folder, unless one works on it: 0, or 1 where `once` left something.

    Raises RanklogError, OSError.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    spool.make_spool(folder)
    destination = resolved(destination)  # as ranks name it: they compare
    options = options_from(os.environ)
    if mirror:
        options.mirror = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
    logs = parse_host_logs(host_logs or [os.environ.get("RANKLOG_HOST_LOGS", "")])
    if logs:
        options.host = HostStreams(logs, options.masker, os.environ)
    if tails:
        options.tail = TailStreams(tails, options.masker)
    sink: Sink | None = None
    looks = LOOKS
    while True:
        with spool.collector_lock(folder) as ours:
            if not ours:
                looks -= 0 if stay else 1
                if not looks or stop.wait(STAY_LOOK_S if stay else LOCK_LOOK_S):
                    return 0  # another one does it
                continue
            (folder / "collector.lock").write_text(str(os.getpid()))
            with contextlib.suppress(OSError):  # a full disk: lines matter more
                spool.say_whose(folder, destination)
            # Not before: who attaches to another agent need not import what sends.
            sink = sink or open_sink(destination, os.environ)
            spool.tell_agent_error(folder, None)
            if once:
                collector = Collector(folder, sink, options, destination=destination)
                left = collector.finish(timeout_s=ONCE_S)
                return 1 if left or collector.sender.refused else 0
            run(folder, sink, stop, options, destination, stay=stay)
        # Who announced itself while we still held the lock relies on us.
        if stop.is_set() or not any(spool.announced(folder)):
            return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m ranklog.agent SPOOL DESTINATION [--once] [--mirror] [--host-logs LOGS]`."""
    parser = argparse.ArgumentParser(prog="python -m ranklog.agent", description=__doc__)
    parser.add_argument("spool", type=Path)
    parser.add_argument("destination", help="directory, store, kinesis://STREAM or https://…")
    parser.add_argument("--once", action="store_true", help="send what is there, and end")
    parser.add_argument(
        "--mirror", action="store_true", help="copy captured output to this console"
    )
    parser.add_argument("--host-logs", help="kernel, nccl, slurm, kubelet or auto", default="")
    options = parser.parse_args(arguments)

    def one() -> int:
        try:
            return work(
                options.spool,
                options.destination,
                once=options.once,
                mirror=options.mirror,
                host_logs=[options.host_logs] if options.host_logs else (),
            )
        except (RanklogError, OSError) as error:
            spool.tell_agent_error(options.spool, error)
            print(f"ranklog: nothing is sent: {error}", file=sys.stderr)
            return 2

    return one() if options.once else keep_alive(one, lambda: spool.is_anyone_alive(options.spool))
