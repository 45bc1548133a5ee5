"""`ranklog replay DIR`: what a spool holds that no agent works on any more, to where it belongs."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ranklog.cli.console import Console
from ranklog.cli.scope import FOUND
from ranklog.cli.tables import shown_bytes
from ranklog.errors import BadInput

NOT_ALL = 1


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Send it all; 1 where some is left, and why."""
    from ranklog.agent.replay import replay

    destination = arguments.destination or os.environ.get("RANKLOG_DESTINATION")
    if not destination:
        raise BadInput("send where?", hint="--destination, or $RANKLOG_DESTINATION")
    done = replay(
        Path(arguments.dir_words).absolute(), destination, os.environ, timeout_s=arguments.timeout
    )
    if console.json:
        console.object(
            {
                "report": {
                    "frames": done.frames,
                    "bytes": done.bytes,
                    "refused": done.refused,
                    "left": done.left,
                    "error": done.error or None,
                }
            }
        )
    else:
        console.line(f"{done.frames:,} frames sent ({shown_bytes(done.bytes)})")
    if done.left or done.refused:
        console.note(f"{done.left:,} frames left, {done.refused:,} refused: {done.error}")
    return NOT_ALL if done.left or done.refused else FOUND
