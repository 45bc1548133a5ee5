"""Points as lines, for what judges a run by its lines: `loss=nan` of a rank at an iteration.

A line stands for a record of points: its metadata are their values by series, its identity is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from ranklog.model.answer import Line

CHANNEL = "telemetry"


def lines_of(points: Iterable[dict[str, Any]]) -> list[Line]:
    """Points as rows, or as answers show them, as lines: one per record, in order of time."""
    found = []
    ordered = sorted(points, key=lambda point: (point["ts_ns"], point["stream"], point["seq"]))
    for _, record in groupby(ordered, key=lambda point: (point["stream"], point["seq"])):
        said = list(record)
        values = {p["series"]: float(p["value"]) for p in said if p["value"] is not None}
        if values:
            found.append(_line(said[0], values))
    return found


def _line(point: dict[str, Any], values: dict[str, float]) -> Line:
    run, _, launch = point["run_id"].rpartition("@")
    return Line(
        stream_id=point["stream"],
        seq=point["seq"],
        ts_ns=point["ts_ns"],
        run=run,
        launch=launch,
        attempt=point["attempt"],
        rank=point["rank"],
        local_rank=None,
        host=point["host"],
        channel=CHANNEL,
        group=None,
        level=None,
        call_site=None,
        function=None,
        logger=None,
        text=" ".join(f"{name}={value:g}" for name, value in values.items()),
        iteration=point["iteration"],
        metadata={**values},
    )
