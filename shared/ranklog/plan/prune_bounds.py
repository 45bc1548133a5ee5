"""What the bounds of a row group say of a numeric term. Answers are True: every row, False: no row,
None: doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ranklog.model import query as q
from ranklog.model.index import Bounds

Answer: TypeAlias = "bool | None"


def any_of(answers: Iterable[Answer]) -> Answer:
    """OR of answers."""
    found = list(answers)
    return True if True in found else None if None in found else False


def presence(strings: bool, numbers: Sequence[Bounds | None]) -> Answer:
    """Whether rows have a value of any type."""
    if any(b is not None and not b.has_null for b in numbers):
        return True
    if strings or any(b is None or b.low is not None or b.has_nan for b in numbers):
        return None
    return False


def compare_all(bounds: Bounds, term: q.Field) -> list[Answer]:
    return [compare(bounds, term.op, value) for value in term.values]


def compare(bounds: Bounds, op: str, value: q.Value) -> Answer:
    """One value against the values of a row group; absent values and NaN fail every comparison."""
    if isinstance(value, (q.Null, q.Present)):
        present = presence(False, [bounds])
        if isinstance(value, q.Present):
            return present if op == ":" else False
        return present if op == "!=" or present is None else not present
    if not isinstance(value, (q.Number, q.Range)):
        return None
    low, high = bounds.low, bounds.high
    if isinstance(value, q.Number) and value.value != value.value:
        some = bounds.has_nan if op == ":" else op == "!=" and low is not None
        return None if some else False
    if low is None or high is None:
        return False
    if isinstance(value, q.Number):
        some, every = _compare_number(low, high, op, value.value)
    else:
        some, every = _compare_range(low, high, op, value)
    if not some:
        return False
    return True if every and not bounds.has_null and not bounds.has_nan else None


def _compare_number(
    low: int | float, high: int | float, op: str, value: int | float
) -> tuple[bool, bool]:
    """Whether some, and whether every number in [low, high] compares true; ends are attained."""
    if op == ">=":
        return high >= value, low >= value
    if op == ">":
        return high > value, low > value
    if op == "<=":
        return low <= value, high <= value
    if op == "<":
        return low < value, high < value
    only, outside = low == high == value, value < low or value > high
    return (not only, outside) if op == "!=" else (not outside, only)


def _compare_range(
    low: int | float, high: int | float, op: str, value: q.Range
) -> tuple[bool, bool]:
    if op != ":":
        return True, False
    above = value.low is None or high >= value.low
    below = value.high is None or (low <= value.high if value.inclusive else low < value.high)
    all_above = value.low is None or low >= value.low
    all_below = value.high is None or (high <= value.high if value.inclusive else high < value.high)
    return above and below, all_above and all_below
