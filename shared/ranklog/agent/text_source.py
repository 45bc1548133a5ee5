"""What was written to a descriptor: bytes in any portions, joined to physical lines.

A traceback is a group, and an error. Of a progress bar (states parted by CR) the last state is kept;
the others are counted as dropped. A row depends on the bytes alone, not on when they were read.

Where a launcher labels lines with ranks, each has its label's, and each rank's tracebacks are apart.

Almost all output is plain lines: a portion of them is one batch. What has a carriage return, a
traceback, bytes that are no UTF-8 or a very long line is taken line by line.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.agent.admission import Admission
from ranklog.agent.copies import Copies
from ranklog.agent.disk_space import punch_hole
from ranklog.agent.framer import Framer
from ranklog.agent.labels import Labels, body_at, places
from ranklog.agent.mask import KeyBlocks, Masker
from ranklog.agent.pieces import PIECE_BYTES, character_start
from ranklog.agent.rows import Row, StreamState
from ranklog.agent.tracebacks import BEGIN, Tracebacks
from ranklog.model.frame import NO_LF, STREAM_RANK, TS_ARRIVAL
from ranklog.stream.row_batch import RowBatch

READ_BYTES = 256 * limits.KIB
# What is in the agent's log is given back from the front of the file, in steps of this.
PUNCH_BYTES = 4 * limits.MIB
# Between two lines of one progress bar.
BAR_NS = 10 * limits.SECOND_NS


class TextSource:
    """One file, from where it was read to before."""

    def __init__(
        self,
        path: Path,
        state: StreamState,
        masker: Masker,
        copies: Copies | None = None,
        admission: Admission | None = None,
        *,
        is_ours: bool = True,
        labels: Labels | None = None,
    ) -> None:
        """`copies`: what the process prints of lines that it logs; it is left out. A file that is not
        ours, or is a link in the spool, keeps its disk blocks. `labels`: lines may have some."""
        self.path = path
        self.state = state
        self.records = 0
        self.offset = 0
        # Not for writing: who asks whether the file has writers must not meet us.
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._masker = masker
        self._keys = KeyBlocks(masker)
        self._copies = copies
        self._admission = admission or Admission()
        self._is_ours = is_ours and not path.is_symlink()
        self._seen = 0  # the file's size at the last reading: its copies are noted by now
        self._pending = b""
        self._labels = labels
        self._rank = STREAM_RANK  # the last line's
        self._traces: dict[int, Tracebacks] = {}  # by rank, those that are not over
        self._mid_line = False  # the last row was a piece, and this one continues it
        self._states_dropped = 0
        # Of a progress bar that no line feed ended yet: the state that is a line already, and when.
        self._shown: bytes | None = None
        self._bar_ns = 0
        self._punched = 0

    def saved(self) -> list[Any]:
        """Where it stands, for the agent's log: what `restore` and `free` take."""
        return [
            self.offset,
            self.records,
            self._pending,
            [[rank, one.place, one.group] for rank, one in self._traces.items()],
            self._mid_line,
            self._rank,
            self._keys.left,
            self._shown,
        ]

    def restore(self, saved: Sequence[Any], *, same_stream: bool = True) -> None:
        """Go on from where an agent before stood; in another stream no group can be continued."""
        self.offset, self.records, self._pending = saved[:3]
        self._keys.left = saved[6]
        if same_stream:
            self._mid_line, self._shown = saved[4], saved[7]
            if isinstance(saved[3], list):  # before labels were read it was one group
                self._rank = saved[5]
                self._traces = {rank: Tracebacks(place, at) for rank, place, at in saved[3]}

    def skip_hole(self) -> None:
        """Nobody knows how far it was read: begin where something was not given back yet."""
        try:
            self.offset = os.lseek(self._fd, 0, os.SEEK_DATA)
        except OSError:  # nothing is there, or no such file system
            self.offset = 0

    def status(self) -> dict[str, Any]:
        """For people: where it is read, and how much waits."""
        size = os.fstat(self._fd).st_size
        return {"offset": self.offset, "lag_bytes": max(0, size - self.offset)}

    def size(self) -> tuple[int, int]:
        """Bytes now, and when it was changed last (ns)."""
        status = os.fstat(self._fd)
        return status.st_size, status.st_mtime_ns

    def free(self, saved: Sequence[Any], *, upto: int | None = None) -> None:
        """What was read up to there is in the log: give disk blocks back, `upto` an offset at most."""
        end = saved[0] if upto is None else min(saved[0], upto)
        end -= end % PUNCH_BYTES
        if self._is_ours and end > self._punched:
            fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            punch_hole(fd, self._punched, end - self._punched)
            os.close(fd)
            self._punched = end

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool:
        """Move some whole lines to the framer; whether there was anything.

        `final`, with nothing left: also what no line feed ended.
        """
        chunk = self._next(self._decided_upto(final), final)
        if chunk:
            self._take_bytes(framer, now_ns, chunk)
        elif final and self._pending:
            line, self._pending = self._pending, b""
            self._take(framer, now_ns, line, NO_LF)
        self._show_bar(framer, now_ns)
        if self._states_dropped > 0:
            framer.drop(self.state, self._states_dropped, "progress")
            self._states_dropped = 0
        return bool(chunk)

    def close(self) -> None:
        os.close(self._fd)
        if self._copies is not None:
            self._copies.close()

    # --- bytes ----------------------------------------------------------------------------------

    def _decided_upto(self, final: bool) -> int | None:
        """How far copies are known: one is noted right after it was written, so as far as the file
        went at the last reading. None: this process notes none."""
        if self._copies is None or not self._copies.refresh():
            return None
        known, self._seen = self._seen, os.fstat(self._fd).st_size
        return self._seen if final else known

    def _next(self, upto: int | None, final: bool) -> bytes:
        """Bytes that are no copies of logged lines, up to READ_BYTES; none for now, or at the end."""
        if upto is None or self._copies is None:
            chunk = os.pread(self._fd, READ_BYTES, self.offset)
            self.offset += len(chunk)
            return chunk
        while True:
            # A copy is decided in one piece, so as much as the longest is looked at.
            size = max(0, min(2 * READ_BYTES, upto - self.offset))
            chunk = os.pread(self._fd, size, self.offset)
            at_end = final and self.offset + len(chunk) >= upto
            kept, decided = self._copies.split(chunk, self.offset, final=at_end)
            self.offset += decided
            if kept or not decided:
                return kept

    def _take_bytes(self, framer: Framer, now_ns: int, chunk: bytes) -> None:
        data = self._pending + chunk
        whole, lf, rest = data.rpartition(b"\n")
        if lf and not self._take_plain(framer, now_ns, whole):
            for line in whole.split(b"\n"):
                self._take(framer, now_ns, self._shortened(framer, now_ns, line), 0)
        self._pending = self._shortened(framer, now_ns, rest)

    def _take_plain(self, framer: Framer, now_ns: int, whole: bytes) -> bool:
        """Lines that need no look at each; False where they do."""
        is_open = self._mid_line or self._traces or self._shown is not None
        if is_open or b"\r" in whole or BEGIN in whole:
            return False
        try:
            whole.decode()
        except UnicodeDecodeError:
            return False
        lines = whole.split(b"\n")
        if len(whole) > PIECE_BYTES and max(map(len, lines)) > PIECE_BYTES:
            return False
        count = len(lines)
        ranks, starts = places(lines, whole, self._labels)
        self.state.masked += self._keys.lines(lines) + self._masker.lines(lines)
        batch = RowBatch(
            ts=array("q", [now_ns]) * count,
            level=array("h", [0]) * count,
            texts=lines,
            rank=ranks,
            flags=array("H", [TS_ARRIVAL]) * count,
            body_at=starts,
        )
        framer.add_batch(self.state, batch)
        self.records += count
        return True

    def _show_bar(self, framer: Framer, now_ns: int) -> None:
        """The state of a progress bar that goes on, as a line now and then."""
        if b"\r" not in self._pending or self._mid_line or self._admission.refuses_progress:
            return
        if not self._bar_ns:
            self._bar_ns = now_ns
        if now_ns - self._bar_ns < BAR_NS:
            return
        written = self._pending.rstrip(b"\r")
        state = self._last_state(written)
        # What was shown is the first of those that are gone.
        self._states_dropped -= self._shown is not None and state is not written
        if state != self._shown:
            self._take(framer, now_ns, state, 0)
            self._shown, self._pending = state, state + self._pending[len(written) :]
        self._bar_ns = now_ns

    # --- line by line ---------------------------------------------------------------------------

    def _shortened(self, framer: Framer, now_ns: int, line: bytes) -> bytes:
        """What is left of a long line when its last state is kept or pieces of it are sent.

        Cuts depend on the line alone, whatever part of it was there to read.
        """
        while len(line) > PIECE_BYTES:
            states, cr, rest = line[:PIECE_BYTES].rpartition(b"\r")
            if cr and rest:
                self._states_dropped += states.count(b"\r") + 1
                line = rest + line[PIECE_BYTES:]
                continue
            at = character_start(line, PIECE_BYTES)
            self._take(framer, now_ns, line[:at], NO_LF)
            line = line[at:]
        return line

    def _take(self, framer: Framer, now_ns: int, line: bytes, flags: int) -> None:
        shown = self._last_state(line)
        already, self._shown = self._shown, None
        if already is not None and not self._mid_line:
            self._bar_ns = 0
            # It is among the states that are gone, or it is the last one.
            self._states_dropped -= shown is not line and line.startswith(already)
            if shown == already:
                return
        if shown is not line and self._admission.refuses_progress and not self._mid_line:
            self._states_dropped += 1
            return
        row = Row(now_ns, [shown], flags=flags | TS_ARRIVAL)
        traces = self._place(row, line, shown)
        line = shown
        self._mid_line = bool(flags & NO_LF)
        texts = [line]
        self.state.masked += self._keys.lines(texts) + self._masker.lines(texts)
        row.texts = texts
        seq = framer.add(self.state, row)
        self.records += 1
        if row.starts_group:
            traces.group = seq

    def _place(self, row: Row, line: bytes, shown: bytes) -> Tracebacks:
        """Whose line it is, where its body begins, and what traceback it is of; `shown`: its last state."""
        if not self._mid_line:
            self._rank, label_end = self._labels.of(line) if self._labels else (STREAM_RANK, 0)
            row.body_at = body_at(shown, label_end if shown is line else 0)
        row.rank = self._rank
        traces = self._traces.pop(self._rank, None) or Tracebacks()
        if self._mid_line:
            traces.go_on(row)
        else:
            traces.follow(row, shown[row.body_at :])
        if traces.place:
            self._traces[self._rank] = traces
        return traces

    def _last_state(self, line: bytes) -> bytes:
        """What a terminal shows of `10%\\r20%\\r`; a CR before the line feed is the line's."""
        if b"\r" not in line[:-1]:
            return line
        body = line.rstrip(b"\r")
        states, cr, last = body.rpartition(b"\r")
        if not cr:
            return line
        self._states_dropped += states.count(b"\r") + 1
        return last + line[len(body) :]
