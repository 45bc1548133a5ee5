"""`ranklog sql`: DuckDB SQL over the lines."""

from __future__ import annotations

import argparse
import base64
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from ranklog.answer.render import completeness_json, json_number, report_json
from ranklog.cli.console import Console
from ranklog.cli.scope import exit_code, restrictions, say_completeness, say_scope
from ranklog.cli.source import open_client
from ranklog.cli.tables import print_table
from ranklog.cli.times import zone_of
from ranklog.errors import BadInput


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print the rows of one statement."""
    statement = " ".join(arguments.select_words).strip()
    if not statement:
        raise BadInput("which statement?", hint="ranklog sql 'SELECT count(*) FROM lines'")
    zone = zone_of(arguments.tz)
    client = open_client(arguments)
    answer = client.sql(statement, timeout_s=arguments.timeout, **restrictions(arguments))
    rows = list(answer.rows())
    if console.json:
        for row in rows:
            console.object(dict(zip(answer.columns, map(_plain, row), strict=True)))
        report = report_json(answer.report) | {"rows": len(rows)}
        console.object({"report": report, "completeness": completeness_json(answer.completeness)})
    else:
        if rows:
            print_table(console, answer.columns, [[_shown(value) for value in row] for row in rows])
        say_scope(console, answer.report, arguments, zone)
        say_completeness(console, answer.completeness, zone)
    return exit_code(bool(rows), answer.completeness)


def _plain(value: Any) -> Any:
    """A value of Arrow as one of JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, bool | int | float | str):
        return json_number(value)
    return str(value)


def _shown(value: Any) -> Any:
    plain = _plain(value)
    return plain if plain is None or isinstance(plain, int | float) else str(plain)
