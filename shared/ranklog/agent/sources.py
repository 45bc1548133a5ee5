"""What a process left in the spool, read as rows: its journal, and its captured fd 1 and fd 2.

A row depends on the bytes of the file alone, not on when they were read: a collector that starts
anew gives every line the seq it had (only the time of a captured line is its reading's).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.agent.copies import Copies
from ranklog.agent.framer import PIECE_BYTES, Framer, Row, StreamState, character_start
from ranklog.model.frame import LEVEL_INFERRED, LEVEL_INHERITED, NO_LF, TS_ARRIVAL, CallSite
from ranklog.model.levels import ERROR
from ranklog.produce.journal import CLOSED, CONTEXT, DROP, LINE, SITE, JournalReader
from ranklog.produce.spool import ProcessFiles

READ_BYTES = 1 * limits.MIB
# torch's own prefix on what a rank prints of an uncaught exception.
_ENVELOPE = re.compile(rb"\[rank\d+\]:? ")
_TRACEBACK = b"Traceback (most recent call last)"
_CHAINED = (b"During handling of the above exception", b"The above exception was the direct cause")


class JournalSource:
    """The lines that went through the SDK."""

    def __init__(self, path: Path, process: ProcessFiles, state: StreamState) -> None:
        self.state = state
        self.records = 0
        self._reader = JournalReader(path)
        self._process = process
        self._sites: dict[int, CallSite] = {}
        self._contexts: dict[int, tuple[int | None, dict[str, Any] | None]] = {}
        self._told_damaged = 0

    @property
    def offset(self) -> int:
        return self._reader.offset

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> None:
        """Move what is there to the framer."""
        for fields in self._reader.read(final=final):
            try:
                self._take(fields, framer)
            except (IndexError, TypeError, ValueError, OverflowError, AttributeError):
                self._reader.damaged += 1  # a CRC by chance, or a record of another version
        if self._reader.damaged > self._told_damaged:
            framer.drop(self.state, self._reader.damaged - self._told_damaged, "damaged in spool")
            self._told_damaged = self._reader.damaged

    def close(self) -> None:
        self._reader.close()

    def _take(self, fields: list[Any], framer: Framer) -> None:
        kind = fields[0]
        if kind == LINE:
            self.records += 1
            framer.add(self.state, self._row(fields))
        elif kind == SITE:
            self._sites[fields[1]] = CallSite(*fields[2:5])
        elif kind == CONTEXT:
            self._contexts[fields[1]] = (fields[2], fields[3])
        elif kind == DROP:
            framer.drop(self.state, fields[1], fields[2])
        elif kind != CLOSED:
            raise ValueError(kind)

    def _row(self, fields: list[Any]) -> Row:
        _, ts_ns, level, site, context, iteration, text, extra, trace = fields
        row = Row(ts_ns, _lines(text, trace), level or None, self._sites.get(site))
        metadata = self._process.metadata or None
        if context:
            row.rank, more = self._contexts[context]
            metadata = {**metadata, **more} if metadata and more else more or metadata
        if extra:
            metadata = {**metadata, **extra} if metadata else extra
        row.iteration, row.metadata = iteration, metadata
        return row


def _lines(text: str, trace: str | None) -> list[bytes]:
    whole = text if trace is None else f"{text}\n{trace}"
    lines = whole.encode("utf-8", "surrogatepass").split(b"\n")
    # A record that ends in a line feed is not followed by an empty line; `print` in a file isn't.
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


class TextSource:
    """What was written to a descriptor: bytes in any portions, joined to physical lines.

    A traceback is a group, and an error. Of a progress bar (states parted by CR) the last state is
    kept; the others are counted as dropped.
    """

    def __init__(self, path: Path, state: StreamState, copies: Copies | None = None) -> None:
        """`copies`: what the process prints of lines that it logs; it is left out."""
        self.state = state
        self.records = 0
        self.offset = 0
        self._file = path.open("rb", buffering=0)
        self._copies = copies
        self._seen = 0  # the file's size at the last reading: its copies are noted by now
        self._pending = b""
        self._group: int | None = None
        self._mid_line = False  # the last row was a piece, and this one continues it
        self._in_trace = ""  # "" no, "frames", "message" (the next line may chain), "gap"
        self._states_dropped = 0

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> None:
        """Move whole lines to the framer; `final`: also what no line feed ended."""
        upto = self._decided_upto(final)
        while chunk := self._next(upto, final):
            *whole, pending = (self._pending + chunk).split(b"\n")
            for line in whole:
                self._take(framer, now_ns, self._shortened(framer, now_ns, line), 0)
            self._pending = self._shortened(framer, now_ns, pending)
        if final and self._pending:
            line, self._pending = self._pending, b""
            self._take(framer, now_ns, line, NO_LF)
        if self._states_dropped:
            framer.drop(self.state, self._states_dropped, "progress")
            self._states_dropped = 0

    def close(self) -> None:
        self._file.close()
        if self._copies is not None:
            self._copies.close()

    def _decided_upto(self, final: bool) -> int | None:
        """How far copies are known: one is noted right after it was written, so as far as the file
        went at the last reading. None: this process notes none."""
        if self._copies is None or not self._copies.refresh():
            return None
        known, self._seen = self._seen, os.fstat(self._file.fileno()).st_size
        return self._seen if final else known

    def _next(self, upto: int | None, final: bool) -> bytes:
        """Bytes that are no copies of logged lines, up to READ_BYTES; none for now, or at the end."""
        fd = self._file.fileno()
        if upto is None or self._copies is None:
            chunk = os.pread(fd, READ_BYTES, self.offset)
            self.offset += len(chunk)
            return chunk
        while True:
            size = max(0, min(READ_BYTES, upto - self.offset))
            chunk = os.pread(fd, size, self.offset)
            at_end = final and self.offset + len(chunk) >= upto
            kept, decided = self._copies.split(chunk, self.offset, final=at_end)
            self.offset += decided
            if kept or not decided:
                return kept

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
        line = self._last_state(line)
        row = Row(now_ns, [line], flags=flags | TS_ARRIVAL)
        if self._mid_line:
            if self._in_trace:
                self._continue_group(row)
        else:
            envelope = _ENVELOPE.match(line)
            row.body_at = envelope.end() if envelope else 0
            self._follow_traceback(row, line[row.body_at :])
        self._mid_line = bool(flags & NO_LF)
        seq = framer.add(self.state, row)
        self.records += 1
        if row.starts_group:
            self._group = seq

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

    def _follow_traceback(self, row: Row, body: bytes) -> None:
        if body.lstrip(b" +|").startswith((_TRACEBACK, b"Exception Group " + _TRACEBACK)):
            if not self._in_trace:
                row.starts_group = True
                row.flags |= LEVEL_INFERRED
                row.level = ERROR
                self._in_trace = "frames"
                return
            self._in_trace = "frames"
        elif self._in_trace and body[:1].isspace():
            pass
        elif self._in_trace == "frames":
            self._in_trace = "message"
        elif self._in_trace == "message" and not body:
            self._in_trace = "gap"
        elif self._in_trace == "gap" and (not body or body.startswith(_CHAINED)):
            pass
        else:
            self._in_trace, self._group = "", None
        if self._in_trace:
            self._continue_group(row)

    def _continue_group(self, row: Row) -> None:
        row.group, row.level = self._group, ERROR
        row.flags |= LEVEL_INHERITED
