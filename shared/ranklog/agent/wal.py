"""The agent's log: what is framed and not delivered yet, and where every source stood then.

    wal/<number>.wal   files of blocks (see `wal_segment`), numbers ascending
    wal/spare          a file with its disk blocks, for when the disk is full

A block holds finished frames *and* the state that results from them: positions in the sources, next
seqs, the chain of headers. Nothing is sent that is not in it, so an agent that is killed at any
moment goes on as if it had not been. A file begins with the whole state; delivered files are dropped
from the front. There is no fsync: a killed process loses nothing that it wrote, and after a crash of
the node nothing is continued (another boot, another incarnation).

State is two levels of dictionaries; a change of it replaces members of the second level, None
removes one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.agent.disk_space import (
    ALLOCATED_BYTES_MIN,
    allocated,
    disk_bytes,
    punch_hole,
    write_whole,
)
from ranklog.agent.rows import FLOOD
from ranklog.agent.wal_segment import (
    DROPPED,
    SENT,
    Block,
    Entry,
    WalFrame,
    encode_block,
    encode_head,
    pack,
    read_block,
    read_frame,
    read_head,
    unpack,
)

# A file's disk blocks are taken when it is made, so that writing into it never meets a full disk.
SEGMENT_BYTES = 8 * limits.MIB
# What is handed to the sender at once.
PAGE_BYTES = 4096
BATCH_FRAMES, BATCH_BYTES = 64, 4 * limits.MIB

State = dict[str, Any]
Place = tuple[int, int]  # number of a file, offset of a block in it


@dataclass(slots=True)
class _Segment:
    """One file. `end` is behind its last block, `index` the next block's."""

    number: int
    path: Path
    fd: int
    size: int  # disk blocks that are there
    end: int
    seek: tuple[int, int]  # offset and index of the first block that may have an unsent frame
    index: int = 0
    unsent: int = 0  # frames
    unsent_bytes: int = 0
    floods: int = 0  # of the unsent frames those of streams that flood


@dataclass(frozen=True, slots=True)
class Pending:
    """A frame that waits to be sent."""

    number: int
    block: Block
    entry: Entry
    data: bytes


