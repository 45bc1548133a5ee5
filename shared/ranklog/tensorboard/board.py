"""Runs and tags of TensorBoard out of series: which there are, and their points, thinned out.

A run of the board is a rank of an attempt of a launch, `llama-8b@7f3a/0/rank 3`, or a host of it; a tag
is a series with its dimensions, `grad_norm/layer=h.3`. A point without an iteration stands at the
second since its run began.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ranklog.client import Client
from ranklog.client.series_answer import SeriesAnswer
from ranklog.limits import SERIES_POINTS_MIN
from ranklog.plan.lexer import quote
from ranklog.telemetry.table import ABSENT, I64, PointTable

Kind = Literal["scalars", "histograms"]
Place = tuple[str, str]  # run and tag
# A listing is used again for so long: a page asks for several at once.
FRESH_S = 5.0
# What one query can name (ranklog.limits has the limits of a query).
_NAMES_MAX, _NAMES_BYTES_MAX = 40, 4096
# Restrictions that say which runs, and leave a run's attempts as they are.
_OF_RUNS = ("run", "since", "until", "last", "tz")


@dataclass(slots=True)
class Listed:
    """One tag of one run: its series, and how far it has come."""

    series: str
    kind: Kind
    attempt: int
    step_max: int
    time_max_s: float


@dataclass(slots=True)
class Listing:
    """What there is. `began_ns` run -> its first point."""

    tags: dict[Kind, dict[Place, Listed]] = field(
        default_factory=lambda: {"scalars": {}, "histograms": {}}
    )
    began_ns: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Course:
    """Points of a tag: steps ascending, seconds since the epoch, and values or summaries."""

    steps: list[int]
    times_s: list[float]
    values: list[Any]


class Board:
    """Series of a client, in a scope (`query`, run and other restrictions)."""

    def __init__(
        self,
        client: Client,
        query: str = "",
        restrictions: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._query = query
        self._restrictions: dict[str, Any] = dict(restrictions or {})
        self._clock = clock
        self._lock = threading.Lock()
        self._listing = Listing()
        self._listed_s = -FRESH_S

    @property
    def name(self) -> str:
        """What the board shows."""
        run = self._restrictions.get("run")
        return " ".join(filter(None, [str(run or "all runs"), self._query]))

    def listing(self) -> Listing:
        """All runs and tags; at most `FRESH_S` old. Raises RanklogError."""
        with self._lock:
            if self._clock() - self._listed_s >= FRESH_S:
                self._listing = self._list()
                self._listed_s = self._clock()
            return self._listing

    def read(
        self, kind: Kind, runs: Iterable[str] | None, tags: Iterable[str] | None, most: int
    ) -> Iterator[tuple[Place, Course]]:
        """Points of the tags asked for (None: all), at most about `most` of each. Raises RanklogError."""
        listing = self.listing()
        in_runs = None if runs is None else set(runs)
        in_tags = None if tags is None else set(tags)
        wanted = {
            place: listed
            for place, listed in listing.tags[kind].items()
            if (in_runs is None or place[0] in in_runs) and (in_tags is None or place[1] in in_tags)
        }
        for attempt in sorted({listed.attempt for listed in wanted.values()}):
            names = {one.series for one in wanted.values() if one.attempt == attempt}
            for together in _together(names):
                query = f"({self._query or '*'}) series:{together}"
                for run, tag, part in _parts(self._series(query, attempt, most)):
                    if (run, tag) in wanted and part.kind == kind:
                        yield (run, tag), part.course(listing.began_ns[run])

    def _series(self, query: str, attempt: int, most: int) -> SeriesAnswer:
        """Of one attempt: each is a run of its own, also where a later one did its iterations again."""
        scope = {**self._restrictions, "attempt": str(attempt)}
        most = max(most, SERIES_POINTS_MIN)
        return self._client.series(query, max_points=most, superseded=True, **scope)

    def _list(self) -> Listing:
        found = Listing()
        for attempt in self._attempts():
            for run, tag, part in _parts(self._series(self._query, attempt, SERIES_POINTS_MIN)):
                began = min(found.began_ns.get(run, part.began_ns), part.began_ns)
                found.began_ns[run] = began
                found.tags[part.kind][run, tag] = Listed(
                    part.series, part.kind, attempt, part.step_max(began), part.last_s
                )
        return found

    def _attempts(self) -> list[int]:
        chosen = self._restrictions.get("attempt")
        if chosen is not None and str(chosen).isdecimal():
            return [int(chosen)]
        scope = {name: v for name, v in self._restrictions.items() if name in _OF_RUNS}
        rows = self._client.runs(**scope).rows
        return sorted({attempt["attempt"] for row in rows for attempt in row["attempts"]})


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one series in one attempt: either its scalars or its summaries."""

    series: str
    kind: Kind
    table: PointTable
    rows: I64

    @property
    def began_ns(self) -> int:
        return int(self.table.ts_ns[self.rows].min())

    @property
    def last_s(self) -> float:
        return int(self.table.ts_ns[self.rows].max()) / 1e9

    def step_max(self, began_ns: int) -> int:
        return int(self._steps(began_ns).max())

    def course(self, began_ns: int) -> Course:
        steps = self._steps(began_ns)
        # What was done again after a restart within the attempt comes last, and counts.
        order = np.lexsort((self.table.ts_ns[self.rows], steps))
        last = np.append(np.diff(steps[order]) > 0, True)
        kept = order[last]
        rows = self.rows[kept]
        return Course(
            steps[kept].tolist(),
            (self.table.ts_ns[rows] / 1e9).tolist(),
            self._values(rows),
        )

    def _steps(self, began_ns: int) -> I64:
        iterations = self.table.iteration[self.rows]
        seconds = (self.table.ts_ns[self.rows] - began_ns) // 10**9
        steps: I64 = np.where(iterations == ABSENT, seconds, iterations)
        return steps

    def _values(self, rows: I64) -> list[Any]:
        if self.kind == "scalars":
            values: list[float] = self.table.value[rows].tolist()
            return values
        from ranklog.client.series_answer import summary_of

        return [summary_of(self.table, int(row)) for row in rows]


