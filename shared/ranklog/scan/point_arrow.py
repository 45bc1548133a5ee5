"""Points of a segment, read with Arrow and numpy: only the row groups and columns that were planned.

Shapes: p points of the row ranges; n records, those between the least and the greatest that these
points refer to. What records share is looked up by `rec`; terms are evaluated over points.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.layout import point_schema as ps
from ranklog.limits import FOOTERS_KEPT_MAX
from ranklog.plan.tasks import PointTask, SegmentScan
from ranklog.scan.arrays import indices
from ranklog.scan.columns import opened_by_arrow
from ranklog.scan.numeric import Mask, Numbers, as_numbers
from ranklog.scan.pages import Bytes
from ranklog.scan.point_mask import point_mask

_POWERS = 10.0 ** np.arange(ps.SCALE_MAX + 1)
I64 = npt.NDArray[np.int64]


def read_points(task: PointTask, segment: SegmentScan, source: str | Bytes) -> pa.Table:
    """The columns of the shape, of every point that matches. Raises what Arrow raises at damage."""
    with opened_by_arrow(source, segment.length) as opened:
        file = opened.file
        metadata, edges = _FOOTERS.get(segment, file)
        parquet = pq.ParquetFile(file, metadata=metadata)
        return _Reading(task, segment, parquet, edges).table()


class _Footers:
    """Parquet metadata of the segments that were read last, with the first row of each row group."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], tuple[Any, tuple[int, ...]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, segment: SegmentScan, file: Any) -> tuple[Any, tuple[int, ...]]:
        place = (segment.key, segment.length)
        with self._lock:
            if place in self._kept:
                self._kept.move_to_end(place)
                return self._kept[place]
        metadata = pq.read_metadata(file)
        edges = [0]
        for group in range(metadata.num_row_groups):
            edges.append(edges[-1] + metadata.row_group(group).num_rows)
        found = (metadata, tuple(edges))
        with self._lock:
            self._kept[place] = found
            while len(self._kept) > FOOTERS_KEPT_MAX:
                self._kept.popitem(last=False)
        return found


_FOOTERS = _Footers()


@dataclass(slots=True)
class _Reading:
    """One segment's points. `numbers` gives a column of the points by its name."""

    task: PointTask
    segment: SegmentScan
    parquet: Any
    edges: tuple[int, ...]
    points: Any = None  # table of the points in the row ranges
    records: Any = None
    rec: I64 = field(default_factory=lambda: np.empty(0, np.int64))  # places in `records`
    known: dict[str, Numbers] = field(default_factory=dict)

    def table(self) -> pa.Table:
        """The shape's columns of the points that match."""
        self._read()
        mask = self._mask()
        columns: dict[str, Any] = {}
        for name in self.task.shape.columns:
            columns[name] = self._shown(name)
        table = pa.table(columns or {ps.REC: self.points[ps.REC]})
        return table if mask is None else table.filter(pa.array(mask))

    def _read(self) -> None:
        """The points of the row ranges, and the records that they refer to."""
        segment = self.segment
        groups, places = self._candidates()
        columns = [name for name in segment.columns if name not in ps.RECORD_COLUMNS]
        table = self.parquet.read_row_groups(groups, columns=columns, use_threads=False)
        self.points = table if places is None else table.take(indices(places))
        rec = as_numbers(self.points[ps.REC].combine_chunks()).values.astype(np.int64)
        low, high = (int(rec.min()), int(rec.max()) + 1) if len(rec) else (0, 0)
        first = bisect_right(self.edges, low) - 1
        end = bisect_right(self.edges, max(high - 1, low)) if high else first
        columns = [name for name in segment.columns if name in ps.RECORD_COLUMNS]
        if columns:
            groups = list(range(first, end))
            self.records = self.parquet.read_row_groups(groups, columns=columns, use_threads=False)
        self.rec = rec - self.edges[first]

    def _candidates(self) -> tuple[list[int], I64 | None]:
        """Row groups with points that might match, and the places of these in them (None: all)."""
        groups: list[int] = []
        parts: list[I64] = []
        held = 0  # rows of the groups before the last one
        for low, high in self.segment.rows or ((self.segment.records, self.edges[-1]),):
            first = bisect_right(self.edges, low) - 1
            for group in range(first, bisect_right(self.edges, high - 1)):
                start, end = self.edges[group], self.edges[group + 1]
                if not groups or group > groups[-1]:
                    held += self.edges[groups[-1] + 1] - self.edges[groups[-1]] if groups else 0
                    groups.append(group)
                shift = held - start
                parts.append(np.arange(max(low, start) + shift, min(high, end) + shift))
        places = np.concatenate(parts) if parts else np.empty(0, np.int64)
        total = sum(self.edges[group + 1] - self.edges[group] for group in groups)
        return groups, None if len(places) == total else places

    # --- which points ---------------------------------------------------------------------------
    def _mask(self) -> Mask | None:
        """Which match; None: all."""
        segment, task = self.segment, self.task
        mask: Mask | None = None
        if not segment.certain:
            mask = point_mask(task, segment, len(self.rec), self.numbers)
        if segment.skip:
            stream, seq = self.numbers(ps.STREAM).values, self.numbers(ps.SEQ).values
            skipped = np.zeros(len(self.rec), np.bool_)
            for at, first, end in segment.skip:
                skipped |= (stream == at) & (seq >= first) & (seq < end)
            mask = ~skipped if mask is None else mask & ~skipped
        return None if mask is None or mask.all() else mask

    # --- columns --------------------------------------------------------------------------------
    def numbers(self, name: str) -> Numbers:
        """A column of numbers of the points."""
        if name not in self.known:
            self.known[name] = self._numbers(name)
        return self.known[name]

    def _numbers(self, name: str) -> Numbers:
        if name == ps.VALUE:
            return self._values()
        if name in ps.RECORD_COLUMNS:
            if self.records is None or name not in self.records.column_names:
                return _nothing(len(self.rec))
            whole = as_numbers(self.records[name].combine_chunks())
            present = None if whole.present is None else whole.present[self.rec]
            return Numbers(whole.values[self.rec], present)
        return as_numbers(self.points[name].combine_chunks())

    def _values(self) -> Numbers:
        """digits / 10^scale, else the double as it is."""
        names = self.points.column_names
        raw = as_numbers(self.points[ps.VALUE].combine_chunks()) if ps.VALUE in names else None
        if ps.DIGITS not in names:
            return raw or _nothing(len(self.rec))
        digits = as_numbers(self.points[ps.DIGITS].combine_chunks())
        scale = as_numbers(self.points[ps.SCALE].combine_chunks())
        values = digits.values.astype(np.float64) / _POWERS[scale.values]
        if digits.present is None or raw is None:
            return Numbers(values, digits.present)
        there = np.ones(len(values), np.bool_) if raw.present is None else raw.present
        present = digits.present | there
        return Numbers(
            np.where(digits.present, values, raw.values), None if present.all() else present
        )

    def _shown(self, name: str) -> Any:
        """A column as Arrow has it."""
        if name in (ps.QUANTILES, ps.HISTOGRAM):
            if name not in self.points.column_names:
                return pa.nulls(len(self.rec), pa.binary())
            return self.points[name].combine_chunks()
        if name in ps.SUMMARY_COLUMNS and name not in self.points.column_names:
            return pa.nulls(len(self.rec), pa.int64() if name in ps.COUNTS else pa.float64())
        found = self.numbers(name)
        return pa.array(found.values, mask=None if found.present is None else ~found.present)


def _nothing(count: int) -> Numbers:
    return Numbers(np.zeros(count, np.int64), np.zeros(count, np.bool_))
