"""Drifts and plateaus: which way a series goes, by medians of blocks and robust slopes.

A series becomes medians of blocks of BLOCK values (and of four times as many, as long as that leaves
enough blocks): spikes fall out, and correlated noise is measured where it counts, by how much
neighbouring blocks differ. In each window of WINDOW blocks the Theil-Sen slope (Sen, JASA 1968) says how
far the series moves; over MOVE_FACTOR times that noise it moves.

- drift: a stretch that moves, behind a window in which the series did not move that way, and not the way
  that is better.
- plateau: a series that moved from its start on, at one rate, and then moves less than STALL_SHARE of
  that, as far as that can be told from noise; or one value again and again in a series that varies.

Shapes: S series of n finite values, float64[S, n].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ranklog.telemetry.table import F64, I64, Mask

BLOCK = 12
WINDOW = 8
MOVE_FACTOR = 5.5
STALL_SHARE = 0.35
# The rate before a stop is at least this share of what it was.
_STEADY_SHARE = 0.7
# A plateau is at least so many windows long, and what it ends moved by at least so many noises.
_STALL_WINDOWS = 4
_TREND_FACTOR = 7.0
_BLOCKS_MIN = 2 * WINDOW
# So many equal values, one behind the other, in a series of which at most this share repeats.
_FROZEN_VALUES = 16
_REPEATS_MAX = 0.2
_PAIRS = list(combinations(range(WINDOW), 2))
_FLOOR = 1e-9


@dataclass(frozen=True, slots=True)
class Movement:
    """Of one series (its position), values first..last (inclusive)."""

    kind: str
    series: int
    first: int
    last: int
    value: float
    baseline: float
    score: float


@dataclass(frozen=True, slots=True)
class _Scale:
    """`medians` float64[S, blocks]; `moved` float64[S, windows], in noises, with its sign."""

    block: int
    medians: F64
    moved: F64


def movements(value: F64, better: I64) -> list[Movement]:
    """Drifts and plateaus of all series. `better` int64[S]: the way (-1, 1) that is no drift."""
    found: list[Movement] = []
    stuck = list(_frozen(value))
    block = BLOCK
    while value.shape[1] // block >= _BLOCKS_MIN:
        scale = _scale(value, block)
        for series in range(len(value)):
            found += _drifts(scale, series, int(better[series]))
            found += _plateaus(scale, series)
        block *= 4
    found = [one for one in found if not any(_meet(one, other) for other in stuck)]
    return _without_doubles([*stuck, *found])


def _scale(value: F64, block: int) -> _Scale:
    blocks = value.shape[1] // block
    cut = value[:, : blocks * block].reshape(len(value), blocks, block)
    medians = np.median(cut, axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(medians, WINDOW, axis=1)
    slopes = np.stack([(windows[..., j] - windows[..., i]) / (j - i) for i, j in _PAIRS], axis=-1)
    moved = np.median(slopes, axis=-1) * (WINDOW - 1)
    # differences of second order: a steady trend adds nothing to them
    jumps = medians[:, 2:] - 2 * medians[:, 1:-1] + medians[:, :-2]
    noise = 1.4826 * np.median(np.abs(jumps), axis=1) / np.sqrt(6)
    inner = np.median(np.abs(cut - medians[..., None]), axis=(1, 2)) * 1.4826
    noise = np.maximum(noise, 1.2 * inner / np.sqrt(block))
    noise = np.maximum(noise, _FLOOR * np.maximum(np.abs(medians).max(axis=1), _FLOOR))
    return _Scale(block, medians, moved / noise[:, None])


def _runs(hit: Mask) -> list[tuple[int, int]]:
    """First and last position of each run of hits."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], hit.astype(np.int8), [0]])))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


def _drifts(scale: _Scale, series: int, better: int) -> Iterator[Movement]:
    moved = scale.moved[series]
    for way in (-1, 1):
        if way == better:
            continue
        for first, last in _runs(way * moved > MOVE_FACTOR):
            if first < WINDOW // 2:
                continue  # from the start on: this is how the series is
            yield _drift(scale, series, first, last)


def _drift(scale: _Scale, series: int, first: int, last: int) -> Movement:
    """Windows first..last; the blocks in which it moved are those of their middle."""
    margin = WINDOW // 4
    begin, end = first + margin, last + WINDOW - 1 - margin
    medians = scale.medians[series]
    score = float(np.abs(scale.moved[series, first : last + 1]).max())
    baseline = float(np.median(medians[max(0, first - WINDOW) : first + 1]))
    return Movement(
        "drift", series, begin * scale.block, (end + 1) * scale.block - 1,
        float(medians[end]), baseline, score,
    )  # fmt: skip


def _plateaus(scale: _Scale, series: int) -> Iterator[Movement]:
    """Behind a trend that was there from the start and went on at one rate until it stopped: a decay
    that slows down by and by is none."""
    moved = scale.moved[series]
    for way in (-1, 1):
        going = way * moved
        trend = going > _TREND_FACTOR
        if not trend[:WINDOW].any():
            continue
        stalled = (going < STALL_SHARE * np.median(going[trend])) & (np.abs(moved) < MOVE_FACTOR)
        for first, last in _runs(stalled):
            rate = _steady_rate(going[:first])
            if rate is None or last - first + 1 < _STALL_WINDOWS:
                continue
            begin, end = first + 1, last + WINDOW - 2
            medians = scale.medians[series]
            yield Movement(
                "plateau", series, begin * scale.block, (end + 1) * scale.block - 1,
                float(medians[end]), float(medians[max(0, first - 1)]), rate,
            )  # fmt: skip


def _steady_rate(going: F64) -> float | None:
    """The rate of a trend that ends here, without the windows in which it ends; None: there is no
    steady one."""
    before = going[:-WINDOW]
    if len(before) < 2 * WINDOW:
        return None
    early, late = np.median(before[: len(before) // 2]), np.median(before[-WINDOW // 2 :])
    if early <= _TREND_FACTOR or late < _STEADY_SHARE * early:
        return None
    return float(late)


def _frozen(value: F64) -> Iterator[Movement]:
    if value.shape[1] <= _FROZEN_VALUES:
        return
    same = value[:, 1:] == value[:, :-1]
    for series in np.flatnonzero(same.any(axis=1)).tolist():
        runs = [(a, b + 1) for a, b in _runs(same[series]) if b + 2 - a >= _FROZEN_VALUES]
        inside = sum(b - a for a, b in runs)
        others = value.shape[1] - inside
        if others < inside or same[series].sum() - inside > _REPEATS_MAX * others:
            continue  # a count, or a rate that is set step by step
        for first, last in runs:
            if last - first + 1 < value.shape[1]:
                at = float(value[series, first])
                yield Movement("plateau", series, first, last, at, at, float(last - first + 1))


def _without_doubles(found: list[Movement]) -> list[Movement]:
    """One of those that several scales see, the shortest: it says best where."""
    kept: list[Movement] = []
    for one in sorted(found, key=lambda m: (m.series, m.kind, m.last - m.first)):
        if not any(k.kind == one.kind and _meet(k, one) for k in kept):
            kept.append(one)
    return kept


def _meet(one: Movement, other: Movement) -> bool:
    return one.series == other.series and one.first <= other.last and other.first <= one.last
