"""Numbers in lines of one key: what one rank has and its peers have not, or not so high.

A *sample* is one rank's line of a key at an iteration; its numbers stand by position.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.spmd.outliers.consensus import PEERS_MIN, most_deviants
from ranklog.spmd.outliers.evidence import CHANGE, SLOW, Attempt, Evidence
from ranklog.spmd.table import ABSENT, I64, Flags
from ranklog.spmd.variables import split, variable

F64 = npt.NDArray[np.float64]

# Keys and lines whose text is read.
KEYS_MAX = 24
LINES_MAX = 30_000
_LINES_PER_KEY_MAX = 6_000
_POSITIONS_MAX = 12
STAGE = "pp"
_PLACEHOLDER = "\x00"
# A time is slow from this share over its peers' median on, and so many times their spread.
_SLOW_SHARE = 0.15
_SPREADS = 6.0
_SAMPLES_MIN = 4
# A value that all peers share and one has not.
_SHARED = 0.95
_CHANGE_WEIGHT, _SLOW_WEIGHT, _ASTRAY_WEIGHT = 0.2, 0.65, 0.3
_WAITING = re.compile(r"wait|barrier|reduce|gather|recv|send|comm|all.?to.?all|sync", re.I)
_TIME = re.compile(
    r"time|elapsed|duration|latency|took|forward|backward|compute|fwd|bwd|(?:\b|_)ms\b|secs?\b",
    re.I,
)
_WORD = re.compile(r"[A-Za-z_][\w./%-]*")
_NAME_WORDS = 3
_UNIT = re.compile(r" ?(ms|us|s|secs?|seconds|[A-Za-z]+/s(?:ec)?|tflops?)\b(?!\s*[:=])", re.I)
_RATE = re.compile(r"per.?s(?:ec)?\b|/s(?:ec)?\b|throughput|tflops?|\btps\b|speed|\bmfu\b", re.I)


@dataclass(frozen=True, slots=True)
class Sample:
    """`row` in the attempt's table; `body`: the text without envelopes."""

    row: int
    body: str


def wanted_rows(attempt: Attempt) -> I64:
    """Rows whose text tells numbers that peers have too: of some keys, at iterations evenly chosen."""
    table = attempt.table
    count = len(table.keys)
    lines = np.bincount(table.key, minlength=count)
    order = [k for k in np.argsort(-lines, kind="stable").tolist() if lines[k] >= PEERS_MIN]
    chosen: list[I64] = []
    taken = 0
    for key in order[: 8 * KEYS_MAX]:
        if len(chosen) >= KEYS_MAX or taken >= LINES_MAX:
            break
        template = table.keys[key].template
        if _PLACEHOLDER not in template or template[:1].isspace():
            continue
        rows = np.flatnonzero(table.key == key)
        if not _is_shared(attempt, rows):
            continue
        rows = _thinned(attempt, rows, min(_LINES_PER_KEY_MAX, LINES_MAX - taken))
        chosen.append(rows)
        taken += len(rows)
    return np.concatenate(chosen) if chosen else np.empty(0, np.int64)


def _is_shared(attempt: Attempt, rows: I64) -> bool:
    sayers = np.bincount(attempt.place[rows], minlength=attempt.count) > 0
    return bool(sayers.sum() >= max(PEERS_MIN, 0.5 * attempt.speaking.sum()))