class Wal:
    """One agent's log. `append` and the rest may be called from two threads."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Continue what is there; `state` is {} where nothing is. Raises OSError."""
        self._folder = folder
        self._lock = threading.RLock()
        self._segments: list[_Segment] = []
        self.state: State = {}
        self.damaged = 0  # frames that could not be read back
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        room = os.statvfs(folder)
        # Two files of a small disk must not be all of it.
        share = room.f_bavail * room.f_frsize // 16
        self._segment_bytes = max(ALLOCATED_BYTES_MIN, min(segment_bytes, share))
        for path in sorted(folder.glob("*.wal")):
            self._recover(path)
        if not self._segments:
            self._begin(0)
        elif not self.unsent and self._segments[-1].size < self._segment_bytes:
            with suppress(OSError):  # without room it goes on where it is
                self._begin(self._segments[-1].number + 1)
                self._drop_front()

    # --- writing --------------------------------------------------------------------------------

    def append(self, frames: Sequence[WalFrame], change: State) -> Place:
        """Write a block; returns the place behind it. Raises OSError, and then nothing happened."""
        packed = pack(change)
        with self._lock:
            last = self._segments[-1]
            block = encode_block(last.number, last.index, frames, packed)
            # A block that is larger than a file has one of its own, and that is not allocated before.
            if last.end + len(block) > last.size and last.index:
                last = self._begin(last.number + 1)
                block = encode_block(last.number, last.index, frames, packed)
            write_whole(last.fd, block, last.end)
            last.end += len(block)
            last.index += 1
            last.unsent += len(frames)
            last.floods += sum(frame.klass == FLOOD for frame in frames)
            last.unsent_bytes += sum(len(frame.data) for frame in frames)
            apply(self.state, change)
            return last.number, last.end

    def _begin(self, number: int) -> _Segment:
        """A new file with the whole state. Raises OSError where there is neither room nor a spare."""
        head = encode_head(number, self.state)
        path, spare = self._folder / f"{number:08d}.wal", self._folder / "spare"
        fd = allocated(path, max(self._segment_bytes, len(head) + ALLOCATED_BYTES_MIN))
        fd_is_allocated = True
        if fd is not None:
            self._make_spare()
        elif spare.exists():
            spare.rename(path)
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        else:
            fd, fd_is_allocated = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), False
        try:
            write_whole(fd, head, 0)
        except OSError:
            os.close(fd)
            path.unlink()
            raise
        size = os.fstat(fd).st_size if fd_is_allocated else self._segment_bytes
        segment = _Segment(number, path, fd, size, len(head), (len(head), 0))
        self._segments.append(segment)
        return segment

    def _make_spare(self) -> None:
        spare = self._folder / "spare"
        if not spare.exists() and (fd := allocated(spare, self._segment_bytes)) is not None:
            os.close(fd)

    def _recover(self, path: Path) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        head = read_head(fd)
        if head is None or path.stem != f"{head[0]:08d}":
            # Killed while it was begun: nothing is in it, and the file before has the state.
            os.close(fd)
            path.unlink()
            return
        number, state, first = head
        size = max(os.fstat(fd).st_size, ALLOCATED_BYTES_MIN)
        segment = _Segment(number, path, fd, size, first, (first, 0))
        self.state = state
        while block := read_block(fd, number, segment.end, segment.index, whole=True):
            apply(self.state, unpack(block.state))
            segment.end, segment.index = block.end, segment.index + 1
            for entry in block.entries:
                if not entry.flags:
                    segment.unsent += 1
                    segment.unsent_bytes += entry.length
                    segment.floods += entry.klass == FLOOD
        self._segments.append(segment)

    # --- sending --------------------------------------------------------------------------------

    def pending(
        self,
        klass: int | None = None,
        *,
        floods: bool | None = None,
        bytes_max: int = BATCH_BYTES,
    ) -> list[Pending]:
        """The oldest frames that are not sent, as many as are handed over at once; one at least.

        `klass`: only frames of that class; `floods`: only those of streams that flood, or only others.
        """
        found: list[Pending] = []
        held = 0
        with self._lock:
            for number, block, entry in self._unsent(floods):
                if klass is not None and entry.klass != klass:
                    continue
                if floods is not None and (entry.klass == FLOOD) != floods:
                    continue
                if found and (held + entry.length > bytes_max or len(found) >= BATCH_FRAMES):
                    break
                segment = self._segment(number)
                data = read_frame(segment.fd, entry)
                if data is None:  # the disk lost it; what came after it is there
                    self.damaged += 1
                    self._set(segment, entry, DROPPED)
                    continue
                found.append(Pending(number, block, entry, data))
                held += entry.length
        return found

    def delivered(self, frames: Sequence[Pending]) -> list[tuple[Place, State]]:
        """Frames were taken (or set aside) for good; end and change of blocks that are done by it."""
        changes = []
        with self._lock:
            for frame in frames:
                self._set(self._segment(frame.number), frame.entry, SENT)
            for number, at in dict.fromkeys((f.number, f.block.at) for f in frames):
                segment = self._segment(number)
                index = next(f.block.index for f in frames if f.block.at == at)
                block = read_block(segment.fd, number, at, index, whole=False)
                if block is not None and all(entry.flags for entry in block.entries):
                    changes.append(((number, block.end), unpack(block.state)))
            self._drop_front()
        return changes

    @property
    def front(self) -> Place:
        """Everything before it is delivered."""
        with self._lock:
            for number, block, _ in self._unsent():
                return number, block.at
            return self.end

    @property
    def end(self) -> Place:
        """Behind the last block."""
        last = self._segments[-1]
        return last.number, last.end

    @property
    def floods(self) -> int:
        """Of the frames that wait those of streams that flood."""
        return sum(segment.floods for segment in self._segments)

    @property
    def unsent(self) -> int:
        """Frames that wait."""
        return sum(segment.unsent for segment in self._segments)

    @property
    def unsent_bytes(self) -> int:
        """Bytes of frames that wait."""
        return sum(segment.unsent_bytes for segment in self._segments)

    @property
    def disk_bytes(self) -> int:
        """What the files take on the disk."""
        paths = [*(segment.path for segment in self._segments), self._folder / "spare"]
        return sum(disk_bytes(path) for path in paths)

    # --- dropping -------------------------------------------------------------------------------

    def unsent_frames(self) -> list[tuple[int, Entry]]:
        """(file, frame) of all that wait, oldest first, for who decides what to drop."""
        with self._lock:
            return [(number, entry) for number, _, entry in self._unsent()]

    def read(self, number: int, entry: Entry) -> bytes | None:
        """A frame's bytes, or None where it is gone."""
        with self._lock:
            found = [segment for segment in self._segments if segment.number == number]
            return read_frame(found[0].fd, entry) if found else None

    def drop(self, number: int, entry: Entry, keep_bytes: int) -> int:
        """Give a frame up: its first `keep_bytes` (the header) stay, its disk blocks are given back.

        Returns how many bytes that frees.
        """
        with self._lock:
            segment = self._segment(number)
            self._set(segment, entry, DROPPED)
            first, end = entry.at + keep_bytes, entry.at + entry.length
            punched = punch_hole(segment.fd, first, end - first)
            before = self.disk_bytes if self._segments[0].unsent == 0 else 0
            self._drop_front()
            freed = before - self.disk_bytes if before else 0
            whole_pages = end // PAGE_BYTES * PAGE_BYTES - -(-first // PAGE_BYTES) * PAGE_BYTES
            return max(freed, whole_pages if punched else 0, 0)

    def close(self) -> None:
        """Let go of the files; what they hold stays, and no more room than it needs where all is sent."""
        with self._lock:
            if self._segments and not self.unsent:
                with suppress(OSError):
                    (self._folder / "spare").unlink(missing_ok=True)
                    os.ftruncate(self._segments[-1].fd, self._segments[-1].end)
            for segment in self._segments:
                os.close(segment.fd)
            self._segments = []

    # --- within ---------------------------------------------------------------------------------

    def _unsent(self, floods: bool | None = None) -> Iterator[tuple[int, Block, Entry]]:
        """(number, block, entry) of the frames that wait, oldest first; `floods`: files that hold none
        of those that are wanted may be passed over."""
        for segment in self._segments:
            wanted = segment.unsent - segment.floods if floods is False else segment.unsent
            if not (segment.floods if floods else wanted):
                continue
            at, index = segment.seek
            behind_unsent = False
            while segment.unsent and at < segment.end:
                block = read_block(segment.fd, segment.number, at, index, whole=False)
                if block is None:  # the disk lost it, and with it what the block was of
                    self.damaged += segment.unsent
                    segment.unsent = segment.unsent_bytes = segment.floods = 0
                    break
                waiting = [entry for entry in block.entries if not entry.flags]
                at, index = block.end, index + 1
                if not waiting and not behind_unsent:
                    segment.seek = at, index
                behind_unsent = behind_unsent or bool(waiting)
                for entry in waiting:
                    yield segment.number, block, entry

    def _set(self, segment: _Segment, entry: Entry, flag: int) -> None:
        os.pwrite(segment.fd, bytes([entry.flags | flag]), entry.flags_at)
        segment.unsent -= 1
        segment.unsent_bytes -= entry.length
        segment.floods -= entry.klass == FLOOD

    def _segment(self, number: int) -> _Segment:
        return next(segment for segment in self._segments if segment.number == number)

    def _drop_front(self) -> None:
        while len(self._segments) > 1 and self._segments[0].unsent == 0:
            segment = self._segments.pop(0)
            os.close(segment.fd)
            segment.path.unlink(missing_ok=True)
            self._make_spare()


def apply(state: State, change: State) -> None:
    """Put a change into a state."""
    for section, members in change.items():
        kept = state.setdefault(section, {})
        for name, value in members.items():
            if value is None:
                kept.pop(name, None)
            else:
                kept[name] = value
