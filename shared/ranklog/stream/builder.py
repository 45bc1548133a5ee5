"""Fills a frame line by line: arrays per column, no object per row."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from typing import Any

from ranklog.model.frame import (
    KIND_LINE,
    NO_GROUP,
    NO_ITERATION,
    NO_LEVEL,
    NO_RANK,
    NO_SITE,
    STREAM_RANK,
    CallSite,
    Frame,
    MetadataColumn,
)
from ranklog.model.stream import Stream
from ranklog.stream.columns import COLUMNS, ROW_BYTES
from ranklog.stream.frame_parts import HEADER_ENTRY_BYTES, Bytes, FrameParts
from ranklog.stream.header import METADATA_TYPES
from ranklog.stream.row_batch import RowBatch

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class _Values:
    """One metadata column being filled."""

    __slots__ = ("lengths", "rows", "values")

    def __init__(self, kind: str) -> None:
        self.rows: array[int] = array("I")
        self.lengths: array[int] = array("I")
        self.values: Any = {"int": array("q"), "float": array("d"), "str": bytearray()}[kind]


class FrameBuilder(FrameParts):
    """Rows go in in any order of streams; each stream's in order of seq, without holes."""

    def __init__(self, tenant: str, agent: str, number: int, previous: str) -> None:
        super().__init__(tenant, agent, number, previous)
        self._arrays: tuple[array[Any], ...] = tuple(array(code) for _, code, _ in COLUMNS)
        self._text: list[Bytes] = []
        self._text_bytes = 0
        self._sites: dict[CallSite, int] = {}
        self._metadata: dict[tuple[str, str], _Values] = {}
        self._raw_rows: array[int] = array("I")
        self._raw_length: array[int] = array("I")
        self._raw: list[Bytes] = []

    @property
    def bytes(self) -> int:
        """About what the frame takes uncompressed, header included; an upper bound of the packed."""
        return ROW_BYTES * self.rows + self._text_bytes + self._extra_bytes

    def add(
        self,
        stream: Stream,
        seq: int,
        ts_ns: int,
        level: int | None,
        site: CallSite | None,
        text: Bytes | str,
        body_at: int = 0,
        flags: int = 0,
        group: int | None = None,
        rank: int | None = STREAM_RANK,
        iteration: int | None = None,
        metadata: dict[str, Any] | None = None,
        raw: Bytes | None = None,
    ) -> None:
        """Append a line. `group` is the seq of the group's first line; `body_at` counts bytes.

        Rank None means the line has none, whatever its stream's. Text is one physical line. Raises
        ValueError, OverflowError for a number its column can't hold; the frame stays as it was.
        """
        entry = self._at(stream, seq)
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        numbers = (
            entry.index,
            ts_ns,
            NO_LEVEL if level is None else level,
            NO_SITE if site is None else self._site(site),
            body_at,
            flags,
            NO_GROUP if group is None else seq - group,
            NO_RANK if rank is None else rank,
            NO_ITERATION if iteration is None else iteration,
            len(data),
        )
        try:
            for column, number in zip(self._arrays, numbers, strict=True):
                column.append(number)
        except (OverflowError, TypeError):
            for column in self._arrays:  # no half a row stays behind
                del column[self.rows :]
            raise
        self._text.append(data)
        self._text_bytes += len(data)
        if metadata:
            self._add_metadata(metadata)
        if raw is not None:
            self._add_raw(raw)
        entry.next_seq = seq + 1
        self.rows += 1

    def extend(self, stream: Stream, seq: int, batch: RowBatch) -> None:
        """Append a batch of lines, the first of which has `seq`. Raises ValueError, as `add`."""
        entry = self._at(stream, seq)
        count = len(batch)
        sites = batch.sites
        numbers = {key: self._number(sites.get(key)) for key in set(batch.site)}
        lengths = array("I", map(len, batch.texts))
        columns: tuple[array[Any], ...] = (
            array("H", [entry.index]) * count,
            batch.ts,
            batch.level,
            array("I", map(numbers.__getitem__, batch.site)),
            batch.body_at,
            batch.flags,
            array("I", [NO_GROUP]) * count,
            batch.rank,
            batch.iteration,
            lengths,
        )
        for column, values in zip(self._arrays, columns, strict=True):
            column.extend(values)
        self._text += batch.texts
        self._text_bytes += sum(lengths)
        if batch.common:
            self._add_common(batch.common, count)
        first = self.rows
        for line, metadata in batch.metadata:
            self.rows = first + line
            self._add_metadata(metadata)
        entry.next_seq = seq + count
        self.rows = first + count

    def build(self) -> Frame:
        """The frame of what was added; the builder is done after it."""
        if sys.byteorder == "big":  # pragma: no cover
            self._swap()
        columns = {
            name: column.tobytes()
            for (name, _, _), column in zip(COLUMNS, self._arrays, strict=True)
        }
        return Frame(
            tenant=self.tenant,
            agent=self.agent,
            number=self.number,
            previous=self.previous,
            streams=self._closed_streams(),
            rows=self.rows,
            text=b"".join(self._text),
            sites=tuple(self._sites),
            metadata=tuple(
                MetadataColumn(
                    key, kind, column.rows.tobytes(), bytes(column.values), column.lengths.tobytes()
                )
                for (key, kind), column in sorted(self._metadata.items())
            ),
            raw_rows=self._raw_rows.tobytes(),
            raw_length=self._raw_length.tobytes(),
            raw=b"".join(self._raw),
            kind=KIND_LINE,
            points=None,
            **columns,
        )

    def _site(self, site: CallSite) -> int:
        number = self._sites.get(site)
        if number is None:
            number = self._sites[site] = len(self._sites) + 1
            self._extra_bytes += HEADER_ENTRY_BYTES + len(repr(site))
        return number

    def _number(self, site: CallSite | None) -> int:
        return NO_SITE if site is None else self._site(site)

    def _add_common(self, metadata: Mapping[str, Any], count: int) -> None:
        """The same metadata for the next `count` rows."""
        for key, value in metadata.items():
            column, kind, value = self._column(key, value)
            column.rows.extend(range(self.rows, self.rows + count))
            if kind == "str":
                data = value.encode("utf-8", "replace")
                column.values += data * count
                column.lengths.extend(array("I", [len(data)]) * count)
                self._extra_bytes += (8 + len(data)) * count
            else:
                column.values.extend(array(column.values.typecode, [value]) * count)
                self._extra_bytes += 12 * count

    def _column(self, key: str, value: Any) -> tuple[_Values, str, Any]:
        """The column of a value, its kind, and the value as that kind."""
        kind = type(value).__name__
        if kind not in METADATA_TYPES or (kind == "int" and not INT64_MIN <= value <= INT64_MAX):
            kind, value = "str", str(value)
        column = self._metadata.get((key, kind))
        if column is None:
            column = self._metadata[key, kind] = _Values(kind)
            self._extra_bytes += HEADER_ENTRY_BYTES + len(key)
        return column, kind, value

    def _add_metadata(self, metadata: Mapping[str, Any]) -> None:
        for key, value in metadata.items():
            column, kind, value = self._column(key, value)
            column.rows.append(self.rows)
            if kind == "str":
                data = value.encode("utf-8", "replace")
                column.values += data
                column.lengths.append(len(data))
                self._extra_bytes += 8 + len(data)
            else:
                column.values.append(value)
                self._extra_bytes += 12

    def _add_raw(self, raw: Bytes) -> None:
        self._raw_rows.append(self.rows)
        self._raw_length.append(len(raw))
        self._raw.append(raw)
        self._extra_bytes += 8 + len(raw)

    def _swap(self) -> None:  # pragma: no cover
        numbers = [*self._arrays, self._raw_rows, self._raw_length]
        for (_, kind), column in self._metadata.items():
            numbers += [column.rows, column.lengths]
            numbers += [column.values] if kind != "str" else []
        for numbers_of_one in numbers:
            numbers_of_one.byteswap()
