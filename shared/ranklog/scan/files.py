"""What a scan reads where a store has no local files: planned ranges in memory, by one round of GETs.

The planner says which byte ranges a scan needs; they are fetched together. DuckDB sees a file
(scan/filesystem). A read outside the plan is another GET, so that a plan decides speed and never the
answer.

An etag that differs is no proof of other bytes: with KMS the same bytes have a new one each time they
are put, by a second attempt at a batch or a copy of the bucket. Then the hash in the name decides.
"""

from __future__ import annotations

import bisect
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from ranklog.errors import Corrupt, PreconditionFailed
from ranklog.layout.keys import segment_is_named
from ranklog.limits import RANGE_GAP_BYTES_MAX
from ranklog.plan.sums import Part, unpack_sums
from ranklog.plan.tasks import SegmentScan
from ranklog.store.protocol import Store


def coalesce_ranges(
    ranges: Iterable[tuple[int, int]], gap_max: int = RANGE_GAP_BYTES_MAX
) -> list[tuple[int, int]]:
    """Half-open byte ranges in order, those closer than `gap_max` joined: reading a gap is cheaper."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start - joined[-1][1] <= gap_max:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def damaged(start: int, end: int) -> Corrupt:
    """What is said of bytes that have another checksum than their index says."""
    return Corrupt(f"damaged: bytes {start} to {end} are not those that were written")


class RangedObject:
    """An object of which some ranges are in memory. `bytes_read` counts what was fetched.

    Column chunks are read whole, so that each can be compared with its checksum. `damage`: the first
    that differed; DuckDB may have made another error of it.
    """

    def __init__(self, store: Store, segment: SegmentScan, pool: ThreadPoolExecutor) -> None:
        self._store = store
        self._segment = segment
        self._pool = pool
        self._starts: list[int] = []
        self._parts: list[bytes] = []
        self._lock = threading.Lock()
        self._sums: list[Part] = sorted(unpack_sums(segment))
        self.bytes_read = 0
        self.damage: Corrupt | None = None

    @property
    def key(self) -> str:
        return self._segment.key

    @property
    def length(self) -> int:
        return self._segment.length

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """GET these ranges at once, all or an error."""
        wanted = coalesce_ranges((max(0, a), min(b, self.length)) for a, b in ranges)
        for (start, _), data in zip(wanted, self._pool.map(self._get, wanted), strict=True):
            self._keep(start, data)

    def read(self, start: int, end: int) -> bytes:
        """Bytes [start, end) of the object, cut at its end."""
        end = min(end, self.length)
        if start >= end:
            return b""
        first, last = self._whole_parts(start, end)
        with self._lock:
            at = bisect.bisect_right(self._starts, first) - 1
            if at >= 0 and last <= self._starts[at] + len(self._parts[at]):
                offset = start - self._starts[at]
                return self._parts[at][offset : offset + end - start]
        data = self._get((first, last))
        self._keep(first, data)
        return data[start - first : end - first]

    def _whole_parts(self, start: int, end: int) -> tuple[int, int]:
        """The range, wide enough to hold every part whole that it touches."""
        touched = self._sums[self._behind(start) : self._at(end)]
        if not touched:
            return start, end
        return min(start, touched[0][0]), max(end, touched[-1][1])

    def _behind(self, start: int) -> int:
        """Position of the first part that ends behind `start`."""
        return bisect.bisect_right(self._sums, start, key=lambda part: part[1])

    def _at(self, start: int) -> int:
        """Position of the first part that starts at or behind `start`."""
        return bisect.bisect_left(self._sums, start, key=lambda part: part[0])

    def _get(self, span: tuple[int, int]) -> bytes:
        start, end = span
        segment = self._segment
        try:
            return self._store.get_range(segment.key, start, end - start, if_match=segment.etag)
        except PreconditionFailed:
            data = self._store.get(segment.key)
            if len(data) != segment.length or not segment_is_named(data, segment.key):
                raise
            return data[start:end]

    def _keep(self, start: int, data: bytes) -> None:
        self._check(start, data)
        with self._lock:
            at = bisect.bisect_left(self._starts, start)
            self._starts.insert(at, start)
            self._parts.insert(at, data)
            self.bytes_read += len(data)

    def _check(self, start: int, data: bytes) -> None:
        """Compare the parts that lie in `data` whole. Raises Corrupt."""
        view = memoryview(data)
        for first, end, crc in self._sums[self._at(start) : self._behind(start + len(data))]:
            if zlib.crc32(view[first - start : end - start]) != crc:
                self.damage = self.damage or damaged(first, end)
                raise self.damage


def planned_ranges(segment: SegmentScan) -> Iterator[tuple[int, int]]:
    """Byte ranges of one round: footer, small columns, text. No plan: the whole object."""
    spans: Sequence[tuple[int, int]] = (*segment.small, *segment.text)
    if not spans:
        yield (0, segment.length)
    else:
        yield (segment.length - segment.footer, segment.length)
        yield from spans
