"""What the rows of a stream add up to: so that audit can tell whether a segment has the rows of the frames.

Ingest has checked the payload hash of each frame when it sums its rows up; audit reads the rows back and
compares. Two sums modulo 2^64 for each stream of a segment: of the rows' hashes, and of hash times seq.
Their quotient tells which row was altered, where it was one. Sums add up: a merge has those of what it
merged. The hash is no cryptographic one: that nobody put another segment under the name is the name's
own business, which ends in a hash of the bytes.

Shapes: n rows, `chosen` I64[m] of them in (stream, seq) order; a hash is U64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from ranklog.layout.point_rows import PointRows, ranges_to_places
from ranklog.layout.rows import I64, MetadataValues, Rows, StreamRows

U64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_M1, _M2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_S32, _S29 = np.uint64(32), np.uint64(29)
_NAN = np.array([np.nan]).view(np.uint64)
# Masks of a last word of 0..7 bytes, and what is set behind them, so that "" and "\0" differ.
_MASK = np.array([(1 << 8 * i) - 1 for i in range(8)], np.uint64)
_END = np.array([(0x80 + i) << 56 for i in range(8)], np.uint64)
# Texts and bytes at once: what is computed of them stays in the cache.
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 4_096, 1 << 20


def _mix(x: U64) -> U64:
    """In place."""
    x *= _M1
    x ^= x >> _S32
    x *= _M2
    x ^= x >> _S29
    return x


# A word's place in its text; places past the table share the last.
_PLACES = 65_536
_ORDER = _mix(np.arange(1, _PLACES + 1, dtype=np.uint64))
# What is added to the columns of a row, so that two that swap their values do not cancel out.
_COLUMNS = _mix(np.arange(1, 17, dtype=np.uint64) << _S32)


def sums_of_lines(rows: Rows, chosen: I64, places: npt.NDArray[np.int32], streams: int) -> bytes:
    """The sums of the chosen lines as they lie in an index: (sum, sum by seq), uint64 each, for each of
    its `streams`; `places` is where each of `rows.streams` stands among these."""
    return _added(hash_lines(rows, chosen), rows, chosen, places, streams)


def sums_of_points(
    rows: PointRows, chosen: I64, places: npt.NDArray[np.int32], streams: int
) -> bytes:
    """The same of records of points."""
    return _added(hash_records(rows, chosen), rows, chosen, places, streams)


def _added(
    hashes: U64, rows: StreamRows, chosen: I64, places: npt.NDArray[np.int32], streams: int
) -> bytes:
    found = np.zeros((streams, 2), np.uint64)
    if len(chosen):
        stream = rows.stream[chosen]
        starts = np.flatnonzero(np.diff(stream, prepend=-1))
        at = places[stream[starts]]
        found[at, 0] = np.add.reduceat(hashes, starts)
        found[at, 1] = np.add.reduceat(hashes * rows.seq[chosen].view(np.uint64), starts)
    return found.astype("<u8").tobytes()


def altered_row(
    said: Sequence[int], found: Sequence[int], ranges: Iterable[tuple[int, int]]
) -> int | None:
    """The seq of the only row that differs between two pairs of sums; None where more than one does."""
    change, by_seq = ((a - b) % (1 << 64) for a, b in zip(found, said, strict=True))
    if not change:
        return None
    zeros = (change & -change).bit_length() - 1
    if by_seq & ((1 << zeros) - 1):
        return None
    modulus = 1 << (64 - zeros)
    seq = (by_seq >> zeros) * pow(change >> zeros, -1, modulus) % modulus
    # a seq is less than 2^40 or so: with ever so many zeros more than one would fit
    return seq if zeros <= 16 and any(first <= seq < end for first, end in ranges) else None


# --- lines --------------------------------------------------------------------------------------
def hash_lines(rows: Rows, chosen: I64) -> U64:
    """A hash of all that is stored of each chosen line but its stream: U64[m]."""
    at = np.sort(chosen)
    whole = np.zeros(len(rows), np.uint64)
    begin = rows.offsets[at]
    found = hash_texts(rows.text, begin, rows.offsets[at + 1] - begin)
    sites = [_hash_object([s.site, s.function, s.logger]) for s in rows.sites]
    numbers: Sequence[npt.NDArray[np.generic]] = (
        rows.seq, rows.ts, rows.level, rows.iteration, rows.rank, rows.group, rows.flags, rows.body_at,
    )  # fmt: skip
    for salt, column in zip(_COLUMNS, numbers, strict=False):
        found = _mixed(found, column[at].astype(np.int64).view(np.uint64) + salt)
    found = _mixed(found, np.array([0, *sites], np.uint64)[rows.site[at]])
    whole[at] = found
    there = np.zeros(len(rows), np.bool_)
    there[at] = True
    for values in rows.metadata:
        _add_values(whole, values, there)
    _add_bytes(whole, rows.raw_rows, rows.raw, there, _COLUMNS[15])
    return whole[chosen]


def _add_values(whole: U64, values: MetadataValues, there: npt.NDArray[np.bool_]) -> None:
    """Of one key and type; the order of keys does not count."""
    salt = np.uint64(_hash_object([values.key, values.type]))
    if values.type == "str":
        _add_bytes(whole, values.rows, values.values, there, salt)
        return
    kept = there[values.rows]
    numbers = np.asarray(values.values)[kept]
    bits = _bits(numbers.astype(np.float64)) if values.type == "float" else _words(numbers)
    whole[values.rows[kept]] += _mix((bits ^ salt) * _M2 + salt)


def _add_bytes(
    whole: U64, rows: I64, values: Any, there: npt.NDArray[np.bool_], salt: np.uint64
) -> None:
    """Of Arrow strings or bytes, one for each of `rows`."""
    kept = np.flatnonzero(there[rows])
    if not len(kept):
        return
    data, offsets = _buffers(values)
    begin = offsets[kept]
    hashes = hash_texts(data, begin, offsets[kept + 1] - begin)
    whole[rows[kept]] += _mix((hashes ^ salt) * _M2 + salt)


def _buffers(values: Any) -> tuple[Bytes, I64]:
    """Bytes of Arrow strings, and n + 1 places in them."""
    _, places, data = values.buffers()
    wide = np.int64 if str(values.type).startswith("large") else np.int32
    stored = np.frombuffer(places, wide) if places is not None else np.zeros(1, np.int64)
    offsets = stored[values.offset : values.offset + len(values) + 1].astype(np.int64)
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return text, offsets


# --- points -------------------------------------------------------------------------------------
def hash_records(rows: PointRows, chosen: I64) -> U64:
    """A hash of all that is stored of each chosen record and its values but its stream: U64[m]."""
    contexts = np.array([0, *map(_hash_object, rows.contexts)], np.uint64)
    found = contexts[rows.context[chosen]]
    numbers: Sequence[npt.NDArray[Any]] = (rows.seq, rows.ts, rows.iteration, rows.rank)
    for salt, column in zip(_COLUMNS, numbers, strict=False):
        found = _mixed(found, column[chosen].astype(np.int64).view(np.uint64) + salt)
    size = rows.size[chosen]
    some = np.flatnonzero(size)
    if len(some):
        hashes = _hash_values(rows, ranges_to_places(rows.first[chosen], size))
        starts = (np.cumsum(size) - size)[some]
        found[some] += np.add.reduceat(hashes, starts)
    return found


def _hash_values(rows: PointRows, at: I64) -> U64:
    """Of these values with their series. What was not measured, and summaries, count for what they are."""
    names = np.array([_hash_object(name) for name in rows.names], np.uint64)
    dims = np.array([_hash_object(one) for one in rows.dims], np.uint64)
    series = _mixed(names[rows.series_name], dims[rows.series_dims])
    bits = _bits(rows.values[at])
    if rows.missing is not None:
        bits[rows.missing[at]] = _COLUMNS[14]
    if len(rows.summaries.at):
        place = np.full(len(rows.values), -1, np.int64)
        place[rows.summaries.at] = np.arange(len(rows.summaries.at))
        place = place[at]
        bits[place >= 0] = _hash_summaries(rows)[place[place >= 0]]
    return _mixed(series[rows.key[at]], bits)


def _hash_summaries(rows: PointRows) -> U64:
    summaries = rows.summaries
    found = summaries.flags.astype(np.uint64)
    for part in range(summaries.counts.shape[1]):
        found = _mixed(found, _words(summaries.counts[:, part]))
    has = [(summaries.flags >> np.uint16(bit)) & np.uint16(1) > 0 for bit in range(7)]
    for part in range(summaries.numbers.shape[1]):
        bits = _bits(np.ascontiguousarray(summaries.numbers[:, part]))
        found = _mixed(found, np.where(has[part], bits, np.uint64(0)))
    for there, values in zip(has[5:], (summaries.quantiles, summaries.histograms), strict=True):
        data, offsets = _buffers(values)
        hashes = hash_texts(data, offsets[:-1], np.diff(offsets))
        found = _mixed(found, np.where(there, hashes, np.uint64(0)))
    return found


# --- hashes -------------------------------------------------------------------------------------
def hash_texts(data: Bytes, begin: I64, length: I64) -> U64:
    """A hash of each span data[begin[i] : begin[i] + length[i]], 8 bytes at a time."""
    found = np.empty(len(begin), np.uint64)
    words = (length >> 3) + 1
    ends = np.cumsum(words)
    at = 0
    while at < len(begin):
        before = int(ends[at - 1]) if at else 0
        fits = int(np.searchsorted(ends, before + _BYTES_AT_ONCE // 8, "right"))
        to = max(at + 1, min(at + _ROWS_AT_ONCE, fits))
        found[at:to] = _hash_some(data, begin[at:to], length[at:to], words[at:to])
        at = to
    return found


def _hash_some(data: Bytes, begin: I64, length: I64, words: I64) -> U64:
    """The words of each span, each with its place, added up."""
    past = np.cumsum(words)
    start = past - words
    place = np.arange(int(past[-1])) - np.repeat(start, words)
    read = _words_at(data, (place << 3) + np.repeat(begin, words))
    last, rest = past - 1, length & 7
    read[last] = (read[last] & _MASK[rest]) | _END[rest]
    read ^= _ORDER.take(np.minimum(place, _PLACES - 1))
    sums: U64 = np.add.reduceat(_mix(read), start)
    return sums


def _words_at(data: Bytes, at: I64) -> U64:
    """The little-endian word that starts at each of these bytes; zeros behind the last byte."""
    inside = len(data) - 7
    if inside > 0:
        view = np.ndarray((inside,), "<u8", data, strides=(1,))
        if int(at.max()) < inside:
            return view[at].astype(np.uint64, copy=False)
    tail_at = max(0, inside)
    tail = np.zeros(len(data) - tail_at + 16, np.uint8)
    tail[: len(data) - tail_at] = data[tail_at:]
    behind = at >= tail_at
    found = np.empty(len(at), np.uint64)
    found[behind] = np.ndarray((len(tail) - 7,), "<u8", tail, strides=(1,))[at[behind] - tail_at]
    if inside > 0:
        found[~behind] = view[at[~behind]]
    return found


def _mixed(before: U64, values: U64) -> U64:
    """A hash of both, in this order."""
    return _mix((before ^ (before >> _S29)) * _M2 + values)


def _bits(values: npt.NDArray[np.float64]) -> U64:
    """Of doubles; one NaN is as good as another."""
    bits = values.view(np.uint64).copy()
    bits[np.isnan(values)] = _NAN[0]
    return bits


def _words(values: npt.NDArray[np.generic]) -> U64:
    return np.ascontiguousarray(values).astype(np.int64).view(np.uint64)


def _hash_object(value: object) -> int:
    """Of names, of which there are few."""
    data = msgpack.packb(value, unicode_errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
