"""A comparison for people: ranks next to each other, what differs marked in the gutter."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from ranklog.cli.console import Console
from ranklog.cli.tables import fit, pad
from ranklog.model.answer import Line
from ranklog.spmd.hunks import Change, Comparison, Hunk

_SIGNS = {"equal": " ", "insert": "+", "delete": "-", "change": "~"}
_COLOURS = {"equal": "dim", "insert": "green", "delete": "red", "change": "yellow"}
# Narrower columns say nothing; then each side gets lines of its own.
_COLUMN_MIN = 32


def show_comparison(console: Console, found: Comparison) -> None:
    """The hunks under a head line, then how many places of each verdict there are."""
    labels = found.sides
    column = (console.width - 2 - 3 * (len(labels) - 1)) // len(labels)
    beside = column >= _COLUMN_MIN
    if beside:
        heads = [pad(fit(f"rank {label}", column), column) for label in labels]
        console.line(console.paint("  " + " │ ".join(heads).rstrip(), "bold"))
    place: object = None
    for hunk in found.hunks:
        now = (hunk.attempt, hunk.iteration)
        if now != place:
            console.line(console.paint(_heading(hunk), "dim"))
            place = now
        if beside:
            _show_beside(console, hunk, labels, column)
        else:
            _show_below(console, hunk)
        for change in hunk.values:
            console.line(console.paint("    " + _change(change), _COLOURS["change"]))
    console.line(_summary(found))


def _heading(hunk: Hunk) -> str:
    where = "no iteration" if hunk.iteration is None else f"iteration {hunk.iteration}"
    attempt = f"attempt {hunk.attempt}, " if hunk.attempt else ""
    return f"── {attempt}{where} ──"


def _show_beside(console: Console, hunk: Hunk, labels: Iterable[str], column: int) -> None:
    for row in zip_longest(*(hunk.lines[label] for label in labels)):
        texts = [pad(fit(_text(console, line), column), column) for line in row]
        shown = f"{_SIGNS[hunk.op]} {' │ '.join(texts).rstrip()}"
        console.line(console.paint(shown, _COLOURS[hunk.op]))


def _show_below(console: Console, hunk: Hunk) -> None:
    for label, lines in hunk.lines.items():
        for line in lines:
            shown = f"{_SIGNS[hunk.op]} rank {label} │ {_text(console, line)}"
            console.line(console.paint(fit(shown, console.width), _COLOURS[hunk.op]))


def _text(console: Console, line: Line | None) -> str:
    return "" if line is None else console.safe(line.text).replace("\t", " ")


def _change(change: Change) -> str:
    name = change.name or ("value" if change.position is None else f"value {change.position}")
    values = ", ".join(f"{side}: {value}" for side, value in change.values.items())
    text = f"{name}  {values}"
    if change.peers_median is not None:
        text += f"  (peers' median {change.peers_median:g}, off by {change.distance or 0:g})"
    return text


def _summary(found: Comparison) -> str:
    counts = found.counts
    return (
        f"{counts['equal']} equal, {counts['insert']} inserted, {counts['delete']} deleted, "
        f"{counts['change']} changed"
    )
