"""A triage as one HTML page: no script, nothing to load, every text of a log escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from html import escape
from typing import Any

from ranklog.cli import triage_heat
from ranklog.cli.times import shown_time, spread_view
from ranklog.cli.triage_view import WORDS, shown_whom, suspect_name, together

_STYLE = """
:root{color-scheme:light dark;--ink:#1d2025;--dim:#667;--paper:#fff;--field:#f1f3f5;--line:#e3e6ea;
--bad:#b3261e;--good:#1b6e3c;--odd:#d97706}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#9aa3ad;--paper:#15181c;--field:#22272e;
--line:#323942;--bad:#ff7b6e;--good:#6fd08c;--odd:#f5a623}}
body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:76em;padding:0 1.2em;
color:var(--ink);background:var(--paper)}
h1{font-size:1.45em;margin:0 0 .2em;overflow-wrap:anywhere}h2{font-size:1.08em;margin:2em 0 .5em}
.bad{color:var(--bad)}.good{color:var(--good)}.dim{color:var(--dim)}
.lead{font-size:1.08em;margin:.2em 0 1em;overflow-wrap:anywhere}
code,.text{font:12px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}
td,th{padding:.25em .8em .25em 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--dim)}td.fix,th.fix{white-space:nowrap;width:1%}td.whom{min-width:5em;max-width:14em}
.facts{display:flex;flex-wrap:wrap;gap:.4em 2.2em;margin:1em 0}.facts b{display:block;font-weight:600}
.suspect{border-left:4px solid var(--bad);background:var(--field);padding:.6em 1em;margin:.6em 0}
.suspect b{font-size:1.05em}.suspect table{margin-top:.4em}
summary{cursor:pointer;color:var(--dim)}
.step{margin:.7em 0}.step code{display:block;background:var(--field);padding:.45em .7em;user-select:all}
.legend span{margin-right:1.6em}
.swatch{display:inline-block;width:1.1em;height:.8em;margin:0 .3em 0 .5em;background:var(--field)}
.swatch.err{background:var(--bad)}.swatch.odd{background:var(--odd)}
.swatch.gone{background:var(--dim);opacity:.4}
footer{margin-top:3em;border-top:1px solid var(--line);padding-top:.6em;color:var(--dim)}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_SHORT, _LONG = 240, 4000  # characters of a line that are seen at once, and at all
_LINES_OPEN = 3
# Controls, and what turns the direction of writing: shown as what they are, not done.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def render_page(found: Mapping[str, Any], zone: tzinfo) -> str:
    """The whole page."""
    name = _safe(str(found["run"]))
    good = "good" if found["class"] == "none" else "bad"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{name}: {escape(found['class'])}</title>",
        f"<style>{_STYLE}{triage_heat.STYLE}</style></head><body>",
        f'<h1>{name}: <span class="{good}">{escape(found["class"])}</span></h1>',
        _lead(found),
        _facts(found),
        _suspects(found, zone),
        triage_heat.render_heat(found.get("heat"), zone),
        _timeline(found["timeline"], zone),
        _evidence(found, zone),
        _steps(found["next_steps"]),
        _foot(found, zone),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _lead(found: Mapping[str, Any]) -> str:
    words = [WORDS.get(found["class"], ""), str(found.get("why") or "")]
    text = ": ".join(_safe(word.rstrip(".")) for word in words if word)
    end = "" if text.endswith(("…", "!", "?")) else "."
    return f'<p class="lead">{text[:1].upper()}{text[1:]}{end}</p>'


def _facts(found: Mapping[str, Any]) -> str:
    checkpoint = found["last_checkpoint"]
    state = "" if checkpoint is None else "complete" if checkpoint["complete"] else "not complete"
    rows = {
        "attempt": found["attempt"],
        "last iteration": found["last_iteration"],
        "last checkpoint": None if checkpoint is None else f"{checkpoint['iteration']} ({state})",
        "state": "it may still go on" if found.get("live") else None,
        "completeness of these logs": found["completeness"]["state"],
    }
    cells = "".join(
        f'<div><span class="dim">{name}</span><b>{_safe(str(value))}</b></div>'
        for name, value in rows.items()
        if value is not None
    )
    return f'<div class="facts">{cells}</div>'


