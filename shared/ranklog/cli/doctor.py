"""`ranklog doctor [-- CMD]`: what would and wouldn't be captured here, and what to do about it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ranklog.cli.console import Console

_COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Look, tell, change nothing; 2 where lines will be missing."""
    # What looks at agent and launchers is imported by this command alone.
    from ranklog.doctor.examine import examine, has_problem

    checks = examine(
        list(arguments.cmd_words),
        os.environ,
        destination=arguments.destination,
        spool_dir=Path(arguments.spool) if arguments.spool else None,
    )
    found = has_problem(checks)
    if console.json:
        for check in checks:
            console.object(check.to_json())
        console.object({"report": {"checks": len(checks), "problems": found}})
        return 2 if found else 0
    width = max(len(check.name) for check in checks)
    for check in checks:
        state = console.paint(f"{check.state:<7}", _COLOURS[check.state])
        console.line(f"{check.name:<{width}}  {state}  {console.safe(check.says)}")
        console.line(f"{'':<{width}}           {console.safe(check.do)}")
    return 2 if found else 0
