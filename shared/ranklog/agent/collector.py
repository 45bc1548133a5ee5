"""Reads the spool of a host into its log, and sends what the log holds.

One per spool folder, in a process of its own (`python -m ranklog.agent`) or in that of a launcher:
never in a rank. A look reads what processes wrote, cuts frames that are due, and writes frames and
the positions that result into the log in one block; only then is the room they came from given back
and the frames are sent. What can't be sent waits in the log, up to the quota.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ranklog import limits
from ranklog.agent import quota
from ranklog.agent.admission import Admission
from ranklog.agent.endings import Endings
from ranklog.agent.exits import has_writers
from ranklog.agent.framer import Framer
from ranklog.agent.host import HostStreams
from ranklog.agent.mask import Masker
from ranklog.agent.process import Policy, SpooledProcess
from ranklog.agent.sampling import Sampler
from ranklog.agent.sending import Sender
from ranklog.agent.sinks import SingleSink, Sink
from ranklog.agent.tail import TailStreams
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import WalFrame
from ranklog.model.frame import FrameStream
from ranklog.produce import spool
from ranklog.produce.clock import now_ns
from ranklog.produce.identity import WORKER
from ranklog.produce.spool import ProcessFiles

POLL_S = 0.1
FRAME_AGE_NS = limits.SECOND_NS
URGENT_AGE_NS = limits.SECOND_NS // 5
# Portions of one process that are read before the next one has its turn.
PORTIONS_MAX = 8
QUOTA_LOOK_S = 1.0
# A process whose files could not be read so often is left alone, for `replay` and whoever looks.
FAILURES_MAX = 3
# A process that runs is told of so often; one that says nothing for longer than the second number,
# only that often: its heartbeats are then objects of their own.
BEAT_NS, QUIET_BEAT_NS = 10 * limits.SECOND_NS, 60 * limits.SECOND_NS


@dataclass(slots=True)
class Options:
    """How an agent treats what it reads."""

    masker: Masker = field(default_factory=Masker)
    sampler: Callable[[], Sampler | None] = lambda: None
    quota_bytes: int = quota.QUOTA_BYTES
    mirror: dict[str, BinaryIO] = field(default_factory=dict)  # channel -> console
    host: HostStreams | None = None
    tail: TailStreams | None = None


@dataclass(slots=True)
class _Uncommitted:
    """Frames that the disk has no room for yet, and the state that results from them."""

    frames: list[WalFrame]
    change: dict[str, Any]
    saved: dict[str, dict[str, Any]]


class Collector:
    """`poll` in a loop, then `finish`."""

    def __init__(
        self,
        folder: Path,
        sink: Sink | SingleSink,
        options: Options | None = None,
        *,
        boot: str | None = None,
    ) -> None:
        """`boot` names this run of the operating system. Raises OSError where the log can't be."""
        self._folder = folder
        self._options = options or Options()
        self._host, self._tail = self._options.host, self._options.tail
        self._admission = Admission()
        self._policy = Policy(self._options.masker, self._admission, self._options.sampler)
        self._mirrored: dict[Path, int] = {}
        self.wal = Wal(folder / "wal")
        self.sender = Sender(self.wal, sink, folder / "refused")
        self._endings = Endings(folder)
        self.processes: dict[str, SpooledProcess] = {}
        self._uncommitted: _Uncommitted | None = None
        self._looked_at = 0.0
        self._told_end: set[tuple[int, str]] = set()
        self.disk_error = ""
        self.lines_lost: dict[str, int] = {}  # by the quota, by stream
        self.used_bytes = 0
        self._begin(_boot_id() if boot is None else boot)

    @property
    def is_idle(self) -> bool:
        """No process is left whose lines are not delivered."""
        if self._tail is not None and self._tail.is_open:
            return False
        waiting = any(one.failures <= FAILURES_MAX for one in self.processes.values())
        return not waiting and self._uncommitted is None and not self.wal.unsent

    def exited(self, pid: int, start: str, code: int) -> None:
        """A launcher tells how its child ended (negative: the signal)."""
        self._endings.tell(pid, start, code)

    def poll(self, *, hurry: bool = False, send: bool = True) -> bool:
        """One look: read, log, send, acknowledge. Whether there is more to read now.

        `hurry`: cut frames now, and don't wait for exit codes of processes that are gone. `send`:
        not where another thread does.
        """
        self._discover()
        self._look_at_quota()
        more = False
        if self._committed():
            more = self._read(hurry)
            now = now_ns()
            streams = [state for one in self.processes.values() for state in one.streams]
            if self._host is not None:
                more = self._host.read(self._framer, now, final=hurry) or more
                streams += self._host.streams
            if self._tail is not None:
                more = self._tail.read(self._framer, now, final=hurry) or more
                streams += self._tail.streams
            self._framer.fence_past_hours(streams, now)
            self._beat(now)
            ages = {"age_ns": FRAME_AGE_NS, "urgent_age_ns": URGENT_AGE_NS}
            if hurry or self._framer.is_due(now, **ages) or self._somebody_waits():
                self._commit()
        if send:
            while self.sender.step(hurry=hurry):
                pass
        self._acknowledge()
        return more

    @property
    def agent(self) -> str:
        """Its incarnation."""
        return self._framer.agent

    @property
    def quota_bytes(self) -> int:
        return self._options.quota_bytes

    @property
    def masked(self) -> Mapping[str, int]:
        """Secrets by kind, since it began."""
        return self._options.masker.counts

    @property
    def host_logs(self) -> dict[str, str]:
        """The host's logs that are asked for: how many lines of them there are, or what is missing."""
        if self._host is None:
            return {}
        told = {one.channel: one.reason for one in self._host.missing}
        read = {name: f"{one.records} lines" for name, one in self._host.sources.items()}
        return told | read

    def anyone_alive(self) -> bool:
        """Whether a process that it reads runs still."""
        files = [process.files for process in self.processes.values()]
        return any(spool.is_alive(one.pid, one.start) for one in files)

    def finish(self, timeout_s: float) -> int:
        """`drain`, then `close`."""
        left = self.drain(timeout_s)
        self.close()
        return left

    def drain(self, timeout_s: float, *, send: bool = True) -> int:
        """Log and send all that is there, streams' ends included; how many frames are left."""
        until = time.monotonic() + timeout_s
        self.sender.urgent_first = True
        if self._host is not None and not self.processes and not any(spool.announced(self._folder)):
            self._host.end(self._framer)
        while self.poll(hurry=True, send=send) and time.monotonic() < until:
            pass
        while (self.wal.unsent or self._uncommitted) and time.monotonic() < until:
            time.sleep(min(0.02, timeout_s))
            self.poll(hurry=True, send=send)
        return self.wal.unsent + (len(self._uncommitted.frames) if self._uncommitted else 0)

    def close(self) -> None:
        """Let go of the files; what they hold stays."""
        for process in self.processes.values():
            process.close()
        for followed in (self._host, self._tail):
            if followed is not None:
                followed.close()
        self._endings.close()
        self.wal.close()

    # --- reading --------------------------------------------------------------------------------

    def _begin(self, boot: str) -> None:
        """Go on with the log, or begin as another agent where it is of another boot, or lost."""
        known = self.wal.state.get("agent", {})
        self._is_same_boot = known.get("boot") == boot
        if self._is_same_boot:
            self._framer = Framer(known["id"], self.wal.state.get("chains"))
            if self._host is not None and "logs" in self.wal.state.get("host", {}):
                self._host.restore(self.wal.state["host"]["logs"], now_ns())
            if self._tail is not None:
                self._tail.restore(self.wal.state.get("tail", {}).get("files") or [])
            return
        self._framer = Framer(spool.new_incarnation())
        gone = dict.fromkeys(self.wal.state.get("chains", {}))
        agent = {"boot": boot, "id": self._framer.agent}
        self._old_processes = self.wal.state.pop("processes", {})
        self.wal.state["processes"] = {}
        self.wal.append(
            [], {"agent": agent, "chains": gone, "host": {"logs": None}, "tail": {"files": None}}
        )

    def _discover(self) -> None:
        for files in spool.announced(self._folder, self.processes):
            try:
                process = self.processes[files.incarnation] = self._adopt(files)
                if self._host is not None and not process.done:
                    self._host.follow(files, self._framer, now_ns())
            except OSError:  # another agent took it away
                continue

    def _adopt(self, files: ProcessFiles) -> SpooledProcess:
        name = files.incarnation
        acked = self._folder / f"{name}.acked"
        saved = self.wal.state.get("processes", {}).get(name)
        before = None if self._is_same_boot else self._old_processes.get(name)
        # Who was read by an agent whose log is lost has seqs that nobody knows any more.
        suffix = saved["suffix"] if saved else ""
        if saved is None and (before is not None or acked.exists()):
            suffix = self._framer.agent[:8]
        process = SpooledProcess(self._folder, files, self._policy, suffix)
        if saved is not None:
            process.restore(saved, streams=True)
        elif before is not None:
            process.restore(before, streams=False)
        elif suffix:
            for source in process.texts.values():
                source.skip_hole()
        else:
            with contextlib.suppress(OSError):  # full: then a lost log would not be noticed
                spool.write_ack(acked, *spool.read_ack(acked))
        if process.done:
            process.end = self.wal.end
        for channel, source in process.texts.items():
            self._mirrored[self._folder / files.files[channel]] = source.offset
        return process

    def _read(self, hurry: bool) -> bool:
        more = False
        for process in list(self.processes.values()):
            if process.done or process.failures > FAILURES_MAX or not self._committed():
                continue
            over = self._endings.is_over(process.files, hurry=hurry)  # before reading its last
            process.is_over = over
            finals = {
                channel: over and (hurry or not self._may_grow(process, channel))
                for channel in (spool.JOURNAL, *process.texts)
            }
            has_more = self._read_process(process, finals)
            more = more or has_more
            if over and not has_more and not process.failures:
                self._end(process, finals)
        return more

    def _read_process(self, process: SpooledProcess, finals: dict[str, bool]) -> bool:
        """Whether there is more. A process that we can't read costs itself only; its files stay."""
        try:
            has_more = self._read_portions(process, finals)
            process.failures = 0
            return has_more
        except Exception as error:  # a bug of ours, or a disk's
            process.failures += 1
            process.failure = f"{error!r:.300}"
            return False

    def _read_portions(self, process: SpooledProcess, finals: dict[str, bool]) -> bool:
        for _ in range(PORTIONS_MAX):
            if not process.read(self._framer, now_ns(), finals.__getitem__):
                self._copy_to_console(process)
                return False
            self._copy_to_console(process)
            if self._framer.is_full:
                self._commit()
                if not self._committed():
                    return False
        return True

    def _may_grow(self, process: SpooledProcess, channel: str) -> bool:
        """Whether somebody who outlived the process may write to its file still."""
        name = process.files.files.get(channel)
        return channel != spool.JOURNAL and has_writers(self._folder / str(name))

    def _end(self, process: SpooledProcess, finals: dict[str, bool]) -> None:
        code = self._endings.code(process.files)
        if all(finals.values()):
            self._tell_end(process, code)
        is_over = {**finals, "telemetry": True, "agent": all(finals.values())}
        if process.end_streams(self._framer, is_over.__getitem__, code) and all(finals.values()):
            process.done = True

    def _tell_end(self, process: SpooledProcess, code: int | None) -> None:
        """Once for a process, which may be announced twice: its output, and its own lines."""
        who = (process.files.pid, process.files.start)
        with_lines = [
            other
            for other in self.processes.values()
            if (other.files.pid, other.files.start) == who and spool.JOURNAL in other.files.files
        ]
        if (spool.JOURNAL not in process.files.files and with_lines) or who in self._told_end:
            return
        if process.files.identity.role == WORKER and not code:
            return  # data-loader workers come and go by the hundred
        self._told_end.add(who)
        process.tell_end(self._framer, now_ns(), code)

    def _copy_to_console(self, process: SpooledProcess) -> None:
        for channel, console in list(self._options.mirror.items()):
            name = process.files.files.get(channel)
            if name is None:
                continue
            path = self._folder / name
            with path.open("rb") as file:
                file.seek(self._mirrored.get(path, 0))
                data = file.read()
            try:
                console.write(data)
                console.flush()
            except (OSError, ValueError):  # the terminal is gone; the lines are not
                self._options.mirror.pop(channel, None)
            self._mirrored[path] = self._mirrored.get(path, 0) + len(data)

    # --- the log --------------------------------------------------------------------------------

    def _beat(self, now: int) -> None:
        """Tell which processes run, whether they say something or not."""
        for process in self.processes.values():
            if process.is_over or process.done:
                continue
            lines = sum(state.next_seq for state in process.streams)
            if lines != process.beat_lines or not process.spoke_ns:
                process.beat_lines, process.spoke_ns = lines, now
            quiet = now - process.spoke_ns > QUIET_BEAT_NS
            if now - process.beat_ns >= (QUIET_BEAT_NS if quiet else BEAT_NS):
                process.beat_ns = now
                self._framer.beat(process.streams[0], now)

    def _somebody_waits(self) -> bool:
        """A process that said good-bye, or asked, is not kept waiting for a frame to fill."""
        sdks = [one for one in self.processes.values() if one.sdk is not None and not one.done]
        # Each is asked, so that each request is taken back.
        asked = [spool.was_asked_to_flush(self._folder, one.incarnation) for one in sdks]
        return any(asked) or any(one.sdk is not None and one.sdk.closed for one in sdks)

    def _commit(self) -> None:
        """Cut all frames and log them with the state that results."""
        frames, chains = self._framer.cut()
        saved = {
            name: changed
            for name, process in self.processes.items()
            if (changed := process.changed()) is not None
        }
        if not frames and not any(one["done"] for one in saved.values()):
            return
        change: dict[str, Any] = {"chains": chains, "processes": saved}
        if self._host is not None and (host := self._host.changed()) is not None:
            change["host"] = {"logs": host}
        if self._tail is not None and (files := self._tail.changed()) is not None:
            change["tail"] = {"files": files}
        self._uncommitted = _Uncommitted(frames, change, saved)
        self._committed()

    def _committed(self) -> bool:
        """Whether all that was cut is in the log; nothing more is read before it is."""
        waiting = self._uncommitted
        if waiting is None:
            return True
        try:
            place = self.wal.append(waiting.frames, waiting.change)
        except OSError as error:
            self.disk_error = str(error)
            wanted = 2 * sum(len(frame.data) for frame in waiting.frames)
            if not quota.make_room(self.wal, wanted, self._lost):
                return False
            try:
                place = self.wal.append(waiting.frames, waiting.change)
            except OSError:
                return False
        self._uncommitted, self.disk_error = None, ""
        for name, saved in waiting.saved.items():
            self.processes[name].committed(saved, place)
        if self._host is not None and "host" in waiting.change:
            self._host.committed(waiting.change["host"]["logs"])
        if self._tail is not None and "tail" in waiting.change:
            self._tail.committed(waiting.change["tail"]["files"])
        return True

    def _look_at_quota(self) -> None:
        now = time.monotonic()
        if now - self._looked_at < QUOTA_LOOK_S:
            return
        self._looked_at = now
        limit = self._options.quota_bytes
        self.used_bytes = quota.used_bytes(self._folder, self.wal)
        self._admission.update(self.used_bytes, limit)
        if self.used_bytes > limit:
            quota.make_room(self.wal, int(self.used_bytes - limit * quota.DROP_TO), self._lost)

    def _lost(self, entry: FrameStream) -> None:
        """Lines of a dropped frame: their stream tells of them."""
        if not entry.rows:
            return
        name = entry.stream.stream_id
        self.lines_lost[name] = self.lines_lost.get(name, 0) + entry.rows
        for process in self.processes.values():
            for state in process.streams:
                if state.stream == entry.stream and not state.ended:
                    self._framer.drop(state, entry.rows, "spool quota")

    # --- what is delivered ----------------------------------------------------------------------

    def _acknowledge(self) -> None:
        front = self.wal.front
        delivered = self.sender.delivered
        while delivered and delivered[0][0] <= front:
            _, change = delivered.popleft()
            for name, saved in change.get("processes", {}).items():
                if saved and saved["sdk"] and name in self.processes:
                    offset, records = _acked(saved["sdk"])
                    with contextlib.suppress(OSError):
                        spool.write_ack(self._folder / f"{name}.acked", offset, records)
        gone = [
            name
            for name, process in self.processes.items()
            if process.end is not None and process.end <= front
        ]
        for name in gone:
            self.processes.pop(name).unlink()
        if gone:
            with contextlib.suppress(OSError):  # a state too much costs nothing
                self.wal.append([], {"processes": dict.fromkeys(gone)})


def _acked(saved: list[Any]) -> tuple[int, int]:
    """Offset in the journal, and records of ring and journal, of what `SdkSource.saved` gave."""
    ring, offset, records = saved[:3]
    return offset, records + (ring[1] if ring else 0)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # no Linux: as good as one boot
        return os.uname().nodename
