"""Reads the spool of a host, frames it, sends it, and says what is delivered.

One per spool folder, in a process of its own (`python -m ranklog.agent`) or in that of
a launcher: never in a rank. What can't be sent waits where it is, in the spool's files: the
collector reads on only when its frames are out, so it holds a few frames at most.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ranklog import limits
from ranklog.agent.copies import Copies
from ranklog.agent.endings import Endings
from ranklog.agent.exits import has_writers
from ranklog.agent.framer import Framer
from ranklog.agent.sinks import Sink, open_sink
from ranklog.agent.sources import JournalSource, TextSource
from ranklog.errors import BadInput, RanklogError, TooLarge
from ranklog.produce import spool
from ranklog.produce.clock import now_ns
from ranklog.produce.spool import ProcessFiles

POLL_S = 0.1
FRAME_AGE_NS = limits.SECOND_NS // 2
URGENT_AGE_NS = limits.SECOND_NS // 5
RETRY_FIRST_S, RETRY_MAX_S = 0.1, 5.0
# With no process alive and the destination down for this long, the spool is left to a later collector.
ABANDON_S = 3600.0
# What is left when the collector is told to stop has this long to be sent.
STOP_S = 15.0
# A collector that nobody needs any more ends; the next process starts another.
IDLE_S = 2.0


class _Process:
    """A process of the spool while it is read."""

    def __init__(self, files: ProcessFiles, folder: Path, framer: Framer) -> None:
        self.files = files
        self.done = False
        self.acked = (0, 0)
        self.sources: dict[str, JournalSource | TextSource] = {}
        for channel, name in files.files.items():
            state = framer.state(files.stream(channel))
            if channel == spool.JOURNAL:
                self.sources[channel] = JournalSource(folder / name, files, state)
            else:
                copies = Copies.of(folder / files.incarnation, channel)
                self.sources[channel] = TextSource(folder / name, state, copies)

    def may_grow(self, folder: Path, channel: str) -> bool:
        """Whether somebody who outlived the process may write to its file still."""
        return channel != spool.JOURNAL and has_writers(folder / self.files.files[channel])

    def close(self) -> None:
        for source in self.sources.values():
            source.close()


class _GaveUp(Exception):
    """No more time to send: whatever is not out stays in the spool, and nothing more is read."""


class Collector:
    """`poll` in a loop, then `finish`. `mirror` gets what was written to fd 1 and 2, as it was."""

    def __init__(
        self,
        folder: Path,
        sink: Sink,
        *,
        keep: bool = False,
        mirror: dict[str, BinaryIO] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self._folder = folder
        self._sink = sink
        self._keep = keep
        self._mirror = mirror or {}
        self._mirrored: dict[Path, int] = {}
        self._framer = Framer(spool.new_incarnation(), self._queue)
        self._processes: dict[str, _Process] = {}
        self._endings = Endings(folder)
        self._frames: list[tuple[str, bytes]] = []
        self._refused = 0
        self._give_up_at: float | None = None
        self._stop = stop or threading.Event()

    @property
    def is_idle(self) -> bool:
        """No process is left whose lines are not delivered."""
        return not self._processes and self._framer.is_empty and not self._frames

    def exited(self, pid: int, start: str, code: int) -> None:
        """A launcher tells how its child ended (negative: the signal)."""
        self._endings.tell(pid, start, code)

    def poll(self, *, hurry: bool = False) -> None:
        """Read what is new, send what is due, acknowledge what is sent.

        `hurry`: cut frames now, and don't wait for exit codes of processes that are gone.
        """
        with contextlib.suppress(_GaveUp):
            self._poll(hurry)

    def _poll(self, hurry: bool) -> None:
        self._discover()
        for process in self._processes.values():
            over = self._endings.is_over(process.files, hurry=hurry)  # before reading its last
            if process.done:
                continue
            now = now_ns()
            done = over
            for channel, source in process.sources.items():
                final = over and (hurry or not process.may_grow(self._folder, channel))
                source.read(self._framer, now, final=final)
                self._copy_to_console(process, channel)
                self._send()
                if final:
                    self._framer.end(source.state, self._endings.code(process.files))
                done = done and final
            process.done = done
        now = now_ns()
        self._framer.fence_past_hours(now)
        if hurry:
            self._framer.cut_all()
        else:
            self._framer.cut_due(now, age_ns=FRAME_AGE_NS, urgent_age_ns=URGENT_AGE_NS)
        self._send()
        self._acknowledge()

    def finish(self, timeout_s: float) -> int:
        """Send all that is there, streams' ends included. 0, or how many frames it was left with."""
        if self._give_up_at is None:
            self._give_up_at = time.monotonic() + timeout_s
        self.poll(hurry=True)
        for process in self._processes.values():
            process.close()
        self._endings.close()
        return len(self._frames)

    def _discover(self) -> None:
        for files in spool.announced(self._folder, self._processes):
            try:
                process = _Process(files, self._folder, self._framer)
            except OSError:  # another collector took it away
                continue
            self._processes[files.incarnation] = process

    def _copy_to_console(self, process: _Process, channel: str) -> None:
        console = self._mirror.get(channel)
        if console is None:
            return
        path = self._folder / process.files.files[channel]
        at = self._mirrored.get(path, 0)
        with path.open("rb") as file:
            file.seek(at)
            data = file.read()
        try:
            console.write(data)
            console.flush()
        except (OSError, ValueError):  # the terminal is gone; the lines are not
            self._mirror.pop(channel, None)
        self._mirrored[path] = at + len(data)

    # --- sending --------------------------------------------------------------------------------

    def _queue(self, partition_key: str, data: bytes) -> None:
        self._frames.append((partition_key, data))
        if len(self._frames) >= 16:
            self._send()

    def _send(self) -> None:
        """Deliver the frames in order; waits as long as it takes, or until it is time to give up."""
        wait_s, began = RETRY_FIRST_S, time.monotonic()
        while self._frames:
            try:
                self._sink.put(*self._frames[0])
            except (BadInput, TooLarge) as error:
                self._set_aside(error)
            except RanklogError:
                if self._gives_up(began, wait_s):
                    raise _GaveUp from None
                time.sleep(random.uniform(0, wait_s))
                wait_s = min(2 * wait_s, RETRY_MAX_S)
                continue
            del self._frames[0]

    def _gives_up(self, began: float, wait_s: float) -> bool:
        now = time.monotonic()
        if self._give_up_at is None and self._stop.is_set():
            self._give_up_at = now + STOP_S
        if self._give_up_at is None and now - began > ABANDON_S and not self._anyone_alive():
            self._stop.set()
            self._give_up_at = now
        return self._give_up_at is not None and now + wait_s > self._give_up_at

    def _anyone_alive(self) -> bool:
        return any(spool.is_alive(p.files.pid, p.files.start) for p in self._processes.values())

    def _set_aside(self, error: RanklogError) -> None:
        """A frame that is refused for good is kept, and the rest goes on."""
        self._refused += 1
        name = f"refused.{spool.new_incarnation()}.frame"
        (self._folder / name).write_bytes(self._frames[0][1])
        if self._refused == 1:
            print(f"ranklog: a frame was refused and kept as {name}: {error}", file=sys.stderr)

    def _acknowledge(self) -> None:
        if self._frames or not self._framer.is_empty:
            return
        for incarnation, process in list(self._processes.items()):
            if process.done and not self._keep:
                self._forget(process)
                del self._processes[incarnation]
            elif (journal := process.sources.get(spool.JOURNAL)) is not None:
                reached = (journal.offset, journal.records)
                if reached != process.acked:
                    spool.write_ack(self._folder / f"{incarnation}.acked", *reached)
                    process.acked = reached

    def _forget(self, process: _Process) -> None:
        """Remove a delivered process's files; the one that announces it goes first."""
        process.close()
        incarnation = process.files.incarnation
        names = [f"{incarnation}.process", *process.files.files.values(), f"{incarnation}.acked"]
        names += [f"{incarnation}.copies", f"{incarnation}.exit"]
        for name in names:
            (self._folder / name).unlink(missing_ok=True)


