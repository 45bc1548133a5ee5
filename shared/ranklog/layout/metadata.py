"""Typed metadata of a segment: a Parquet column per key and type, the rest in one JSON column."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.layout import schema
from ranklog.layout.rows import I64, MetadataValues
from ranklog.limits import (
    METADATA_COLUMN_VALUES_MIN,
    METADATA_COLUMNS_ALWAYS,
    METADATA_COLUMNS_MAX,
)


@dataclass(frozen=True, slots=True)
class MetadataColumns:
    """Metadata of one segment. Rows are indices into all rows (`count` of them)."""

    count: int
    columns: tuple[MetadataValues, ...]
    overflow: tuple[MetadataValues, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Parquet names of the columns, as written."""
        return tuple(schema.metadata_column(c.type, c.key) for c in self.columns)

    @property
    def overflow_names(self) -> tuple[str, ...]:
        return tuple(schema.metadata_column(c.type, c.key) for c in self.overflow)

    def places(self, column: MetadataValues, order: I64) -> I64:
        """Per row of `order` the position of its value in the column, -1 for none."""
        place = np.full(self.count, -1, np.int64)
        place[column.rows] = np.arange(len(column.rows))
        found: I64 = place[order]
        return found

    def arrays(self, order: I64) -> dict[str, Any]:
        """Arrow arrays of the rows `order`, by Parquet name."""
        arrays = {}
        for name, column in zip(self.names, self.columns, strict=True):
            place = self.places(column, order)
            absent = place < 0
            if column.type == "str":
                arrays[name] = column.values.take(pa.array(place, mask=absent))
            else:
                arrays[name] = pa.array(column.values[np.maximum(place, 0)], mask=absent)
        if self.overflow:
            arrays[schema.OVERFLOW] = self._overflow_array(order)
        return arrays

    def _overflow_array(self, order: I64) -> Any:
        """JSON objects; only for what is beyond the column limit, so values are few."""
        objects: dict[int, dict[str, Any]] = defaultdict(dict)
        for name, column in zip(self.overflow_names, self.overflow, strict=True):
            for row, value in zip(column.rows.tolist(), column.values.tolist(), strict=True):
                objects[row][name] = json_value(value)
        at = np.array(sorted(objects), np.int64)
        texts = pa.array([json.dumps(objects[row]) for row in at.tolist()], pa.string())
        place = np.full(self.count, -1, np.int64)
        place[at] = np.arange(len(at))
        chosen = place[order]
        return texts.take(pa.array(chosen, mask=chosen < 0))


def json_value(value: int | float | str) -> int | float | str:
    """NaN and infinities are strings in JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def choose_columns(
    metadata: Sequence[MetadataValues], in_segment: npt.NDArray[np.bool_]
) -> MetadataColumns:
    """Columns of one segment: the fullest METADATA_COLUMNS_MAX, ties by name; the rest overflows.

    So does a key that differs from a fuller one in case only: DuckDB takes `Loss` and `loss` for one
    column. In the overflow column both keep their names.
    """
    cut = []
    for column in metadata:
        keep = in_segment[column.rows]
        if keep.all():
            cut.append(column)
        elif keep.any():
            values = column.values
            cut.append(
                MetadataValues(
                    column.key,
                    column.type,
                    column.rows[keep],
                    values.filter(pa.array(keep)) if column.type == "str" else values[keep],
                )
            )
    cut.sort(key=lambda c: (-len(c.rows), c.key, c.type))
    columns: dict[str, MetadataValues] = {}
    overflow = []
    for column in cut:
        folded = schema.metadata_column(column.type, column.key).lower()
        sparse = len(column.rows) < METADATA_COLUMN_VALUES_MIN
        limit = min(
            METADATA_COLUMNS_ALWAYS if sparse else METADATA_COLUMNS_MAX, METADATA_COLUMNS_MAX
        )
        if folded in columns or len(columns) >= limit:
            overflow.append(column)
        else:
            columns[folded] = column
    chosen = sorted(columns.values(), key=lambda c: (c.key, c.type))
    return MetadataColumns(len(in_segment), tuple(chosen), tuple(overflow))
