"""Answers as JSON back to values: what a client of an API shows, and what a pin has kept."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ranklog.client.follow import Hole
from ranklog.client.tail_items import TailItem
from ranklog.model import frame
from ranklog.model.answer import Completeness, Line, Report
from ranklog.model.levels import parse_level

_TS_SOURCES = {
    "inherited": frame.TS_INHERITED,
    "arrival": frame.TS_ARRIVAL,
    "claimed": frame.TS_CLAIMED,
}
_LEVEL_SOURCES = {"inferred": frame.LEVEL_INFERRED, "inherited": frame.LEVEL_INHERITED}


def read_value(name: str, value: Any) -> Any:
    """The value of a field that groups are named by."""
    if name == "level" and isinstance(value, str):
        return _level(value)
    return value


def _level(name: str) -> int | None:
    return parse_level(name.removeprefix("LEVEL "))


def read_line(item: Mapping[str, Any]) -> Line:
    """The inverse of answer.render.line_json."""
    raw = item.get("raw_b64")
    flags = _TS_SOURCES.get(item.get("ts_source", ""), 0)
    flags |= _LEVEL_SOURCES.get(item.get("level_source", ""), 0)
    flags |= frame.ITERATION_CARRIED if item.get("iteration_source") == "carried" else 0
    flags |= frame.INVALID_UTF8 if raw is not None else 0
    return Line(
        stream_id=item["stream"],
        seq=item["seq"],
        ts_ns=item["ts_ns"],
        run=item["run"],
        launch=item["run_id"].removeprefix(item["run"] + "@"),
        attempt=item["attempt"],
        rank=item["rank"],
        local_rank=item["local_rank"],
        host=item["host"],
        channel=item["channel"],
        group=item["group"],
        level=None if item["level"] is None else _level(item["level"]),
        call_site=item["call_site"],
        function=item["function"],
        logger=item["logger"],
        text=item["text"],
        iteration=item["iteration"],
        metadata=dict(item["metadata"]),
        match=item["match"],
        flags=flags,
        raw=None if raw is None else base64.b64decode(raw),
        copy=item.get("copy", False),
        source=item.get("source"),
        superseded=item.get("superseded", False),
    )


def read_item(item: Mapping[str, Any]) -> TailItem:
    """The inverse of TailItem.to_json."""
    if item["kind"] == "line":
        return TailItem(read_line(item), late=item.get("late", False))
    if item["kind"] == "gap":
        names = (item["stream"], item["run_id"], item["rank"])
        return TailItem(hole=Hole(*names, item["first_seq"], item["last_seq"] + 1))
    return TailItem(skipped={"segment": item["segment"], "reason": item["reason"]})


def read_completeness(item: Mapping[str, Any]) -> Completeness:
    """The inverse of answer.render.completeness_json; cut lists stay cut."""
    names = Completeness.__dataclass_fields__
    return Completeness(**{name: item[name] for name in names if name in item})


def read_report(item: Mapping[str, Any]) -> Report:
    """The inverse of answer.render.report_json."""
    bounds, segments, groups = item["bounds"], item["segments"], item["row_groups"]
    return Report(
        from_ns=bounds["from_ns"],
        to_ns=bounds["to_ns"],
        defaulted=bounds["defaulted"],
        run_ids=list(item.get("run_ids", ())),
        segments_listed=segments["listed"],
        segments_pruned=segments["pruned"],
        segments_scanned=segments["scanned"],
        row_groups_total=groups["total"],
        row_groups_pruned=groups["pruned"],
        row_groups_scanned=groups["scanned"],
        bytes_read=item["bytes_read"],
        ms=dict(item["ms"]),
        warnings=list(item.get("warnings", ())),
        notes=list(item.get("notes", ())),
    )
