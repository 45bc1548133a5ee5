"""Outliers for people: the odd ranks with their evidence, what they have in common, a heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from ranklog.cli.console import Console
from ranklog.cli.tables import fit, pad, shown_ranks
from ranklog.cli.times import spread_view

_SIGNS = {"insert": "+", "delete": "-", "change": "~", "silent": "…", "slow": "»"}
_COLOURS = {
    "insert": "green",
    "delete": "red",
    "change": "yellow",
    "silent": "magenta",
    "slow": "blue",
}
_WORDS = {
    "insert": "its peers do not say this",
    "delete": "its peers say this",
    "change": "another value",
    "silent": "silent",
    "slow": "slow",
}
_SHADES = " ░▒▓█"
_RANKS_SHOWN = 16
_EVIDENCE_SHOWN = 4
_HEAT_FROM = 0.02


def show_outliers(
    console: Console,
    rows: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
    zone: tzinfo,
    *,
    everything: bool = False,
) -> None:
    """What is odd, in words and as a map; `everything`: what deviates a little, too."""
    shown = [row for row in rows if row["odd"] or everything]
    console.line(console.paint(_heading(summary), "bright red" if summary["odd"] else "green"))
    if summary["group"] is not None:
        console.line("  " + console.safe(_group(summary["group"])))
    for row in shown[:_RANKS_SHOWN]:
        _show_rank(console, row)
    if len(shown) > _RANKS_SHOWN:
        console.line(f"… {len(shown) - _RANKS_SHOWN} more ranks: --json has them")
    rest = len(rows) - len(shown)
    if rest:
        console.line(console.paint(f"{rest} others deviate a little: --all shows them", "dim"))
    if shown:
        _show_heat(console, summary["heat"], zone)


def _heading(summary: Mapping[str, Any]) -> str:
    attempt = f", attempt {summary['attempt']}" if summary["attempt"] else ""
    of = f"of {summary['ranks']} ranks, {summary['lines']} lines"
    odd = summary["odd"]
    what = f"odd: rank {shown_ranks(sorted(odd))}" if odd else "no odd rank"
    return f"{summary['run']}{attempt}: {what} {of}"


def _group(group: Mapping[str, Any]) -> str:
    text = f"all of {group['name']}" if group["name"] != "all" else "nearly all ranks"
    if group["exceptions"]:
        text += f" but rank {shown_ranks(group['exceptions'])}"
    if group["others"]:
        text += f", and rank {shown_ranks(group['others'])}"
    return text


def _show_rank(console: Console, row: Mapping[str, Any]) -> None:
    colour = console.rank_colour(row["rank"])
    name = console.paint(f"rank {row['rank']}", colour)
    console.line(f"{row['score']:.2f}  {name}" + (f"  ({row['group']})" if row["group"] else ""))
    for item in row["evidence"][:_EVIDENCE_SHOWN]:
        text = f"    {_SIGNS[item['kind']]} {_said(item)}"
        shown = fit(console.safe(text).replace("\t", " "), console.width)
        console.line(console.paint(shown, _COLOURS[item["kind"]]))
    more = len(row["evidence"]) - _EVIDENCE_SHOWN
    if more > 0:
        console.line(console.paint(f"    {more} more", "dim"))


def _said(item: Mapping[str, Any]) -> str:
    where = "" if item["iteration"] is None else f" at iteration {item['iteration']}"
    parts = [_WORDS[item["kind"]] + where]
    if item["kind"] in ("change", "slow") and item["name"]:
        parts.append(f"{item['name']} {item['got']} where peers have {item['expected']}")
    elif item["kind"] == "silent":
        parts.append(f"{item['got']}, peers: {item['expected']}")
    text = item["lines"][0]["text"].strip() if item["lines"] else item["template"] or ""
    if text:
        parts.append(text)
    return ": ".join(parts)


def _show_heat(console: Console, heat: Mapping[str, Any], zone: tzinfo) -> None:
    """Rows of ranks with anomalies, the first and the last column named."""
    marked = [
        (ranks, cells)
        for ranks, cells in zip(heat["rows"], heat["cells"], strict=True)
        if max(cells) >= _HEAT_FROM
    ]
    if not marked:
        return
    labels = [f"{a}" if a == b else f"{a}-{b}" for (a, b), _ in marked]
    width = max(4, *map(len, labels))
    console.line()
    for label, (_, cells) in zip(labels, marked, strict=True):
        shades = "".join(_SHADES[_shade(value)] for value in cells)
        console.line(f"{pad(label, width, right=True)} │{console.paint(shades, 'red')}│")
    edges = heat["edges"]
    view = spread_view([edges[0], edges[-1]], zone) if heat["axis"] == "time" else str
    first, last = view(edges[0]), view(edges[-1])
    columns = len(heat["cells"][0])
    room = max(1, columns - len(first) - len(last))
    console.line(f"{'rank':>{width}}  {first}{' ' * room}{last}  {heat['axis']}")


def _shade(value: float) -> int:
    if value < _HEAT_FROM:
        return 0
    return min(len(_SHADES) - 1, 1 + int(value * (len(_SHADES) - 1)))
