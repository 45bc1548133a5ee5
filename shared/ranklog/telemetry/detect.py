"""What happens in a series: spikes, drifts, plateaus, stretches that are no numbers. Robust, many at once.

Shapes: g groups of `table.Grouped`. Everything is measured against the series itself, so a noisy series
needs a larger movement than a calm one:

- spike: a value farther from the running median of the values before it *and* of those behind it than
  SPIKE_FACTOR running standard deviations (1.4826 MAD): a step is no spike.
- drift, plateau: see `trend`.
- nan: a stretch of NaN or infinite values in a series that has numbers, too. What was not measured is no
  NaN, and a series that is nothing but NaN says only that its writer never had a number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranklog.limits import SPIKE_WINDOW_VALUES, SPIKE_WINDOW_VALUES_MIN
from ranklog.telemetry.running import running
from ranklog.telemetry.spikes import SPREAD_FLOOR
from ranklog.telemetry.table import F64, I64, Grouped, Mask
from ranklog.telemetry.trend import movements

SPIKE_FACTOR = 8.25
_SIGMA = 1.4826  # standard deviations of a normal distribution in its MAD
_NORMAL_98 = 2.326
# Rows between two that stand out and still are one event.
_GAP_ROWS = 3
KINDS = ("spike", "drift", "plateau", "nan")


@dataclass(frozen=True, slots=True)
class Event:
    """Rows first..last (inclusive) of the grouped table. `value` is the farthest of them, `baseline` what
    it is held against, `score` how many standard deviations lie between."""

    kind: str
    group: int
    first: int
    last: int
    value: float
    baseline: float
    score: float


def detect(
    points: Grouped, kinds: Collection[str] = KINDS, better: Sequence[int] | None = None
) -> list[Event]:
    """Events by group and place. `better` per group: -1 down, 1 up is an improvement and no drift."""
    events: list[Event] = []
    if "nan" in kinds:
        events += _no_numbers(points)
    if "spike" in kinds:
        events += _spikes(points)
    if {"drift", "plateau"} & set(kinds):
        events += _trends(points, kinds, better)
    return sorted(events, key=lambda e: (e.group, e.first, e.kind))


def stretches(hit: Mask, starts: I64, gap: int = 1) -> list[tuple[int, int, int]]:
    """(group, first row, last row) of hits that lie at most `gap` rows apart."""
    rows = np.flatnonzero(hit)
    if not len(rows):
        return []
    group = np.searchsorted(starts, rows, side="right") - 1
    new = np.append(True, (np.diff(rows) > gap) | (np.diff(group) > 0))
    first = rows[new]
    last = rows[np.append(new[1:], True)]
    return list(zip(group[new].tolist(), first.tolist(), last.tolist(), strict=True))


def _no_numbers(points: Grouped) -> list[Event]:
    table, starts = points.table, points.starts
    if not len(table):
        return []
    has = np.add.reduceat(table.finite.astype(np.int64), starts[:-1]) > 0
    hit = ~np.isfinite(table.value) & ~table.missing & np.repeat(has, np.diff(starts))
    return [
        Event("nan", group, first, last, float(table.value[first]), float("nan"), float("inf"))
        for group, first, last in stretches(hit, starts)
    ]


def _spikes(points: Grouped) -> list[Event]:
    value, starts = _numbers(points), points.starts
    before, spread = _baseline(value, starts)
    # the same, read from the end: rows and groups both turned round
    behind, spread_behind = (
        found[::-1] for found in _baseline(value[::-1], (len(value) - starts)[::-1])
    )
    usual = _usual(spread, starts)
    with np.errstate(invalid="ignore"):
        far = np.abs(value - before) / np.maximum(spread, usual)
        far_behind = np.abs(value - behind) / np.maximum(spread_behind, usual)
        # without enough values before it, a first value is a beginning and no spike
        score = np.where(np.isnan(far), np.nan, np.fmin(far, far_behind))
        hit: Mask = score > SPIKE_FACTOR * _heaviness(far, starts)
    events = []
    for group, first, last in stretches(hit, starts, _GAP_ROWS):
        at = first + int(np.nanargmax(score[first : last + 1]))
        events.append(
            Event(
                "spike", group, first, last, float(value[at]), float(before[at]), float(score[at])
            )
        )
    return events


def _baseline(value: F64, starts: I64) -> tuple[F64, F64]:
    """(where the values before lead to, spread of what is left): a decay lies above the values to come by
    about as much as it did before, so how far values were from the median is looked at, not they."""
    middle, spread = running(value, starts, SPIKE_WINDOW_VALUES, SPIKE_WINDOW_VALUES_MIN)
    away, spread_away = running(
        value - middle, starts, SPIKE_WINDOW_VALUES, SPIKE_WINDOW_VALUES_MIN
    )
    known = ~np.isnan(away)
    middle = np.where(known, middle + away, middle)
    spread = np.where(known, spread_away, spread)
    return middle, np.maximum(_SIGMA * spread, SPREAD_FLOOR * np.abs(middle))


def _usual(spread: F64, starts: I64) -> F64:
    """Half the median spread of each row's series: while a value is stuck, its spread is none."""
    halves = [
        0.5 * np.nanmedian(part) if np.isfinite(part).any() else 0.0
        for part in np.split(spread, starts[1:-1])
    ]
    return np.repeat(np.array(halves, np.float64), np.diff(starts))


def _heaviness(far: F64, starts: I64) -> F64:
    """How much farther than in normal noise a series' outer values lie, 1 to 1.5: the fiftieth part of them
    that lies farthest says so, and no spike reaches so many."""
    shares = [
        np.clip(np.nanquantile(part, 0.98) / _NORMAL_98, 1, 1.5) if np.isfinite(part).any() else 1.0
        for part in np.split(far, starts[1:-1])
    ]
    return np.repeat(np.array(shares, np.float64), np.diff(starts))


def _numbers(points: Grouped) -> F64:
    """Values, NaN for everything that is no number."""
    found: F64 = np.where(points.table.finite, points.table.value, np.nan)
    return found


def _trends(points: Grouped, kinds: Collection[str], better: Sequence[int] | None) -> list[Event]:
    """Series of one length are looked at together."""
    finite = points.table.finite
    rows = np.flatnonzero(finite).astype(np.int64)
    group = np.searchsorted(points.starts, rows, side="right") - 1
    counts = np.bincount(group, minlength=len(points))
    first = np.cumsum(counts) - counts
    wanted = np.zeros(len(points), np.int64) if better is None else np.asarray(better, np.int64)
    events: list[Event] = []
    for count in np.unique(counts[counts > 0]).tolist():
        members = np.flatnonzero(counts == count)
        places = rows[first[members][:, None] + np.arange(count)]
        found = movements(points.table.value[places], wanted[members])
        events += [
            Event(
                one.kind,
                int(members[one.series]),
                int(places[one.series, one.first]),
                int(places[one.series, one.last]),
                one.value,
                one.baseline,
                one.score,
            )
            for one in found
            if one.kind in kinds
        ]
    return events


def event_rows(points: Grouped, events: Sequence[Event]) -> list[dict[str, Any]]:
    """Where each event begins and ends, in iterations and time."""
    table = points.table
    return [
        {
            "kind": event.kind,
            "group": event.group,
            "rows": (event.first, event.last),
            "iterations": (int(table.iteration[event.first]), int(table.iteration[event.last])),
            "ts_ns": (int(table.ts_ns[event.first]), int(table.ts_ns[event.last])),
            "value": event.value,
            "baseline": event.baseline,
            "score": event.score,
        }
        for event in events
    ]
