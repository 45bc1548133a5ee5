"""Series from the JSON of the API, columns of each: the inverse of series_answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranklog.client.read_back import read_completeness, read_report
from ranklog.client.series_answer import Series, SeriesAnswer, cut_groups
from ranklog.client.series_options import SeriesOptions
from ranklog.model.answer import Report
from ranklog.model.point import canonical_json
from ranklog.telemetry.downsample import METHOD
from ranklog.telemetry.table import ABSENT, Grouped, Names, PointTable, empty_table, joined

_FLOATS = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}


def series_words(options: SeriesOptions) -> dict[str, Any]:
    """The body of a request for these options."""
    return {
        "by": None if options.by is None else list(options.by),
        "every": options.every,
        "aggregate": options.aggregate,
        "max_points": options.max_points or 0,
        "stat": options.stat,
        "detect": list(options.detect) or None,
        "superseded": options.superseded or None,
        "timeout": options.timeout_s,
        "columns": True,
    }


def read_answer(found: Mapping[str, Any]) -> SeriesAnswer:
    """One page."""
    series = found["series"]
    thinned = found["downsampled"]
    counts = {
        name: np.concatenate([np.asarray(one["counts"][name], np.int64) for one in series])
        for name in (series[0].get("counts", {}) if series else {})
    }
    sizes = [len(one["values"]) for one in series]
    answer = SeriesAnswer(
        points=Grouped(
            joined([_table(one) for one in series]),
            np.cumsum([0, *sizes]).astype(np.int64),
        ),
        read=np.array([one["read"] for one in series], np.int64),
        completeness=read_completeness(found.get("completeness", {})),
        report=read_report(found["report"]) if "report" in found else Report(),
        counts=counts,
        aggregate=found["aggregate"],
        method=None if thinned is None else thinned["method"],
        next=found["next"],
    )
    answer.events = [
        _event(event, group) for group, one in enumerate(series) for event in one["events"]
    ]
    return answer


def read_part(one: Mapping[str, Any], options: SeriesOptions) -> SeriesAnswer:
    """One series of an answer that comes line by line; how complete it is the last line says."""
    thinned = {"method": METHOD} if len(one["values"]) < one["read"] else None
    beside = {"downsampled": thinned, "aggregate": options.folds, "next": None}
    return read_answer({**beside, "series": [one]})


def _event(event: Mapping[str, Any], group: int) -> dict[str, Any]:
    spans = {name: tuple(event[name]) for name in ("iterations", "ts_ns")}
    numbers = {name: _number(event[name]) for name in ("value", "baseline", "score")}
    return {**event, **spans, **numbers, "group": group}


def _number(value: Any) -> Any:
    return _FLOATS[value] if isinstance(value, str) else value


def _table(one: Mapping[str, Any]) -> PointTable:
    values = one["values"]
    rows = len(values)
    missing = np.array([value is None for value in values], np.bool_)
    numbers = [np.nan if value is None else _number(value) for value in values]
    iterations = [ABSENT if at is None else at for at in one["iterations"] or [None] * rows]
    zeros = np.zeros(rows, np.int32)
    rank = ABSENT if one["rank"] is None else one["rank"]
    written = (",".join(one["written"]),)
    return PointTable(
        zeros, np.array(one["attempts"], np.int32), np.full(rows, rank, np.int32), zeros, zeros,
        np.full(rows, -1, np.int64), np.array(one["ts_ns"], np.int64),
        np.array(iterations, np.int64), zeros, zeros, zeros, np.array(numbers, np.float64), missing,
        Names((one["run_id"],), (one["host"] or "",), ("",), (one["series"],), written,
              (canonical_json(one["dims"]),)),
    )  # fmt: skip


def joined_answers(parts: Sequence[SeriesAnswer]) -> SeriesAnswer:
    """Pages as one answer, in the order that a store gives; completeness and report are those of the
    last."""
    full = [part for part in parts if len(part)]
    sizes = np.concatenate([np.diff(part.points.starts) for part in full] or [np.zeros(0, int)])
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    tables = [part.points.table for part in full]
    first, events = 0, []
    for part in full:
        events += [{**event, "group": event["group"] + first} for event in part.events]
        first += len(part)
    methods = [part.method for part in parts if part.method is not None]
    answer = replace(
        parts[-1],
        points=Grouped(joined(tables) if tables else empty_table(), starts),
        read=np.concatenate([part.read for part in parts]),
        counts={
            name: np.concatenate([part.counts[name] for part in full])
            for name in (full[0].counts if full else {})
        },
        events=events,
        method=methods[0] if methods else None,
        next=None,
    )
    return cut_groups(answer, sorted(range(len(answer)), key=lambda at: _identity(answer[at])))


def _identity(one: Series) -> tuple[Any, ...]:
    rank = ABSENT if one.rank is None else one.rank
    return (one.run_id, one.name, canonical_json(one.dims), rank, one.host or "")
