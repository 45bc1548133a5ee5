"""Columns of numbers in memory, and terms on them: the same meaning as scan/fields, in numpy.

Shapes: n rows; a mask is bool[n].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.model import query as q
from ranklog.plan.values import COMPARE
from ranklog.scan.arrays import flags, numbers
from ranklog.scan.fields import double_comparison, whole_comparison

Mask: TypeAlias = "npt.NDArray[np.bool_]"


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers; `present` None: all are."""

    values: npt.NDArray[Any]
    present: Mask | None


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
    there = present_in(column)
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


def present_in(column: Numbers) -> Mask:
    """Which rows have a value."""
    if column.present is None:
        return np.ones(len(column.values), np.bool_)
    return column.present


def _compare_int(column: Numbers, op: str, value: int | float) -> Mask:
    there = present_in(column)
    asked = whole_comparison(op, value)
    if isinstance(asked, bool):
        return there if asked else np.zeros(len(there), np.bool_)
    op, number = asked
    wide = column.values.astype(np.int64, copy=False)
    found: Mask = there & COMPARE[op](wide, np.int64(number))
    return found


def _compare_float(column: Numbers, op: str, value: int | float) -> Mask:
    nan = np.isnan(column.values)
    there = present_in(column)
    number = there & ~nan
    if isinstance(value, float) and math.isnan(value):
        if op == ":":
            return cast("Mask", there & nan)
        return number if op == "!=" else np.zeros(len(there), np.bool_)
    asked = double_comparison(op, value)
    if isinstance(asked, bool):
        return number if asked else np.zeros(len(there), np.bool_)
    op, near = asked
    found: Mask = number & COMPARE[op](column.values, near)
    return found
