"""A query's tree over columns in memory: the same meaning as scan/sql and scan/fields, in numpy.

Shapes: n rows; a mask is bool[n]. A `Masks` is (might, surely): which rows might match and which surely
do. They differ only where a term on text is not looked at yet: `texts` None. NOT swaps them. A value
that is absent makes a term false, as SQL's NULL does where a predicate is compiled exact.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranklog.layout import schema
from ranklog.model import query as q
from ranklog.plan.tasks import (
    ALL,
    InStreams,
    InTemplates,
    LeafExpr,
    Nothing,
    Pairs,
    RankIs,
    SegmentScan,
)
from ranklog.plan.values import number_values
from ranklog.scan.fields import regex
from ranklog.scan.numeric import Mask, Numbers, numbers_mask, present_in
from ranklog.scan.texts import literal_mask, regex_mask

Masks: TypeAlias = "tuple[Mask, Mask]"
_NUMERIC = {
    "level": schema.LEVEL,
    "iteration": schema.ITERATION,
    "group": schema.GROUP,
    "time": schema.TS,
    "seq": schema.SEQ,
}
# Where Arrow's RE2 might know other characters than DuckDB's: classes of Unicode; folded non-ASCII.
_UNICODE = re.compile(r"\\[pP]")
_FOLDED = re.compile(r"\(\?[a-zA-Z]*i")


class Unsupported(Exception):
    """The tree has a term that only DuckDB evaluates."""


Column: TypeAlias = "Callable[[str], Numbers]"


@dataclass(slots=True)
class Evaluator:
    """One segment's rows. `column` gives a column by its Parquet name. Raises Unsupported."""

    segment: SegmentScan
    rows: int
    column: Column
    texts: Any = None  # Arrow strings of the rows

    def masks(self, expr: LeafExpr) -> Masks:
        """Which rows might match, which surely do."""
        if isinstance(expr, q.Everything):
            return self._both(self._all(True))
        if isinstance(expr, Nothing):
            return self._both(self._all(False))
        if isinstance(expr, (q.And, q.Or)):
            return self._joined(expr)
        if isinstance(expr, q.Not):
            might, surely = self.masks(expr.item)
            return ~surely, ~might
        if isinstance(expr, (q.Contains, q.Matches)):
            if self.texts is None:
                return self._all(True), self._all(False)
            return self._both(self._text(expr))
        return self._both(self._term(expr))

    def _joined(self, expr: q.And | q.Or) -> Masks:
        both = isinstance(expr, q.And)
        might, surely = self._both(self._all(both))
        join = np.logical_and if both else np.logical_or
        for item in expr.items:
            item_might, item_surely = self.masks(item)
            might, surely = join(might, item_might), join(surely, item_surely)
        return might, surely

    def _all(self, value: bool) -> Mask:
        return np.full(self.rows, value)

    def _both(self, mask: Mask) -> Masks:
        return mask, mask

    def _term(self, expr: LeafExpr) -> Mask:
        if isinstance(expr, InStreams):
            return self._among(schema.STREAM, self.segment.slots[expr.slot])
        if isinstance(expr, InTemplates):
            return self._among(schema.TID, self.segment.slots[expr.slot])
        if isinstance(expr, RankIs):
            return self._rank(expr)
        if isinstance(expr, q.Field) and expr.key in _NUMERIC:
            values = number_values(expr)
            return numbers_mask(self.column(_NUMERIC[expr.key]), expr.op, values)
        if isinstance(expr, q.Field) and expr.key not in ("function", "logger", "call_site"):
            return self._metadata(expr)
        raise Unsupported

    def _among(self, name: str, ranges: Pairs) -> Mask:
        if ranges == ALL:
            return self._all(True)
        return among(self.column(name).values, ranges)

    def _rank(self, expr: RankIs) -> Mask:
        own = self._among(schema.STREAM, self.segment.slots[expr.slot])
        if not self.segment.ranked:
            return own
        rank = self.column(schema.RANK)
        if rank.present is None or rank.present.any():
            there = self._all(True) if rank.present is None else rank.present
            override = Numbers(rank.values, there & (rank.values != schema.NO_RANK))
            other = numbers_mask(override, expr.field.op, number_values(expr.field))
            return np.where(there, other, own)
        return own

    def _metadata(self, term: q.Field) -> Mask:
        """Numbers only: texts of metadata are DuckDB's."""
        names = {t: schema.metadata_column(t, term.key) for t in schema.METADATA_TYPES}
        if not all(isinstance(value, (q.Number, q.Range)) for value in term.values):
            raise Unsupported
        if any(name in self.segment.overflow for name in names.values()):
            raise Unsupported
        found = self._all(False)
        for type_ in ("int", "float"):
            if names[type_] in self.segment.columns:
                column = self.column(names[type_])
                found |= numbers_mask(column, term.op, term.values, is_float=type_ == "float")
        return found

    def _text(self, expr: q.Contains | q.Matches) -> Mask:
        if isinstance(expr, q.Contains):
            return literal_mask(self.texts, expr.literal)
        pattern = regex(expr.pattern, expr.flags)
        if _UNICODE.search(pattern) or (_FOLDED.search(pattern) and not pattern.isascii()):
            raise Unsupported
        return regex_mask(self.texts, expr.pattern, expr.flags)


def among(values: npt.NDArray[Any], ranges: Pairs) -> Mask:
    """Membership in half-open ranges of small integers that are not negative."""
    if not ranges:
        return np.zeros(len(values), np.bool_)
    if len(ranges) == 1:
        ((low, high),) = ranges
        return values == low if high == low + 1 else (values >= low) & (values < high)
    wanted = np.zeros(
        max(int(values.max(initial=0)), max(high for _, high in ranges)) + 1, np.bool_
    )
    for low, high in ranges:
        wanted[low:high] = True
    found: Mask = wanted[values]
    return found


# --- rows the task names --------------------------------------------------------------------------
def wanted_mask(column: Column, wanted: Sequence[tuple[int, int, int, int]]) -> Mask:
    """Rows in one of the (stream, first seq, end seq, group or -1)."""
    stream, seq, group = column(schema.STREAM), column(schema.SEQ), column(schema.GROUP)
    found = np.zeros(len(seq.values), np.bool_)
    for at, first, end, head in wanted:
        mask = (stream.values == at) & (seq.values >= first) & (seq.values < end)
        if head != -1:
            mask &= (group.values == head) & present_in(group)
        found |= mask
    return found


def skipped_mask(column: Column, skip: Sequence[tuple[int, int, int]]) -> Mask:
    """Rows that another segment answers."""
    stream, seq = column(schema.STREAM).values, column(schema.SEQ).values
    found = np.zeros(len(seq), np.bool_)
    for at, first, end in skip:
        found |= (stream == at) & (seq >= first) & (seq < end)
    return found


def behind_mask(column: Column, segment: SegmentScan, *, newest: bool) -> Mask:
    """Rows that come after the cursor in the answer's order."""
    assert segment.after is not None
    ts, place, present, seq = segment.after
    stream, times = column(schema.STREAM).values, column(schema.TS).values
    if segment.order is not None:
        stream = np.array(segment.order, np.int64)[stream]
    beyond = operator.lt if newest else operator.gt
    if present:
        tie = beyond(stream, place) | ((stream == place) & beyond(column(schema.SEQ).values, seq))
    else:
        tie = stream < place if newest else stream >= place
    found: Mask = beyond(times, ts) | ((times == ts) & tie)
    return found
