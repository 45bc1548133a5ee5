"""Values as the JSON of the interfaces: absent is null, times stand twice, NaN is a name."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ranklog.limits import COMPLETENESS_LIST_MAX, SECOND_NS
from ranklog.model import frame
from ranklog.model.answer import Completeness, Line, Report
from ranklog.model.levels import level_name

_LISTS = (
    "absent",
    "behind",
    "gaps",
    "dropped",
    "deleted",
    "conflicts",
    "waiting",
    "quiet",
    "since",
    "skipped_tasks",
)


def render_time(ts_ns: int) -> str:
    """RFC 3339 in UTC with 9 digits: `2026-03-01T07:00:00.000000001Z`."""
    seconds, rest = divmod(ts_ns, SECOND_NS)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:09d}Z"


def json_number(value: Any) -> Any:
    """NaN and infinities as their names; all else as it is."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def line_json(line: Line) -> dict[str, Any]:
    """The line of the interfaces; members that do not apply are left out."""
    shown: dict[str, Any] = {
        "id": line.id,
        "kind": "line",
        "time": render_time(line.ts_ns),
        "ts_ns": line.ts_ns,
        "run": line.run,
        "run_id": line.run_id,
        "attempt": line.attempt,
        "rank": line.rank,
        "local_rank": line.local_rank,
        "host": line.host,
        "stream": line.stream_id,
        "channel": line.channel,
        "seq": line.seq,
        "group": line.group,
        "level": None if line.level is None else level_name(line.level),
        "call_site": line.call_site,
        "function": line.function,
        "logger": line.logger,
        "text": line.text,
        "iteration": line.iteration,
        "metadata": {key: json_number(value) for key, value in line.metadata.items()},
        "match": line.match,
    }
    return shown | _where_it_applies(line)


def _where_it_applies(line: Line) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if line.raw is not None:
        shown["raw_b64"] = base64.b64encode(line.raw).decode("ascii")
    for bit, word in (
        (frame.TS_INHERITED, "inherited"),
        (frame.TS_ARRIVAL, "arrival"),
        (frame.TS_CLAIMED, "claimed"),
    ):
        if line.flags & bit:
            shown["ts_source"] = word
    if line.flags & frame.LEVEL_INFERRED:
        shown["level_source"] = "inferred"
    elif line.flags & frame.LEVEL_INHERITED:
        shown["level_source"] = "inherited"
    if line.flags & frame.ITERATION_CARRIED:
        shown["iteration_source"] = "carried"
    if line.copy:
        shown["copy"] = True
    if line.superseded:
        shown["superseded"] = True
    if line.source is not None:
        shown["source"] = line.source
        shown["source_line"] = line.seq + 1
    return shown


def completeness_json(value: Completeness) -> dict[str, Any]:
    """Lists cut at COMPLETENESS_LIST_MAX, with `"more": N` in all."""
    shown: dict[str, Any] = {
        "state": value.state,
        "certified": value.certified,
        "watermark_ns": value.watermark_ns,
        "watermark": None if value.watermark_ns is None else render_time(value.watermark_ns),
        "streams": value.streams,
    }
    more = 0
    for name in _LISTS:
        items = getattr(value, name)
        shown[name] = items[:COMPLETENESS_LIST_MAX]
        more += max(0, len(items) - COMPLETENESS_LIST_MAX)
    for name in ("behind", "quiet", "since"):
        shown[name] = [_timed(item) for item in shown[name]]
    if more:
        shown["more"] = more
    return shown


def _timed(item: Mapping[str, Any]) -> dict[str, Any]:
    """With its time as text beside the number."""
    ns = item.get("ts_ns")
    return {**item, "time": None if ns is None else render_time(ns)}


def report_json(report: Report) -> dict[str, Any]:
    """What the answer looked at and cost."""
    return {
        "bounds": {
            "from_ns": report.from_ns,
            "to_ns": report.to_ns,
            "from": None if report.from_ns is None else render_time(report.from_ns),
            "to": None if report.to_ns is None else render_time(report.to_ns),
            "defaulted": report.defaulted,
        },
        "run_ids": report.run_ids,
        "segments": {
            "listed": report.segments_listed,
            "pruned": report.segments_pruned,
            "scanned": report.segments_scanned,
        },
        "row_groups": {
            "total": report.row_groups_total,
            "pruned": report.row_groups_pruned,
            "scanned": report.row_groups_scanned,
        },
        "bytes_read": report.bytes_read,
        "ms": {
            name: round(report.ms.get(name, 0.0), 3) for name in ("list", "plan", "scan", "merge")
        },
        "warnings": report.warnings,
        "notes": report.notes,
    }


def count_json(fields: Sequence[str], key: Sequence[Any], count: int) -> dict[str, Any]:
    """`{<field>: …, "bucket_ns": …, "count": N}`; levels by name, a time bucket as text beside it."""
    shown: dict[str, Any] = {}
    for name, value in zip(fields, key, strict=True):
        if name == "level" and value is not None:
            shown[name] = level_name(value)
        else:
            shown[name] = json_number(value)
        if name == "bucket_ns" and value is not None:
            shown["time"] = render_time(value)
    shown["count"] = count
    return shown


def answer_json(
    lines: Sequence[Line],
    *,
    next_cursor: str | None,
    truncated: bool,
    completeness: Completeness,
    report: Report,
    fields: Sequence[str] = (),
) -> dict[str, Any]:
    """The answer of a search over HTTP; `fields` restricts the members of each line."""
    return {
        "lines": [select_fields(line_json(line), fields) for line in lines],
        "next": next_cursor,
        "truncated": truncated,
        "completeness": completeness_json(completeness),
        "report": report_json(report),
    }


def select_fields(shown: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Members of a line by name, metadata keys too; an unknown name is null. No fields: all."""
    if not fields:
        return dict(shown)
    metadata = shown.get("metadata", {})
    aliases = {"step": "iteration"}
    return {
        name: shown[aliases.get(name, name)]
        if aliases.get(name, name) in shown
        else metadata.get(name)
        for name in fields
    }
