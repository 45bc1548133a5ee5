"""What an import did, per file and in total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class FileReport:
    """One file. `lines` = `stored` + `refused` + `known` where nothing went wrong."""

    path: str
    lines: int = 0  # physical lines in the file
    bytes: int = 0  # unpacked
    stored: int = 0  # rows stored by this import
    refused: int = 0  # older than retention keeps
    known: int = 0  # lines skipped, for an earlier import took them
    channel: str | None = None
    stream_id: str | None = None
    attempt: int = 0
    host: str | None = None
    rank: int | None = None  # the stream's
    local_rank: int | None = None
    ranks: list[int] = field(default_factory=list)  # of single lines, sorted
    envelopes: list[str] = field(default_factory=list)  # recognised wrappers of lines
    presets: list[str] = field(default_factory=list)  # recognised writers, most lines first
    copy: bool = False
    first_ns: int | None = None
    last_ns: int | None = None
    notes: list[str] = field(default_factory=list)  # what was taken for what, and why
    error: str | None = None


@dataclass(slots=True)
class ImportReport:
    """The whole import."""

    run: str
    launch: str
    files: list[FileReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        """`name@launch`."""
        return f"{self.run}@{self.launch}"

    @property
    def lines(self) -> int:
        return sum(file.lines for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def stored(self) -> int:
        return sum(file.stored for file in self.files)

    @property
    def refused(self) -> int:
        return sum(file.refused for file in self.files)

    def refuse(self, refused: Mapping[str, int]) -> None:
        """So many rows of each stream were not stored after all."""
        left = dict(refused)
        for file in self.files:
            # a line that was too long for a row was several
            lines = min(file.stored, left.pop(file.stream_id or "", 0))
            file.stored -= lines
            file.refused += lines

    @property
    def known(self) -> int:
        return sum(file.known for file in self.files)

    @property
    def ranks(self) -> list[int]:
        """All ranks seen, sorted."""
        found = {rank for file in self.files for rank in file.ranks}
        return sorted(found | {file.rank for file in self.files if file.rank is not None})

    @property
    def errors(self) -> list[FileReport]:
        """The files that could not be imported, or not to their end."""
        return [file for file in self.files if file.error]

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        totals = {
            "lines": self.lines,
            "bytes": self.bytes,
            "stored": self.stored,
            "refused": self.refused,
            "known": self.known,
            "ranks": self.ranks,
            "errors": len(self.errors),
        }
        return {
            "run": self.run,
            "run_id": self.run_id,
            "files": [asdict(file) for file in self.files],
            "notes": self.notes,
        } | totals
