"""`ranklog outliers`: all ranks against the consensus of their peers."""

from __future__ import annotations

import argparse
from pathlib import Path

from ranklog.answer.render import completeness_json, report_json
from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.heat_png import render_labelled
from ranklog.cli.outliers_view import show_outliers
from ranklog.cli.scope import restrictions, say_completeness, say_scope
from ranklog.cli.source import open_client
from ranklog.cli.times import zone_of
from ranklog.errors import BadInput

ODD = 4


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0 whatever it finds, unless `--exit-code`."""
    zone = zone_of(arguments.tz)
    if not arguments.run:
        raise BadInput("outliers of which run?", hint="--run NAME")
    found = open_client(arguments).outliers(query_text(arguments), **restrictions(arguments))
    if arguments.png:
        _write(Path(arguments.png), render_labelled(found.summary["heat"]))
        console.note(f"wrote {arguments.png}")
    if console.json:
        for row in found.rows:
            console.object(row)
        console.object(
            {
                "report": report_json(found.report),
                "summary": found.summary,
                "completeness": completeness_json(found.completeness),
            }
        )
    else:
        show_outliers(console, found.rows, found.summary, zone, everything=arguments.all)
        say_scope(console, found.report, arguments, zone)
        say_completeness(console, found.completeness, zone)
    return ODD if arguments.exit_code and found.odd else 0


def _write(path: Path, picture: bytes) -> None:
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise BadInput(
            f"can't write {path}: {error.strerror}", hint="name another --png"
        ) from error
