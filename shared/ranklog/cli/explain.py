"""What a query would read and why, as people read it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.cli.console import Console
from ranklog.cli.scope import say_completeness, say_scope

if TYPE_CHECKING:
    from ranklog.client.answer import Answer, CountAnswer


def show_plan(
    console: Console, answer: Answer | CountAnswer, arguments: argparse.Namespace, zone: tzinfo
) -> None:
    """The query with all its parentheses, and each segment with what excludes the rest of it; what
    bounds were chosen, and which indexes could not be read."""
    plan = answer.explain or {}
    if console.json:
        console.object({"explain": plan})
        told = completeness_json(answer.completeness)
        console.object({"report": report_json(answer.report), "completeness": told})
        return
    say_scope(console, answer.report, arguments, zone)
    console.line(f"query  {plan.get('query')}")
    report = answer.report
    kept = report.segments_listed - report.segments_pruned
    console.line(f"segments    {kept} of {report.segments_listed} might match")
    groups = report.row_groups_total - report.row_groups_pruned
    console.line(f"row groups  {groups} of {report.row_groups_total} might match")
    if reads := plan.get("reads"):
        console.line(f"would read  {_reads(reads)}")
    for segment in plan.get("segments", ()):
        _show_segment(console, segment)
    say_completeness(console, answer.completeness, zone)


def _show_segment(console: Console, segment: Mapping[str, Any]) -> None:
    """One segment: how much of it might match, and what excluded the rest."""
    groups = segment["row_groups"]
    console.line(f"  {console.safe(str(segment['segment'] or segment['index']))}")
    console.line(f"    {segment['rows']} rows, {groups['kept']} of {groups['total']} row groups")
    for why in segment["excluded_by"]:
        shown = f"{why['what']} ({why['by']}, row groups {_spans(why['row_groups'])})"
        console.line(console.safe(f"    the rest is not read: {shown}"))


def _reads(reads: Mapping[str, Any]) -> str:
    """How much, at most, and what needs no reading."""
    counted = reads["counted"]
    from_index = f", {counted} counted by their indexes" if counted else ""
    size = reads["bytes_max"] / 1e6
    return f"{reads['segments']} segments, at most {size:.2f} MB{from_index}"


def _spans(numbers: Sequence[int]) -> str:
    """`0-3, 7`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