def _suspects(found: Mapping[str, Any], zone: tzinfo) -> str:
    if found["undecidable"]:
        return "<h2>Suspects</h2><p>Undecidable from these logs: they name nobody.</p>"
    if not found["suspects"]:
        return ""
    cards = []
    for suspect in found["suspects"]:
        lines = suspect["evidence"]
        shown = _table(lines[:_LINES_OPEN], zone)
        if rest := lines[_LINES_OPEN:]:
            shown += f"<details><summary>{len(rest)} more</summary>{_table(rest, zone)}</details>"
        cards.append(
            f'<div class="suspect"><b>{_safe(suspect_name(suspect))}</b> '
            f'<span class="dim">score {suspect["score"]:.2f}</span>'
            f"<br>{_text(str(suspect['why']))}{shown}</div>"
        )
    return f"<h2>Suspects</h2>{''.join(cards)}"


def _timeline(events: Sequence[Mapping[str, Any]], zone: tzinfo) -> str:
    if not events:
        return ""
    clock = spread_view([event["ts_ns"] for event in events], zone)
    rows = "".join(
        f'<tr><td class="fix">{escape(clock(event["ts_ns"]))}</td>'
        f'<td class="fix">{escape(event["event"].replace("_", " "))}</td>'
        f'<td class="whom">{shown_whom(ranks)}</td><td class="fix">{_cell(event["iteration"])}</td>'
        f"<td>{_said(event)}</td></tr>"
        for event, ranks in together(events)
    )
    names = ("time", "event", "whom", "iteration")
    head = "".join(f'<th class="fix">{name}</th>' for name in names) + "<th></th>"
    return f"<h2>Timeline</h2><table><tr>{head}</tr>{rows}</table>"


def _said(event: Mapping[str, Any]) -> str:
    line = event["line"]
    note = _safe(str(event.get("note") or ""))
    return note + (" " if note and line else "") + ("" if line is None else _text(line["text"]))


def _evidence(found: Mapping[str, Any], zone: tzinfo) -> str:
    """Lines that no suspect shows already."""
    seen = {line["id"] for suspect in found["suspects"] for line in suspect["evidence"]}
    lines = [line for line in found["evidence"] if line["id"] not in seen]
    return f"<h2>Evidence</h2>{_table(lines, zone)}" if lines else ""


def _table(lines: Sequence[Mapping[str, Any]], zone: tzinfo) -> str:
    clock = spread_view([line["ts_ns"] for line in lines], zone)
    rows = "".join(
        f'<tr><td class="fix dim">{escape(clock(line["ts_ns"]))}</td>'
        f'<td class="fix dim">{_who(line)}</td><td>{_text(line["text"])}</td></tr>'
        for line in lines
    )
    return f"<table>{rows}</table>" if rows else ""


def _who(line: Mapping[str, Any]) -> str:
    return f"rank {line['rank']}" if line["rank"] is not None else _safe(line["host"] or "")


def _text(text: str) -> str:
    """A line; of a long one the beginning, and the rest on a click."""
    text = text.strip()
    if len(text) <= _SHORT:
        return f'<span class="text">{_safe(text)}</span>'
    rest = _safe(text[_SHORT:_LONG]) + ("…" if len(text) > _LONG else "")
    return (
        f'<details><summary class="text">{_safe(text[:_SHORT])}…</summary>'
        f'<span class="text">…{rest}</span></details>'
    )


def _safe(text: str) -> str:
    return escape(_CONTROLS.sub(_picture, text))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def _cell(value: Any) -> str:
    return "" if value is None else _safe(str(value))


def _steps(steps: Sequence[Mapping[str, Any]]) -> str:
    if not steps:
        return ""
    items = "".join(
        f'<div class="step">{_safe(step["text"])}'
        + (f"<code>{_safe(step['command'])}</code>" if step["command"] else "")
        + "</div>"
        for step in steps
    )
    page = escape(steps[0]["runbook"])
    return f'<h2>What to do next</h2>{items}<p class="dim">{page} says more.</p>'


def _foot(found: Mapping[str, Any], zone: tzinfo) -> str:
    times = [event["ts_ns"] for event in found["timeline"]]
    span = f", {shown_time(min(times), zone)} to {shown_time(max(times), zone)}" if times else ""
    return f"<footer>ranklog triage of {_safe(str(found['run']))}{span}; times in {zone}</footer>"
