"""Whether segments have the rows that ingest summed up: before a merge, and in an audit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranklog.compact.lines import read_lines
from ranklog.compact.points import read_points
from ranklog.compact.streams import Streams, nothing_hidden
from ranklog.layout.index import SegmentIndex
from ranklog.layout.point_rows import PointRows
from ranklog.layout.row_sums import U64, hash_lines, hash_records
from ranklog.layout.rows import Rows, StreamRows
from ranklog.model.frame import KIND_POINT
from ranklog.model.index import StreamEntry

Sums = tuple[int, int]


def summed_rows(index: SegmentIndex, data: bytes) -> tuple[StreamRows, list[Sums]]:
    """Rows of one segment, and what they add up to by stream of its index. Raises what Arrow raises."""
    rows: StreamRows
    if index.head.kind == KIND_POINT:
        rows, streams = read_points([index], [data], nothing_hidden)
    else:
        rows, streams = read_lines([index], [data], nothing_hidden)
    return rows, _by_stream(rows, _hashes(rows), streams, index.head.streams)


def unlike_their_sums(
    rows: StreamRows, streams: Streams, indexes: Sequence[SegmentIndex]
) -> list[SegmentIndex]:
    """Of what was read together, the indexes whose segments have other rows than ingest put there."""
    hashes, at, found = _hashes(rows), 0, []
    for index, count in zip(indexes, streams.rows, strict=True):
        end, said = at + count, index.row_sums
        if (
            count
            and said
            and list(said) != _by_stream(rows, hashes, streams, index.head.streams, at, end)
        ):
            found.append(index)
        at = end
    return found


def _hashes(rows: StreamRows) -> U64:
    every = np.arange(len(rows))
    if isinstance(rows, PointRows):
        return hash_records(rows, every)
    assert isinstance(rows, Rows)
    return hash_lines(rows, every)


def _by_stream(
    rows: StreamRows,
    hashes: U64,
    streams: Streams,
    entries: Sequence[StreamEntry],
    first: int = 0,
    end: int | None = None,
) -> list[Sums]:
    """Sums of the rows [first, end) for each of these streams."""
    sums = np.zeros((max(1, len(streams.described)), 2), np.uint64)
    stream, hashes = rows.stream[first:end], hashes[first:end]
    np.add.at(sums[:, 0], stream, hashes)
    np.add.at(sums[:, 1], stream, hashes * rows.seq[first:end].view(np.uint64))
    places = [streams.places[entry.stream_id] for entry in entries]
    return [(a, b) for a, b in sums[places].tolist()]
