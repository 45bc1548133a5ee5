"""Rows on their way into segments: columns of numpy, text as one buffer with offsets.

Shapes: n rows in arrival order; a column is [n]. Absent values are the sentinels of `model.frame`
(level 0, iteration NO_ITERATION, rank STREAM_RANK, site 0) and NO_HEAD for `group`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.model.frame import CallSite
from ranklog.model.stream import Stream

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

NO_HEAD = -1
_INT32_MAX = 2**31 - 1


class StreamRows(Protocol):
    """What lines and records of points have in common; see Rows. Between offsets[i] and offsets[i+1]
    lie the bytes of what row i holds."""

    @property
    def streams(self) -> tuple[Stream, ...]: ...
    @property
    def stream_ids(self) -> tuple[str, ...]: ...
    @property
    def stream(self) -> I32: ...
    @property
    def seq(self) -> I64: ...
    @property
    def ts(self) -> I64: ...
    @property
    def iteration(self) -> I64: ...
    @property
    def rank(self) -> I32: ...
    @property
    def offsets(self) -> I64: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class MetadataValues:
    """Values of one key and type. `rows` I64 ascending; `values` I64, float64 or pa strings."""

    key: str
    type: str  # int | float | str
    rows: I64
    values: Any


@dataclass(frozen=True, slots=True)
class Rows:
    """See the module. `stream` indexes `streams`; `site` is 1 + an index into `sites`.

    Line i is text[offsets[i]:offsets[i+1]]; its body begins `body_at[i]` bytes later. `group` is
    the seq of the group's first line. `raw` (pa binary) holds the bytes of `raw_rows`.
    """

    streams: tuple[Stream, ...]
    stream_ids: tuple[str, ...]
    sites: tuple[CallSite, ...]
    stream: I32
    seq: I64
    ts: I64
    level: npt.NDArray[np.int16]
    iteration: I64
    rank: I32
    group: I64
    flags: npt.NDArray[np.int16]
    body_at: I32
    site: I32
    text: npt.NDArray[np.uint8]
    offsets: I64
    metadata: tuple[MetadataValues, ...]
    raw_rows: I64
    raw: Any

    def __len__(self) -> int:
        return len(self.stream)

    @property
    def has_envelopes(self) -> bool:
        return bool(self.body_at.any())

    def piece_offsets(self) -> I64:
        """Offsets of what is tokenised: lines, or (2 a line) envelope and body where any has one."""
        if not self.has_envelopes:
            return self.offsets
        offsets = np.empty(2 * len(self) + 1, np.int64)
        offsets[::2] = self.offsets
        offsets[1::2] = self.offsets[:-1] + self.body_at
        return offsets

    def of_pieces(self, piece: I64) -> I64:
        """The row of each piece."""
        return piece >> 1 if self.has_envelopes else piece

    def texts(self) -> Any:
        """The lines as Arrow strings, without a copy of the text."""
        return string_array(self.offsets, self.text)

    def bodies(self) -> Any:
        """Lines without their envelopes, as Arrow strings."""
        if not self.has_envelopes:
            return self.texts()
        pieces = string_array(self.piece_offsets(), self.text)
        return pieces.take(pa.array(np.arange(1, 2 * len(self), 2)))


def string_array(offsets: I64, text: npt.NDArray[np.uint8]) -> Any:
    """Arrow strings text[offsets[i]:offsets[i+1]]; large ones past 2 GiB."""
    if offsets[-1] <= _INT32_MAX:
        type_, places = pa.string(), pa.py_buffer(offsets.astype(np.int32))
    else:
        type_, places = pa.large_string(), pa.py_buffer(offsets)
    buffers = [None, places, pa.py_buffer(text)]
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers)
