"""Filters of a segment's row groups: blooms of whole tokens and values, grams of parts of tokens.

Shapes: g row groups; `group_of` I64[len(rows)] is each row's group, -1 where it is not in this
segment; `doubt` bool[g]: groups with a line whose tokens were not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ranklog.layout import tokens
from ranklog.layout.bloom import FULL_BLOOM
from ranklog.layout.bloom_build import build_bloom
from ranklog.layout.grams import LONG_TOKEN_BYTES, GramFilter
from ranklog.layout.grams_build import build_grams
from ranklog.layout.metadata import MetadataColumns
from ranklog.layout.rows import I64, MetadataValues, Rows
from ranklog.layout.tokens import Extracted
from ranklog.limits import GRAMS_TEXT_BYTES_MIN, TOKEN_BYTES_MAX

U64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

# A bloom leaves long tokens out where each of them brought so many grams of its own: those tell it
# from others as well as the bloom would. Numbered names share theirs, so they stay.
_GRAMS_OF_A_TOKEN_MIN = 4


@dataclass(frozen=True, slots=True)
class Filters:
    """`blooms` one after the other, `places` (offset, length) of each; `grams` by group, () for none."""

    blooms: bytes
    places: list[tuple[int, int]]
    grams: tuple[GramFilter, ...]


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Indexed tokens of the segment's rows: their row group, hash, and place in the text."""

    group: I64
    hash: U64
    at: I64
    length: I64


def build_filters(
    rows: Rows,
    group_of: I64,
    extracted: Extracted,
    metadata: MetadataColumns,
    chunks: Sequence[dict[str, tuple[int, int]]],
    doubt: Flags,
) -> Filters:
    """Filters of every group; `chunks` as in `segment.SegmentBytes`."""
    found = _tokens(rows, group_of, extracted)
    long = found.length >= LONG_TOKEN_BYTES
    values = [
        (group_of[column.rows], hashes)
        for column in metadata.columns
        if column.type == "str" and (hashes := _value_hashes(column)) is not None
    ]
    short_keys = _split([(found.group[~long], found.hash[~long]), *values], len(doubt))
    long_keys = _split([(found.group[long], found.hash[long])], len(doubt))
    filters = _grams(rows, group_of, extracted, found, chunks, doubt)
    grams = tuple(
        GramFilter(bits, bool(bits) and count >= _GRAMS_OF_A_TOKEN_MIN * len(keys))
        for (bits, count), keys in zip(filters, long_keys, strict=False)
    )
    blooms, places, offset = [], [], 0
    for group, keys in enumerate(short_keys):
        if not (grams and grams[group].holds_long):
            keys = np.concatenate([keys, long_keys[group]])
        bloom = FULL_BLOOM if doubt[group] else build_bloom(keys)
        blooms.append(bloom)
        places.append((offset, len(bloom)))
        offset += len(bloom)
    return Filters(b"".join(blooms), places, grams if any(g.bits for g in grams) else ())


def _tokens(rows: Rows, group_of: I64, extracted: Extracted) -> _Tokens:
    group = group_of[rows.of_pieces(extracted.token_piece)]
    chosen = np.flatnonzero(group >= 0)
    return _Tokens(
        group[chosen],
        extracted.token_hash[chosen],
        extracted.token_at[chosen],
        extracted.token_length[chosen],
    )


# --- blooms -------------------------------------------------------------------------------------
def _split(sets: Sequence[tuple[I64, U64]], groups: int) -> list[U64]:
    """Distinct hashes per row group, sorted; group -1 is left out."""
    group = np.concatenate([of_group for of_group, _ in sets])
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


# --- grams --------------------------------------------------------------------------------------
def _grams(
    rows: Rows,
    group_of: I64,
    extracted: Extracted,
    found: _Tokens,
    chunks: Sequence[dict[str, tuple[int, int]]],
    doubt: Flags,
) -> list[tuple[bytes, int]]:
    """(filter, distinct grams) of each group; none in a segment of little text."""
    if np.diff(rows.offsets)[group_of >= 0].sum() < GRAMS_TEXT_BYTES_MIN:
        return []
    # A token over TOKEN_BYTES_MAX is not among the indexed ones.
    beyond = group_of[rows.of_pieces(np.flatnonzero(extracted.longest > TOKEN_BYTES_MAX))]
    unknown = doubt.copy()
    unknown[beyond[beyond >= 0]] = True
    sizes = [sum(length for _, length in group.values()) for group in chunks]
    filters = build_grams(rows.text, found.group, found.at, found.length, sizes)
    return [(b"", 0) if unknown[g] else of_group for g, of_group in enumerate(filters)]
