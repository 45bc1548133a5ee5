"""Few lines of a segment, read with Arrow: small columns first, then only the pages of text with hits.

DuckDB takes 0.6 ms to prepare a statement and unpacks the text of whole row groups. Where few rows are
left, most of that is for nothing (docs/profile.md). What is asked means the same as in scan/statement;
`read_few` answers None where it can't or where too many rows are left, and DuckDB reads. Arrow is not
in the layer of scan functions: there DuckDB reads all.

Shapes: `groups` are row groups of the file; a *place* counts the rows of these groups, one after the
other.
"""

from __future__ import annotations

import functools
import os
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.layout import schema
from ranklog.model import query as q
from ranklog.plan.segments import expr_columns
from ranklog.plan.tasks import Groups, LeafExpr, Lines, SegmentScan, Task
from ranklog.scan.arrays import indices
from ranklog.scan.columns import FOOTERS, Columns, Opened, Places, opened_by_arrow
from ranklog.scan.decoded import DECODED
from ranklog.scan.masks import (
    Evaluator,
    Unsupported,
    behind_mask,
    skipped_mask,
    wanted_mask,
)
from ranklog.scan.numeric import Mask, as_numbers
from ranklog.scan.pages import Bytes, Page, excerpt

# More lines are no faster than by DuckDB, nor are more rows of which only the text decides.
_LINES_MAX = 4_096
_TEXTS_MAX = 65_536
# Stretches of rows that are looked at first where there may be more lines, and rows of each.
_SAMPLES, _SAMPLE_ROWS = 4, 64
# Row groups of no more rows are read whole, with their text.
_WHOLE_ROWS_MAX = 2_048
# Conditions that are looked at one after the other.
_SPANS_MAX = 64
# Where more than one row in so many is a candidate, a mask is cheaper than choosing.
_DENSE = 2
# So much text is unpacked by two threads.
_BYTES_FOR_THREADS = 3 * 1024 * 1024
_NO_PLACES = np.empty(0, np.int64)
_NO_TEXTS = pa.array([], pa.string())
_NAMED = (schema.CALL_SITE, schema.FUNCTION, schema.LOGGER)


def read_few(task: Task, segment: SegmentScan, source: str | Bytes) -> dict[str, list[Any]] | None:
    """The columns that the segment's statement returns, in any order of rows; None: DuckDB must say.
    With a limit at least its first lines are there. `source`: a local path, or what has the bytes."""
    shape = task.shape
    if task.near or (shape != Groups() and not (isinstance(shape, Lines) and shape.whole)):
        return None
    if len(segment.skip) > _SPANS_MAX or len(segment.wanted or ()) > _SPANS_MAX:
        return None
    try:
        with opened_by_arrow(source, segment.length) as opened:
            return _Reading(task, segment, opened).columns()
    except (Unsupported, pa.ArrowException, ValueError, KeyError, IndexError, TypeError):
        return None  # where the file is damaged, DuckDB says how


