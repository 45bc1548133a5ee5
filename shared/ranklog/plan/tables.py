"""What the planner works out of one index, once: an index never changes, so this is kept with it.

A *cell* is the rows of one template in one row group. A set of templates is a Python int, bit `tid`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, reduce
from itertools import accumulate, compress, count
from operator import add, or_
from typing import TypeVar, cast
from weakref import proxy

from ranklog.layout.index import SegmentIndex

T = TypeVar("T")
Rows = tuple[int, int]
# Answers of terms that are kept per segment; when there are more, all are forgotten.
_KNOWN_MAX = 64
# Sets with more members than this are read from their digits: a shift per member copies the set.
_FEW = 32
_DIGITS = bytes.maketrans(b"01", b"\x00\x01")


def tables_of(index: SegmentIndex) -> SegmentTables:
    """The index's tables; made when first asked for."""
    if not isinstance(index.derived, SegmentTables):
        index.derived = SegmentTables(index)
    return index.derived


class SegmentTables:
    """Safe to use from many threads: two that meet work the same thing out twice."""

    def __init__(self, index: SegmentIndex) -> None:
        # Weak, as the index keeps its tables: so both go with the last reader, not with the collector.
        self._index = proxy(index)
        self.all = (1 << len(index.templates)) - 1
        self.sites: object = None  # prune_sites.SiteTable, once a term asks for call sites
        self._known: dict[Hashable, object] = {}
        self._cells: dict[int, dict[int, list[Rows]]] = {}

    def known(self, key: Hashable, work_out: Callable[[], T]) -> T:
        """What a term says of the segment, remembered. `key` holds the kind of answer and the term."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known = {}
            found = self._known[key] = (work_out(),)
        return cast("tuple[T]", found)[0]

    # --- rows ---------------------------------------------------------------------------------
    @cached_property
    def _runs(self) -> tuple[Sequence[int], list[int], list[int]]:
        """Template of each run of rows; where each ends; the first run of each row group, whose last
        may go on in the next."""
        tids, counts = self._index.template_runs
        ends = list(accumulate(counts))
        edges = [group.first_row for group in self._index.head.row_groups]
        return tids, ends, [bisect_right(ends, edge) for edge in edges]

    def cells(self, group: int) -> dict[int, list[Rows]]:
        """The half-open row ranges of each template in a row group."""
        found = self._cells.get(group)
        if found is None:
            found = self._cells[group] = self._cells_of(group)
        return found

    def _cells_of(self, group: int) -> dict[int, list[Rows]]:
        tids, ends, firsts = self._runs
        described = self._index.head.row_groups[group]
        low, end = described.first_row, described.first_row + described.rows
        cells: dict[int, list[Rows]] = {}
        at = firsts[group]
        while low < end and at < len(ends):
            high = min(ends[at], end)
            if low < high:
                cells.setdefault(tids[at], []).append((low, high))
                low = high
            at += 1
        return cells

    @cached_property
    def present(self) -> tuple[int, ...]:
        """The set of templates that each row group has rows of."""
        tids, ends, firsts = self._runs
        found = []
        for group, described in enumerate(self._index.head.row_groups):
            first, end = firsts[group], described.first_row + described.rows
            past = bisect_left(ends, end, first) + 1 if described.rows else first
            found.append(mask(tids[first:past]))
        return tuple(found)

    @cached_property
    def anywhere(self) -> int:
        """The set of templates that have rows."""
        return reduce(or_, self.present, 0)

    @cached_property
    def columns(self) -> frozenset[str]:
        """Parquet columns of the segment."""
        head = self._index.head
        chunks = (name for group in head.row_groups[:1] for name in group.chunks)
        return frozenset([*chunks, *head.columns])

    def row_ranges(self, left: Sequence[int]) -> tuple[Rows, ...]:
        """Rows of the templates that are left of each row group, neighbours joined."""
        ranges: list[Rows] = []
        for group, templates in enumerate(left):
            if not templates:
                continue
            if templates == self.present[group]:
                described = self._index.head.row_groups[group]
                found = [(described.first_row, described.first_row + described.rows)]
            else:
                cells = self.cells(group)
                found = sorted(rows for tid in bits(templates) for rows in cells.get(tid, ()))
            for low, high in found:
                if ranges and ranges[-1][1] == low:
                    ranges[-1] = (ranges[-1][0], high)
                else:
                    ranges.append((low, high))
        return tuple(ranges)

    # --- templates ----------------------------------------------------------------------------
    @cached_property
    def _texts(self) -> tuple[bytes, bytes]:
        """All templates, a line feed before each, as they are and in lower case."""
        plain = b"\n" + "\n".join(self._index.templates).encode()
        return plain, plain.lower()  # bytes.lower() folds ASCII only, as the literals are

    @cached_property
    def _starts(self) -> list[int]:
        """Where the line feed before each template is."""
        lengths = map(len, self._texts[0].split(b"\n")[1:-1])
        return list(map(add, accumulate(lengths, initial=0), count()))

    def having(self, wanted: bytes, *, folded: bool) -> int:
        """Templates with these bytes; a leading line feed anchors at the start."""
        text, starts = self._texts[folded], self._starts
        tids = []
        at = text.find(wanted)
        while at >= 0:
            tid = bisect_right(starts, at) - 1
            tids.append(tid)
            at = text.find(wanted, starts[tid + 1]) if tid + 1 < len(starts) else -1
        return mask(tids)

    def with_mixed(self, least: int) -> int:
        """Templates of which a row has a mixed token of that length; 0 always."""
        return self.known(("mixed", least), lambda: self._with_mixed(least))

    def _with_mixed(self, least: int) -> int:
        longest = self._index.longest_mixed
        beyond = self.all & ~((1 << len(longest)) - 1)
        return beyond | 1 | mask(i for i, length in enumerate(longest) if length >= least)

    def with_variable(self, least: int) -> int:
        """Templates of which a row has a token with a digit of that length; 0 always."""
        return self.known(("variable", least), lambda: self._with_variable(least))

    def _with_variable(self, least: int) -> int:
        longest = self._index.longest_variables
        if longest is None or self._index.head.envelopes != (
            "",
        ):  # an envelope's are not among them
            return self.all
        return 1 | mask(
            tid for tid, lengths in enumerate(longest) if max(lengths, default=0) >= least
        )

    @cached_property
    def runs(self) -> tuple[str | None, ...]:
        """Letter runs of each row group, blanks around them; None: not listed."""
        return tuple(
            None if group.runs is None else f" {' '.join(group.runs)} "
            for group in self._index.head.row_groups
        )

    # --- streams ------------------------------------------------------------------------------
    @cached_property
    def positions(self) -> dict[str, int]:
        """Position of each stream by id."""
        return {entry.stream_id: i for i, entry in enumerate(self._index.head.streams)}

    @cached_property
    def copies(self) -> frozenset[str]:
        """Ids of the streams that are copies of others and have lines here."""
        entries = self._index.head.streams
        return frozenset(e.stream_id for e in entries if e.stream.copy and e.lines)

    @cached_property
    def ranked(self) -> bool:
        """Whether some rows have a rank of their own."""
        return any(entry.ranks for entry in self._index.head.streams)

    @cached_property
    def order(self) -> tuple[int, ...] | None:
        """Place of each stream by id; None where that is its position."""
        ids = [entry.stream_id for entry in self._index.head.streams]
        by_id = sorted(range(len(ids)), key=ids.__getitem__)
        if by_id == list(range(len(ids))):
            return None
        places = [0] * len(ids)
        for place, position in enumerate(by_id):
            places[position] = place
        return tuple(places)


def mask(members: Iterable[int]) -> int:
    """The set as a number, built from bytes: a shift per member would copy it each time."""
    ordered = list(members)
    if not ordered:
        return 0
    found = bytearray((max(ordered) >> 3) + 1)
    for member in ordered:
        found[member >> 3] |= 1 << (member & 7)
    return int.from_bytes(found, "little")


def bits(members: int) -> list[int]:
    """The members of a set, ascending."""
    if members.bit_count() > _FEW:
        digits = f"{members:b}"[::-1].encode().translate(_DIGITS)
        return list(compress(range(len(digits)), digits))
    found = []
    while members:
        lowest = members & -members
        found.append(lowest.bit_length() - 1)
        members ^= lowest
    return found