def run(folder: Path, sink: Sink, stop: threading.Event, *, mirror: bool = False) -> None:
    """Collect until nobody logs any more (IDLE_S), `stop` is set, or there is no way out."""
    consoles: dict[str, BinaryIO] = {}
    if mirror:
        consoles = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
    collector = Collector(folder, sink, mirror=consoles, stop=stop)
    busy_at = time.monotonic()
    while not stop.is_set() and time.monotonic() - busy_at < IDLE_S:
        collector.poll()
        if not collector.is_idle:
            busy_at = time.monotonic()
        stop.wait(POLL_S)
    collector.finish(timeout_s=STOP_S)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m ranklog.agent SPOOL DESTINATION [--once] [--mirror]`."""
    parser = argparse.ArgumentParser(prog="python -m ranklog.agent", description=__doc__)
    parser.add_argument("spool", type=Path)
    parser.add_argument("destination", help="directory, kinesis://STREAM or https://…")
    parser.add_argument("--once", action="store_true", help="send what is there, and end")
    parser.add_argument(
        "--mirror", action="store_true", help="copy captured output to this console"
    )
    options = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        spool.make_spool(options.spool)
        sink = open_sink(options.destination, os.environ)
        return _collect(options, sink, stop)
    except (RanklogError, OSError) as error:
        print(f"ranklog: nothing is sent: {error}", file=sys.stderr)
        return 2


def _collect(options: argparse.Namespace, sink: Sink, stop: threading.Event) -> int:
    while True:
        with spool.collector_lock(options.spool) as ours:
            if not ours:
                return 0  # another one does it
            (options.spool / "collector.lock").write_text(str(os.getpid()))
            if options.once:
                return 1 if Collector(options.spool, sink).finish(timeout_s=30.0) else 0
            run(options.spool, sink, stop, mirror=options.mirror)
        # Who announced itself while we still held the lock relies on us.
        if stop.is_set() or not any(spool.announced(options.spool)):
            return 0
