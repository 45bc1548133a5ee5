"""Which writer wrote each line, and what its head says: time, level, call site, rank.

Shapes: n lines, by their bodies (after envelopes). A few thousand sample lines, one per shape, tell
which formats a file has; every line is then read by the first of these that matches it, whole
columns at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.importer.lines import I64, U8
from ranklog.importer.time_kinds import parse_times
from ranklog.importer.times import Parsed
from ranklog.importer.windows import buffers, extract, factorise, matches, to_integers
from ranklog.model.frame import NO_LEVEL, CallSite
from ranklog.model.levels import CRITICAL, ERROR, INFO, parse_level
from ranklog.rules.heads import HEADS, Head, classify

NO_HEAD = -1
# A line's shape: its first byte, and the next with letters and digits made alike.
_SHAPE_BYTES = 40
# The commonest shapes that are tried against the formats, per chunk.
_SAMPLES_MAX = 4_096
# These name places and are no heads of a record: a traceback's frames are its continuation.
_NO_RECORD = frozenset(["python_frame"])
# kernel and syslog words that ranklog.model.levels does not have
_MORE_LEVELS = {"err": ERROR, "crit": CRITICAL, "alert": CRITICAL, "emerg": CRITICAL}
_MORE_LEVELS |= {"notice": INFO}
_COLOUR = r"\x1b?\[\d?[0-9;]*m"
_COLOUR_HERE = r"\x1b\[[0-9;]*m|\[\d[0-9;]*m"
_ESC = re.compile(rb"\x1b\[")
_LOST_ESC = re.compile(rb"\[\d[0-9;]*m")

_ALIKE = np.arange(256, dtype=np.uint8)
_ALIKE[ord("0") : ord("9") + 1] = ord("0")
_ALIKE[ord("a") : ord("z") + 1] = _ALIKE[ord("A") : ord("Z") + 1] = ord("a")
# Masks for a last word of 0..8 bytes.
_LOW_BYTES = np.array([(1 << 8 * i) - 1 for i in range(8)] + [(1 << 64) - 1], np.uint64)
_MULTIPLIERS = np.array(
    [
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xD6E8FEB86659FD93,
        0xFF51AFD7ED558CCD,
    ],
    np.uint64,
)


@dataclass(frozen=True, slots=True)
class TimeGroup:
    """Times of one kind, and the lines they stand in (ascending)."""

    rows: I64
    parsed: Parsed

    def without(self, row: int) -> TimeGroup:
        """The group, but for one line."""
        kept = self.rows != row
        return TimeGroup(self.rows[kept], self.parsed.keep(kept))


@dataclass(slots=True)
class Heads:
    """What n heads say. `sites` is what `site` (index + 1) points into."""

    head: npt.NDArray[np.int16]  # index into HEADS or NO_HEAD
    level: npt.NDArray[np.int16]
    site: npt.NDArray[np.uint32]
    rank: npt.NDArray[np.int32]
    sites: list[CallSite] = field(default_factory=list)
    times: list[TimeGroup] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Format -> lines, most first."""
        found, lines = np.unique(self.head[self.head != NO_HEAD], return_counts=True)
        order = np.argsort(-lines, kind="stable")
        return {HEADS[found[i]].name: int(lines[i]) for i in order}


class Classifier:
    """Reads heads. It learns a file's formats as it goes on, and keeps what it has learnt."""

    def __init__(self) -> None:
        self._first: dict[int, set[int]] = {}  # format -> bytes that its lines begin with
        self._tried: set[int] = set()

    def read(self, bodies: Any) -> Heads:
        """The heads of n bodies (a binary array, cut to a window, without colours)."""
        offsets, buffer = buffers(bodies)
        content: U8 = np.frombuffer(buffer, np.uint8)
        first = np.full(len(bodies), -1, np.int16)
        filled = np.flatnonzero(offsets[1:] > offsets[:-1])
        first[filled] = content[offsets[:-1][filled]]
        self._learn(bodies, offsets, content, filled)
        return self._read(bodies, first)

    def _learn(self, bodies: Any, offsets: I64, content: U8, filled: I64) -> None:
        """Try one line of each new shape against all formats."""
        shapes = _shapes(content, offsets, filled)
        distinct, example, lines = np.unique(shapes, return_index=True, return_counts=True)
        order = np.argsort(-lines, kind="stable")[:_SAMPLES_MAX]
        fresh = [
            place
            for place, shape in zip(example[order].tolist(), distinct[order].tolist(), strict=True)
            if shape not in self._tried
        ]
        self._tried.update(distinct[order].tolist())
        samples = bodies.take(pa.array(filled[fresh], pa.int64())).to_pylist()
        for sample in samples:
            head = classify(sample.decode("latin-1"))
            if head is not None:
                self._first.setdefault(_PLACE[head.name], set()).add(sample[0])

    def _read(self, bodies: Any, first: npt.NDArray[np.int16]) -> Heads:
        count = len(bodies)
        heads = Heads(
            np.full(count, NO_HEAD, np.int16),
            np.full(count, NO_LEVEL, np.int16),
            np.zeros(count, np.uint32),
            np.full(count, -1, np.int32),
        )
        open_rows = np.ones(count, np.bool_)
        numbers: dict[tuple[bytes | None, ...], int] = {}
        for place in sorted(self._first):
            allowed = np.zeros(257, np.bool_)
            allowed[list(self._first[place])] = True
            rows = np.flatnonzero(open_rows & allowed[first])
            if not len(rows):
                continue
            matched, groups = extract(bodies.take(pa.array(rows)), HEADS[place].pattern)
            rows, mask = rows[matched], pa.array(matched)
            if not len(rows):
                continue
            open_rows[rows] = False
            groups = {name: values.filter(mask) for name, values in groups.items()}
            if HEADS[place].name not in _NO_RECORD:
                heads.head[rows] = place
            _fill(heads, numbers, rows, groups, HEADS[place])
        return heads


