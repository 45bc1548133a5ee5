"""Frames that are being filled, the log they go into, and the disk that both share.

Nothing more is read while something that was cut is not in the log: then rings fill, and who logs
drops and counts. A full disk and the quota are met by dropping what is missed least.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranklog.agent import quota
from ranklog.agent.admission import Admission
from ranklog.agent.framer import Framer
from ranklog.agent.rows import StreamState
from ranklog.agent.wal import Place, State, Wal
from ranklog.agent.wal_segment import WalFrame
from ranklog.model.frame import FrameStream
from ranklog.model.stream import Stream
from ranklog.produce import spool

QUOTA_LOOK_S = 1.0


@dataclass(slots=True)
class _Uncommitted:
    """Frames that the disk has no room for yet, the state that results, and who waits for it."""

    frames: list[WalFrame]
    change: State
    committed: Callable[[Place], None]


class Ledger:
    """One spool's framer and log. `before`: processes by an agent of another boot, if it was one."""

    def __init__(
        self,
        folder: Path,
        boot: str,
        quota_bytes: int,
        admission: Admission,
        destination: str = "",
    ) -> None:
        """Go on with the log, or begin as another agent where it is of another boot, or lost.

        Where all was sent to another destination, the frames that come are another agent's: nobody
        looks for those before them there. Raises OSError where the log can't be.
        """
        self.wal = Wal(folder / "wal")
        self.quota_bytes = quota_bytes
        self.used_bytes = 0
        self.lines_lost = 0  # to the quota, or refused and not kept
        self.disk_error = ""
        self.before: State = {}
        self._folder = folder
        self._admission = admission
        self._uncommitted: _Uncommitted | None = None
        self._looked_at = 0.0
        self._untold: Counter[tuple[Stream, str]] = Counter()
        known = self.section("agent")
        self.is_continued = known.get("boot") == boot
        is_elsewhere = known.get("destination", "") != destination
        if self.is_continued and (self.wal.unsent or not is_elsewhere):
            self.framer = Framer(known["id"], dict(self.section("chains")))
            if is_elsewhere:
                self.wal.append([], {"agent": {"destination": destination}})
            return
        self.framer = Framer(spool.new_incarnation())
        if not self.is_continued:
            self.before = dict(self.section("processes"))
        sections = ["chains"] if self.is_continued else self.wal.state.keys() - {"agent"}
        forgotten = {name: dict.fromkeys(self.section(name)) for name in sections}
        agent = {"boot": boot, "id": self.framer.agent, "destination": destination}
        self.wal.append([], {**forgotten, "agent": agent})

    def section(self, name: str) -> Mapping[str, Any]:
        """A part of the state that the log has."""
        found: Mapping[str, Any] = self.wal.state.get(name, {})
        return found

    @property
    def frames_left(self) -> int:
        """Frames that wait to be sent, or to be logged."""
        return self.wal.unsent + (len(self._uncommitted.frames) if self._uncommitted else 0)

    def commit(self, change: State, committed: Callable[[Place], None], *, force: bool) -> None:
        """Cut all frames and log them with the state that results; without frames only by `force`."""
        frames, chains = self.framer.cut()
        if frames or force:
            self._uncommitted = _Uncommitted(frames, {"chains": chains, **change}, committed)
            self.is_settled()

    def is_settled(self) -> bool:
        """Whether all that was cut is in the log; tries again if it is not."""
        waiting = self._uncommitted
        if waiting is None:
            return True
        place = self._append(waiting)
        if place is None:
            wanted = 2 * sum(len(frame.data) for frame in waiting.frames)
            if quota.make_room(self.wal, wanted, self.lose):
                place = self._append(waiting)
        if place is None:
            return False
        self._uncommitted, self.disk_error = None, ""
        waiting.committed(place)
        return True

    def look_at_quota(
        self, streams: Callable[[], Sequence[StreamState]], beside_bytes: int = 0
    ) -> None:
        """Once a second: how full the spool is, what is not admitted, what has to go.

        `beside_bytes`: what of the spool lies in folders beside the log.
        """
        self._tell_lost(streams)
        now = time.monotonic()
        if now - self._looked_at < QUOTA_LOOK_S:
            return
        self._looked_at = now
        self.used_bytes = quota.used_bytes(self._folder, self.wal) + beside_bytes
        self._admission.update(self.used_bytes, self.quota_bytes)
        if self.used_bytes <= self.quota_bytes:
            return
        wanted = int(self.used_bytes - self.quota_bytes * quota.DROP_TO)
        quota.make_room(self.wal, wanted, self.lose)
        self._tell_lost(streams)

    def _append(self, waiting: _Uncommitted) -> Place | None:
        try:
            return self.wal.append(waiting.frames, waiting.change)
        except OSError as error:
            self.disk_error = str(error)
            return None

    def lose(self, entry: FrameStream, reason: str = "spool quota") -> None:
        """Lines of a stream are gone for good; it tells so as soon as it can."""
        self.lines_lost += entry.rows
        self._untold[entry.stream, reason] += entry.rows

    def _tell_lost(self, streams: Callable[[], Sequence[StreamState]]) -> None:
        """Streams tell of what was dropped of them; those that have ended have a gap."""
        if not self._untold:
            return
        states = {state.stream: state for state in streams() if not state.ended}
        for (stream, reason), lines in self._untold.items():
            if lines and stream in states:
                self.framer.drop(states[stream], lines, reason)
        self._untold.clear()


def boot_id() -> str:
    """Which run of the operating system this is."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # no Linux: as good as one boot
        return os.uname().nodename
