"""A file's bytes to physical lines in valid UTF-8, chunk by chunk, with the original bytes kept.

Shapes: a chunk has n lines; line i is text[starts[i]:ends[i]], without its line feed. A line is split
at `\\n` only. Offsets ascend, so that Arrow and numpy can work on the text as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

# Bytes of a chunk: large enough for vectorised work, small enough for memory.
CHUNK_BYTES = 8 << 20
# A physical line longer than this is stored as several rows, all but the last flagged NO_LF: a frame
# holds 64 MiB, and memory stays bounded.
LINE_BYTES_MAX = 24 << 20
_LF = 10
_REPLACEMENT = "\ufffd".encode()


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of one chunk. `raw_rows` ascend; `raw` are their original bytes."""

    text: bytes
    starts: I64
    ends: I64
    last_has_lf: bool
    raw_rows: I64
    raw: tuple[bytes, ...]

    @property
    def count(self) -> int:
        return len(self.starts)


def split_chunks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks of whole lines: each ends in a line feed, but the last and pieces of giant lines."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size < CHUNK_BYTES:
            continue
        cut = block.rfind(b"\n") + 1
        if cut:
            held[-1] = block[:cut]
            yield b"".join(held)
            held = [block[cut:]]
        elif size >= LINE_BYTES_MAX:
            data = b"".join(held)
            whole, safe = data.rfind(b"\n") + 1, _character_end(data)
            yield from filter(None, (data[:whole], data[whole:safe]))
            held = [data[safe:]]
        size = sum(map(len, held))
    if size:
        yield b"".join(held)


def _character_end(data: bytes) -> int:
    """Where to cut without cutting a character: before the last byte that can begin one."""
    at = len(data) - 1
    while at > len(data) - 4 and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def decode_lines(data: bytes) -> Lines:
    """The lines of a chunk. Bad UTF-8 becomes U+FFFD, with the line's bytes in `raw`."""
    starts, ends, has_lf = _offsets(data)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _repair(data, starts, ends, has_lf)
    return Lines(data, starts, ends, has_lf, np.empty(0, np.int64), ())


def _offsets(data: bytes) -> tuple[I64, I64, bool]:
    feeds = np.flatnonzero(np.frombuffer(data, np.uint8) == _LF)
    has_lf = data.endswith(b"\n")
    ends = feeds if has_lf or not data else np.append(feeds, len(data))
    starts = np.empty_like(ends)
    if len(ends):
        starts[0] = 0
        starts[1:] = ends[:-1] + 1
    return starts, ends, has_lf


def _repair(data: bytes, starts: I64, ends: I64, has_lf: bool) -> Lines:
    """A line was bad where it has more U+FFFD than before. Bad bytes never swallow a line feed."""
    text = data.decode("utf-8", "replace").encode()
    new_starts, new_ends, _ = _offsets(text)
    bad = _replacements(text, new_starts) != _replacements(data, starts)
    rows = np.flatnonzero(bad)
    raw = tuple(data[starts[row] : ends[row]] for row in rows.tolist())
    return Lines(text, new_starts, new_ends, has_lf, rows, raw)


def _replacements(data: bytes, starts: I64) -> I64:
    """How many U+FFFD each line has."""
    b = np.frombuffer(data, np.uint8)
    places = np.flatnonzero((b[:-2] == 0xEF) & (b[1:-1] == 0xBF) & (b[2:] == 0xBD))
    lines = np.searchsorted(starts, places, "right") - 1
    return np.bincount(lines, minlength=len(starts))
