"""Row groups of a segment as its index tells them: bounds, streams, filters, letter runs.

Shapes: n rows in segment order; g row groups, `starts` I64[g] their first rows.
`order` I64[n] are indices into `rows`; `group_of` I64[len(rows)] is the group of a row, -1 where it is
not in this segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ranklog.layout import schema
from ranklog.layout.filters import Filters, build_filters
from ranklog.layout.metadata import MetadataColumns
from ranklog.layout.rows import I64, NO_HEAD, Rows
from ranklog.layout.templates import long_rows
from ranklog.layout.tokens import Extracted
from ranklog.limits import LETTER_RUNS_PER_ROW_GROUP_MAX, TOKEN_BYTES_MAX
from ranklog.model.frame import NO_ITERATION, NO_LEVEL, STREAM_RANK
from ranklog.model.index import Bounds, RowGroup

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Row groups, and the filters they point into."""

    row_groups: tuple[RowGroup, ...]
    filters: Filters


def describe_groups(
    rows: Rows,
    order: I64,
    starts: I64,
    stream_places: npt.NDArray[np.int32],
    extracted: Extracted,
    metadata: MetadataColumns,
    chunks: Sequence[dict[str, tuple[int, int]]],
) -> Grouped:
    """Row groups of the segment whose rows are `order`."""
    sizes = np.diff(np.append(starts, len(order)))
    group_of = np.full(len(rows), -1, np.int64)
    group_of[order] = np.repeat(np.arange(len(starts)), sizes)
    bounds = {
        name: _bounds(values, present, starts)
        for name, values, present in _numeric(rows, order, metadata)
    }
    doubt = np.zeros(len(starts), np.bool_)  # groups with a line whose tokens were not looked at
    long_in = group_of[long_rows(rows)]
    doubt[long_in[long_in >= 0]] = True
    filters = build_filters(rows, group_of, extracted, metadata, chunks, doubt)
    runs, noise = _letter_runs(rows, group_of, extracted, doubt)
    streams = stream_places[rows.stream[order]]
    groups = tuple(
        RowGroup(
            first_row=start,
            rows=size,
            chunks=chunks[g],
            bounds={name: of_group[g] for name, of_group in bounds.items()},
            streams=frozenset(np.flatnonzero(np.bincount(streams[start : start + size])).tolist()),
            runs=runs[g],
            hex_runs=bool(noise[g]),
            bloom=filters.places[g],
        )
        for g, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True))
    )
    return Grouped(groups, filters)


# --- bounds -------------------------------------------------------------------------------------
def effective_rank(rows: Rows) -> npt.NDArray[np.int32]:
    """The rank of each row, its stream's where it has none of its own; NO_RANK for no rank."""
    own = np.array(
        [schema.NO_RANK if s.rank is None else s.rank for s in rows.streams] or [0], np.int32
    )
    return np.where(rows.rank == STREAM_RANK, own[rows.stream], rows.rank)


def _numeric(
    rows: Rows, order: I64, metadata: MetadataColumns
) -> Iterator[tuple[str, npt.NDArray[np.generic], Flags | None]]:
    """(name, values, which are present or None for all) of each numeric column, in segment order."""
    yield schema.TS, rows.ts[order], None
    yield schema.SEQ, rows.seq[order], None
    yield schema.BODY_AT, rows.body_at[order], None
    yield schema.FLAGS, rows.flags[order], None
    group = rows.group[order]
    yield schema.GROUP, group, group != NO_HEAD
    level, iteration, rank = rows.level[order], rows.iteration[order], effective_rank(rows)[order]
    yield schema.LEVEL, level, level != NO_LEVEL
    yield schema.ITERATION, iteration, iteration != NO_ITERATION
    yield schema.RANK, rank, rank != schema.NO_RANK
    for name, column in zip(metadata.names, metadata.columns, strict=True):
        if column.type != "str":
            place = metadata.places(column, order)
            yield name, column.values[np.maximum(place, 0)], place >= 0


def _bounds(values: npt.NDArray[np.generic], present: Flags | None, starts: I64) -> list[Bounds]:
    """Bounds per row group; NaN takes no part."""
    bounds = []
    edges = [*starts.tolist(), len(values)]
    for start, end in pairwise(edges):
        part = values[start:end]
        if present is not None:
            part = part[present[start:end]]
        has_null = len(part) < end - start
        count = len(part)
        if part.dtype.kind == "f":
            part = part[~np.isnan(part.astype(np.float64))]
        low, high = (part.min().item(), part.max().item()) if len(part) else (None, None)
        bounds.append(Bounds(low, high, has_null, len(part) < count))
    return bounds


# --- letter runs --------------------------------------------------------------------------------
def _letter_runs(
    rows: Rows, group_of: I64, extracted: Extracted, doubt: Flags
) -> tuple[list[frozenset[str] | None], Flags]:
    """Per group the folded runs (None: too many or too long), and whether it has hex noise."""
    of_run = group_of[rows.of_pieces(extracted.run_piece)]
    chosen, groups = np.flatnonzero(of_run >= 0), len(doubt)
    group = of_run[chosen]
    order = chosen[np.argsort(group, kind="stable")]
    edges = np.searchsorted(np.sort(group), np.arange(groups + 1))
    runs = [_run_texts(rows, extracted, order[a:b]) for a, b in pairwise(edges)]
    noise = np.zeros(groups, np.bool_)
    hex_in = group_of[rows.of_pieces(extracted.hex_piece)]
    noise[hex_in[hex_in >= 0]] = True
    return [None if doubt[g] else found for g, found in enumerate(runs)], noise


def _run_texts(rows: Rows, extracted: Extracted, runs: I64) -> frozenset[str] | None:
    if extracted.run_length[runs].max(initial=0) > TOKEN_BYTES_MAX:
        return None
    _, first = np.unique(extracted.run_hash[runs], return_index=True)
    if len(first) > LETTER_RUNS_PER_ROW_GROUP_MAX:
        return None
    at, length = extracted.run_at[runs[first]], extracted.run_length[runs[first]]
    spans = zip(at.tolist(), (at + length).tolist(), strict=True)
    return frozenset(rows.text[a:b].tobytes().decode("ascii").lower() for a, b in spans)
