"""Log files of others, followed by name: they grow, are rotated, truncated, and new ones come."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ranklog import limits
from ranklog.agent.framer import Framer
from ranklog.agent.host_lines import ParseLine
from ranklog.agent.kernel_log import add_line
from ranklog.agent.mask import Masker
from ranklog.agent.rows import StreamState

READ_BYTES = 256 * limits.KIB
# A line that no line feed ends is one when it is so long.
LINE_BYTES_MAX = 64 * limits.KIB
# Between two looks for new, rotated and removed files.
LOOK_NS = limits.SECOND_NS
# Of more files that fit the pattern, those changed last are followed.
FILES_MAX = 256


@dataclass(slots=True)
class _File:
    """One open file. `pending` is the line that has no end yet."""

    fd: int
    device: int
    inode: int
    offset: int = 0
    pending: bytes = b""

    def read(self) -> bytes:
        """What is new; from the start where it was truncated."""
        if os.fstat(self.fd).st_size < self.offset:
            self.offset, self.pending = 0, b""
        chunk = os.pread(self.fd, READ_BYTES, self.offset)
        self.offset += len(chunk)
        return chunk


class FilesSource:
    """All files of some patterns as one stream, each line with the name of its file.

    Of files that are there at the beginning, what was written before `since_ns` is passed over: with
    `whole`, files changed since then are read from their start, else from their end.
    """

    def __init__(
        self,
        state: StreamState,
        masker: Masker,
        patterns: Sequence[str],
        parse: ParseLine,
        *,
        whole: bool = False,
        since_ns: int = 0,
    ) -> None:
        self.state = state
        self.records = 0
        self._masker = masker
        self._patterns = patterns
        self._parse = parse
        self._whole = whole
        self._since_ns = since_ns
        self._files: dict[str, _File] = {}
        self._known: dict[tuple[str, int, int], tuple[int, bytes]] = {}
        self._looked_ns = 0
        self._first = True

    @property
    def offset(self) -> int:
        """Bytes read of the files that are open."""
        return sum(file.offset for file in self._files.values())

    def saved(self) -> list[Any]:
        """Where it stands in every file, for the agent's log."""
        files = [
            [path, file.device, file.inode, file.offset, file.pending]
            for path, file in sorted(self._files.items())
        ]
        return [self.records, files]

    def restore(self, saved: Sequence[Any]) -> None:
        """Go on in the files that are still the same."""
        self.records = saved[0]
        for path, device, inode, offset, pending in saved[1]:
            self._known[path, device, inode] = (offset, pending)

    def free(self, saved: Sequence[Any], *, upto: int | None = None) -> None:
        """The files are not ours."""

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool:
        """Move some lines of each file to the framer; whether there was any."""
        if final or now_ns - self._looked_ns >= LOOK_NS:
            self._look(framer, now_ns)
            self._looked_ns = now_ns
        moved = False
        for path, file in self._files.items():
            moved |= self._read_file(framer, now_ns, path, file)
            if final and file.pending:
                self._add(framer, now_ns, path, file.pending)
                file.pending = b""
        return moved

    def close(self) -> None:
        for file in self._files.values():
            os.close(file.fd)
        self._files.clear()

    def _look(self, framer: Framer, now_ns: int) -> None:
        """Open what is new, let go of what was rotated away or removed, at its end."""
        found = dict(self._matching())
        for path, file in list(self._files.items()):
            if found.get(path) == (file.device, file.inode):
                continue
            while self._read_file(framer, now_ns, path, file):
                pass
            if file.pending:
                self._add(framer, now_ns, path, file.pending)
            os.close(file.fd)
            del self._files[path]
        for path in found:
            if path not in self._files:
                with contextlib.suppress(OSError):  # gone again, or not for us to read
                    self._files[path] = self._open(path)
        self._first = False

    def _matching(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Path and (device, inode), of the files changed last."""
        seen = []
        for pattern in self._patterns:
            for path in glob.iglob(pattern):
                with contextlib.suppress(OSError):
                    status = os.stat(path)
                    seen.append((status.st_mtime_ns, path, (status.st_dev, status.st_ino)))
        for _, path, identity in sorted(seen, reverse=True)[:FILES_MAX]:
            yield path, identity

    def _open(self, path: str) -> _File:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(fd)
        file = _File(fd, status.st_dev, status.st_ino)
        known = self._known.pop((path, file.device, file.inode), None)
        if known is not None:
            file.offset, file.pending = known
        elif self._first and not (self._whole and status.st_mtime_ns >= self._since_ns):
            file.offset = status.st_size
        return file

    def _read_file(self, framer: Framer, now_ns: int, path: str, file: _File) -> bool:
        chunk = file.read()
        if not chunk:
            return False
        *lines, file.pending = (file.pending + chunk).split(b"\n")
        for line in lines:
            self._add(framer, now_ns, path, line)
        if len(file.pending) > LINE_BYTES_MAX:
            self._add(framer, now_ns, path, file.pending)
            file.pending = b""
        return True

    def _add(self, framer: Framer, now_ns: int, path: str, text: bytes) -> None:
        line = self._parse(text.rstrip(b"\r"), now_ns)
        line = replace(line, metadata={**line.metadata, "file": os.path.basename(path)})
        self.records += 1
        add_line(framer, self.state, self._masker, line, now_ns)
