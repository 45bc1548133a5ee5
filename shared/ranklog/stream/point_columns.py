"""A frame of points: its columns, whether they fit each other, and their bytes in the payload.

Shapes: n records, v values; what each column holds is `model.frame.PointColumns`. Numbers are
transposed as those of lines are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Protocol

from ranklog.errors import Corrupt
from ranklog.model.frame import KIND_POINT, SUMMARY_PARTS, Frame, FrameStream, PointColumns
from ranklog.stream.columns import numbers_of, restore
from ranklog.stream.header import FrameHeader

# Columns of every record that lines have as well; then those of PointColumns, with their width.
RECORD_COLUMNS = (("stream", "H", 2), ("ts", "q", 8), ("rank", "i", 4), ("iteration", "q", 8))
POINT_ROW_BYTES = sum(width for _, _, width in RECORD_COLUMNS)
_TEXTS = ("names", "dims", "contexts")
_DOUBLES = ("values", "summary_numbers", "quantiles", "histograms")
_WIDTHS = {"summary_flags": 2, "summary_counts": 8} | dict.fromkeys(_DOUBLES, 8)
_WIDTHS |= dict.fromkeys(_TEXTS, 1)
POINT_COLUMNS = tuple((item.name, _WIDTHS.get(item.name, 4)) for item in fields(PointColumns))


def point_sizes(points: PointColumns) -> tuple[int, ...]:
    """Bytes of each column, for the header."""
    return tuple(len(getattr(points, name)) for name, _ in POINT_COLUMNS)


def point_parts(frame: Frame) -> list[tuple[bytes, int]]:
    """The payload's parts in order, each with the width of its numbers (1: bytes)."""
    parts = [(getattr(frame, name), width) for name, _, width in RECORD_COLUMNS]
    return parts + [(getattr(frame.points, name), width) for name, width in POINT_COLUMNS]


def point_frame_of(header: FrameHeader, payload: bytes) -> Frame:
    """The frame of an unpacked payload of the header's size. Raises Corrupt."""
    if len(header.point_bytes) != len(POINT_COLUMNS):
        raise Corrupt(f"frame of points has {len(header.point_bytes)} columns of values")
    if header.text_bytes or header.raw_rows or header.raw_bytes or header.metadata or header.sites:
        raise Corrupt("frame of points says it has lines")
    sizes = [width * header.rows for _, _, width in RECORD_COLUMNS] + [*header.point_bytes]
    widths = [width for _, _, width in RECORD_COLUMNS] + [width for _, width in POINT_COLUMNS]
    parts, at = [], 0
    for size, width in zip(sizes, widths, strict=True):
        part = payload[at : at + size]
        at += size
        if size % width:
            raise Corrupt(f"a column of {size} bytes has numbers of {width}")
        parts.append(restore(part, width) if width > 1 else part)
    count = len(RECORD_COLUMNS)
    return point_frame(header, header.streams, parts[:count], PointColumns(*parts[count:]))


class Place(Protocol):
    """Whose frame it is, and where in the chain."""

    @property
    def tenant(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def previous(self) -> str: ...
    @property
    def rows(self) -> int: ...


def point_frame(
    place: Place, streams: tuple[FrameStream, ...], records: Sequence[bytes], points: PointColumns
) -> Frame:
    """A frame of points; `records` are RECORD_COLUMNS."""
    stream, ts, rank, iteration = records
    return Frame(
        tenant=place.tenant,
        agent=place.agent,
        number=place.number,
        previous=place.previous,
        streams=streams,
        rows=place.rows,
        stream=stream,
        ts=ts,
        rank=rank,
        iteration=iteration,
        level=b"",
        site=b"",
        body_at=b"",
        flags=b"",
        group=b"",
        text_length=b"",
        text=b"",
        kind=KIND_POINT,
        points=points,
    )


def check_points(frame: Frame) -> None:
    """Every column fits the records, and every number points at something. Raises Corrupt."""
    points = frame.points
    if points is None or frame.kind != KIND_POINT:
        raise Corrupt(f"frame of kind {frame.kind!r} with columns of another")
    for name, _, width in RECORD_COLUMNS:
        if len(getattr(frame, name)) != width * frame.rows:
            raise Corrupt(f"column {name} does not have {frame.rows} rows")
    _check_streams(frame)
    names = _check_texts(points.name_length, points.names, "names")
    dims = _check_texts(points.dims_length, points.dims, "dims")
    contexts = _check_texts(points.context_length, points.contexts, "contexts")
    sizes = numbers_of("I", points.set_size)
    _check_below(points.set_dims, dims, "set_dims", len(sizes))
    _check_below(points.set_name, names, "set_name", sum(sizes))
    _check_below(points.context, contexts + 1, "context", frame.rows)
    _check_below(points.set, len(sizes), "set", frame.rows)
    values = sum(map(sizes.__getitem__, numbers_of("I", points.set)))
    if len(points.values) != 8 * values:
        raise Corrupt(f"frame has {len(points.values)} bytes of values for {values}")
    _check_ascending(points.missing, values, "missing")
    _check_summaries(points, values)


def _check_streams(frame: Frame) -> None:
    """Records of each stream, as the header says."""
    counts = Counter(numbers_of("H", frame.stream))
    expected = {index: entry.rows for index, entry in enumerate(frame.streams) if entry.rows}
    if dict(counts) != expected:
        raise Corrupt("column stream does not have the rows that the header says")


def _check_summaries(points: PointColumns, values: int) -> None:
    count = _check_ascending(points.summary, values, "summary")
    flags = numbers_of("H", points.summary_flags)
    quantiles, bins = numbers_of("I", points.quantile_size), numbers_of("I", points.bin_size)
    if not len(flags) == len(quantiles) == len(bins) == count:
        raise Corrupt(f"columns of {count} summaries have other rows")
    if max(flags, default=0) >= 1 << len(SUMMARY_PARTS):
        raise Corrupt("a summary has a part that no version writes")
    if len(points.summary_counts) != 24 * count or len(points.summary_numbers) != 40 * count:
        raise Corrupt(f"columns of {count} summaries have other rows")
    edges = sum(2 * size + 1 for size in bins if size)
    if len(points.quantiles) != 16 * sum(quantiles) or len(points.histograms) != 8 * edges:
        raise Corrupt("sizes of summaries do not add up to their values")


def _check_texts(lengths: bytes, texts: bytes, name: str) -> int:
    sizes = numbers_of("I", lengths)
    if sum(sizes) != len(texts):
        raise Corrupt(f"lengths of {name} do not add up to their texts")
    return len(sizes)


def _check_below(data: bytes, limit: int, name: str, count: int) -> None:
    numbers = numbers_of("I", data)
    if len(numbers) != count or max(numbers, default=-1) >= limit:
        raise Corrupt(f"column {name} points at what is not there")


def _check_ascending(data: bytes, limit: int, name: str) -> int:
    numbers = numbers_of("I", data)
    if numbers and (numbers[-1] >= limit or not all(a < b for a, b in pairwise(numbers))):
        raise Corrupt(f"places of {name!r} do not ascend within the values")
    return len(numbers)
