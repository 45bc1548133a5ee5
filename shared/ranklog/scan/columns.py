"""A segment as Arrow reads it: its footer, kept; columns of some of its rows, when they are asked for.

Shapes: `groups` are row groups of the file; a *place* counts the rows of these groups, one after the
other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class Opened:
    """A segment as bytes; as Arrow reads it, opened when first asked for: what is kept of it
    (`decoded`) needs none."""

    def __init__(self, source: str | Bytes, length: int) -> None:
        self._source, self._length = source, length
        self._file: Any = None

    @property
    def file(self) -> Any:
        """As Arrow reads it. Raises OSError."""
        if self._file is None:
            if isinstance(self._source, str):
                self._file = pa.OSFile(self._source)
            else:
                self._file = pa.PythonFile(_File(self._source, self._length), mode="r")
        return self._file

    def read(self, start: int, end: int) -> bytes:
        """See pages.Bytes."""
        if not isinstance(self._source, str):
            return self._source.read(start, end)
        data: bytes = self.file.read_at(end - start, start)
        return data

    def close(self) -> None:
        """Of a local file; who made another source closes it."""
        if self._file is not None and isinstance(self._source, str):
            self._file.close()


@contextmanager
def opened_by_arrow(source: str | Bytes, length: int) -> Iterator[Opened]:
    """The segment inside the block."""
    opened = Opened(source, length)
    try:
        yield opened
    finally:
        opened.close()


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

    def get(self, segment: SegmentScan, opened: Opened) -> Footer:
        place = (segment.key, segment.length)
        with self._lock:
            found = self._kept.get(place)
            if found is not None:
                self._kept.move_to_end(place)
                return found
        found = _read_footer(opened.file, place)
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
    """Columns of the rows at some places (None: all), which are those of `one` range where it is given;
    read when they are asked for. `same`: the value of those that need not be read. `together`: what is
    asked for at once is kept as one table, as of few rows each column by itself takes longer."""

    def __init__(
        self,
        parquet: Callable[[], Any],
        segment: tuple[str, int],
        groups: Sequence[int],
        places: Places | None,
        rows: int,
        same: Mapping[str, int | None],
        *,
        one: tuple[int, int] | None = None,
        together: bool = False,
    ) -> None:
        self._parquet, self._groups, self._places = parquet, groups, places
        self._of = (segment, tuple(groups))
        self.rows, self._same = rows, same
        self._one, self._together = one, together
        self._tables: dict[str, Any] = {}  # by column
        self._numbers: dict[str, Numbers] = {}

    def read(self, names: Sequence[str]) -> None:
        """Read these at once."""
        missing = [name for name in names if name not in self._tables and name not in self._same]
        if not missing:
            return
        table = self._whole_table(missing) if self._together else self._whole(missing)
        if self._one is not None:
            start, stop = self._one
            table = table.slice(start, stop - start)
        elif self._places is not None:
            table = table.take(indices(self._places))
        self._tables |= dict.fromkeys(missing, table)

    def _whole_table(self, names: Sequence[str]) -> Any:
        """These columns of all rows of the row groups, kept as they are asked for here."""
        key = (*self._of, *names)
        found = DECODED.get(key)
        if found is None:
            found = self._read(names)
            DECODED.put(key, found)
        return found

    def _whole(self, names: Sequence[str]) -> Any:
        """The same, kept one by one."""
        found = {name: DECODED.get((*self._of, name)) for name in names}
        missing = [name for name in names if found[name] is None]
        if missing:
            read = self._read(missing)
            for name in missing:
                found[name] = read.column(name)
                DECODED.put((*self._of, name), found[name])
        return pa.table(found)

    def _read(self, names: Sequence[str]) -> Any:
        return self._parquet().read_row_groups(self._groups, columns=names, use_threads=False)

    def places_of(self, rows: Places) -> Places:
        """Places of some of the rows."""
        return rows if self._places is None else self._places[rows]

    def has(self, name: str) -> bool:
        """Whether it was read."""
        return name in self._tables

    def arrow(self, name: str) -> Any:
        """The column as Arrow has it."""
        self.read([name])
        return self._tables[name].column(name)

    def numbers(self, name: str) -> Numbers:
        """The column as numpy."""
        if name in self._same:
            return all_alike(self._same[name], self.rows)
        if name not in self._numbers:
            self._numbers[name] = as_numbers(self.arrow(name).combine_chunks())
        return self._numbers[name]

    def at(self, rows: Places) -> Callable[[str], Numbers]:
        """The columns of some of the rows."""

        def chosen(name: str) -> Numbers:
            whole = self.numbers(name)
            present = None if whole.present is None else whole.present[rows]
            return Numbers(whole.values[rows], present)

        return chosen

    def taken(self, rows: Places) -> dict[str, Any]:
        """What was read, of some of the rows."""
        found: dict[str, Any] = {}
        for table in {id(table): table for table in self._tables.values()}.values():
            part = table if len(rows) == self.rows else table.take(indices(rows))
            found |= dict(zip(part.column_names, part.columns, strict=True))
        return found
