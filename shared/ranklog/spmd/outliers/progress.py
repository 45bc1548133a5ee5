"""Ranks that fell silent, or stopped counting iterations, while their peers went on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranklog.limits import SECOND_NS
from ranklog.spmd.outliers.consensus import PEERS_MIN, most_deviants
from ranklog.spmd.outliers.evidence import SILENT, Attempt, Evidence
from ranklog.spmd.table import Flags

# Clocks of hosts differ by seconds, and the last words of ranks by what they have to tidy up.
SILENCE_NS_MIN = 60 * SECOND_NS
_SPREADS = 6.0
_SPOKE_SHARE = 0.5
# A rank that names so much of the iterations counts them; being so many behind is no race.
_COUNTS_SHARE = 0.5
_BEHIND_MIN = 2
_ABSENT_WEIGHT, _SILENT_WEIGHT, _BEHIND_WEIGHT = 0.7, 0.65, 0.6


def silences(attempt: Attempt) -> Iterator[Evidence]:
    """Ranks without a line where nearly all have some; ranks that end early."""
    speaking = attempt.speaking
    count = int(speaking.sum())
    if count < PEERS_MIN:
        return
    mute = np.flatnonzero(~speaking)
    if len(mute) and len(mute) <= most_deviants(attempt.count):
        typical = int(np.median(attempt.lines[speaking]))
        for place in mute.tolist():
            yield Evidence(SILENT, attempt.rank(place), _ABSENT_WEIGHT, expected=typical, got=0)
    yield from _early(attempt)
    yield from _behind(attempt)


def _early(attempt: Attempt) -> Iterator[Evidence]:
    last = attempt.latest(attempt.table.ts_ns)
    places = np.flatnonzero(attempt.speaking)
    times = last[places]
    middle = np.median(times)
    spread = 1.4826 * np.median(np.abs(times - middle))
    limit = max(SILENCE_NS_MIN, _SPREADS * spread)
    first = -attempt.latest(-attempt.table.ts_ns)[places]
    lag = middle - times
    # who only spoke at the start has nothing to fall silent from
    early = places[(lag > limit) & (times - first >= _SPOKE_SHARE * lag)]
    late = times[lag <= limit]
    if not len(early) or len(early) > most_deviants(len(places)):
        return
    # the others must agree: a quarter that also stopped long ago is no consensus
    if middle - np.quantile(late, 0.25) > limit / 2:
        return
    for place in early.tolist():
        lag_s = float(middle - last[place]) / SECOND_NS
        yield Evidence(
            SILENT,
            attempt.rank(place),
            _SILENT_WEIGHT,
            ts_ns=int(last[place]),
            expected="lines go on",
            got=f"last line {lag_s:.0f} s before its peers'",
            ids=_last_line(attempt, place, int(last[place])),
        )


def _last_line(attempt: Attempt, place: int, ns: int) -> tuple[tuple[str, int], ...]:
    rows = np.flatnonzero((attempt.place == place) & (attempt.table.ts_ns == ns))
    return (attempt.table.id_of(int(rows[-1])),) if attempt.table.streams else ()


def _behind(attempt: Attempt) -> Iterator[Evidence]:
    table = attempt.table
    named = table.iteration >= 0
    if not named.any():
        return
    last = attempt.latest(table.iteration, -1)
    lowest = int(table.iteration[named].min())
    width = int(table.iteration[named].max()) - lowest + 1
    if width * attempt.count > 50_000_000:
        return
    cells = np.zeros((attempt.count, width), np.bool_)
    cells[attempt.place[named], table.iteration[named] - lowest] = True
    counted = cells.sum(axis=1)
    counting = np.flatnonzero(counted >= _COUNTS_SHARE * max(1, counted.max()))
    if len(counting) < PEERS_MIN:
        return
    usual = int(np.median(last[counting]))
    behind = [p for p in counting.tolist() if usual - int(last[p]) >= _BEHIND_MIN * _step(cells)]
    if not behind or len(behind) > most_deviants(len(counting)):
        return
    for place in behind:
        yield Evidence(
            SILENT,
            attempt.rank(place),
            _BEHIND_WEIGHT,
            iteration=int(last[place]),
            expected=usual,
            got=int(last[place]),
        )


def _step(cells: Flags) -> int:
    """Iterations between two that are named: some frameworks log every tenth."""
    named = np.flatnonzero(cells.any(axis=0))
    return int(np.median(np.diff(named))) if len(named) > 1 else 1
