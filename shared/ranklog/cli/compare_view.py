"""A comparison for people: ranks next to each other, what differs marked in the gutter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from ranklog.cli.console import Console
from ranklog.cli.tables import fit, pad
from ranklog.spmd.variables import without_clock

_SIGNS = {"equal": " ", "insert": "+", "delete": "-", "change": "~"}
_COLOURS = {"equal": "dim", "insert": "green", "delete": "red", "change": "yellow"}
_WORDS = {"equal": "equal", "insert": "inserted", "delete": "deleted", "change": "changed"}
# Narrower columns say nothing; then each side gets lines of its own.
_COLUMN_MIN = 32
_NOT_SIDES = ("name", "position", "peers_median", "distance")


def show_comparison(console: Console, hunks: Sequence[Mapping[str, Any]]) -> None:
    """The hunks of one or several comparisons, then how many places of each verdict there are."""
    place: object = None
    labels: list[str] = []
    for hunk in hunks:
        if list(hunk["ranks"]) != labels:
            labels = list(hunk["ranks"])
            _show_heads(console, labels)
        now = (labels, hunk.get("attempt"), hunk["iteration"])
        if now != place:
            console.line(console.paint(_heading(hunk), "dim"))
            place = now
        if _column(console, labels) >= _COLUMN_MIN:
            _show_beside(console, hunk)
        else:
            _show_below(console, hunk)
        for change in hunk["values"]:
            console.line(console.paint("    " + _change(console, change), _COLOURS["change"]))
    console.line(_summary(hunks))


def _column(console: Console, labels: Sequence[str]) -> int:
    return (console.width - 2 - 3 * (len(labels) - 1)) // len(labels)


def _show_heads(console: Console, labels: Sequence[str]) -> None:
    column = _column(console, labels)
    if column < _COLUMN_MIN:
        return
    heads = [pad(fit(f"rank {console.safe(label)}", column), column) for label in labels]
    console.line(console.paint("  " + " │ ".join(heads).rstrip(), "bold"))


def _heading(hunk: Mapping[str, Any]) -> str:
    iteration = hunk["iteration"]
    where = "no iteration" if iteration is None else f"iteration {iteration}"
    attempt = f"attempt {hunk['attempt']}, " if hunk.get("attempt") else ""
    return f"── {attempt}{where} ──"


def _show_beside(console: Console, hunk: Mapping[str, Any]) -> None:
    op, columns = hunk["op"], hunk["ranks"]
    column = _column(console, list(columns))
    for row in zip_longest(*columns.values()):
        texts = [pad(fit(_text(console, line), column), column) for line in row]
        shown = f"{_SIGNS[op]} {' │ '.join(texts).rstrip()}"
        console.line(console.paint(shown, _COLOURS[op]))


def _show_below(console: Console, hunk: Mapping[str, Any]) -> None:
    op = hunk["op"]
    for label, lines in hunk["ranks"].items():
        for line in lines:
            shown = f"{_SIGNS[op]} rank {console.safe(label)} │ {_text(console, line)}"
            console.line(console.paint(fit(shown, console.width), _COLOURS[op]))


def _text(console: Console, line: Mapping[str, Any] | None) -> str:
    return "" if line is None else console.safe(without_clock(line["text"])).replace("\t", " ")


def _change(console: Console, change: Mapping[str, Any]) -> str:
    name, position = change["name"], change["position"]
    name = name or ("value" if position is None else f"value {position}")
    sides = {key: value for key, value in change.items() if key not in _NOT_SIDES}
    text = f"{name}  " + ", ".join(f"{side}: {_number(value)}" for side, value in sides.items())
    if change["peers_median"] is not None:
        middle, distance = _number(change["peers_median"]), _number(change["distance"])
        text += f"  (peers' median {middle}, off by {distance})"
    return console.safe(text)


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _summary(hunks: Sequence[Mapping[str, Any]]) -> str:
    counts = dict.fromkeys(_WORDS, 0)
    for hunk in hunks:
        counts[hunk["op"]] += max(map(len, hunk["ranks"].values()), default=0)
    if not counts["equal"]:
        del counts["equal"]
    return ", ".join(f"{count} {_WORDS[op]}" for op, count in counts.items())
