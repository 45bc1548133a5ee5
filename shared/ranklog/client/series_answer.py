"""Series in hand: points grouped, with what was left out, what was found in them, and how complete."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ranklog.answer.render import completeness_json, json_number, render_time, report_json
from ranklog.client.answer import Tabular
from ranklog.model.answer import Completeness, Report
from ranklog.telemetry.names import unit_of
from ranklog.telemetry.table import (
    ABSENT,
    F64,
    I64,
    SUMMARIES,
    Grouped,
    Mask,
    PointTable,
    empty_table,
    grouped,
)


@dataclass(frozen=True, slots=True)
class Series:
    """One series: its identity, and columns of its points in order. `iteration` and `rank` None, and
    `iterations` None where points have none; `values` NaN where `missing`, too. `read`: how many points
    there are, some of which may have been left out."""

    name: str
    run_id: str
    rank: int | None
    host: str | None
    dims: dict[str, Any]
    unit: str
    written: tuple[str, ...]
    iterations: I64 | None
    ts_ns: I64
    values: F64
    missing: Mask
    attempts: I64
    read: int
    events: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, I64] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> list[float]:
        """The values that are numbers."""
        found: list[float] = self.values[np.isfinite(self.values) & ~self.missing].tolist()
        return found

    @property
    def label(self) -> str:
        """`loss rank 3 layer=h.7`: what tells it from the others of an answer."""
        parts = [self.name] + ([] if self.rank is None else [f"rank {self.rank}"])
        parts += [self.host] if self.rank is None and self.host else []
        return " ".join([*parts, *(f"{key}={value}" for key, value in self.dims.items())])

    def to_json(self) -> dict[str, Any]:
        """Columns: a series as one object."""
        return {
            "series": self.name,
            "run_id": self.run_id,
            "rank": self.rank,
            "host": self.host,
            "dims": self.dims,
            "unit": self.unit,
            "written": list(self.written),
            "read": self.read,
            "iterations": None if self.iterations is None else self.iterations.tolist(),
            "ts_ns": self.ts_ns.tolist(),
            "attempts": self.attempts.tolist(),
            "values": [
                None if gone else json_number(value)
                for value, gone in zip(self.values.tolist(), self.missing.tolist(), strict=True)
            ],
            "counts": {name: counted.tolist() for name, counted in self.counts.items()},
            "events": [
                {n: json_number(v) for n, v in e.items() if n != "group"} for e in self.events
            ],
        }


@dataclass(slots=True, repr=False)
class SeriesAnswer(Tabular):
    """`points` in groups; `read`: points of each group before any were left out. `events`: what was
    detected. `shown`: which method left points out, None where none were. `next`: cursor of the groups
    that did not fit (HTTP)."""

    points: Grouped = field(default_factory=lambda: grouped(empty_table()))
    read: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    completeness: Completeness = field(default_factory=Completeness)
    report: Report = field(default_factory=Report)
    events: list[dict[str, Any]] = field(default_factory=list)
    counts: Mapping[str, I64] = field(default_factory=dict)
    aggregate: str | None = None
    method: str | None = None
    stat: str = "mean"
    next: str | None = None

    def __repr__(self) -> str:
        names = ", ".join(sorted({one.name for one in self}))
        return f"<{len(self)} series, {len(self.points.table)} points: {names:.200}>"

    def __len__(self) -> int:
        """Number of series."""
        return len(self.points)

    def __iter__(self) -> Iterator[Series]:
        return (self[group] for group in range(len(self)))

    def __getitem__(self, group: int) -> Series:
        table, rows = self.points.table, self.points.rows(group)
        first, names = rows.start, table.names
        rank, iterations = int(table.rank[first]), table.iteration[rows]
        written = np.unique(table.written[rows]).tolist()
        series = names.series[table.series[first]]
        return Series(
            name=series,
            run_id=names.run[table.run[first]],
            rank=None if rank == ABSENT else rank,
            host=names.host[table.host[first]] or None,
            dims=json.loads(names.dims[table.dims[first]]),
            unit=unit_of(series),
            written=tuple(names.written[code] for code in written),
            iterations=None if (iterations == ABSENT).any() else iterations,
            ts_ns=table.ts_ns[rows],
            values=table.value[rows],
            missing=table.missing[rows],
            attempts=table.attempt[rows].astype(np.int64),
            read=int(self.read[group]),
            events=[event for event in self.events if event["group"] == group],
            counts={name: counted[rows] for name, counted in self.counts.items()},
        )

    @property
    def left_out(self) -> int:
        """Points that were read and are not in the answer."""
        return int(self.read.sum()) - len(self.points.table)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Points, as the interfaces have them, group by group."""
        table, names = self.points.table, self.points.table.names
        dims = [json.loads(text) for text in names.dims]
        columns = (
            table.run, table.attempt, table.rank, table.host, table.ts_ns, table.iteration,
            table.series, table.written, table.dims, table.value, table.missing,
        )  # fmt: skip
        for i, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            run, attempt, rank, host, ts, iteration, series, written, dim, value, missing = row
            point = {
                "kind": "point",
                "time": render_time(ts),
                "ts_ns": ts,
                "run": names.run[run].rpartition("@")[0],
                "run_id": names.run[run],
                "attempt": attempt,
                "rank": None if rank == ABSENT else rank,
                "host": names.host[host] or None,
                "iteration": None if iteration == ABSENT else iteration,
                "series": names.series[series],
                "dims": dims[dim],
                "value": None if missing else json_number(value),
                "summary": summary_of(table, i),
            }
            if names.written[written] != point["series"]:
                point["written"] = names.written[written]
            for name, counted in self.counts.items():
                point[name] = int(counted[i])
            yield point

    def trailer(self) -> dict[str, Any]:
        """What there is to say beside points."""
        shown: dict[str, Any] = {
            "downsampled": self.downsampled(),
            "aggregate": self.aggregate,
            "events": [_shown(event, self) for event in self.events],
            "next": self.next,
            "completeness": completeness_json(self.completeness),
            "report": report_json(self.report),
        }
        return shown

    def downsampled(self) -> dict[str, Any] | None:
        """How many points there are, how many the answer has, and how they were chosen; None: all."""
        if self.method is None or not self.left_out:
            return None
        read = int(self.read.sum())
        return {"read": read, "shown": len(self.points.table), "method": self.method}

    def to_json(self, *, columns: bool = False) -> dict[str, Any]:
        """The answer of `POST /v1/series`: points, or with `columns` an object per series."""
        if columns:
            return {"series": [one.to_json() for one in self], **self.trailer()}
        return {"points": list(self.rows()), **self.trailer()}

    def to_arrow(self) -> Any:
        """A pyarrow table, one row per point; every dimension is a column, too."""
        from ranklog.client.tables import points_table

        return points_table(self)

    def _repr_html_(self) -> str:
        from ranklog.client.series_html import render_html

        return render_html(self)

    def _repr_png_(self) -> bytes | None:
        from ranklog.client.picture import render_picture_or_none

        return render_picture_or_none(self)


