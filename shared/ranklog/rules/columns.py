"""Extracted values, collected over rules and put together: one column per key and type.

Shapes: a part is rows (uint32, ascending, distinct) and as many values. Where two rules give one
row a value for the same key, the earlier rule's stands, whatever the types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.rules.names import ITERATION
from ranklog.rules.values import FLOAT, INT, STR, Typed

Rows = npt.NDArray[np.uint32]
_TYPE_NAMES = {INT: "int", FLOAT: "float", STR: "str"}


@dataclass(frozen=True, slots=True)
class ExtractedColumn:
    """Values of one key and type. `values`: int64, float64, or an Arrow string array for "str"."""

    key: str
    type: str  # int | float | str
    rows: Rows
    values: Any


@dataclass(frozen=True, slots=True)
class _Part:
    type: str
    rows: Rows
    values: Any


class Collector:
    """Parts of columns, in the order of the rules."""

    def __init__(self) -> None:
        self._parts: dict[str, list[_Part]] = {}

    def add(self, key: str, rows: Rows, typed: Typed) -> None:
        """Take what each value became; `key`_avg gets the second numbers of pairs."""
        if key in ITERATION:
            self._put("iteration", INT, rows, typed)
            return
        for kind in (INT, FLOAT, STR):
            self._put(key, kind, rows, typed)
        if typed.has_second.any():
            self._append(
                f"{key}_avg", "float", rows[typed.has_second], typed.second[typed.has_second]
            )

    def extend(self, later: Collector) -> None:
        """Take over what a later rule collected."""
        for key, parts in later._parts.items():
            self._parts.setdefault(key, []).extend(parts)

    def _put(self, key: str, kind: int, rows: Rows, typed: Typed) -> None:
        mask = typed.kind == kind
        if not mask.any():
            return
        source = {INT: typed.ints, FLOAT: typed.floats, STR: typed.text}[kind]
        if mask.all():
            values = source
        elif kind == STR:
            values = source.filter(pa.array(mask))
        else:
            values = source[mask]
        self._append(key, _TYPE_NAMES[kind], rows[mask], values)

    def _append(self, key: str, type_name: str, rows: Rows, values: Any) -> None:
        self._parts.setdefault(key, []).append(_Part(type_name, rows, values))

    def columns(self) -> list[ExtractedColumn]:
        """The columns, by key and type."""
        columns: list[ExtractedColumn] = []
        for key, parts in sorted(self._parts.items()):
            types = sorted({part.type for part in parts})
            parts = _first_of_types(parts) if len(types) > 1 else parts
            for type_name in types:
                same = [part for part in parts if part.type == type_name and len(part.rows)]
                if same:
                    columns.append(ExtractedColumn(key, type_name, *_merge(same)))
        return columns


def _first_of_types(parts: list[_Part]) -> list[_Part]:
    """Parts without the rows that an earlier part has."""
    seen = parts[0].rows
    kept = parts[:1]
    for part in parts[1:]:
        new = ~np.isin(part.rows, seen)
        values = part.values.filter(pa.array(new)) if part.type == "str" else part.values[new]
        kept.append(_Part(part.type, part.rows[new], values))
        seen = np.concatenate([seen, part.rows])
    return kept


def _merge(parts: list[_Part]) -> tuple[Rows, Any]:
    text = parts[0].type == "str"
    rows = np.concatenate([part.rows for part in parts]).astype(np.uint32, copy=False)
    if text:
        values = pa.concat_arrays([part.values.cast(pa.string()) for part in parts])
    else:
        values = np.concatenate([part.values for part in parts])
    if len(parts) == 1 and (len(rows) < 2 or bool((rows[1:] > rows[:-1]).all())):
        return rows, values
    distinct, first = np.unique(rows, return_index=True)
    return distinct, values.take(pa.array(first)) if text else values[first]
