"""A query's tree over columns in memory: the same meaning as scan/sql and scan/fields, in numpy.

Shapes: n rows; a mask is bool[n]. A `Masks` is (might, surely): which rows might match and which surely
do. They differ only where a term on text is not looked at yet: `texts` None. NOT swaps them. A value
that is absent makes a term false, as SQL's NULL does where a predicate is compiled exact.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
from ranklog.scan.arrays import flags, numbers
from ranklog.scan.fields import regex

Mask: TypeAlias = "npt.NDArray[np.bool_]"
Masks: TypeAlias = "tuple[Mask, Mask]"
_NUMERIC = {
    "level": schema.LEVEL,
    "iteration": schema.ITERATION,
    "group": schema.GROUP,
    "time": schema.TS,
    "seq": schema.SEQ,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ":": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_INT64 = 2**63
# Where Arrow's RE2 might know other characters than DuckDB's: classes of Unicode, folded non-ASCII.
_UNICODE = re.compile(r"\\[pP]|\(\?[a-zA-Z]*i")


class Unsupported(Exception):
    """The tree has a term that only DuckDB evaluates."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers; `present` None: all are."""

    values: npt.NDArray[Any]
    present: Mask | None


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
            return flags(pc.match_substring(self.texts, expr.literal))
        pattern = regex(expr.pattern, expr.flags)
        if _UNICODE.search(pattern) and not pattern.isascii():
            raise Unsupported
        return flags(pc.match_substring_regex(self.texts, pattern))


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


# --- numbers ------------------------------------------------------------------------------------
def numbers_mask(
    column: Numbers, op: str, values: Sequence[q.Value], *, is_float: bool = False
) -> Mask:
    """A term on a numeric column (scan/fields.numbers_sql)."""
    masks = [_number_mask(column, op, value, is_float) for value in values]
    join = np.logical_and if op == "!=" else np.logical_or
    found: Mask = masks[0]
    for mask in masks[1:]:
        found = join(found, mask)
    return found


def _number_mask(column: Numbers, op: str, value: q.Value, is_float: bool) -> Mask:
    there = _there(column)
    if isinstance(value, q.Null):
        return there if op == "!=" else ~there
    if isinstance(value, q.Present):
        return np.zeros(len(there), np.bool_) if op == "!=" else there
    compare = _compare_float if is_float else _compare_int
    if isinstance(value, q.Number):
        return compare(column, op, value.value)
    assert isinstance(value, q.Range), value
    present = there & ~np.isnan(column.values) if is_float else there
    above = present if value.low is None else compare(column, ">=", value.low)
    high_op = "<=" if value.inclusive else "<"
    below = present if value.high is None else compare(column, high_op, value.high)
    wanted = {
        ":": above & below,
        "!=": ~(above & below),
        ">=": above,
        "<": ~above,
        "<=": below,
        ">": ~below,
    }[op]
    return present & wanted


def _there(column: Numbers) -> Mask:
    if column.present is None:
        return np.ones(len(column.values), np.bool_)
    return column.present


def _compare_int(column: Numbers, op: str, value: int | float) -> Mask:
    there = _there(column)
    never = np.zeros(len(there), np.bool_)
    if isinstance(value, float):
        if math.isnan(value):
            return there if op == "!=" else never
        if math.isinf(value):
            value = _INT64 * 2 if value > 0 else -_INT64 * 2
        elif value.is_integer():
            value = int(value)
        elif op in (":", "!="):
            return there if op == "!=" else never
        else:  # x < 2.5 is x <= 2, x >= 2.5 is x >= 3
            op, value = ("<=", math.floor(value)) if op[0] == "<" else (">=", math.ceil(value))
    if not -_INT64 <= value < _INT64:
        beyond = op == "!=" or ((op[0] == "<") == (value > 0) and op != ":")
        return there if beyond else never
    wide = column.values.astype(np.int64, copy=False)
    found: Mask = there & _COMPARE[op](wide, np.int64(value))
    return found


def _compare_float(column: Numbers, op: str, value: int | float) -> Mask:
    nan = np.isnan(column.values)
    there = _there(column)
    number = there & ~nan
    if isinstance(value, float) and math.isnan(value):
        if op == ":":
            return cast("Mask", there & nan)
        return number if op == "!=" else np.zeros(len(there), np.bool_)
    try:
        near = float(value)
    except OverflowError:
        near = math.copysign(math.inf, value)
    if near != value:  # an int that no float is
        if op in (":", "!="):
            return number if op == "!=" else np.zeros(len(there), np.bool_)
        below = near < value
        op = ("<=" if below else "<") if op[0] == "<" else (">" if below else ">=")
    found: Mask = number & _COMPARE[op](column.values, near)
    return found


# --- rows the task names --------------------------------------------------------------------------
def wanted_mask(column: Column, wanted: Sequence[tuple[int, int, int, int]]) -> Mask:
    """Rows in one of the (stream, first seq, end seq, group or -1)."""
    stream, seq, group = column(schema.STREAM), column(schema.SEQ), column(schema.GROUP)
    found = np.zeros(len(seq.values), np.bool_)
    for at, first, end, head in wanted:
        mask = (stream.values == at) & (seq.values >= first) & (seq.values < end)
        if head != -1:
            mask &= (group.values == head) & _there(group)
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


def as_numbers(array: Any) -> Numbers:
    """An Arrow column of numbers; decimals as the doubles they stand for, NaN kept."""
    type_ = array.type
    present = None if not array.null_count else flags(array.is_valid())
    if pa.types.is_decimal(type_):
        return Numbers(_doubles(array), present)
    if array.null_count:
        array = array.fill_null(0)
    return Numbers(numbers(array), present)


def all_alike(value: int | None, rows: int) -> Numbers:
    """A column of one value; None: of none."""
    if value is None:
        return Numbers(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
    return Numbers(np.full(rows, value, np.int64), None)


def _doubles(array: Any) -> npt.NDArray[np.float64]:
    """decimal128 of at most 18 digits / 10^scale: the nearest doubles, as both are exact."""
    words = np.frombuffer(array.buffers()[1], "<i8")
    low = words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    found: npt.NDArray[np.float64] = low.astype(np.float64) / 10.0**array.type.scale
    return found
