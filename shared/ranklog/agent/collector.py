"""Reads the spool of a host into its log, and sends what the log holds.

One per spool folder, in a process of its own (`python -m ranklog.agent`) or in that of a launcher:
never in a rank. A look reads what processes wrote, cuts frames that are due, and writes frames and
the positions that result into the log in one block; only then is the room they came from given back
and the frames are sent. What can't be sent waits in the log, up to the quota.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ranklog import limits
from ranklog.agent import refused
from ranklog.agent.admission import Admission
from ranklog.agent.endings import Endings
from ranklog.agent.exits import has_writers
from ranklog.agent.host import HostStreams
from ranklog.agent.ledger import Ledger, boot_id
from ranklog.agent.mask import Masker
from ranklog.agent.process import Policy, SpooledProcess
from ranklog.agent.processes import Processes
from ranklog.agent.quota import QUOTA_BYTES
from ranklog.agent.rows import StreamState
from ranklog.agent.sampling import Sampler
from ranklog.agent.sending import Sender
from ranklog.agent.sinks import SingleSink, Sink
from ranklog.agent.tail import TailStreams
from ranklog.agent.wal import Place, Wal
from ranklog.produce import spool
from ranklog.produce.clock import now_ns

# Between two looks; while somebody waits for what is being sent, he learns of it sooner.
POLL_S, POLL_WAITED_S = 0.1, 0.01
FRAME_AGE_NS = limits.SECOND_NS
URGENT_AGE_NS = limits.SECOND_NS // 5
# Portions of one process that are read before the next one has its turn.
PORTIONS_MAX = 8


@dataclass(slots=True)
class Options:
    """How an agent treats what it reads."""

    masker: Masker = field(default_factory=Masker)
    sampler: Callable[[], Sampler | None] = lambda: None
    quota_bytes: int = QUOTA_BYTES
    mirror: dict[str, BinaryIO] = field(default_factory=dict)  # channel -> console
    host: HostStreams | None = None
    tail: TailStreams | None = None


class Collector:
    """`poll` in a loop, then `finish`."""

    def __init__(
        self,
        folder: Path,
        sink: Sink | SingleSink,
        options: Options | None = None,
        *,
        destination: str = "",
        boot: str | None = None,
    ) -> None:
        """`destination` names what `sink` sends to, `boot` this run of the operating system.

        Raises OSError where the log can't be.
        """
        self._folder = folder
        self.options = options or Options()
        self._host, self._tail = self.options.host, self.options.tail
        self._mirrored: dict[Path, int] = {}
        self._endings = Endings(folder)
        admission = Admission()
        boot = boot_id() if boot is None else boot
        self.ledger = Ledger(folder, boot, self.options.quota_bytes, admission, destination)
        self.sender = Sender(
            self.ledger.wal,
            sink,
            folder / refused.FOLDER,
            refused_bytes_max=self.options.quota_bytes // refused.QUOTA_PART,
        )
        policy = Policy(self.options.masker, admission, self.options.sampler)
        self.processes = Processes(folder, policy, self.ledger)
        self._framer = self.ledger.framer
        if self._host is not None and "logs" in self.ledger.section("host"):
            self._host.restore(self.ledger.section("host")["logs"], now_ns())
        if self._tail is not None:
            self._tail.restore(self.ledger.section("tail").get("files") or [])

    @property
    def wal(self) -> Wal:
        return self.ledger.wal

    @property
    def is_idle(self) -> bool:
        """No process is left whose lines are not delivered."""
        is_open = self._tail is not None and self._tail.is_open
        return not is_open and self.processes.is_idle() and not self.ledger.frames_left

    @property
    def pause_s(self) -> float:
        """How long nobody need look."""
        return POLL_WAITED_S if self.sender.is_urged else POLL_S

    def exited(self, pid: int, start: str, code: int) -> None:
        """A launcher tells how its child ended (negative: the signal)."""
        self._endings.tell(pid, start, code)

    def poll(self, *, hurry: bool = False, send: bool = True) -> bool:
        """One look: read, log, send, acknowledge. Whether there is more to read now.

        `hurry`: cut frames now, and don't wait for exit codes of processes that are gone. `send`:
        not where another thread does.
        """
        self._discover()
        self.ledger.look_at_quota(self._streams, self.sender.kept.bytes)
        more = False
        if self.ledger.is_settled():
            more = self._read(hurry)
            now = now_ns()
            for followed in (self._host, self._tail):
                if followed is not None:
                    more = followed.read(self._framer, now, final=hurry) or more
            self._framer.fence_past_hours(self._streams(), now)
            self.processes.beat(self._framer, now)
            self.processes.tell_refused(self._framer, now, self.sender.kept.reason)
            somebody_waits = self.processes.somebody_waits()
            ages = {"age_ns": FRAME_AGE_NS, "urgent_age_ns": URGENT_AGE_NS}
            if somebody_waits or hurry or self._framer.is_due(now, **ages):
                self._commit()
            if somebody_waits:
                self.sender.urge(self.wal.end)
        if send:
            while self.sender.step(hurry=hurry):
                pass
        self._note_refused()
        self.processes.acknowledge(self.sender.delivered, self._note_refused)
        return more

    def _note_refused(self) -> None:
        """What was refused is not delivered, though its room in the log is free."""
        told = self.sender.kept.told
        while told:
            refusal = told.popleft()
            self.processes.refused(refusal)
            if not refusal.kept:
                for entry in refusal.streams:
                    self.ledger.lose(entry, "refused")

    def finish(self, timeout_s: float) -> int:
        """`drain`, then `close`."""
        left = self.drain(timeout_s)
        self.close()
        return left

    def drain(self, timeout_s: float, *, send: bool = True) -> int:
        """Log and send all that is there, streams' ends included; how many frames are left."""
        until = time.monotonic() + timeout_s
        self.sender.urgent_first = True
        nobody = not self.processes.known and not any(spool.announced(self._folder))
        if self._host is not None and nobody:
            self._host.end(self._framer)
        while self.poll(hurry=True, send=send) and time.monotonic() < until:
            pass
        while self.ledger.frames_left and time.monotonic() < until:
            time.sleep(min(0.02, timeout_s))
            self.poll(hurry=True, send=send)
        return self.ledger.frames_left

    def close(self) -> None:
        """Let go of the files; what they hold stays."""
        self.processes.close()
        for followed in (self._host, self._tail):
            if followed is not None:
                followed.close()
        self._endings.close()
        self.wal.close()

    @property
    def masked(self) -> Mapping[str, int]:
        """Secrets by kind, since it began."""
        return self.options.masker.counts

    @property
    def host_logs(self) -> dict[str, str]:
        """The host's logs that are asked for: how many lines of them there are, or what is missing."""
        if self._host is None:
            return {}
        told = {one.channel: one.reason for one in self._host.missing}
        read = {name: f"{one.records} lines" for name, one in self._host.sources.items()}
        return told | read

    # --- reading --------------------------------------------------------------------------------

    def _discover(self) -> None:
        for process in self.processes.discover():
            if self._host is not None and not process.done:
                self._host.follow(process.files, self._framer, now_ns())
            for source in process.texts.values():
                self._mirrored[source.path] = source.offset

    def _streams(self) -> list[StreamState]:
        streams = self.processes.streams
        for followed in (self._host, self._tail):
            if followed is not None:
                streams += followed.streams
        return streams

    def _read(self, hurry: bool) -> bool:
        more = False
        for process in self.processes.readable:
            if not self.ledger.is_settled():
                break
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
            more = process.read(self._framer, now_ns(), finals.__getitem__)
            self._copy_to_console(process)
            if not more:
                return False
            if self._framer.is_full:
                self._commit()
                if not self.ledger.is_settled():
                    return False
        return True

    def _may_grow(self, process: SpooledProcess, channel: str) -> bool:
        """Whether somebody who outlived the process may write to its file still."""
        source = process.texts.get(channel)
        return source is not None and has_writers(source.path)

    def _end(self, process: SpooledProcess, finals: dict[str, bool]) -> None:
        code = self._endings.code(process.files)
        all_final = all(finals.values())
        if all_final:
            self.processes.tell_end(process, self._framer, now_ns(), code)
        is_over = {**finals, "telemetry": True, "agent": all_final}
        if process.end_streams(self._framer, is_over.__getitem__, code) and all_final:
            process.done = True

    def _copy_to_console(self, process: SpooledProcess) -> None:
        for channel, console in list(self.options.mirror.items()):
            source = process.texts.get(channel)
            if source is None:
                continue
            with source.path.open("rb") as file:
                file.seek(self._mirrored.get(source.path, 0))
                data = file.read()
            try:
                console.write(data)
                console.flush()
            except (OSError, ValueError):  # the terminal is gone; the lines are not
                self.options.mirror.pop(channel, None)
            self._mirrored[source.path] = self._mirrored.get(source.path, 0) + len(data)

    def _commit(self) -> None:
        """Cut all frames and log them with the state that results."""
        saved = self.processes.changed()
        change: dict[str, Any] = {"processes": saved}
        host = self._host.changed() if self._host is not None else None
        files = self._tail.changed() if self._tail is not None else None
        if host is not None:
            change["host"] = {"logs": host}
        if files is not None:
            change["tail"] = {"files": files}

        def committed(place: Place) -> None:
            self.processes.committed(saved, place)
            if self._host is not None and host is not None:
                self._host.committed(host)
            if self._tail is not None and files is not None:
                self._tail.committed(files)

        self.ledger.commit(change, committed, force=any(one["done"] for one in saved.values()))
