"""A triage for people: class, suspects, timeline, evidence, next steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from ranklog.cli.console import Console
from ranklog.cli.tables import fit, pad, shown_ranks
from ranklog.cli.times import spread_view

WORDS = {
    "none": "no fault seen",
    "oom_device": "a GPU's memory was full",
    "oom_host": "a host's memory was full",
    "collective_timeout": "ranks waited for another in a collective",
    "collective_mismatch": "ranks ran different collectives",
    "hardware": "hardware",
    "network": "network",
    "numeric": "NaN, infinity or a jump of the loss",
    "data_loader": "data loader",
    "storage": "checkpoint or file system",
    "import_or_config": "import or configuration, before training",
    "external_kill": "ended from outside",
    "crash_signal": "crash by a signal",
    "hang": "it stands still without an error",
    "slow": "it is slow",
    "unknown": "failed; what it says fits no class",
}
_EVENTS = 30
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")


def show_triage(console: Console, found: Mapping[str, Any], zone: tzinfo) -> None:
    """One page of text."""
    colour = "green" if found["class"] == "none" else "bright red"
    attempt = f", attempt {found['attempt']}" if found["attempt"] else ""
    console.line(console.paint(f"{found['run']}{attempt}: {found['class']}", colour))
    console.line(f"  {WORDS.get(found['class'], found['class'])}")
    if found.get("why"):
        console.line("  " + console.safe(str(found["why"])))
    console.line("  " + _where(found))
    _show_suspects(console, found)
    clock = spread_view([event["ts_ns"] for event in found["timeline"]], zone)
    _show_timeline(console, found["timeline"], clock)
    _show_evidence(console, found, clock)
    _show_steps(console, found["next_steps"])


def _where(found: Mapping[str, Any]) -> str:
    checkpoint = found["last_checkpoint"]
    parts = [f"last iteration {_or_dash(found['last_iteration'])}"]
    if checkpoint is not None:
        state = "complete" if checkpoint["complete"] else "not complete"
        parts.append(f"last checkpoint {_or_dash(checkpoint['iteration'])} ({state})")
    return ", ".join(parts)


def _or_dash(value: Any) -> str:
    return "-" if value is None else str(value)


def _show_suspects(console: Console, found: Mapping[str, Any]) -> None:
    suspects = found["suspects"]
    if found["undecidable"]:
        console.line(console.paint("\nundecidable from these logs", "bold"))
        return
    if not suspects:
        return
    console.line(console.paint("\nsuspects", "bold"))
    for suspect in suspects:
        score = f"{suspect['score']:.2f}"
        name = console.paint(suspect_name(suspect), "yellow")
        console.line(f"  {score}  {name}: {console.safe(str(suspect['why']))}")


def suspect_name(suspect: Mapping[str, Any]) -> str:
    """`rank 3 on gpu-02`."""
    return str(suspect.get("name") or suspect.get("host") or suspect.get("rank"))


def _show_timeline(console: Console, events: Sequence[Mapping[str, Any]], clock: Any) -> None:
    if not events:
        return
    console.line(console.paint("\ntimeline", "bold"))
    rows = together(events)
    for event, ranks in rows[:_EVENTS]:
        console.line("  " + fit(_event(console, event, ranks, clock), console.width - 2))
    if len(rows) > _EVENTS:
        console.line(f"  … {len(rows) - _EVENTS} more: --json has them")


def together(events: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[int]]]:
    """Events in a row that say the same but for numbers as the first of them; and their ranks."""
    found: list[tuple[Mapping[str, Any], list[int]]] = []
    last: tuple[Any, ...] | None = None
    for event in events:
        text = "" if event["line"] is None else event["line"]["text"]
        key = (event["event"], _NUMBERS.sub("#", f"{event.get('note')} {text}".strip()))
        if key != last:
            found.append((event, []))
        last = key
        if event["rank"] is not None:
            found[-1][1].append(event["rank"])
    return found


def shown_whom(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-7,12`, or `-`."""
    if not ranks:
        return "-"
    known = sorted(set(ranks))
    return f"rank{'s' * (len(known) > 1)} {shown_ranks(known)}"


def _event(console: Console, event: Mapping[str, Any], ranks: Sequence[int], clock: Any) -> str:
    line = event["line"]
    text = "" if line is None else console.safe(line["text"].strip())
    note = f"{event['note']}  " if event.get("note") else ""
    iteration = "" if event["iteration"] is None else f"i{event['iteration']}"
    cells = (pad(clock(event["ts_ns"]), 12), pad(event["event"], 11), pad(shown_whom(ranks), 9))
    return f"{'  '.join(cells)} {pad(iteration, 7)} {note}{text}"


def _show_evidence(console: Console, found: Mapping[str, Any], clock: Any) -> None:
    if not found["evidence"]:
        return
    console.line(console.paint("\nevidence", "bold"))
    for line in found["evidence"]:
        rank = "" if line["rank"] is None else f"[{line['rank']}] "
        text = console.safe(line["text"].strip())
        console.line("  " + fit(f"{clock(line['ts_ns'])}  {rank}{text}", console.width - 2))


def _show_steps(console: Console, steps: Sequence[Mapping[str, Any]]) -> None:
    if not steps:
        return
    console.line(console.paint("\nnext", "bold"))
    for step in steps:
        console.line(f"  {step['text']}")
        if step["command"]:
            console.line(console.paint(f"    {step['command']}", "cyan"))
    console.line(f"  {steps[0]['runbook']} says more")
