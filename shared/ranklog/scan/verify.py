"""Whether a segment's bytes are those that were written, by the checksums that its index has.

DuckDB checks no sum of a page: a flipped bit would be another text or number. So what a scan may
read is compared with its checksums first: a local file's parts once per process, as they then are
in the memory of the operating system; fetched ones each time.
"""

from __future__ import annotations

import bisect
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from ranklog.limits import CHECKED_RANGES_MAX
from ranklog.plan.sums import checked_ranges, unpack_sums
from ranklog.plan.tasks import Pairs, SegmentScan
from ranklog.scan.files import coalesce_ranges, damaged

# Path, length, mtime_ns, inode: a file that was written again is another one.
Identity: TypeAlias = "tuple[str, int, int, int]"


class Checked:
    """Byte ranges of files that were found undamaged. At most `ranges_max` of them, least recently
    used files dropped first."""

    def __init__(self, ranges_max: int = CHECKED_RANGES_MAX) -> None:
        self._ranges_max = ranges_max
        self._files: OrderedDict[Identity, Sequence[tuple[int, int]]] = OrderedDict()
        self._ranges = 0
        self._lock = threading.Lock()

    def of(self, file: Identity) -> Sequence[tuple[int, int]]:
        """The file's ranges, ascending, apart."""
        with self._lock:
            found = self._files.get(file, ())
            if found:
                self._files.move_to_end(file)
            return found

    def add(self, file: Identity, ranges: Iterable[tuple[int, int]]) -> None:
        """Count these in."""
        with self._lock:
            before = self._files.pop(file, ())
            after = coalesce_ranges((*before, *ranges), 0)
            self._files[file] = after
            self._ranges += len(after) - len(before)
            while self._ranges > self._ranges_max:
                self._ranges -= len(self._files.popitem(last=False)[1])


def _holds(ranges: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    at = bisect.bisect_right(ranges, start, key=lambda known: known[0]) - 1
    return at >= 0 and end <= ranges[at][1]


_CHECKED = Checked()


def check_file(
    path: Path, found: os.stat_result, scan: SegmentScan, checked: Checked = _CHECKED
) -> None:
    """Read what the scan may read of a local file, except what was read before. Raises Corrupt,
    OSError."""
    if not scan.sums:
        return
    identity = (str(path), found.st_size, found.st_mtime_ns, found.st_ino)
    known = checked.of(identity)
    wanted: Pairs = checked_ranges(scan)
    if all(_holds(known, start, end) for start, end in wanted):
        return
    with open(path, "rb", buffering=0) as file:
        for start, end, crc in unpack_sums(scan):
            if not _holds(known, start, end) and _crc_at(file.fileno(), start, end) != crc:
                raise damaged(start, end)
    checked.add(identity, wanted)


def _crc_at(file: int, start: int, end: int) -> int | None:
    """CRC-32 of the file's bytes, None where it ends before."""
    crc = 0
    while start < end:
        data = os.pread(file, end - start, start)
        if not data:
            return None
        crc = zlib.crc32(data, crc)
        start += len(data)
    return crc
