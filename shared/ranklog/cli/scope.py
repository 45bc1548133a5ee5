"""What every reading command shares: its restrictions, and what is said about the answer."""

from __future__ import annotations

import argparse
from datetime import tzinfo
from typing import Any

from ranklog.cli.console import Console
from ranklog.cli.tables import shown_ranks
from ranklog.cli.times import shown_time, zone_of
from ranklog.model.answer import Completeness, Report

FOUND, NOTHING, NOTHING_YET = 0, 1, 3

# Of a progress bar the last state is kept: the others are no loss.
PROGRESS = "progress"

_NAMES = ("run", "attempt", "rank", "host", "level", "iteration", "since", "until", "last")


def restrictions(arguments: argparse.Namespace) -> dict[str, Any]:
    """The restrictions that were given, by the names the client has for them."""
    given = {name: getattr(arguments, name) for name in _NAMES}
    found = {name: value for name, value in given.items() if value is not None}
    if getattr(arguments, "mute_common", False):
        found["mute_common"] = True
    if arguments.tz is not None:
        zone_of(arguments.tz)
        found["tz"] = arguments.tz
    return found


def exit_code(found: bool, completeness: Completeness) -> int:
    """0 found; 1 nothing, and that is certain; 3 nothing, but something may be missing."""
    if found:
        return FOUND
    return NOTHING if completeness.state == "complete" else NOTHING_YET


def say_scope(
    console: Console, report: Report, arguments: argparse.Namespace, zone: tzinfo
) -> None:
    """Defaults that were chosen for the user, and warnings, on stderr."""
    if report.defaulted and report.from_ns is not None:
        since = shown_time(report.from_ns, zone)
        console.note(
            f"the newest 24 hours that hold data, since {since}: --since looks further back"
        )
    run = getattr(arguments, "run", None)
    if run and "@" not in run and len(report.run_ids) == 1:
        console.note(f"run {report.run_ids[0]}")
    for warning in report.warnings:
        console.note(f"warning: {warning}")
    for remark in report.notes:
        console.note(remark)


def say_completeness(console: Console, completeness: Completeness, zone: tzinfo) -> None:
    """What is missing, where something is, and what the job's own node dropped and counted."""
    if lost := [one for one in completeness.dropped if one["reason"] != PROGRESS]:
        lines = sum(one["lines"] for one in lost)
        why = ", ".join(sorted({one["reason"] for one in lost}))
        console.note(f"{lines:,} lines of {_ranks(lost)} were dropped before they were sent: {why}")
    for reason, word in (("deleted", "deleted"), ("retention", "removed by retention")):
        if gone := [one for one in completeness.deleted if one["reason"] == reason]:
            lines = sum(one["lines"] for one in gone)
            console.note(f"{lines:,} lines of {_ranks(gone)} were {word}")
    if two := completeness.conflicts:
        lines = sum(one["last_seq"] - one["first_seq"] + 1 for one in two)
        console.note(
            f"{lines:,} lines of {_ranks(two)} came in two versions, of which one is shown"
        )
    if completeness.state == "complete":
        return
    for one in completeness.waiting:
        console.note(f"{one['frames']:,} frames wait for the tenant's quota (ranklog usage)")
    parts = [f"not complete: {completeness.state}"]
    if completeness.skipped_tasks:
        parts.append(_skipped(completeness.skipped_tasks))
    if completeness.gaps:
        missing = sum(gap["last_seq"] - gap["first_seq"] + 1 for gap in completeness.gaps)
        parts.append(f"{missing} lines of {_ranks(completeness.gaps)} have not arrived")
    if unheard := [one["run_id"] for one in completeness.behind if one.get("run_id")]:
        parts.append(f"nothing of {', '.join(sorted(set(unheard)))} was read")
    if behind := [one for one in completeness.behind if not one.get("run_id")]:
        parts.append(f"{_ranks(behind)} may still send lines")
    for verdict in ("late", "gone", "silent"):
        if quiet := [one for one in completeness.quiet if one["verdict"] == verdict]:
            parts.append(f"{_ranks(quiet)}: {verdict}")
    if completeness.absent:
        parts.append(f"nothing from rank {shown_ranks(completeness.absent)}")
    if completeness.watermark_ns:
        parts.append(f"complete up to {shown_time(completeness.watermark_ns, zone)}")
    console.note("; ".join(parts))


def _skipped(tasks: list[dict[str, Any]]) -> str:
    """How many parts were not read; the first one's key and what is wrong with it."""
    key, reason = tasks[0].get("segment"), tasks[0].get("reason")
    where = "" if not key or str(key) in str(reason) else f"{key}: "
    parts = "1 part" if len(tasks) == 1 else f"{len(tasks)} parts"
    return f"{parts} could not be read ({where}{reason})"


def _ranks(items: list[dict[str, Any]]) -> str:
    ranks = sorted({item["rank"] for item in items if item.get("rank") is not None})
    others = len({item["stream"] for item in items if item.get("rank") is None})
    named = [f"rank {shown_ranks(ranks)}"] if ranks else []
    if others:
        what = "other stream" if ranks else "stream"
        named.append(f"{others} {what}" + ("s" if others > 1 else ""))
    return " and ".join(named)
