"""Tables of an index: streams with their seq ranges, call sites with their counts, template runs.

Shapes: n rows in segment order, `order` I64[n] indices into `rows`. Everything per row is one pass
of numpy; loops are over streams, sites and runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.layout.groups import effective_rank
from ranklog.layout.passes import passes_by_stream
from ranklog.layout.rows import I32, I64, Rows, StreamRows
from ranklog.layout.templates import factorize
from ranklog.limits import (
    SITE_TIMES_BUCKETS_MAX,
    SITE_TIMES_ROWS_PER_COUNT,
    SITE_TIMES_WIDTHS_NS,
)
from ranklog.model.frame import NO_ITERATION, NO_LEVEL, STREAM_RANK, CallSite
from ranklog.model.index import SiteCount, SiteTimes, StreamEntry, TemplateRows


# --- templates ----------------------------------------------------------------------------------
def template_runs(tids: I32) -> tuple[TemplateRows, ...]:
    """Runs of equal ids, in row order."""
    starts = np.flatnonzero(np.diff(tids, prepend=-1))
    counts = np.diff(np.append(starts, len(tids)))
    return tuple(
        TemplateRows(tid, first, count)
        for tid, first, count in zip(
            tids[starts].tolist(), starts.tolist(), counts.tolist(), strict=True
        )
    )


def longest_by_template(
    rows: Rows, order: I64, tids: I32, longest: npt.NDArray[np.uint8], templates: int
) -> bytes:
    """uint8[templates]: longest mixed token of any row; `longest` is per piece."""
    if rows.has_envelopes:
        longest = np.maximum(longest[::2], longest[1::2])
    found = np.zeros(templates, np.uint8)
    starts = np.flatnonzero(np.diff(tids, prepend=-1))
    if len(starts):
        np.maximum.at(found, tids[starts], np.maximum.reduceat(longest[order], starts))
    return found.tobytes()


# --- streams ------------------------------------------------------------------------------------
def stream_entries(rows: StreamRows, chosen: I64) -> Iterator[tuple[int, StreamEntry]]:
    """(place in rows.streams, entry without fences) per stream; `chosen` in (stream, seq) order."""
    stream, seq, ts = rows.stream[chosen], rows.seq[chosen], rows.ts[chosen]
    starts = np.flatnonzero(np.diff(stream, prepend=-1))
    if not len(starts):
        return
    ends = np.append(starts[1:], len(chosen))
    lengths = rows.offsets[chosen + 1] - rows.offsets[chosen]
    low, high = np.minimum.reduceat(ts, starts).tolist(), np.maximum.reduceat(ts, starts).tolist()
    size = np.add.reduceat(lengths, starts).tolist()
    iterations, own_rank = rows.iteration[chosen], rows.rank[chosen]
    iteration = np.maximum.reduceat(iterations, starts).tolist()
    passes = passes_by_stream(stream, seq, ts, iterations, own_rank)
    ranges = _ranges(stream, seq)
    ranks = _other_ranks(stream, own_rank)
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        place = int(stream[start])
        yield (
            place,
            StreamEntry(
                rows.streams[place],
                rows.stream_ids[place],
                lines=end - start,
                text_bytes=size[i],
                min_ts=low[i],
                max_ts=high[i],
                ranges=ranges[place],
                max_iteration=None if iteration[i] == NO_ITERATION else iteration[i],
                ranks=ranks.get(place, ()),
                passes=passes.get(place, ()),
            ),
        )


def _ranges(stream: I32, seq: I64) -> dict[int, tuple[tuple[int, int], ...]]:
    """Half-open seq ranges by stream, coalesced."""
    breaks = np.ones(len(seq), np.bool_)
    breaks[1:] = (stream[1:] != stream[:-1]) | (seq[1:] != seq[:-1] + 1)
    starts = np.flatnonzero(breaks)
    lasts = np.append(starts[1:], len(seq)) - 1
    found: dict[int, list[tuple[int, int]]] = {}
    places, lows, highs = stream[starts].tolist(), seq[starts].tolist(), (seq[lasts] + 1).tolist()
    for place, low, high in zip(places, lows, highs, strict=True):
        found.setdefault(place, []).append((low, high))
    return {place: tuple(ranges) for place, ranges in found.items()}


def _other_ranks(stream: I32, rank: I32) -> dict[int, tuple[tuple[int, int], ...]]:
    """(rank, lines) by stream of rows that have a rank of their own (NO_RANK is one)."""
    own = np.flatnonzero(rank != STREAM_RANK)
    key = (stream[own].astype(np.int64) << 32) | (rank[own].astype(np.int64) & 0xFFFFFFFF)
    keys, counts = np.unique(key, return_counts=True)
    found: dict[int, list[tuple[int, int]]] = {}
    ranks = (keys & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)
    for place, number, count in zip(
        (keys >> 32).tolist(), ranks.tolist(), counts.tolist(), strict=True
    ):
        found.setdefault(place, []).append((number, count))
    return {place: tuple(sorted(pairs)) for place, pairs in found.items()}


# --- call sites ---------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Cells:
    """Rows by (site, level, template): code of each row, and what each code is."""

    code: I64
    site: list[int]
    level: list[int]
    tid: list[int]


def site_counts(
    rows: Rows, order: I64, tids: I32
) -> tuple[tuple[SiteCount, ...], SiteTimes | None]:
    """Counts by (call site, function, logger, level, template), with lines per rank; and their times,
    where these are worth their bytes."""
    if not len(order):
        return (), None
    cells = _cells(rows, order, tids)
    count = len(cells.site)
    ts, lengths = rows.ts[order], (rows.offsets[1:] - rows.offsets[:-1])[order]
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, -1, np.int64)
    # Rows of a template are contiguous and mostly of one site: few runs, so few scalar updates.
    starts = np.flatnonzero(np.diff(cells.code, prepend=-1))
    np.minimum.at(low, cells.code[starts], np.minimum.reduceat(ts, starts))
    np.maximum.at(high, cells.code[starts], np.maximum.reduceat(ts, starts))
    size = np.zeros(count, np.int64)
    np.add.at(size, cells.code[starts], np.add.reduceat(lengths, starts))
    ranks = _ranks_by_cell(cells.code, effective_rank(rows)[order], count)
    sites = (CallSite(None), *rows.sites)
    found = [
        SiteCount(
            sites[cells.site[i]].site,
            sites[cells.site[i]].function,
            sites[cells.site[i]].logger,
            cells.level[i] if cells.level[i] != NO_LEVEL else None,
            cells.tid[i],
            sum(lines for _, lines in ranks[i]),
            int(size[i]),
            int(low[i]),
            int(high[i]),
            ranks[i],
        )
        for i in range(count)
    ]
    places = sorted(range(count), key=lambda i: _site_order(found[i]))
    return tuple(found[i] for i in places), _site_times(ts, cells.code, places)


def _site_times(ts: I64, code: I64, places: Sequence[int]) -> SiteTimes | None:
    """Lines per site and bucket of time, by the narrowest buckets that are few; None where no width
    has few, or where all lines are in one, which bounds say as well."""
    low, high, most = int(ts.min()), int(ts.max()), len(ts) // SITE_TIMES_ROWS_PER_COUNT
    for width_ns in SITE_TIMES_WIDTHS_NS:
        first, size = low // width_ns, high // width_ns - low // width_ns + 1
        if size <= SITE_TIMES_BUCKETS_MAX and size * len(places) <= most:
            break
    else:
        return None
    if size == 1:
        return None
    key = code * size + (ts // width_ns - first)
    counts = np.bincount(key, minlength=size * len(places)).reshape(-1, size)[places]
    return SiteTimes(width_ns, first, tuple(map(tuple, counts.tolist())))


def _site_order(site: SiteCount) -> tuple[object, ...]:
    names = (site.call_site or "", site.function or "", site.logger or "")
    return (site.tid, *names, -1 if site.level is None else site.level)


def _cells(rows: Rows, order: I64, tids: I32) -> _Cells:
    key = rows.site[order].astype(np.int64) << 32
    key |= tids.astype(np.int64) << 16
    key |= rows.level[order].astype(np.uint16)
    code, keys = factorize(key)
    numbers = keys.astype(np.int64)
    return _Cells(
        code,
        (numbers >> 32).tolist(),
        (numbers & 0xFFFF).astype(np.uint16).astype(np.int16).tolist(),
        ((numbers >> 16) & 0xFFFF).tolist(),
    )


def _ranks_by_cell(
    code: I64, rank: npt.NDArray[np.int32], count: int
) -> Sequence[tuple[tuple[int, int], ...]]:
    """(rank, lines) ascending by rank, per code."""
    place, ranks = factorize(rank)
    by_rank = np.argsort(ranks)
    position = np.empty(len(ranks), np.int64)
    position[by_rank] = np.arange(len(ranks))
    key = code * len(ranks) + position[place]
    keys, lines = _counted(key, count * len(ranks))
    numbers = ranks[by_rank][keys % len(ranks)].tolist()
    edges = np.searchsorted(keys // len(ranks), np.arange(count + 1))
    pairs = list(zip(numbers, lines.tolist(), strict=True))
    return [tuple(pairs[a:b]) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def _counted(key: I64, size: int) -> tuple[I64, I64]:
    """(distinct keys ascending, how often); a dense count where the keys are few."""
    if size <= 4 * len(key) + 1024:
        counts = np.bincount(key, minlength=size)
        keys = np.flatnonzero(counts)
        return keys, counts[keys]
    keys, counts = np.unique(key, return_counts=True)
    return keys, counts
