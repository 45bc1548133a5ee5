"""Fills a frame of points batch by batch: arrays per column, no object per value."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ranklog.model.frame import SUMMARY_PARTS, Frame, PointColumns
from ranklog.model.stream import Stream
from ranklog.stream.frame_parts import Bytes, FrameParts
from ranklog.stream.point_batch import PointBatch, PointSet
from ranklog.stream.point_columns import POINT_ROW_BYTES, RECORD_COLUMNS, point_frame

_COUNTS = ("count", "nan", "inf")
_NUMBERS = ("min", "max", "mean", "std", "norm")
# Index of its context and of its set, beside what lines have as well.
_RECORD_BYTES = POINT_ROW_BYTES + 8


class _Texts:
    """Distinct texts in order of first use."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self.bytes = 0

    def place(self, text: str) -> int:
        found = self._places.get(text)
        if found is None:
            found = self._places[text] = len(self._places)
            self.bytes += 4 + 4 * len(text)
        return found

    def columns(self) -> tuple[Bytes, Bytes]:
        """Lengths and texts."""
        encoded = [text.encode("utf-8", "replace") for text in self._places]
        return struct.pack(f"<{len(encoded)}I", *map(len, encoded)), b"".join(encoded)


class Summaries:
    """Columns of tensor summaries."""

    def __init__(self) -> None:
        self.places: array[int] = array("I")
        self.flags: array[int] = array("H")
        self.counts: array[int] = array("q")
        self.numbers: array[float] = array("d")
        self.quantile_size: array[int] = array("I")
        self.quantiles: array[float] = array("d")
        self.bin_size: array[int] = array("I")
        self.histograms: array[float] = array("d")

    @property
    def bytes(self) -> int:
        return 78 * len(self.places) + 8 * (len(self.quantiles) + len(self.histograms))

    def add(self, place: int, summary: Mapping[str, Any]) -> None:
        """Append one. Raises TypeError, ValueError, OverflowError for what is none; then nothing is."""
        flags = sum(
            1 << bit for bit, name in enumerate(SUMMARY_PARTS) if summary.get(name) is not None
        )
        counts = array("q", [int(summary.get(name) or 0) for name in _COUNTS])
        numbers = array("d", [float(summary.get(name) or 0.0) for name in _NUMBERS])
        quantiles = array("d", _quantiles(summary.get("quantiles") or {}))
        bins, histogram = _histogram(summary.get("histogram"))
        if not bins:
            flags &= ~(1 << SUMMARY_PARTS.index("histogram"))
        self.places.append(place)
        self.flags.append(flags)
        self.counts += counts
        self.numbers += numbers
        self.quantile_size.append(len(quantiles) // 2)
        self.quantiles += quantiles
        self.bin_size.append(bins)
        self.histograms += histogram


def summary_bytes(summary: Mapping[str, Any]) -> int:
    """What a summary takes in a frame. Raises TypeError, ValueError, OverflowError for what is none."""
    one = Summaries()
    one.add(0, summary)
    return one.bytes


def _quantiles(quantiles: Mapping[str, Any]) -> Iterable[float]:
    for share, value in quantiles.items():
        yield float(share)
        yield float(value)


def _histogram(histogram: Mapping[str, Sequence[float]] | None) -> tuple[int, array[float]]:
    """How many bins, and their edges and counts."""
    if not histogram:
        return 0, array("d")
    edges, counts = array("d", histogram["edges"]), array("d", histogram["counts"])
    if counts and len(edges) != len(counts) + 1:
        raise ValueError(f"a histogram of {len(counts)} bins has {len(edges)} edges")
    return len(counts), edges + counts if counts else array("d")


class PointBuilder(FrameParts):
    """Records go in in any order of streams; each stream's in order of seq, without holes."""

    def __init__(self, tenant: str, agent: str, number: int, previous: str) -> None:
        super().__init__(tenant, agent, number, previous)
        self._records: tuple[array[Any], ...] = tuple(array(c) for _, c, _ in RECORD_COLUMNS)
        self._set: array[int] = array("I")
        self._context: array[int] = array("I")
        self._values: array[float] = array("d")
        self._missing: array[int] = array("I")
        self._names, self._dims, self._contexts = _Texts(), _Texts(), _Texts()
        self._sets: dict[PointSet, int] = {}
        self._set_dims: array[int] = array("I")
        self._set_size: array[int] = array("I")
        self._set_name: array[int] = array("I")
        self._summaries = Summaries()

    @property
    def bytes(self) -> int:
        """About what the frame takes uncompressed, header included; an upper bound of the packed."""
        texts = self._names.bytes + self._dims.bytes + self._contexts.bytes
        sets = 8 * len(self._set_dims) + 4 * len(self._set_name)
        values = 8 * len(self._values) + 4 * len(self._missing) + self._summaries.bytes
        return _RECORD_BYTES * self.rows + values + texts + sets + self._extra_bytes

    def extend(self, stream: Stream, seq: int, batch: PointBatch) -> None:
        """Append records, the first of which has `seq`. Raises ValueError."""
        entry = self._at(stream, seq)
        count, first = len(batch), len(self._values)
        numbers = {key: self._number(batch.sets[key]) for key in set(batch.set)}
        contexts = {key: self._told(batch.contexts[key]) for key in set(batch.context)}
        columns = (array("H", [entry.index]) * count, batch.ts, batch.rank, batch.iteration)
        for column, values in zip(self._records, columns, strict=True):
            column.extend(values)
        self._set.extend(map(numbers.__getitem__, batch.set))
        self._context.extend(map(contexts.__getitem__, batch.context))
        self._values.extend(batch.values)
        self._missing.extend(first + at for at in batch.missing)
        for at, summary in batch.summaries:
            self._summaries.add(first + at, summary)
        entry.next_seq = seq + count
        self.rows += count

    def build(self) -> Frame:
        """The frame of what was added; the builder is done after it."""
        if sys.byteorder == "big":  # pragma: no cover
            self._swap()
        name_length, names = self._names.columns()
        dims_length, dims = self._dims.columns()
        context_length, contexts = self._contexts.columns()
        found = self._summaries
        points = PointColumns(
            set=self._set.tobytes(),
            context=self._context.tobytes(),
            values=self._values.tobytes(),
            missing=self._missing.tobytes(),
            name_length=name_length,
            names=names,
            dims_length=dims_length,
            dims=dims,
            set_dims=self._set_dims.tobytes(),
            set_size=self._set_size.tobytes(),
            set_name=self._set_name.tobytes(),
            context_length=context_length,
            contexts=contexts,
            summary=found.places.tobytes(),
            summary_flags=found.flags.tobytes(),
            summary_counts=found.counts.tobytes(),
            summary_numbers=found.numbers.tobytes(),
            quantile_size=found.quantile_size.tobytes(),
            quantiles=found.quantiles.tobytes(),
            bin_size=found.bin_size.tobytes(),
            histograms=found.histograms.tobytes(),
        )
        records = [column.tobytes() for column in self._records]
        return point_frame(self, self._closed_streams(), records, points)

    def _number(self, names: PointSet) -> int:
        number = self._sets.get(names)
        if number is None:
            number = self._sets[names] = len(self._sets)
            self._set_dims.append(self._dims.place(names[0]))
            self._set_size.append(len(names[1]))
            self._set_name.extend(map(self._names.place, names[1]))
        return number

    def _told(self, context: str | None) -> int:
        return 0 if context is None else self._contexts.place(context) + 1

    def _swap(self) -> None:  # pragma: no cover
        found = self._summaries
        for column in (
            *self._records,
            *(self._set, self._context, self._values, self._missing),
            *(self._set_dims, self._set_size, self._set_name),
            *(found.places, found.flags, found.counts, found.numbers),
            *(found.quantile_size, found.quantiles, found.bin_size, found.histograms),
        ):
            column.byteswap()
