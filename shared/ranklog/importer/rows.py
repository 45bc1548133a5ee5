"""Analysed lines to frames: columns as bytes, in the shapes of ranklog.model.frame."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ranklog.importer.lines import I64, Lines
from ranklog.model.frame import (
    INVALID_UTF8,
    NO_ITERATION,
    NO_LF,
    CallSite,
    Fence,
    Frame,
    FrameStream,
    MetadataColumn,
    StreamEnd,
)
from ranklog.model.stream import Stream
from ranklog.stream.frames import encode_frame, peek_header

# A frame's columns take 42 bytes a row beside the text; both stay well under the payload's limit.
FRAME_ROWS_MAX = 262_144
FRAME_TEXT_BYTES_MAX = 32 << 20


@dataclass(frozen=True, slots=True)
class Columns:
    """What analysis says of the lines of a chunk, row by row. `group`: seq back to the first line."""

    ts: I64
    level: npt.NDArray[np.int16]
    site: npt.NDArray[np.uint32]
    sites: tuple[CallSite, ...]
    body_at: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint16]
    group: npt.NDArray[np.uint32]
    rank: npt.NDArray[np.int32]
    claimed_rows: I64  # lines with a wild time, and that time
    claimed_ts: I64


@dataclass(frozen=True, slots=True)
class Encoded:
    """A frame's bytes, and what it weighs in a batch."""

    data: bytes
    rows: int
    text_bytes: int


class FrameChain:
    """Frames of one stream, from one place in it on: the same rows give the same frames."""

    def __init__(self, stream: Stream, first_seq: int) -> None:
        self._stream = stream
        self.next_seq = first_seq
        self._number = 0
        self._previous = ""
        name = f"import {stream.stream_id} {first_seq}".encode()
        self._agent = hashlib.blake2b(name, digest_size=16).hexdigest()

    def _encode(self, frame: Frame) -> bytes:
        """Number the frame and chain it to the one before."""
        data = encode_frame(replace(frame, number=self._number, previous=self._previous))
        self._number += 1
        self._previous = peek_header(data).header_hash
        return data


class Framer(FrameChain):
    """Frames of lines."""

    def frames(self, lines: Lines, columns: Columns) -> Iterator[Encoded]:
        """One or more frames that hold all the rows."""
        start = 0
        for stop in _cuts(lines):
            yield self._frame(lines, columns, start, stop)
            start = stop

    def closing(self, fences: tuple[Fence, ...]) -> Encoded:
        """A frame without rows: the stream is there, what its hours hold, and where it ends.

        A file that has grown ends later: readers take the end behind the most lines.
        """
        frame = _empty(self._stream, self._agent, self.next_seq, fences)
        [only] = frame.streams
        ended = replace(only, end=StreamEnd(self.next_seq))
        return self._count(replace(frame, streams=(ended,)))

    def _frame(self, lines: Lines, columns: Columns, start: int, stop: int) -> Encoded:
        part = slice(start, stop)
        flags = columns.flags[part].copy()
        if stop == lines.count and not lines.last_has_lf:
            flags[-1] |= NO_LF
        low, high = np.searchsorted(lines.raw_rows, (start, stop))
        raw_rows, raw = lines.raw_rows[low:high] - start, lines.raw[low:high]
        flags[raw_rows] |= INVALID_UTF8
        used, site = np.unique(columns.site[part], return_inverse=True)
        names = used[used > 0]
        count = stop - start
        frame = replace(
            _empty(self._stream, self._agent, self.next_seq, ()),
            streams=(FrameStream(self._stream, self.next_seq, count),),
            rows=count,
            stream=bytes(2 * count),
            ts=_bytes(columns.ts[part], "<i8"),
            level=_bytes(columns.level[part], "<i2"),
            site=_bytes(site + (0 if len(used) > len(names) else 1), "<u4"),
            sites=tuple(columns.sites[index - 1] for index in names.tolist()),
            body_at=_bytes(columns.body_at[part], "<u4"),
            flags=_bytes(flags, "<u2"),
            group=_bytes(columns.group[part], "<u4"),
            rank=_bytes(columns.rank[part], "<i4"),
            iteration=np.full(count, NO_ITERATION, "<i8").tobytes(),
            text_length=_bytes(lines.ends[part] - lines.starts[part], "<u4"),
            text=_text(lines, start, stop),
            raw_rows=_bytes(raw_rows, "<u4"),
            raw_length=_bytes(np.array([len(line) for line in raw]), "<u4"),
            raw=b"".join(raw),
            metadata=_claimed(columns, start, stop),
        )
        self.next_seq += count
        return self._count(frame)

    def _count(self, frame: Frame) -> Encoded:
        return Encoded(self._encode(frame), frame.rows, len(frame.text))


def _cuts(lines: Lines) -> list[int]:
    """Where frames end: by rows and by bytes of text; at least one row each."""
    cuts, start = [], 0
    while start < lines.count:
        limit = lines.starts[start] + FRAME_TEXT_BYTES_MAX
        fits = int(np.searchsorted(lines.ends, limit, "right"))
        start = min(max(fits, start + 1), start + FRAME_ROWS_MAX)
        cuts.append(start)
    return cuts


def _text(lines: Lines, start: int, stop: int) -> bytes:
    """Texts without their line feeds, end to end."""
    text = lines.text[lines.starts[start] : lines.ends[stop - 1]]
    return text.replace(b"\n", b"")


def _claimed(columns: Columns, start: int, stop: int) -> tuple[MetadataColumn, ...]:
    low, high = np.searchsorted(columns.claimed_rows, (start, stop))
    if low == high:
        return ()
    rows = _bytes(columns.claimed_rows[low:high] - start, "<u4")
    return (MetadataColumn("ts_claimed", "int", rows, _bytes(columns.claimed_ts[low:high], "<i8")),)


def _bytes(values: npt.NDArray[np.generic], dtype: str) -> bytes:
    return np.ascontiguousarray(values).astype(dtype, copy=False).tobytes()


def _empty(stream: Stream, agent: str, seq: int, fences: tuple[Fence, ...]) -> Frame:
    nothing = b""
    return Frame(
        tenant=stream.tenant,
        agent=agent,
        number=0,
        previous="",
        streams=(FrameStream(stream, seq, 0, fences),),
        rows=0,
        stream=nothing,
        ts=nothing,
        level=nothing,
        site=nothing,
        body_at=nothing,
        flags=nothing,
        group=nothing,
        rank=nothing,
        iteration=nothing,
        text_length=nothing,
        text=nothing,
    )
