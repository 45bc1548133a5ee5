"""`ranklog runs`: what is there, and what each run says of itself."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from ranklog.answer.manifests import flatten
from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.rows import print_objects, ranks_of, say_around, state_of
from ranklog.cli.scope import exit_code, restrictions
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table, shown_bytes
from ranklog.cli.times import shown_span, shown_time, zone_of

HEADS = (
    "run state attempts ranks world owner tags first took iteration lines bytes complete".split()
)
# Members that are long, and of which people want a count first; --json has all of it.
_COUNTED = ("packages", "environment", "ranks")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """List launches of runs, newest first."""
    zone = zone_of(arguments.tz)
    query, whole = query_text(arguments), bool(arguments.manifest)
    listing = open_client(arguments).runs(query, manifest=whole, **restrictions(arguments))
    if console.json:
        print_objects(console, listing.rows, listing)
        return exit_code(bool(listing.rows), listing.completeness)
    rows = [_row(launch, zone) for launch in listing.rows]
    if rows:
        heads, at = list(HEADS), HEADS.index("bytes")
        if any(launch["points"] for launch in listing.rows):
            heads.insert(at, "points")
            for row, launch in zip(rows, listing.rows, strict=True):
                row.insert(at, launch["points"])
        print_table(console, heads, rows, wide=0)
    if whole:
        for launch in listing.rows:
            _print_manifest(console, launch)
    say_around(console, listing, arguments, zone)
    return exit_code(bool(rows), listing.completeness)


def _row(launch: Mapping[str, Any], zone: tzinfo) -> list[Any]:
    return [
        launch["run_id"],
        launch["state"],
        len(launch["attempts"]),
        ranks_of(launch["ranks"]),
        _world(launch),
        launch["owner"],
        _tags(launch["tags"]),
        shown_time(launch["first_ns"], zone),
        _took(launch["first_ns"], launch["last_ns"]),
        launch["last_iteration"],
        launch["lines"],
        shown_bytes(launch["bytes"] or 0),
        state_of(launch["completeness"]),
    ]


def _world(launch: Mapping[str, Any]) -> str | None:
    """`16=2x8 tp8 dp2`: world size, hosts by ranks on each, sizes of declared groups."""
    size, shape = launch["world_size"], launch.get("topology") or {}
    if size is None:
        return None
    each = shape.get("ranks_per_host")
    places = f"={shape['hosts']}x{each}" if isinstance(each, int) and shape["hosts"] > 1 else ""
    groups = "".join(f" {name}{count}" for name, count in shape.get("groups", {}).items())
    return f"{size}{places}{groups}"


def _tags(tags: Mapping[str, Any]) -> str | None:
    return " ".join(f"{k}={v}" if v != "" else k for k, v in tags.items()) or None


def _print_manifest(console: Console, launch: Mapping[str, Any]) -> None:
    """One key a line, nested ones with dots."""
    manifest = launch["manifest"]
    console.line(console.safe(f"\n{launch['run_id']}" + ("" if manifest else "  (no manifest)")))
    for member in sorted(manifest):
        value = manifest[member]
        if member in _COUNTED:
            console.line(f"  {member}  {len(value)}, with --json")
        elif member in ("command", "launch_command"):
            console.line(console.safe(f"  {member}  {_shown(' '.join(map(str, value)))}"))
        elif isinstance(value, (Mapping, list)):
            for key, item in flatten(value, member).items():
                console.line(console.safe(f"  {key}  {_shown(item)}"))
        else:
            console.line(console.safe(f"  {member}  {_shown(value)}"))


def _shown(value: Any) -> str:
    """On one line, whatever is in it."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)


def _took(first_ns: int | None, last_ns: int | None) -> str | None:
    return None if first_ns is None or last_ns is None else shown_span(last_ns - first_ns)
