"""The section of an index that names a segment's series: what a planner of points looks at. Pure.

A msgpack map: `names`, `dims` (canonical JSON) and `contexts` (canonical JSON), all distinct, names
and dims sorted; `name` and `dim`, uint32 each per series, places in these; `rows`, uint32 per series:
how many points it has, one series after the other; `records`: rows before the first point.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SeriesTable:
    """Series s has the name `names[name[s]]`, the dimensions `dims[dim[s]]` and `rows[s]` points; they
    are sorted by (name, dimensions) and stand in this order behind `records` other rows.

    `contexts[c]`: metadata of records.
    """

    names: tuple[str, ...]
    dims: tuple[str, ...]
    contexts: tuple[str, ...]
    name: Sequence[int]
    dim: Sequence[int]
    rows: Sequence[int]
    records: int

    def __len__(self) -> int:
        return len(self.name)


def series_to_map(table: SeriesTable) -> dict[str, Any]:
    """What msgpack writes."""
    return {
        "names": list(table.names),
        "dims": list(table.dims),
        "contexts": list(table.contexts),
        "name": _pack(table.name),
        "dim": _pack(table.dim),
        "rows": _pack(table.rows),
        "records": table.records,
    }


NO_SERIES = SeriesTable((), (), (), (), (), (), 0)


def series_from_map(data: Mapping[str, Any]) -> SeriesTable:
    """Inverse of `series_to_map`. Raises KeyError, TypeError, ValueError on damage."""
    table = SeriesTable(
        names=tuple(data["names"]),
        dims=tuple(data["dims"]),
        contexts=tuple(data["contexts"]),
        name=_unpack(data["name"]),
        dim=_unpack(data["dim"]),
        rows=_unpack(data["rows"]),
        records=data["records"],
    )
    if not len(table.name) == len(table.dim) == len(table.rows):
        raise ValueError("columns of series have other lengths")
    if max(table.name, default=-1) >= len(table.names):
        raise ValueError("a series has a name that is not there")
    if max(table.dim, default=-1) >= len(table.dims):
        raise ValueError("a series has dimensions that are not there")
    return table


def _pack(numbers: Sequence[int]) -> bytes:
    packed = array("I", numbers)
    if sys.byteorder == "big":  # pragma: no cover
        packed.byteswap()
    return packed.tobytes()


def _unpack(data: bytes) -> array[int]:
    numbers = array("I")
    numbers.frombytes(data)
    if sys.byteorder == "big":  # pragma: no cover
        numbers.byteswap()
    return numbers
