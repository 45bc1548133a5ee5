"""`ranklog demo`: a real job with a fault, then what ranklog shows of it.

Each view is a command that is printed and then run, so that what is seen can be tried.
"""

from __future__ import annotations

import argparse
import io
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module

from ranklog.cli.arguments import command_of, parse
from ranklog.cli.console import Console
from ranklog.cli.source import open_store_of
from ranklog.cli.times import shown_span

SOUND_RANK = 0


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Train, ingest, show."""
    from ranklog.demo import run_demo
    from ranklog.demo.run import FAULTY_RANK

    store, tenant = open_store_of(arguments, create=True)
    out = io.StringIO() if console.json else sys.stderr
    result = run_demo(store, tenant=tenant, out=out)
    if console.json:
        console.object(
            {
                "run": result.run,
                "run_id": result.run_id,
                "store": store.url,
                "lines": result.lines,
                "exit_codes": {str(rank): code for rank, code in result.exit_codes.items()},
            }
        )
    else:
        failed = sorted(rank for rank, code in result.exit_codes.items() if code)
        console.line(
            f"{result.run_id}: {len(result.exit_codes)} ranks logged {result.lines:,} lines in "
            f"{shown_span(int(result.train_s * 1e9))}; ingested in "
            f"{shown_span(int(result.ingest_s * 1e9))}; rank {', '.join(map(str, failed))} failed"
        )
    # The damaged rank against a sound one: the first rank that is not it.
    odd = min(FAULTY_RANK, len(result.exit_codes) - 1)
    for words in _tour(result.run_id, odd):
        _show([*words, "--store", store.url], console)
    if not console.json:
        console.line(f"try more: ranklog search 'loss' --store {shlex.quote(store.url)}")
    return 0


def _tour(run_id: str, odd: int) -> list[list[str]]:
    return [
        ["search", "level>=WARNING", "--run", run_id, "--order", "oldest", "--limit", "3"],
        ["callsites", "--run", run_id, "--limit", "12"],
        ["compare", "--run", run_id, "--ranks", f"{SOUND_RANK},{odd}", "level>=WARNING"],
    ]


def _show(words: Sequence[str], console: Console) -> None:
    """Run another command with this console."""
    if not console.json:
        console.line()
        console.line(console.paint(f"$ ranklog {shlex.join(words)}", "bold"))
    command = command_of(words[0])
    given = [*words[1:], *(["--json"] if console.json else [])]
    import_module(command.module).run(parse(command, given), console)
