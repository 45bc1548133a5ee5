"""A triage as one HTML page: no script, nothing to load, every text of a log escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from html import escape
from typing import Any

from ranklog.cli.times import shown_time
from ranklog.cli.triage_view import WORDS, suspect_name

_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#222}
h1{font-size:1.4em}h2{font-size:1.05em;margin-top:1.6em}
.bad{color:#b3261e}.good{color:#1b6e3c}.dim{color:#666}
pre,code,td.text{font:12px/1.4 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}
td,th{padding:.2em .6em .2em 0;text-align:left;vertical-align:top;border-bottom:1px solid #eee}
.bar{background:#b3261e;height:.6em;display:inline-block}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_page(found: Mapping[str, Any], zone: tzinfo) -> str:
    """The whole page."""
    name = escape(str(found["run"]))
    good = "good" if found["class"] == "none" else "bad"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
        f"<title>{name}: {escape(found['class'])}</title><style>{_STYLE}</style></head><body>",
        f'<h1>{name}: <span class="{good}">{escape(found["class"])}</span></h1>',
        f"<p>{escape(WORDS.get(found['class'], ''))}. {escape(str(found.get('why') or ''))}</p>",
        _facts(found),
        _suspects(found, zone),
        _heat(found.get("heat"), zone),
        _timeline(found["timeline"], zone),
        _lines("Evidence", found["evidence"], zone),
        _steps(found["next_steps"]),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _facts(found: Mapping[str, Any]) -> str:
    checkpoint = found["last_checkpoint"]
    state = "" if checkpoint is None else "complete" if checkpoint["complete"] else "not complete"
    rows = {
        "attempt": found["attempt"],
        "last iteration": found["last_iteration"],
        "last checkpoint": None if checkpoint is None else f"{checkpoint['iteration']} ({state})",
        "completeness of these logs": found["completeness"]["state"],
    }
    cells = "".join(
        f"<tr><th>{name}</th><td>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
        if value is not None
    )
    return f"<table>{cells}</table>"


def _suspects(found: Mapping[str, Any], zone: tzinfo) -> str:
    if found["undecidable"]:
        return "<h2>Suspects</h2><p>Undecidable from these logs.</p>"
    if not found["suspects"]:
        return ""
    rows = []
    for suspect in found["suspects"]:
        width = f"{5 * suspect['score']:.2f}em"
        lines = "".join(_line(line, zone) for line in suspect["evidence"])
        rows.append(
            f'<tr><td><span class="bar" style="width:{width}"></span> {suspect["score"]:.2f}</td>'
            f"<td><b>{escape(suspect_name(suspect))}</b></td>"
            f"<td>{escape(str(suspect['why']))}<details><summary>lines</summary>"
            f"<table>{lines}</table></details></td></tr>"
        )
    return f"<h2>Suspects</h2><table>{''.join(rows)}</table>"


def _heat(heat: Mapping[str, Any] | None, zone: tzinfo) -> str:
    """Ranks from top to bottom, time from left to right, darker where there are more errors."""
    if heat is None or len(heat["rows"]) < 2:
        return ""
    top = max(max(row["errors"]) for row in heat["rows"])
    cells = []
    for y, row in enumerate(heat["rows"]):
        cells.append(f'<text x="0" y="{12 * y + 10}" font-size="10">{row["rank"]}</text>')
        for x, count in enumerate(row["errors"]):
            shade = f"{0.2 + 0.8 * count / top:.2f}" if count else "0.04"
            title = f"<title>rank {row['rank']}: {count}</title>" if count else ""
            place = f'x="{40 + 14 * x}" y="{12 * y}" width="13" height="11"'
            cells.append(f'<rect {place} fill="#b3261e" fill-opacity="{shade}">{title}</rect>')
    width, height = 40 + 14 * len(heat["rows"][0]["errors"]), 12 * len(heat["rows"])
    span = f"{shown_time(heat['from_ns'], zone)} to {shown_time(heat['to_ns'], zone)}"
    return (
        f'<h2>Errors by rank and time</h2><svg width="100%" viewBox="0 0 {width} {height}">'
        f'{"".join(cells)}</svg><p class="dim">{escape(span)}</p>'
    )


def _timeline(events: Sequence[Mapping[str, Any]], zone: tzinfo) -> str:
    if not events:
        return ""
    rows = "".join(
        f"<tr><td>{escape(shown_time(event['ts_ns'], zone))}</td><td>{escape(event['event'])}</td>"
        f"<td>{_cell(event['rank'])}</td><td>{_cell(event['iteration'])}</td>"
        f'<td class="text">{escape(str(event.get("note") or ""))} {_text(event["line"])}</td></tr>'
        for event in events
    )
    head = "<tr><th>time</th><th>event</th><th>rank</th><th>iteration</th><th></th></tr>"
    return f"<h2>Timeline</h2><table>{head}{rows}</table>"


def _lines(title: str, lines: Sequence[Mapping[str, Any]], zone: tzinfo) -> str:
    if not lines:
        return ""
    return f"<h2>{title}</h2><table>{''.join(_line(line, zone) for line in lines)}</table>"


def _line(line: Mapping[str, Any], zone: tzinfo) -> str:
    return (
        f'<tr><td class="dim">{escape(shown_time(line["ts_ns"], zone))}</td>'
        f'<td>{_cell(line["rank"])}</td><td class="text">{_text(line)}</td></tr>'
    )


def _text(line: Mapping[str, Any] | None) -> str:
    return "" if line is None else escape(line["text"].strip()[:2000])


def _cell(value: Any) -> str:
    return "" if value is None else escape(str(value))


def _steps(steps: Sequence[Mapping[str, Any]]) -> str:
    if not steps:
        return ""
    items = "".join(
        f"<li>{escape(step['text'])}<br><code>{escape(step['command'] or '')}</code></li>"
        for step in steps
    )
    page = escape(steps[0]["runbook"])
    return f'<h2>Next</h2><ul>{items}</ul><p class="dim">{page} says more.</p>'
