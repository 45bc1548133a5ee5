"""`ranklog retention`: how long lines are kept, and letting go of what is older."""

from __future__ import annotations

import argparse
from typing import Any

from ranklog.cli.console import Console
from ranklog.cli.source import open_admin_of, refuse_empty
from ranklog.cli.tables import print_table
from ranklog.delete.actions import this_user
from ranklog.delete.retention import CANARIES, EVERY_RUN
from ranklog.errors import BadInput
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.plan.times import parse_duration


def run(arguments: argparse.Namespace, console: Console) -> int:
    """set SPAN, clear, show, apply; 0 where something is set, was done, or is to do, else 1."""
    action, span = arguments.action_words, " ".join(arguments.span_words)
    if action not in ("set", "clear", "show", "apply"):
        raise BadInput(f"no action {action!r}", hint="set SPAN, clear, show or apply")
    if span and action != "set":
        raise BadInput(f"{action} {span}?", hint="only set takes a span")
    refuse_empty(arguments, "run")
    keep_ns = _keep_ns(span) if action == "set" else None
    admin = open_admin_of(arguments)
    who, why = arguments.who or this_user(), arguments.why
    if action == "apply":
        return _applied(admin.apply_retention(who=who, why=why, dry_run=arguments.dry_run), console)
    if action == "show":
        return _show(admin.retention(), console)
    run = arguments.run or EVERY_RUN
    return _show(admin.set_retention(run, keep_ns, who=who, why=why), console)


def _keep_ns(span: str) -> int:
    try:
        return parse_duration(span)
    except ValueError as error:
        raise BadInput(
            f"to keep lines for how long? {span}", hint="ranklog retention set 90d"
        ) from error


def _show(found: dict[str, Any], console: Console) -> int:
    rows = found["rules"]
    if console.json:
        for row in rows:
            console.object(row)
        console.object({"report": {"rules": len(rows)}})
    elif rows:
        shown = [[rule["run"], _span(rule["keep_ns"])] for rule in rows]
        print_table(console, ("run", "kept for"), shown)
    if not console.json:
        others = "every run" if not rows else None if _is_for_all(rows) else "every other run"
        canaries = all(rule["run"] != CANARIES.run for rule in rows)
        ours = f"ranklog's canaries (run {CANARIES.run}) for {_span(CANARIES.keep_ns)}"
        if others:
            console.note(f"{others} is kept for good" + (f", but {ours}" if canaries else ""))
        elif canaries:
            console.note(f"{ours}, unless a rule has that name")
    return 0 if rows else 1


def _is_for_all(rows: list[dict[str, Any]]) -> bool:
    return any(rule["run"].strip("*") == "" for rule in rows)


def _span(ns: int) -> str:
    hours = ns // HOUR_NS
    if ns % HOUR_NS:
        return f"{ns // SECOND_NS}s"
    return f"{hours // 24}d" if hours % 24 == 0 else f"{hours}h"


def _applied(told: dict[str, Any], console: Console) -> int:
    if console.json:
        console.object({"report": told})
    else:
        would = "would hide" if told["dry_run"] else "hid"
        remove = "remove" if told["dry_run"] else "removed"
        console.line(
            f"{would} {told['lines']:,} lines of {len(told['floors'])} runs with a floor; "
            f"{remove} {told['objects_removed']:,} objects; {told['pinned']} are pinned and stay"
        )
        for item in told["failed"]:
            console.note(f"not read, and kept: {item['segment']}: {item['reason']}")
    return 0 if told["lines"] or told["objects_removed"] else 1
