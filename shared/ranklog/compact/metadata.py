"""Typed metadata of segments back to values by key and type: the inverse of `layout.metadata`."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.layout import schema
from ranklog.layout.rows import I64, MetadataValues

_Parts = dict[tuple[str, str], list[tuple[I64, Any]]]


class Metadata:
    """Values of all segments so far; `rows` of them."""

    def __init__(self) -> None:
        self.rows = 0
        self._parts: _Parts = defaultdict(list)

    def add(self, table: Any) -> None:
        """The metadata columns of the next segment."""
        for name in table.column_names:
            parsed = schema.parse_metadata_column(name)
            if parsed is not None:
                type_, key = parsed
                self._add(table.column(name).combine_chunks(), key, type_)
        if schema.OVERFLOW in table.column_names:
            self._add_overflow(table.column(schema.OVERFLOW).combine_chunks())
        self.rows += len(table)

    def _add(self, column: Any, key: str, type_: str) -> None:
        at = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)) + self.rows
        values = column.drop_null()
        if type_ == "str":
            self._parts[key, type_].append((at, values.cast(pa.string())))
        elif type_ == "int":
            self._parts[key, type_].append((at, values.to_numpy(zero_copy_only=False)))
        else:
            self._parts[key, type_].append((at, floats_of(values)))

    def _add_overflow(self, column: Any) -> None:
        """JSON of what is beyond the limit of columns: few values, so one by one."""
        cells: dict[tuple[str, str], list[tuple[int, Any]]] = defaultdict(list)
        valid = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        texts = column.drop_null().to_pylist()
        for row, text in zip(valid.tolist(), texts, strict=True):
            for name, value in json.loads(text).items():
                parsed = schema.parse_metadata_column(name)
                if parsed is not None:
                    cells[parsed[1], parsed[0]].append((row + self.rows, value))
        for (key, type_), found in cells.items():
            at = np.array([row for row, _ in found], np.int64)
            values: Any = [value for _, value in found]
            if type_ == "str":
                values = pa.array(values, pa.string())
            elif type_ == "int":
                values = np.array(values, np.int64)
            else:
                values = np.array([float(value) for value in values], np.float64)
            self._parts[key, type_].append((at, values))

    def columns(self) -> tuple[MetadataValues, ...]:
        """By key and type, sorted."""
        found = []
        for (key, type_), parts in sorted(self._parts.items()):
            at = np.concatenate([rows for rows, _ in parts])
            if not len(at):
                continue
            if type_ == "str":
                values = pa.concat_arrays([column for _, column in parts])
            else:
                values = np.concatenate([column for _, column in parts])
            found.append(MetadataValues(key, type_, at, values))
        return tuple(found)


def floats_of(values: Any) -> npt.NDArray[np.float64]:
    """Doubles; of decimals the quotient, which is the very double they were made of."""
    if not pa.types.is_decimal(values.type):
        found: npt.NDArray[np.float64] = values.to_numpy(zero_copy_only=False).astype(np.float64)
        return found
    wide = values.cast(pa.decimal128(38, values.type.scale))
    words = np.frombuffer(wide.buffers()[1], np.int64)[2 * wide.offset :][: 2 * len(wide)]
    return words[::2] / np.float64(10.0**values.type.scale)
