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
_OPS = {"added": "insert", "removed": "delete", "changed": "change"}
_NOT_SIDES = ("name", "position", "peers_median", "distance")


def show_comparison(
    console: Console, rows: Sequence[Mapping[str, Any]], *, unified: bool = False
) -> None:
    """What changed in manifests, the hunks, then how many places of each verdict there are."""
    facts = [row for row in rows if row["op"] == "manifest"]
    hunks = [row for row in rows if row["op"] != "manifest"]
    _show_facts(console, facts)
    place: object = None
    labels: list[str] = []
    for hunk in hunks:
        if list(hunk["ranks"]) != labels:
            labels = list(hunk["ranks"])
            if not unified:
                _show_heads(console, labels)
        now = (labels, hunk.get("attempt"), hunk["iteration"])
        if now != place:
            console.line(console.paint(_heading(hunk), "dim"))
            place = now
        if unified:
            _show_unified(console, hunk)
        elif _column(console, labels) >= _COLUMN_MIN:
            _show_beside(console, hunk)
        else:
            _show_below(console, hunk)
        # metadata that a rule took from the text says the same once more
        for shown in dict.fromkeys(_change(console, change) for change in hunk["values"]):
            console.line(console.paint("    " + shown, _COLOURS["change"]))
    console.line(_summary(hunks, len(facts)))


def _show_facts(console: Console, facts: Sequence[Mapping[str, Any]]) -> None:
    """Facts by section: `~ config.lr  0.1 → 0.3  (by 0.2)`."""
    section = None
    width = max((len(fact["key"]) for fact in facts), default=0)
    for fact in facts:
        if fact["section"] != section:
            section = fact["section"]
            console.line(console.paint(f"── {section} ──", "dim"))
        first, second = (console.safe(_fact(value)) for value in fact["values"].values())
        values = {"added": second, "removed": first}.get(fact["change"], f"{first} → {second}")
        by = "" if fact["distance"] is None else f"  (by {_number(fact['distance'])})"
        op = _OPS[fact["change"]]
        shown = f"{_SIGNS[op]} {console.safe(fact['key']):<{width}}  {values}{by}"
        console.line(console.paint(shown, _COLOURS[op]))


def _fact(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else _number(value)


def _show_unified(console: Console, hunk: Mapping[str, Any]) -> None:
    """The first side's lines with a minus, the others' with a plus, as in a patch."""
    op = hunk["op"]
    first = next(iter(hunk["ranks"]))
    for label, lines in hunk["ranks"].items():
        for line in lines:
            own = {"change": "delete" if label == first else "insert"}.get(op, op)
            if op == "equal" and label != first:
                continue
            shown = f"{_SIGNS[own]} {_side(console, label)} │ {_text(console, line)}"
            console.line(console.paint(shown, _COLOURS[own]))


def _column(console: Console, labels: Sequence[str]) -> int:
    return (console.width - 2 - 3 * (len(labels) - 1)) // len(labels)


def _show_heads(console: Console, labels: Sequence[str]) -> None:
    column = _column(console, labels)
    if column < _COLUMN_MIN:
        return
    heads = [pad(fit(_side(console, label), column), column) for label in labels]
    console.line(console.paint("  " + " │ ".join(heads).rstrip(), "bold"))


def _side(console: Console, label: str) -> str:
    """`rank 7`; a run that names no ranks, `llama@17`, is its own name."""
    named = label.isdecimal() or label.rpartition(":")[2].isdecimal()
    return f"rank {console.safe(label)}" if named else console.safe(label)


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
            shown = f"{_SIGNS[op]} {_side(console, label)} │ {_text(console, line)}"
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


def _summary(hunks: Sequence[Mapping[str, Any]], facts: int) -> str:
    counts = dict.fromkeys(_WORDS, 0)
    for hunk in hunks:
        counts[hunk["op"]] += max(map(len, hunk["ranks"].values()), default=0)
    if not counts["equal"]:
        del counts["equal"]
    shown = ", ".join(f"{count} {_WORDS[op]}" for op, count in counts.items())
    return f"{facts} facts of the manifests differ; lines: {shown}" if facts else shown
