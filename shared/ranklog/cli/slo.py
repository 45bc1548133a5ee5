"""`ranklog slo`: ranklog's own objectives over a period, and what is left of their error budgets."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ranklog.cli.console import Console
from ranklog.cli.source import open_client, open_store_of
from ranklog.cli.tables import print_table
from ranklog.errors import BadInput

MET, MISSED, NOTHING = 0, 1, 3


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Set objectives where some are given; then 0: all are met, 1: one is missed, 3: nothing was measured."""
    console.json = console.json or arguments.format == "json"
    if arguments.set:
        _set(arguments)
    client = open_client(arguments)
    answer = client.slo(since=arguments.since, until=arguments.until, tz=arguments.tz or "UTC")
    if console.json:
        _print_json(console, answer)
    else:
        _print(console, answer)
    if answer.missed:
        return MISSED
    return MET if answer.measured else NOTHING


def _set(arguments: argparse.Namespace) -> None:
    """The log of actions has it before it holds."""
    from ranklog.delete.actions import Action, record_action, this_user
    from ranklog.objectives.targets import check_target, set_targets

    given = dict(_parse(text) for text in arguments.set)
    for name, value in given.items():
        check_target(name, value)
    store, tenant = open_store_of(arguments, create=False)
    action = Action("objectives.set", time.time_ns(), this_user(), "", {"targets": given})
    record_action(store, tenant, action)
    set_targets(store, tenant, given)


def _parse(text: str) -> tuple[str, float | str | None]:
    name, separator, value = text.partition("=")
    if separator and value in ("none", "default"):
        return name, None if value == "none" else value
    try:
        return name, float(value)
    except ValueError as error:
        raise BadInput(f"--set {text!r}", hint="NAME=NUMBER, NAME=none or NAME=default") from error


def _print_json(console: Console, answer: Any) -> None:
    told = answer.to_json()
    for item in told.pop("objectives"):
        console.object(item)
    console.object({"report": told})


def _print(console: Console, answer: Any) -> None:
    told = answer.to_json()
    rows = [
        [
            item["objective"],
            _value(item["objective"], item["value"]),
            _value(item["objective"], item["target"]),
            {True: "met", False: "MISSED", None: "-"}[item["met"]],
            f"{item['of']:,}",
            f"{item['bad']:,}",
            "-" if item["budget_left"] is None else f"{item['budget_left']:.1%}",
        ]
        for item in told["objectives"]
    ]
    heads = ["objective", "value", "target", "", "of", "bad", "budget left"]
    print_table(console, heads, rows, wide=0)
    period, stored = told["period"], told["stored"]
    console.line(f"from {period['from']} to {period['to']}")
    console.line(
        f"{stored['lines']:,} lines of {stored['streams']:,} streams; "
        f"{stored['missing']:,} missing, {stored['lost']:,} of them acknowledged; "
        f"{stored['deleted']:,} deleted, {stored['dropped']:,} dropped by policies; "
        f"{stored['streams_behind']:,} streams behind"
    )
    cost = told["counts"].get("cost_nanousd")
    if cost:
        console.line(f"ingest and questions by list price: ${cost / 1e9:,.4f}")
    for item in told["unread"]:
        console.note(f"not read: {item['segment']}: {item['reason']}")


def _value(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name.endswith("_ms"):
        return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"
    return f"{100 * value:.6g} %"
