"""`ranklog version`."""

from __future__ import annotations

import argparse
import platform

from ranklog._version import VERSION
from ranklog.cli.console import Console


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print the version, of Python too."""
    if console.json:
        console.object({"version": VERSION, "python": platform.python_version()})
    else:
        console.line(f"ranklog {VERSION} (Python {platform.python_version()})")
    return 0
