"""Points as columns of numpy, grouped into series.

Shapes: n points, g groups. `series`, `dims`, `run`, `host`, `stream`, `written` are int32[n], positions
in the lists beside them; `rank` int32[n] and `iteration` int64[n] are ABSENT where there is none.
`value` float64[n]: NaN where `missing` (not measured) is true, and where it was measured and is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranklog.telemetry.names import known

I32: TypeAlias = "npt.NDArray[np.int32]"
I64: TypeAlias = "npt.NDArray[np.int64]"
F64: TypeAlias = "npt.NDArray[np.float64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"

ABSENT = -(2**31)
# Places of the first sequence of summaries; those of the next come behind.
SUMMARIES = 2**40
NAMED = ("run", "host", "stream", "series", "written", "dims")


@dataclass(frozen=True, slots=True)
class Names:
    """The texts that the codes of a table mean. `dims` are canonical JSON, "{}" for none; host ""
    is none. `summaries`: sequences of what is said of tensors, as its owner has them."""

    run: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    stream: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    summaries: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class PointTable:
    """Points, in no order. `summary` int64[n]: place in the summaries (SUMMARIES for each sequence of
    them), negative for none; None where no point has one."""

    run: I32
    attempt: I32
    rank: I32
    host: I32
    stream: I32
    seq: I64
    ts_ns: I64
    iteration: I64
    series: I32
    written: I32
    dims: I32
    value: F64
    missing: Mask
    names: Names = field(default_factory=Names)
    summary: I64 | None = None

    def __len__(self) -> int:
        return len(self.value)

    def take(self, rows: I64 | Mask) -> PointTable:
        """These rows, by position or by mask."""
        cut = {name: getattr(self, name)[rows] for name in COLUMNS}
        summary = None if self.summary is None else self.summary[rows]
        return replace(self, **cut, summary=summary)

    @property
    def finite(self) -> Mask:
        """Which values are numbers."""
        found: Mask = np.isfinite(self.value) & ~self.missing
        return found


COLUMNS = tuple(f.name for f in fields(PointTable) if f.name not in ("names", "summary"))
KINDS: dict[str, Any] = {
    name: np.int64 if name in ("seq", "ts_ns", "iteration") else np.int32 for name in COLUMNS
} | {"value": np.float64, "missing": np.bool_}


def empty_table() -> PointTable:
    """No points."""
    columns: dict[str, Any] = {name: np.empty(0, kind) for name, kind in KINDS.items()}
    return PointTable(**columns)


def joined(tables: Sequence[PointTable]) -> PointTable:
    """All points of all tables, under one set of names."""
    tables = [table for table in tables if len(table)]
    if not tables:
        return empty_table()
    if len(tables) == 1:
        return tables[0]
    columns: dict[str, Any] = {}
    names: dict[str, tuple[str, ...]] = {}
    for name in COLUMNS:
        parts = [getattr(table, name) for table in tables]
        if name in NAMED:
            texts, parts = _recoded([getattr(t.names, name) for t in tables], parts)
            names[name] = texts
        columns[name] = np.concatenate(parts)
    summary = None
    summaries: tuple[Any, ...] = ()
    if any(table.summary is not None for table in tables):
        parts = []
        for table in tables:
            parts.append(_summaries(table, SUMMARIES * len(summaries)))
            summaries += table.names.summaries
        summary = np.concatenate(parts)
    return PointTable(**columns, names=Names(**names, summaries=summaries), summary=summary)


def _recoded(
    lists: Sequence[tuple[str, ...]], codes: Sequence[I32]
) -> tuple[tuple[str, ...], list[I32]]:
    """Codes of many lists as codes of one."""
    place: dict[str, int] = {}
    found = []
    for texts, code in zip(lists, codes, strict=True):
        to = np.array([place.setdefault(text, len(place)) for text in texts], np.int32)
        found.append(to[code] if len(to) else code)
    return tuple(place), found


def _summaries(table: PointTable, shift: int) -> I64:
    if table.summary is None:
        return np.full(len(table), -1, np.int64)
    return np.where(table.summary < 0, -1, table.summary + shift)


@dataclass(frozen=True, slots=True)
class Grouped:
    """A table in the order of its groups. `starts` int64[g + 1]: group k is rows
    starts[k]:starts[k + 1], ascending in attempt, iteration and time."""

    table: PointTable
    starts: I64

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self, group: int) -> slice:
        """The group's rows."""
        return slice(int(self.starts[group]), int(self.starts[group + 1]))

    def first(self) -> I64:
        """The first row of every group."""
        found: I64 = self.starts[:-1]
        return found


def set_apart(table: PointTable) -> PointTable:
    """A record that has several names of one series (MaxText's `loss` and `lm_loss`) has one of them as
    that series; the others are series as they are written, in their own unit."""
    of = [known(name) for name in table.names.written]
    if len({one.series for one in of}) == len(of):
        return table
    place = np.array([one.place for one in of], np.int64)[table.written]
    keys = (table.stream, table.seq, table.dims, table.series)
    order = np.lexsort((place, *keys))
    again = np.zeros(len(table), np.bool_)
    again[order[1:]] = np.logical_and.reduce([k[order[1:]] == k[order[:-1]] for k in keys])
    if not again.any():
        return table
    names = dict.fromkeys((*table.names.series, *table.names.written))
    code = {name: at for at, name in enumerate(names)}
    own = np.array([code[name] for name in table.names.written], np.int32)[table.written]
    factor = np.array([one.factor for one in of])[table.written]
    return replace(
        table,
        series=np.where(again, own, table.series).astype(np.int32),
        value=np.where(again, table.value / factor, table.value),
        names=replace(table.names, series=tuple(names)),
    )


def _identity(table: PointTable) -> list[I32]:
    """What a series is: run, name, dimensions, rank, and its host where it has no rank. Codes in the
    order of the texts that they mean."""
    names = table.names
    found = [
        _in_order(texts)[codes] if len(codes) else codes
        for texts, codes in (
            (names.run, table.run), (names.series, table.series), (names.dims, table.dims),
        )
    ]  # fmt: skip
    host = np.where(table.rank == ABSENT, table.host, -1).astype(np.int32)
    return [*found, table.rank, host]


def _in_order(texts: Sequence[str]) -> I32:
    place = np.empty(len(texts), np.int32)
    place[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return place


def grouped(table: PointTable, keys: Sequence[I32] | None = None) -> Grouped:
    """By run, series, dimensions and rank, or by `keys` (int32[n] each, the first is slowest)."""
    given = _identity(table) if keys is None else list(keys)
    if not len(table):
        return Grouped(table, np.zeros(1, np.int64))
    within: list[Any] = [table.seq, table.ts_ns, table.iteration, table.attempt]
    order = np.lexsort((*within, *reversed(given)))
    table = table.take(order)
    given = [key[order] for key in given]
    new = np.zeros(len(table), np.bool_)
    new[0] = True
    for key in given:
        new[1:] |= key[1:] != key[:-1]
    starts = np.append(np.flatnonzero(new), len(table)).astype(np.int64)
    return Grouped(table, starts)