def summary_of(table: PointTable, row: int) -> dict[str, Any] | None:
    """What is said of a tensor, as the interfaces have it; None for a point that is none."""
    place = -1 if table.summary is None else int(table.summary[row])
    if place < 0:
        return None
    at, row = divmod(place, SUMMARIES)
    found: dict[str, Any] = table.names.summaries[at][row].as_py()
    quantiles = found["quantiles"]
    found["quantiles"] = None if quantiles is None else dict(quantiles)
    return {name: json_number(value) for name, value in found.items()}


def _shown(event: Mapping[str, Any], answer: SeriesAnswer) -> dict[str, Any]:
    one = answer[event["group"]]
    low, high = event["iterations"]
    return {
        "kind": event["kind"],
        "series": one.name,
        "run_id": one.run_id,
        "rank": one.rank,
        "dims": one.dims,
        "first_iteration": None if low is None else low,
        "last_iteration": None if high is None else high,
        "first_ns": event["ts_ns"][0],
        "last_ns": event["ts_ns"][1],
        "value": json_number(event["value"]),
        "baseline": json_number(event["baseline"]),
        "score": json_number(event["score"]),
    }


def cut_groups(answer: SeriesAnswer, groups: Sequence[int]) -> SeriesAnswer:
    """The answer with these series alone, in this order."""
    places = [np.arange(s.start, s.stop) for s in (answer.points.rows(g) for g in groups)]
    rows = np.concatenate(places) if places else np.zeros(0, np.int64)
    starts = np.cumsum([0, *map(len, places)]).astype(np.int64)
    at = {group: i for i, group in enumerate(groups)}
    events = [{**e, "group": at[e["group"]]} for e in answer.events if e["group"] in at]
    events.sort(key=lambda event: event["group"])
    return replace(
        answer,
        points=Grouped(answer.points.table.take(rows), starts),
        read=answer.read[np.asarray(groups, np.int64)],
        counts={name: counted[rows] for name, counted in answer.counts.items()},
        events=events,
    )
