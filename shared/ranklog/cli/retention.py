"""`ranklog retention`: how long lines are kept, and letting go of what is older."""

from __future__ import annotations

import argparse

from ranklog.cli.console import Console
from ranklog.cli.source import open_store_of
from ranklog.cli.tables import print_table
from ranklog.client.reader import Reader, local_reader
from ranklog.client.retention import apply_retention
from ranklog.delete.actions import Action, record_action, this_user
from ranklog.delete.retention import EVERY_RUN, Policy, load_policy, save_policy
from ranklog.errors import BadInput
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.plan.times import parse_duration


def run(arguments: argparse.Namespace, console: Console) -> int:
    """set SPAN, clear, show, apply; 0 where something is set, was done, or is to do, else 1."""
    store, tenant = open_store_of(arguments, create=False)
    reader = local_reader(store, tenant)
    action, span = arguments.action_words, " ".join(arguments.span_words)
    if action == "set":
        return _change(arguments, console, reader, _keep_ns(span))
    if span:
        raise BadInput(f"{action} {span}?", hint="only set takes a span")
    if action == "clear":
        return _change(arguments, console, reader, None)
    if action == "show":
        return _show(load_policy(store, tenant), console)
    if action == "apply":
        return _apply(arguments, console, reader)
    raise BadInput(f"no action {action!r}", hint="set SPAN, clear, show or apply")


def _keep_ns(span: str) -> int:
    try:
        return parse_duration(span)
    except ValueError as error:
        raise BadInput(
            f"to keep lines for how long? {span}", hint="ranklog retention set 90d"
        ) from error


def _change(
    arguments: argparse.Namespace, console: Console, reader: Reader, keep_ns: int | None
) -> int:
    """The log has it before it holds."""
    run = arguments.run or EVERY_RUN
    policy = load_policy(reader.store, reader.tenant).with_rule(run, keep_ns)
    details = {"run": run, "keep_ns": keep_ns}
    who = arguments.who or this_user()
    word = "retention.clear" if keep_ns is None else "retention.set"
    record_action(
        reader.store, reader.tenant, Action(word, reader.now_ns(), who, arguments.why, details)
    )
    save_policy(reader.store, reader.tenant, policy)
    return _show(policy, console)


def _show(policy: Policy, console: Console) -> int:
    rows = [{"run": rule.run, "keep_ns": rule.keep_ns} for rule in policy.rules]
    if console.json:
        for row in rows:
            console.object(row)
        console.object({"report": {"rules": len(rows)}})
    elif rows:
        shown = [[rule.run, _span(rule.keep_ns)] for rule in policy.rules]
        print_table(console, ("run", "kept for"), shown)
    else:
        console.note("every run is kept for good")
    return 0 if rows else 1


def _span(ns: int) -> str:
    hours = ns // HOUR_NS
    if ns % HOUR_NS:
        return f"{ns // SECOND_NS}s"
    return f"{hours // 24}d" if hours % 24 == 0 else f"{hours}h"


def _apply(arguments: argparse.Namespace, console: Console, reader: Reader) -> int:
    who = arguments.who or this_user()
    found = apply_retention(reader, who=who, why=arguments.why, dry_run=arguments.dry_run)
    told = found.to_json()
    if console.json:
        console.object({"report": told | {"dry_run": arguments.dry_run}})
    else:
        would = "would hide" if arguments.dry_run else "hid"
        remove = "remove" if arguments.dry_run else "removed"
        console.line(
            f"{would} {told['lines']:,} lines of {len(found.floors)} runs with a floor; "
            f"{remove} {len(found.removed):,} objects; {found.pinned} are pinned and stay"
        )
        for item in found.failed:
            console.note(f"not read, and kept: {item['segment']}: {item['reason']}")
    return 0 if found.rows or found.removed else 1