def _thinned(attempt: Attempt, rows: I64, most: int) -> I64:
    """Of all ranks at some iterations, the last among them; without iterations each rank's first."""
    if len(rows) <= most:
        return rows
    iterations = attempt.table.iteration[rows]
    numbers = np.unique(iterations[iterations >= 0])
    if len(numbers) < 2:
        _, first = np.unique(attempt.place[rows], return_index=True)
        return rows[first][:most]
    wide = max(1, most // max(1, len(rows) // len(numbers)))
    picked = numbers[np.unique(np.linspace(0, len(numbers) - 1, wide).astype(np.int64))]
    return rows[np.isin(iterations, picked)][:most]


def deviations(attempt: Attempt, samples: Sequence[Sample]) -> Iterator[Evidence]:
    """What differs, per key, position and rank."""
    by_key: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_key[int(attempt.table.key[sample.row])].append(sample)
    for key, found in by_key.items():
        yield from _of_key(attempt, key, found)


def _of_key(attempt: Attempt, key: int, samples: Sequence[Sample]) -> Iterator[Evidence]:
    parts = [split(sample.body) for sample in samples]
    width = min(_POSITIONS_MAX, min(map(len, parts)))
    rows = np.array([sample.row for sample in samples])
    place = attempt.place[rows]
    at = _moments(attempt, rows)
    for position in range(width):
        if variable(parts[0][position]).clock:
            continue
        numbers = np.array([_number(part[position]) for part in parts])
        name = _name(parts[0], position)
        yield from _of_position(attempt, key, name, numbers, place, at, rows)


def _number(match: re.Match[str]) -> float:
    """NaN for what is no number, or none that can be compared."""
    found = variable(match).number
    try:
        value = np.nan if found is None else float(found)
    except OverflowError:
        return np.nan
    return value if np.isfinite(value) else np.nan


def _name(parts: Sequence[re.Match[str]], position: int) -> str:
    """The last words before a number, and the unit after it."""
    here = parts[position]
    before = here.string[parts[position - 1].end() if position else 0 : here.start()]
    earlier = _UNIT.match(before) if position else None
    words = _WORD.findall(before[earlier.end() :] if earlier else before)
    unit = _UNIT.match(here.string, here.end())
    return " ".join([*words[-_NAME_WORDS:], *([unit[1]] if unit else [])])


def _moments(attempt: Attempt, rows: I64) -> I64:
    """Lines to hold beside each other: of one iteration, else each rank's first, second, … of the key."""
    iteration = attempt.table.iteration[rows]
    if (iteration >= 0).all():
        return iteration
    order = np.lexsort((attempt.table.ts_ns[rows], attempt.place[rows]))
    place = attempt.place[rows][order]
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    sizes = np.diff(np.append(starts, len(place)))
    number = np.empty(len(rows), np.int64)
    number[order] = np.arange(len(rows)) - np.repeat(starts, sizes)
    return number


def _of_position(
    attempt: Attempt, key: int, name: str, numbers: F64, place: I64, at: I64, rows: I64
) -> Iterator[Evidence]:
    moments, column = np.unique(at, return_inverse=True)
    cells = np.full((attempt.count, len(moments)), np.nan)
    cells[place, column] = numbers
    shown = np.full((attempt.count, len(moments)), ABSENT, np.int64)
    shown[place, column] = rows
    for members in _peers(attempt):
        present = np.isfinite(cells) & members[:, None]
        peers = np.flatnonzero(present.any(axis=1))
        full = present.sum(axis=0) >= PEERS_MIN
        if len(peers) < PEERS_MIN or not full.any():
            continue
        part = cells[:, full]
        middle = np.nanmedian(part[peers], axis=0)
        for odd, kind, weight, got, expected, where in _odd(part, peers, middle, name):
            row = int(shown[:, full][odd, where])
            iteration = int(attempt.table.iteration[row])
            yield Evidence(
                kind,
                attempt.rank(odd),
                weight,
                key,
                None if iteration < 0 else iteration,
                int(attempt.table.ts_ns[row]),
                expected,
                got,
                name or None,
                (attempt.table.id_of(row),) if attempt.table.streams else (),
            )


def _peers(attempt: Attempt) -> list[Flags]:
    """Ranks to hold beside each other: stages of a pipeline do unlike work."""
    every = [np.ones(attempt.count, np.bool_)]
    if STAGE not in attempt.topology.parallel:
        return every
    classes = attempt.topology.classes(STAGE)
    return classes if all(members.sum() >= PEERS_MIN for members in classes) else every


def _odd(
    cells: F64, peers: I64, middle: F64, name: str
) -> Iterator[tuple[int, str, float, float, float, int]]:
    """(place, kind, weight, got, expected, moment) of ranks that stand apart."""
    sign, count = _direction(name), len(middle)
    # all along, or since some time
    starts = () if not sign or count < _SAMPLES_MIN else (0, count // 2)
    for start in starts if count >= 2 * _SAMPLES_MIN else starts[:1]:
        found = list(_slow(cells[:, start:], peers, middle[start:], sign))
        if found:
            for place, kind, weight, got, expected, where in found:
                yield place, kind, weight, got, expected, where + start
            return
    if _is_constant(cells, peers, middle):
        yield from _unlike(cells, peers, middle)


def _slow(
    cells: F64, peers: I64, middle: F64, sign: int
) -> Iterator[tuple[int, str, float, float, float, int]]:
    """Ranks that lie on the slow side, and nearly always."""
    apart = sign * (cells[peers] - middle)
    typical = np.array([_median(row) for row in apart])
    samples = np.isfinite(apart).sum(axis=1)
    scale = float(np.median(np.abs(middle)))
    spread = 1.4826 * float(np.median(np.abs(typical - np.median(typical))))
    limit = max(_SLOW_SHARE * scale, _SPREADS * spread)
    if not limit:
        return
    odd = np.flatnonzero((typical > limit) & (samples >= min(_SAMPLES_MIN, len(middle))))
    steady = [i for i in odd.tolist() if _is_steady(apart[i], limit / 2)]
    if len(steady) > most_deviants(len(peers)):
        return
    for i in steady:
        got = round(scale + sign * float(typical[i]), 6)
        where = int(np.argmax(apart[i] > limit / 2))  # since then
        yield int(peers[i]), SLOW, _SLOW_WEIGHT, got, round(scale, 6), where


def _direction(name: str) -> int:
    """1: more is slower; -1: less is; 0: it says nothing of speed."""
    if _RATE.search(name):
        return -1
    if not _TIME.search(name):
        return 0
    # who is late waits least
    return -1 if _WAITING.search(name) else 1


def _is_steady(apart: F64, limit: float) -> bool:
    known = apart[np.isfinite(apart)]
    return bool((known > limit).mean() >= 0.75)


def _median(row: F64) -> float:
    known = row[np.isfinite(row)]
    return float(np.median(known)) if len(known) else 0.0


def _is_constant(cells: F64, peers: I64, middle: F64) -> bool:
    """Whether nearly all ranks have one value at each moment."""
    known = np.isfinite(cells[peers])
    same = cells[peers] == middle
    share = min(_SHARED, 1 - 1.5 / len(peers))
    return bool((same & known).sum() >= share * known.sum() and known.sum() >= PEERS_MIN)


def _unlike(
    cells: F64, peers: I64, middle: F64
) -> Iterator[tuple[int, str, float, float, float, int]]:
    off = np.isfinite(cells[peers]) & (cells[peers] != middle)
    odd = np.flatnonzero(off.any(axis=1))
    if len(odd) > max(1, most_deviants(len(peers)) / 2):
        return
    for i in odd.tolist():
        where = int(np.argmax(off[i]))
        lasting = off[i].sum() >= 0.5 * np.isfinite(cells[peers[i]]).sum()
        weight = (_ASTRAY_WEIGHT if lasting else _CHANGE_WEIGHT) * len(odd) ** -0.5
        yield (
            int(peers[i]),
            CHANGE,
            weight,
            float(cells[peers[i], where]),
            float(middle[where]),
            where,
        )