def _parts(answer: SeriesAnswer) -> Iterator[tuple[str, str, _Part]]:
    """(run, tag, part) for every attempt of every series; what was not measured is no point."""
    table = answer.points.table
    summary = np.full(len(table), -1) if table.summary is None else table.summary
    for group, one in enumerate(answer):
        span = answer.points.rows(group)
        rows = np.arange(span.start, span.stop, dtype=np.int64)
        tag = "/".join([one.name, *(f"{key}={value}" for key, value in one.dims.items())])
        who = f"rank {one.rank}" if one.rank is not None else f"host {one.host}"
        for attempt in np.unique(table.attempt[rows]).tolist():
            ours = rows[table.attempt[rows] == attempt]
            run = f"{one.run_id}/{attempt}/{who}"
            is_summary = summary[ours] >= 0
            scalars = ours[~is_summary & ~table.missing[ours]]
            if len(scalars):
                yield run, tag, _Part(one.name, "scalars", table, scalars)
            if is_summary.any():
                yield run, tag, _Part(one.name, "histograms", table, ours[is_summary])


def _together(names: Iterable[str]) -> Iterator[str]:
    """Names as values of one field, as many as a query can hold."""
    line: list[str] = []
    size = 0
    for name in sorted(names):
        quoted = quote(name)
        if line and (len(line) >= _NAMES_MAX or size + len(quoted) > _NAMES_BYTES_MAX):
            yield ",".join(line)
            line, size = [], 0
        line.append(quoted)
        size += len(quoted.encode()) + 1
    if line:
        yield ",".join(line)
