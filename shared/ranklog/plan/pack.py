"""Pack scans into tasks: enough to be worth a call, small enough to spread and to travel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ranklog import limits
from ranklog.plan.segments import scan_bytes
from ranklog.plan.tasks import SegmentScan

# A quarter of the payload: near sets and the query travel beside the segments.
_TASK_JSON_BYTES_MAX = limits.PAYLOAD_BYTES_MAX // 4
_SMALL_TASK_BYTES = 1 * limits.MIB
# What is read in the time of one round of GETs: the segments of a task are read one after the other.
_ROUND_BYTES = 256 * limits.KIB


def pack(
    scans: Sequence[SegmentScan], *, concurrency: int, newest: bool | None = None
) -> list[tuple[SegmentScan, ...]]:
    """Scans of each task, tasks in the order they should run (`newest` None: any)."""
    if newest is True:
        ordered = sorted(scans, key=lambda scan: (-scan.max_ts, scan.number))
    elif newest is False:
        ordered = sorted(scans, key=lambda scan: (scan.min_ts, scan.number))
    else:
        ordered = list(scans)
    total = sum(map(_weight, ordered))
    share = math.ceil(total / max(1, concurrency))
    target = max(_SMALL_TASK_BYTES, min(share, limits.TASK_BYTES_TARGET))
    return list(_fill(ordered, target))


def _fill(scans: Sequence[SegmentScan], target: int) -> Iterator[tuple[SegmentScan, ...]]:
    task: list[SegmentScan] = []
    weight = travel = 0
    for scan in scans:
        size, json_size = _weight(scan), json_bytes(scan)
        full = weight + size > target or travel + json_size > _TASK_JSON_BYTES_MAX
        if task and (full or len(task) >= limits.TASK_SEGMENTS_MAX):
            yield tuple(task)
            task, weight, travel = [], 0, 0
        task.append(scan)
        weight += size
        travel += json_size
    if task:
        yield tuple(task)


def _weight(scan: SegmentScan) -> int:
    return max(scan_bytes(scan), _ROUND_BYTES)


def json_bytes(scan: SegmentScan) -> int:
    """About what the scan takes in a task, on the safe side."""
    numbers = (
        2 * sum(map(len, (scan.rows or (), scan.small, scan.text, scan.late, *scan.slots)))
        + 3 * len(scan.skip)
        + 4 * len(scan.wanted or ())
        + len(scan.tids or ())
        + len(scan.order or ())
        + len(scan.ranks)
        + len(scan.hosts)
        + sum(map(len, scan.keys))
    )
    names = sum(len(name) + 4 for name in (*scan.columns, *scan.overflow))
    return 600 + len(scan.key) + len(scan.sums) + names + 14 * numbers
