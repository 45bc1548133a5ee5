"""What a process logged through the SDK, read from its ring, its journal and its definitions.

Numbers are defined before they are used: ring and journal are read first, then the definitions to
their end, and only then are the records taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.agent.framer import Framer
from ranklog.agent.sdk_lines import SdkLines
from ranklog.produce import spool
from ranklog.produce.journal import JournalReader
from ranklog.produce.records import CALL, CLOSED, CONTEXT, DROP, MANIFEST, SERIES, SITE
from ranklog.produce.ring_reader import RingReader
from ranklog.produce.spool import ProcessFiles

# What is taken at once: a few frames at most, so that the room it came from is given back soon.
READ_BYTES = 256 * limits.KIB
READ_RECORDS = 2_048
_DEFINITIONS = (SITE, CONTEXT, CALL, SERIES)


class SdkSource:
    """A process's ring, journal (`.lines`) and definitions; any of them may be missing.

    Older processes define in the journal itself: then it is read again from its beginning.
    """

    def __init__(self, folder: Path, files: ProcessFiles, lines: SdkLines) -> None:
        """Raises OSError where another agent took the files away."""
        names = files.files
        self.lines = lines
        self.closed = False  # the process said good-bye
        self._ring = _open_ring(Path(names[spool.RING]) if spool.RING in names else None)
        self._journal_path = folder / names.get(spool.JOURNAL, "")
        self._journal = _open_journal(folder, names.get(spool.JOURNAL))
        self._defs = _open_journal(folder, names.get(spool.DEFS))
        self._records: Iterator[list[Any]] | None = None
        # Behind it, what is read is new; before it only definitions are.
        self._journal_from = self._defs_from = 0
        self._journal_records = 0
        self._ring_drops: dict[str, int] = {}
        self._unknown = self._told_damaged = 0

    @property
    def acked(self) -> tuple[int, int]:
        """Journal's offset, and records taken so far from ring and journal."""
        ring = self._ring.records if self._ring else 0
        return (self._journal.offset if self._journal else 0), ring + self._journal_records

    def saved(self) -> list[Any]:
        """Where it stands, for the agent's log; what `restore` and `free` take."""
        ring = [self._ring.cursor, self._ring.records] if self._ring else None
        journal = self._journal.offset if self._journal else 0
        defs = self._defs.offset if self._defs else 0
        return [
            ring,
            journal,
            self._journal_records,
            defs,
            self._ring_drops,
            self.closed,
            self.lines.last_iteration,
        ]

    def restore(self, saved: Sequence[Any]) -> None:
        """Go on from where an agent before stood."""
        ring, offset, self._journal_records, self._defs_from = saved[:4]
        self._ring_drops, self.closed, self.lines.last_iteration = saved[4:7]
        if ring is not None and self._ring is not None:
            self._ring.seek(*ring)
        if self._journal is not None:
            if self._defs is None:
                self._journal_from = offset
            else:
                self._journal.close()
                self._journal = JournalReader(self._journal_path, offset)

    def status(self) -> dict[str, Any]:
        """For people: what it is, where it is read, and how much waits."""
        ring, journal = self._ring, self._journal
        return {
            "ring": ring and {"cursor": ring.cursor, "lag_bytes": max(0, ring.head - ring.cursor)},
            "journal": journal and {"offset": journal.offset},
            "records": self.acked[1],
            "dropped": self._ring_drops,
        }

    def free(self, saved: Sequence[Any]) -> None:
        """What was read up to there is in the log: give the ring's room back."""
        if saved[0] is not None and self._ring is not None:
            self._ring.free(*saved[0])

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool:
        """Move some of what is there to the framer; whether there was any. `final`: no more comes."""
        bodies = self._ring.read(READ_BYTES, final=final) if self._ring else []
        more, records = self._read_journal(framer, final)
        self._read_defs(framer, final)
        if bodies or records:
            self.lines.take(bodies, records, framer)
        self._tell_drops(framer)
        return bool(bodies) or more

    def close(self) -> None:
        for reader in (self._ring, self._journal, self._defs):
            if reader is not None:
                reader.close()

    def _read_journal(self, framer: Framer, final: bool) -> tuple[bool, list[list[Any]]]:
        """Whether there was something, and its new lines; definitions are taken in on the way."""
        if self._journal is None:
            return False, []
        if self._records is None:
            self._records = self._journal.read(final=final)
        seen, lines = 0, []
        for fields in islice(self._records, READ_RECORDS):
            seen += 1
            is_new = self._journal.offset > self._journal_from
            if not self._took_definition(fields, framer, is_new) and is_new:
                lines.append(fields)
        self._journal_records += len(lines)
        if seen < READ_RECORDS:
            self._records = None
        return seen > 0, lines

    def _read_defs(self, framer: Framer, final: bool) -> None:
        if self._defs is None:
            return
        for fields in self._defs.read(final=final):
            is_new = self._defs.offset > self._defs_from
            if not self._took_definition(fields, framer, is_new):
                self._unknown += is_new

    def _took_definition(self, fields: list[Any], framer: Framer, is_new: bool) -> bool:
        """Take what is no line; what an agent before has told is not told again."""
        kind = fields[0]
        if kind in _DEFINITIONS:
            self.lines.define(fields)
        elif kind == DROP and is_new:
            framer.drop(self.lines.state, int(fields[1]), str(fields[2]))
        elif kind == MANIFEST and is_new:
            framer.manifest(self.lines.state, bytes(fields[1]))
        elif kind == CLOSED:
            self.closed = self.closed or is_new
        else:
            return kind in (DROP, MANIFEST)
        return True

    def _tell_drops(self, framer: Framer) -> None:
        drops = self._ring.drops() if self._ring else {}
        for name, lines in drops.items():
            if new := lines - self._ring_drops.get(name, 0):
                framer.drop(self.lines.state, new, f"ring full: {name}")
        self._ring_drops = drops
        readers = (self._ring, self._journal, self._defs)
        damaged = (
            self._unknown + self.lines.damaged + sum(reader.damaged for reader in readers if reader)
        )
        if damaged > self._told_damaged:
            framer.drop(self.lines.state, damaged - self._told_damaged, "damaged in spool")
            self._told_damaged = damaged


def _open_ring(path: Path | None) -> RingReader | None:
    """None where there is none, or none any more (a node that was started again)."""
    try:
        return None if path is None else RingReader(path)
    except (OSError, ValueError):
        return None


def _open_journal(folder: Path, name: str | None) -> JournalReader | None:
    return JournalReader(folder / name) if name and os.path.exists(folder / name) else None
