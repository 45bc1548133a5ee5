"""A segment as Arrow reads it: its footer, kept; columns of some of its rows, when they are asked for.

Shapes: `groups` are row groups of the file; a *place* counts the rows of these groups, one after the
other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.layout import schema
from ranklog.limits import FOOTERS_KEPT_MAX
from ranklog.plan.tasks import SegmentScan
from ranklog.scan.arrays import indices
from ranklog.scan.decoded import DECODED
from ranklog.scan.numeric import Numbers, all_alike, as_numbers
from ranklog.scan.pages import Bytes, Page, find_pages

Places = npt.NDArray[np.int64]


@contextmanager
def opened_by_arrow(source: str | Bytes, length: int) -> Iterator[tuple[Any, Bytes]]:
    """As Arrow reads it, and as bytes."""
    if isinstance(source, str):
        with pa.OSFile(source) as file:
            yield file, _Local(file)
    else:
        yield pa.PythonFile(_File(source, length), mode="r"), source


@dataclass(frozen=True, slots=True)
class _Local:
    """A local file."""

    file: Any

    def read(self, start: int, end: int) -> bytes:
        data: bytes = self.file.read_at(end - start, start)
        return data


@dataclass(frozen=True, slots=True)
class Footer:
    """Parquet metadata; the first row of each row group, then the number of rows. `place` is how what
    was read of the segment is told from what was read of others."""

    metadata: Any
    edges: tuple[int, ...]
    text: int  # place of the column
    place: tuple[str, int]
    _pages: dict[int, list[Page]] = field(default_factory=dict)

    def pages(self, group: int, source: Bytes) -> list[Page]:
        """Pages of the row group's text; their headers are read once. Raises ValueError."""
        found = self._pages.get(group)
        if found is None:
            found = self._pages[group] = find_pages(source, *self.text_chunk(group))
        return found

    def text_chunk(self, group: int) -> tuple[int, int]:
        """Bytes of the row group's text."""
        chunk = self.metadata.row_group(group).column(self.text)
        if chunk.compression != "ZSTD" or chunk.dictionary_page_offset is not None:
            raise ValueError("text is not of pages that stand alone")
        return chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size


class Footers:
    """Of the segments that were read last: what a key names never changes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], Footer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, segment: SegmentScan, file: Any) -> Footer:
        place = (segment.key, segment.length)
        with self._lock:
            found = self._kept.get(place)
            if found is not None:
                self._kept.move_to_end(place)
                return found
        found = _read_footer(file, place)
        with self._lock:
            self._kept[place] = found
            while len(self._kept) > FOOTERS_KEPT_MAX:
                self._kept.popitem(last=False)
        return found


FOOTERS = Footers()


def _read_footer(file: Any, segment: tuple[str, int]) -> Footer:
    metadata = pq.read_metadata(file)
    edges = [0]
    for group in range(metadata.num_row_groups):
        edges.append(edges[-1] + metadata.row_group(group).num_rows)
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    place = paths.index(schema.TEXT)
    text = metadata.schema.column(place)
    if text.max_definition_level or text.max_repetition_level:
        raise ValueError("text may be absent")
    return Footer(metadata, tuple(edges), place, segment)


class _File:
    """Bytes as Arrow reads them."""

    closed = False

    def __init__(self, source: Bytes, length: int) -> None:
        self._source, self._length, self._at = source, length, 0

    def size(self) -> int:
        return self._length

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._length)[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(self._at, self._length if size < 0 else self._at + size)
        self._at += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Who opened the source closes it."""


class Columns:
    """Columns of the rows at some places; read when they are asked for. `same`: the value of those
    that need not be read."""

    def __init__(
        self,
        parquet: Any,
        segment: tuple[str, int],
        groups: Sequence[int],
        places: Places | None,
        rows: int,
        same: Mapping[str, int | None],
    ) -> None:
        self._parquet, self._groups, self._places = parquet, groups, places
        self._of = (segment, tuple(groups))
        self.rows, self._same = rows, same
        self._tables: list[Any] = []
        self._arrow: dict[str, Any] = {}
        self._numbers: dict[str, Numbers] = {}

    def read(self, names: Sequence[str]) -> None:
        """Read these at once."""
        missing = [name for name in names if not self.has(name) and name not in self._same]
        if not missing:
            return
        table = self._whole(missing)
        if self._places is not None:
            table = table.take(indices(self._places))
        self._tables.append(table)
        self._arrow |= dict(zip(table.column_names, table.columns, strict=True))

    def _whole(self, names: Sequence[str]) -> Any:
        """These columns of all rows of the row groups."""
        found = {name: DECODED.get((*self._of, name)) for name in names}
        missing = [name for name in names if found[name] is None]
        if missing:
            read = self._parquet.read_row_groups(self._groups, columns=missing, use_threads=False)
            for name in missing:
                found[name] = read.column(name)
                DECODED.put((*self._of, name), found[name])
        return pa.table(found)

    def places_of(self, rows: Places) -> Places:
        """Places of some of the rows."""
        return rows if self._places is None else self._places[rows]

    def has(self, name: str) -> bool:
        return name in self._arrow

    def arrow(self, name: str) -> Any:
        self.read([name])
        return self._arrow[name]

    def numbers(self, name: str) -> Numbers:
        """The column as numpy."""
        if name in self._same:
            return all_alike(self._same[name], self.rows)
        if name not in self._numbers:
            self._numbers[name] = as_numbers(self.arrow(name).combine_chunks())
        return self._numbers[name]

    def taken(self, rows: Places) -> dict[str, Any]:
        """What was read, of some of the rows."""
        found: dict[str, Any] = {}
        for table in self._tables:
            part = table if len(rows) == self.rows else table.take(indices(rows))
            found |= dict(zip(part.column_names, part.columns, strict=True))
        return found
