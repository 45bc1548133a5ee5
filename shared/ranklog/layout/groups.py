"""Row groups of a segment as its index tells them: bounds, streams, blooms, letter runs.

Shapes: n rows in segment order; g row groups of ROW_GROUP_ROWS, the last shorter; `starts` I64[g].
`order` I64[n] are indices into `rows`; `position` I64[len(rows)] is its inverse, -1 where a row is
not in this segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ranklog.layout import schema, tokens
from ranklog.layout.bloom import FULL_BLOOM
from ranklog.layout.bloom_build import build_bloom
from ranklog.layout.metadata import MetadataColumns
from ranklog.layout.rows import I64, MetadataValues, Rows
from ranklog.layout.templates import long_rows
from ranklog.layout.tokens import Extracted
from ranklog.limits import LETTER_RUNS_PER_ROW_GROUP_MAX, ROW_GROUP_ROWS, TOKEN_BYTES_MAX
from ranklog.model.frame import NO_ITERATION, NO_LEVEL, STREAM_RANK
from ranklog.model.index import Bounds, RowGroup

U64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Row groups and the blooms they point into."""

    row_groups: tuple[RowGroup, ...]
    blooms: bytes


def describe_groups(
    rows: Rows,
    order: I64,
    stream_places: npt.NDArray[np.int32],
    extracted: Extracted,
    metadata: MetadataColumns,
    chunks: Sequence[dict[str, tuple[int, int]]],
) -> Grouped:
    """Row groups of the segment whose rows are `order`."""
    starts = np.arange(0, len(order), ROW_GROUP_ROWS)
    position = np.full(len(rows), -1, np.int64)
    position[order] = np.arange(len(order))
    bounds = {
        name: _bounds(values, present, starts)
        for name, values, present in _numeric(rows, order, metadata)
    }
    doubt = np.zeros(len(starts), np.bool_)  # groups with a line whose tokens were not looked at
    long_at = position[long_rows(rows)]
    doubt[long_at[long_at >= 0] // ROW_GROUP_ROWS] = True
    blooms, places = _blooms(rows, position, extracted, metadata, doubt)
    runs, noise = _letter_runs(rows, position, extracted, doubt)
    streams = stream_places[rows.stream[order]]
    sizes = np.diff(np.append(starts, len(order)))
    groups = tuple(
        RowGroup(
            first_row=start,
            rows=size,
            chunks=chunks[g],
            bounds={name: of_group[g] for name, of_group in bounds.items()},
            streams=frozenset(np.flatnonzero(np.bincount(streams[start : start + size])).tolist()),
            runs=runs[g],
            hex_runs=bool(noise[g]),
            bloom=places[g],
        )
        for g, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True))
    )
    return Grouped(groups, blooms)


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


# --- blooms -------------------------------------------------------------------------------------
def _blooms(
    rows: Rows, position: I64, extracted: Extracted, metadata: MetadataColumns, doubt: Flags
) -> tuple[bytes, list[tuple[int, int]]]:
    """Filters of the groups one after the other, and each one's (offset, length)."""
    sets = [(_piece_rows(rows, extracted.token_piece), extracted.token_hash)]
    sets += [
        (column.rows, hashes)
        for column in metadata.columns
        if column.type == "str" and (hashes := _value_hashes(column)) is not None
    ]
    keys = _split([(position[at], hashes) for at, hashes in sets], len(doubt))
    blooms, places, offset = [], [], 0
    for group, part in enumerate(keys):
        bloom = FULL_BLOOM if doubt[group] else build_bloom(part)
        blooms.append(bloom)
        places.append((offset, len(bloom)))
        offset += len(bloom)
    return b"".join(blooms), places


def _piece_rows(rows: Rows, piece: I64) -> I64:
    return piece >> 1 if rows.has_envelopes else piece


def _split(sets: Sequence[tuple[I64, U64]], groups: int) -> list[U64]:
    """Distinct hashes per row group, sorted; position -1 is left out."""
    group = np.concatenate([at // ROW_GROUP_ROWS for at, _ in sets])
    hashes = np.concatenate([values for _, values in sets])
    order = np.argsort(group.astype(np.int16) if groups < 2**15 else group, kind="stable")
    edges = np.searchsorted(group, np.arange(groups + 1), sorter=order)
    return [_distinct(hashes[order[a:b]]) for a, b in pairwise(edges)]


def _distinct(hashes: U64) -> U64:
    """Sorted and distinct (np.unique takes a slower way)."""
    ordered = np.sort(hashes)
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def _value_hashes(column: MetadataValues) -> U64 | None:
    """Hashes of string values, per value; too long ones hash as the empty string does."""
    encoded = column.values.dictionary_encode()
    dictionary = encoded.dictionary
    lengths = pc.binary_length(dictionary).to_numpy(zero_copy_only=False).astype(np.int64)
    text = np.frombuffer(
        b"".join(value.as_buffer() for value in dictionary.cast("binary")), np.uint8
    )
    at = np.cumsum(lengths) - lengths
    hashes = tokens.hash_values(
        column.key, text, at, np.where(lengths > TOKEN_BYTES_MAX, 0, lengths)
    )
    found: U64 = hashes[encoded.indices.to_numpy(zero_copy_only=False)]
    return found


# --- letter runs --------------------------------------------------------------------------------
def _letter_runs(
    rows: Rows, position: I64, extracted: Extracted, doubt: Flags
) -> tuple[list[frozenset[str] | None], Flags]:
    """Per group the folded runs (None: too many or too long), and whether it has hex noise."""
    at = position[_piece_rows(rows, extracted.run_piece)]
    chosen, groups = np.flatnonzero(at >= 0), len(doubt)
    group = at[chosen] // ROW_GROUP_ROWS
    order = chosen[np.argsort(group, kind="stable")]
    edges = np.searchsorted(np.sort(group), np.arange(groups + 1))
    runs = [_run_texts(rows, extracted, order[a:b]) for a, b in pairwise(edges)]
    noise = np.zeros(groups, np.bool_)
    hex_at = position[_piece_rows(rows, extracted.hex_piece)]
    noise[hex_at[hex_at >= 0] // ROW_GROUP_ROWS] = True
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
