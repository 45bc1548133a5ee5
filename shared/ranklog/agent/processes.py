"""The processes of a spool: who is new, what the log has of each, who is delivered and goes."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.agent.framer import TELEMETRY_CHANNEL, Framer
from ranklog.agent.ledger import Ledger
from ranklog.agent.process import AGENT_CHANNEL, Policy, SpooledProcess
from ranklog.agent.refused import Refusal
from ranklog.agent.rows import StreamState
from ranklog.agent.wal import Place, State
from ranklog.produce import spool
from ranklog.produce.identity import WORKER
from ranklog.produce.spool import ProcessFiles

# A process whose files could not be read so often is left alone, for `replay` and whoever looks.
FAILURES_MAX = 3
# A process that runs is told of so often; one that says nothing for longer than the second number,
# only that often: its heartbeats are then objects of their own.
BEAT_NS, QUIET_BEAT_NS = 10 * limits.SECOND_NS, 60 * limits.SECOND_NS
# Of what the destination refuses of a process, a line is said so often at most.
REFUSED_NS = 10 * limits.SECOND_NS


class Processes:
    """`known` by incarnation."""

    def __init__(self, folder: Path, policy: Policy, ledger: Ledger) -> None:
        self.known: dict[str, SpooledProcess] = {}
        self._folder = folder
        self._policy = policy
        self._ledger = ledger
        self._told_end: set[tuple[int, str]] = set()

    @property
    def readable(self) -> list[SpooledProcess]:
        """Those of which something may come yet."""
        return [
            process
            for process in self.known.values()
            if not process.done and process.failures <= FAILURES_MAX
        ]

    @property
    def streams(self) -> list[StreamState]:
        return [state for process in self.known.values() for state in process.streams]

    def is_idle(self) -> bool:
        """Nobody is left but whom we can't read."""
        return not any(one.failures <= FAILURES_MAX for one in self.known.values())

    def anyone_alive(self) -> bool:
        """Whether a process that is read runs still."""
        files = [process.files for process in self.known.values()]
        return any(spool.is_alive(one.pid, one.start) for one in files)

    # --- coming ---------------------------------------------------------------------------------

    def discover(self) -> Iterator[SpooledProcess]:
        """Those that announced themselves since the last look."""
        for files in spool.announced(self._folder, self.known):
            with contextlib.suppress(OSError):  # another agent took it away
                process = self.known[files.incarnation] = self._adopt(files)
                yield process

    def _adopt(self, files: ProcessFiles) -> SpooledProcess:
        name = files.incarnation
        acked = self._folder / f"{name}.acked"
        saved = self._ledger.section("processes").get(name)
        before = self._ledger.before.get(name)
        # Who was read by an agent whose log is lost has seqs that nobody knows any more.
        suffix = saved["suffix"] if saved else ""
        if saved is None and (before is not None or acked.exists()):
            suffix = self._ledger.framer.agent[:8]
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
            process.end = self._ledger.wal.end
        return process

    # --- while they are here --------------------------------------------------------------------

    def beat(self, framer: Framer, now_ns: int) -> None:
        """Tell which processes run, whether they say something or not."""
        for process in self.known.values():
            if process.is_over or process.done:
                continue
            lines = sum(state.next_seq for state in process.streams)
            if lines != process.beat_lines or not process.spoke_ns:
                process.beat_lines, process.spoke_ns = lines, now_ns
            quiet = now_ns - process.spoke_ns > QUIET_BEAT_NS
            if now_ns - process.beat_ns >= (QUIET_BEAT_NS if quiet else BEAT_NS):
                process.beat_ns = now_ns
                framer.beat(process.streams[0], now_ns)

    def refused(self, refusal: Refusal) -> None:
        """The destination did not take a frame: who waits for its lines is told the truth."""
        for entry in refusal.streams:
            process = self.known.get(entry.stream.incarnation.partition(".")[0])
            # What is said of refused lines would else be refused, and said so, for ever.
            if process is None or not entry.rows or entry.stream.channel == AGENT_CHANNEL:
                continue
            process.refused_untold += entry.rows
            if entry.stream.channel in (spool.JOURNAL, TELEMETRY_CHANNEL):
                process.refused += entry.rows
                with contextlib.suppress(OSError):
                    spool.write_refused(self._folder, process.incarnation, process.refused)

    def tell_refused(self, framer: Framer, now_ns: int, reason: str) -> None:
        """A line now and then in the streams of processes that run still."""
        for process in self.known.values():
            if process.refused_untold and not (process.is_over or process.done):
                told_ns = process.refused_told_ns
                if not told_ns or now_ns - told_ns >= REFUSED_NS:
                    process.tell_refused(framer, now_ns, reason)

    def somebody_waits(self) -> bool:
        """A process that said good-bye, or asked, is not kept waiting for a frame to fill."""
        sdks = [one for one in self.known.values() if one.sdk is not None and not one.done]
        # Each is asked, so that each request is taken back.
        asked = [spool.was_asked_to_flush(self._folder, one.incarnation) for one in sdks]
        return any(asked) or any(one.sdk is not None and one.sdk.closed for one in sdks)

    def tell_end(
        self, process: SpooledProcess, framer: Framer, now_ns: int, code: int | None
    ) -> None:
        """Once for a process, which may be announced twice: its output, and its own lines."""
        who = (process.files.pid, process.files.start)
        with_lines = [
            other
            for other in self.known.values()
            if (other.files.pid, other.files.start) == who and spool.JOURNAL in other.files.files
        ]
        if (spool.JOURNAL not in process.files.files and with_lines) or who in self._told_end:
            return
        if process.files.identity.role == WORKER and not code:
            return  # data-loader workers come and go by the hundred
        self._told_end.add(who)
        process.tell_end(framer, now_ns, code)

    # --- the log --------------------------------------------------------------------------------

    def changed(self) -> dict[str, dict[str, Any]]:
        """Where those stand that the log has otherwise."""
        return {
            name: changed
            for name, process in self.known.items()
            if (changed := process.changed()) is not None
        }

    def committed(self, saved: dict[str, dict[str, Any]], place: Place) -> None:
        """The log has it: what they were read from may go."""
        for name, one in saved.items():
            self.known[name].committed(one, place)

    def acknowledge(
        self,
        delivered: deque[tuple[Place, State]],
        note_refused: Callable[[], None] = lambda: None,
    ) -> None:
        """Tell processes how far they are delivered, and remove those that are delivered whole.

        `note_refused` counts what was refused: another thread sends, so it is called when a change is
        in hand, and before anybody is told that it is delivered.
        """
        front = self._ledger.wal.front
        while delivered and delivered[0][0] <= front:
            _, change = delivered.popleft()
            note_refused()
            for name, saved in change.get("processes", {}).items():
                if saved and saved["sdk"] and name in self.known:
                    offset, records = _acked(saved["sdk"])
                    with contextlib.suppress(OSError):
                        spool.write_ack(self._folder / f"{name}.acked", offset, records)
        gone = [
            name
            for name, process in self.known.items()
            if process.end is not None and process.end <= front
        ]
        for name in gone:
            self.known.pop(name).unlink()
        if gone:
            with contextlib.suppress(OSError):  # a state too much costs nothing
                self._ledger.wal.append([], {"processes": dict.fromkeys(gone)})

    def close(self) -> None:
        """Let go of the files."""
        for process in self.known.values():
            process.close()


def _acked(saved: list[Any]) -> tuple[int, int]:
    """Offset in the journal, and records of ring and journal, of what `SdkSource.saved` gave."""
    ring, offset, records = saved[:3]
    return offset, records + (ring[1] if ring else 0)