_PLACE = {head.name: place for place, head in enumerate(HEADS)}


def without_colours(bodies: Any) -> Any:
    """Bodies without colour codes, whole or without their ESC; the same array where there are none."""
    _, buffer = buffers(bodies)
    if _ESC.search(buffer) is None and _LOST_ESC.search(buffer) is None:
        return bodies
    coloured = matches(bodies, _COLOUR_HERE)
    mask = pa.array(coloured)
    plain = pc.replace_substring_regex(bodies.filter(mask), pattern=_COLOUR, replacement="")
    return pc.replace_with_mask(bodies, mask, plain)


def _shapes(content: U8, offsets: I64, filled: I64) -> npt.NDArray[np.uint64]:
    """A hash of each body's shape."""
    if not len(filled):
        return np.empty(0, np.uint64)
    begins = offsets[:-1][filled]
    left = offsets[1:][filled] - begins
    padded = np.zeros(len(content) + _SHAPE_BYTES + 8, np.uint8)
    padded[: len(content)] = _ALIKE[content]
    # The little-endian word that starts at every byte.
    words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    hashes: npt.NDArray[np.uint64] = content[begins].astype(np.uint64)
    for place, multiplier in enumerate(_MULTIPLIERS):
        word = words[begins + 8 * place] & _LOW_BYTES[np.clip(left - 8 * place, 0, 8)]
        hashes = (hashes ^ word) * multiplier
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _fill(
    heads: Heads,
    numbers: dict[tuple[bytes | None, ...], int],
    rows: I64,
    groups: dict[str, Any],
    head: Head,
) -> None:
    """Columns of the lines that one format read."""
    if "level" in groups:
        codes, names = factorise(groups["level"])
        heads.level[rows] = np.array([_level(name) for name in names], np.int16)[codes]
    if "rank" in groups:
        heads.rank[rows] = np.minimum(to_integers(groups["rank"], -1), 2**31 - 1)
    if groups.keys() & {"file", "function", "logger"}:
        heads.site[rows] = _sites(heads, numbers, groups)
    if "time" in groups and head.time:
        heads.times += _times(rows, groups["time"], head.time)


def _times(rows: I64, values: Any, kind: str) -> Iterator[TimeGroup]:
    present = np.asarray(
        pc.greater(pc.binary_length(values), 0).to_numpy(zero_copy_only=False), np.bool_
    )
    if present.any():
        parsed = parse_times(values.filter(pa.array(present)), kind)
        if parsed is not None:
            yield TimeGroup(rows[present], parsed)


def _level(name: bytes | None) -> int:
    if not name:
        return NO_LEVEL
    text = name.decode("latin-1")
    return parse_level(text) or _MORE_LEVELS.get(text.lower(), NO_LEVEL)


def _sites(
    heads: Heads, numbers: dict[tuple[bytes | None, ...], int], groups: dict[str, Any]
) -> npt.NDArray[np.uint32]:
    """Number of each line's (file:line, function, logger) in `heads.sites`."""
    parts = [groups.get(name) for name in ("file", "line", "function", "logger")]
    count = len(next(part for part in parts if part is not None))
    empty = pa.array([b""] * count, pa.binary())
    joined = pc.binary_join_element_wise(
        *(empty if part is None else part for part in parts), b"\n", null_handling="replace"
    )
    codes, names = factorise(joined)
    return np.array([_number(heads, numbers, name or b"") for name in names], np.uint32)[codes]


def _number(heads: Heads, numbers: dict[tuple[bytes | None, ...], int], joined: bytes) -> int:
    file, line, function, logger = joined.split(b"\n")
    site = file + b":" + line if file and line else file or None
    key = (site, function or None, logger or None)
    if key == (None, None, None):
        return 0
    if key not in numbers:
        texts = (None if part is None else part.decode("utf-8", "replace") for part in key)
        heads.sites.append(CallSite(*texts))
        numbers[key] = len(heads.sites)
    return numbers[key]