class _Reading:
    """A task's lines in one segment."""

    def __init__(self, task: Task, segment: SegmentScan, source: Opened) -> None:
        self._expr, self._segment, self._source = task.expr, segment, source
        self._lines = isinstance(task.shape, Lines)
        self._limit = task.shape.limit if isinstance(task.shape, Lines) else None
        self._newest = isinstance(task.shape, Lines) and task.shape.newest
        self._footer = FOOTERS.get(segment, source)
        self._names = (*schema.BASE_COLUMNS, *segment.columns)
        self._same = dict(segment.same)
        self._inside: Mask | None = None  # which of the rows read are candidates; None: all

    def columns(self) -> dict[str, list[Any]] | None:
        """Of the matching lines, or their number."""
        groups, ranges, total = self._candidates()
        count = sum(stop - start for start, stop in ranges)
        decides = set() if self._segment.certain else set(expr_columns(self._expr))
        if self._lines and self._is_small(groups):
            columns = self._chosen(groups, ranges, count, together=True)
            columns.read((*self._names, schema.TEXT))
        else:
            dense = count * _DENSE >= total
            if self._takes_all(decides) and count > (_TEXTS_MAX if decides else _LINES_MAX):
                return None
            if dense:
                columns = self._columns(groups, None, total)
                self._inside = None if count == total else _inside(ranges, total)
            else:
                columns = self._chosen(groups, ranges, count)
            few = self._lines and count <= _LINES_MAX
            columns.read(self._names if few else self._deciding(decides))
        found = self._matching(groups, columns)
        if found is None:
            return None
        if not self._lines:
            return {"count": [len(found[0])]}
        return None if len(found[0]) > _LINES_MAX else self._output(groups, columns, *found)

    @cached_property
    def _parquet(self) -> Any:
        strings = [name for name in self._segment.columns if name.startswith("str:")]
        return pq.ParquetFile(
            self._source.file, metadata=self._footer.metadata, read_dictionary=[*_NAMED, *strings]
        )

    def _columns(
        self, groups: Sequence[int], places: Places | None, rows: int, **how: Any
    ) -> Columns:
        place = self._footer.place
        return Columns(lambda: self._parquet, place, groups, places, rows, self._same, **how)

    def _chosen(
        self,
        groups: Sequence[int],
        ranges: Sequence[tuple[int, int]],
        count: int,
        *,
        together: bool = False,
    ) -> Columns:
        """Columns of the candidates alone."""
        one = ranges[0] if len(ranges) == 1 else None
        places = np.concatenate([np.arange(*each) for each in ranges]) if ranges else _NO_PLACES
        return self._columns(groups, places, count, one=one, together=together)

    # --- which rows ---------------------------------------------------------------------------
    def _candidates(self) -> tuple[list[int], list[tuple[int, int]], int]:
        """Row groups with rows that might match, the places of these rows as ranges, rows in all."""
        edges = self._footer.edges
        if self._segment.rows is None:
            return list(range(len(edges) - 1)), [(0, edges[-1])], edges[-1]
        groups: list[int] = []
        ranges: list[tuple[int, int]] = []
        shift = end = 0  # what to add to a row for its place; where the last row group ends
        for low, high in self._segment.rows:
            first = bisect_right(edges, low) - 1
            for group in range(first, bisect_right(edges, high - 1)):
                if not groups or group > groups[-1]:
                    groups.append(group)
                    shift = end - edges[group]
                    end += edges[group + 1] - edges[group]
                start, stop = max(low, edges[group]), min(high, edges[group + 1])
                ranges.append((start + shift, stop + shift))
        return groups, ranges, end

    def _is_small(self, groups: Sequence[int]) -> bool:
        """Whether reading all of these row groups is less work than choosing."""
        edges = self._footer.edges
        return sum(edges[group + 1] - edges[group] for group in groups) <= _WHOLE_ROWS_MAX

    def _takes_all(self, decides: set[str]) -> bool:
        """Whether no small column leaves rows out."""
        segment = self._segment
        if self._limit is not None or decides - {schema.TEXT}:
            return False
        return not (segment.skip or segment.wanted or segment.after or segment.tids)

    def _deciding(self, decides: set[str]) -> list[str]:
        """Columns that say which rows match."""
        segment, names = self._segment, decides - {schema.TEXT}
        if schema.RANK in names:
            names.add(schema.STREAM)
            if not segment.ranked:
                names.remove(schema.RANK)
        if segment.tids is not None:
            names.add(schema.TID)
        if segment.skip or segment.wanted is not None or segment.after is not None:
            names |= {schema.STREAM, schema.SEQ, schema.GROUP}
        if self._limit is not None or segment.after is not None:
            names.add(schema.TS)
        return [name for name in self._names if name in names]

    def _matching(self, groups: Sequence[int], columns: Columns) -> tuple[Places, Any] | None:
        """Matching rows by their number among the candidates, and their texts where they were read;
        None: too many texts decide."""
        given = self._given(columns)
        if self._segment.certain:
            found = np.arange(columns.rows) if given is None else np.flatnonzero(given)
            return self._first(columns, found), None
        if columns.has(schema.TEXT):
            found = np.arange(columns.rows) if given is None else np.flatnonzero(given)
            return self._by_text(groups, columns, found)
        evaluator = Evaluator(self._segment, columns.rows, columns.numbers)
        might, surely = evaluator.masks(self._expr)
        if given is not None:
            might, surely = might & given, surely & given
        found = np.flatnonzero(might)
        if might is surely or len(found) == np.count_nonzero(surely):
            return self._first(columns, found), None
        if len(found) > _TEXTS_MAX or self._has_many(groups, columns, found):
            return None
        return self._by_text(groups, columns, found)

    def _has_many(self, groups: Sequence[int], columns: Columns, found: Places) -> bool:
        """Whether a sample says that more lines match than are read here: to be known before all texts
        are unpacked, as DuckDB would unpack them once more."""
        if not self._lines or len(found) <= _LINES_MAX:
            return False
        starts = np.linspace(0, len(found) - _SAMPLE_ROWS, _SAMPLES).astype(np.int64)
        sample = found[(starts[:, None] + np.arange(_SAMPLE_ROWS)).ravel()]
        texts = self._texts(groups, columns.places_of(sample))
        evaluator = Evaluator(self._segment, len(sample), columns.at(sample), texts)
        hits = int(np.count_nonzero(evaluator.masks(self._expr)[0]))
        return hits * len(found) > _LINES_MAX * len(sample)

    def _by_text(
        self, groups: Sequence[int], columns: Columns, found: Places
    ) -> tuple[Places, Any]:
        """Of these rows those whose texts match. Terms that all must hold are asked one after the
        other, the cheapest first, each of the rows that the others left."""
        if columns.has(schema.TEXT):
            texts = columns.arrow(schema.TEXT).combine_chunks()
            if len(found) < columns.rows:
                texts = texts.take(indices(found))
        else:
            texts = self._texts(groups, columns.places_of(found))
        for term in _cheapest_first(self._expr):
            if not len(found):
                break
            might, _ = Evaluator(self._segment, len(found), columns.at(found), texts).masks(term)
            if not might.all():
                texts, found = texts.take(indices(np.flatnonzero(might))), found[might]
        return found, texts

    def _given(self, columns: Columns) -> Mask | None:
        """What the task says of rows beside the query's tree; None: nothing."""
        segment = self._segment
        masks = [] if self._inside is None else [self._inside]
        if segment.tids is not None:
            wanted = np.zeros(max(segment.tids, default=0) + 2, np.bool_)
            wanted[list(segment.tids)] = True
            tids = columns.numbers(schema.TID).values
            masks.append(wanted[np.minimum(tids, len(wanted) - 1)])
        if segment.skip:
            masks.append(~skipped_mask(columns.numbers, segment.skip))
        if segment.wanted is not None:
            masks.append(wanted_mask(columns.numbers, segment.wanted))
        if segment.after is not None:
            masks.append(behind_mask(columns.numbers, segment, newest=self._newest))
        return np.logical_and.reduce(masks) if masks else None

    def _first(self, columns: Columns, found: Places) -> Places:
        """Without those that can't be among the first lines; all that share the last one's time stay."""
        limit = self._limit
        if limit is None or len(found) <= limit:
            return found
        ts = columns.numbers(schema.TS).values[found]
        last = len(ts) - limit if self._newest else limit - 1
        worst = np.partition(ts, last)[last]
        first: Places = found[ts >= worst if self._newest else ts <= worst]
        return first

    # --- their values -------------------------------------------------------------------------
    def _output(
        self, groups: Sequence[int], columns: Columns, found: Places, texts: Any
    ) -> dict[str, list[Any]]:
        places = columns.places_of(found)
        taken = columns.taken(found)
        if not all(name in taken or name in self._same for name in self._names):
            taken |= self._rest(groups, columns, places)
        if schema.TEXT not in taken:
            taken[schema.TEXT] = self._texts(groups, places) if texts is None else texts
        shown: dict[str, list[Any]] = {}
        for name in (*self._names, schema.TEXT):
            if name in self._same:
                shown[name] = [self._same[name]] * len(found)
            elif name.startswith("float:"):
                shown[name] = _floats(taken[name].combine_chunks())
            else:
                shown[name] = taken[name].to_pylist()
        return shown

    def _rest(self, groups: Sequence[int], columns: Columns, places: Places) -> dict[str, Any]:
        """What was not read yet, of row groups with hits only."""
        edges = self._footer.edges
        sizes = np.array([edges[group + 1] - edges[group] for group in groups])
        starts = np.cumsum(sizes) - sizes
        at = np.searchsorted(starts, places, "right") - 1
        used = np.unique(at)
        shift = np.zeros(len(groups), np.int64)
        shift[used] = np.cumsum(sizes[used]) - sizes[used] - starts[used]
        chosen = [groups[i] for i in used.tolist()]
        rest = self._columns(chosen, places + shift[at], len(places))
        rest.read([name for name in self._names if not columns.has(name)])
        return rest.taken(np.arange(len(places)))

    def _texts(self, groups: Sequence[int], places: Places) -> Any:
        """Arrow strings of the rows at these places, which ascend."""
        edges = self._footer.edges
        pages: list[Page] = []
        rows: list[Places] = []  # that are wanted of each page
        first = 0  # places before this row group
        for group in groups:
            end = first + edges[group + 1] - edges[group]
            low, high = np.searchsorted(places, (first, end)).tolist()
            if low < high:
                for page in self._footer.pages(group, self._source):
                    at = first + page.first_row
                    a, b = np.searchsorted(places, (at, at + page.rows)).tolist()
                    if a < b:
                        rows.append(places[a:b] - at)
                        pages.append(page)
            first = end
        if not pages:
            return _NO_TEXTS
        parts = zip(self._unpacked(pages), rows, strict=True)
        return pa.concat_arrays([texts.take(indices(wanted)) for texts, wanted in parts])

    def _unpacked(self, pages: Sequence[Page]) -> list[Any]:
        """The texts of each page."""
        place = self._footer.place
        found = {page.start: DECODED.get((place, page.start)) for page in pages}
        missing = [page for page in pages if found[page.start] is None]
        at = 0
        for texts in self._unpack(missing):
            while at < len(missing) and len(texts):
                page = missing[at]
                # a copy: a part of the array would keep all of it
                found[page.start] = pa.concat_arrays([texts[: page.rows], _NO_TEXTS])
                DECODED.put((place, page.start), found[page.start])
                texts, at = texts[page.rows :], at + 1
        if at < len(missing):
            raise ValueError("pages of text have fewer rows than their headers say")
        return [found[page.start] for page in pages]

    def _unpack(self, pages: Sequence[Page]) -> list[Any]:
        """The texts of whole pages, one array or two: this takes most of the time, so many are done in
        halves."""
        if not pages:
            return []
        if len(pages) < 2 or sum(page.plain_bytes for page in pages) < _BYTES_FOR_THREADS:
            return [_texts_of(excerpt(self._source, schema.TEXT, pages))]
        half = len(pages) // 2
        beside = _pool().submit(_texts_of, excerpt(self._source, schema.TEXT, pages[half:]))
        first = _texts_of(excerpt(self._source, schema.TEXT, pages[:half]))
        return [first, beside.result()]


def _cheapest_first(expr: LeafExpr) -> Sequence[LeafExpr]:
    """The terms of an AND."""
    if not isinstance(expr, q.And):
        return (expr,)
    return sorted(expr.items, key=_cost)


def _cost(term: LeafExpr) -> int:
    """Small columns before texts, a literal before a regex, what may hold several after that."""
    kinds: tuple[Any, ...] = (q.Contains, q.Matches, (q.And, q.Or, q.Not))
    return next((at for at, kind in enumerate(kinds, 1) if isinstance(term, kind)), 0)


def _inside(ranges: Sequence[tuple[int, int]], total: int) -> Mask:
    """The places in the ranges, as a mask."""
    found = np.zeros(total, np.bool_)
    for start, stop in ranges:
        found[start:stop] = True
    return found


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="ranklog-text")


def _texts_of(data: bytes) -> Any:
    table = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data))).read(use_threads=False)
    return table.column(0).combine_chunks()


def _floats(values: Any) -> list[float | None]:
    numbers = as_numbers(values)
    found: list[float | None] = numbers.values.tolist()
    if numbers.present is None:
        return found
    return [x if there else None for x, there in zip(found, numbers.present.tolist(), strict=True)]
