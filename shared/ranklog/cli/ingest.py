"""`ranklog ingest STREAM`: what producers put into a local stream, into a store."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ranklog.cli.console import Console
from ranklog.cli.scope import FOUND
from ranklog.cli.source import open_store_of
from ranklog.cli.tables import shown_bytes
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.ingest.batch import IngestReport
    from ranklog.store.protocol import Store
    from ranklog.stream.disk import DiskStream

# Between two looks at a stream that is followed.
LOOK_EVERY_S = 0.5


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Ingest what is there; with --follow, go on until ctrl-c. Ingesting again stores nothing."""
    from ranklog.stream.disk import DiskStream

    folder = Path(arguments.stream_words)
    if not (folder / "records").is_dir():
        raise BadInput(
            f"{folder} holds no local stream",
            hint="name the folder that producers have as destination",
        )
    # tenants are named in the frames
    arguments.api, arguments.tenant = None, None
    store, _ = open_store_of(arguments, create=True)
    stream = DiskStream(folder)
    total = _ingest(stream, store, console)
    while arguments.follow:
        time.sleep(LOOK_EVERY_S)
        _ingest(stream, store, console)
    if console.json:
        console.object({"report": total})
    return FOUND


def _ingest(stream: DiskStream, store: Store, console: Console) -> dict[str, int]:
    """One look: every batch that waits."""
    from ranklog.ingest.local import ingest_stream

    total = {"lines": 0, "bytes": 0, "quarantined": 0}
    for report in ingest_stream(stream, store):
        total["lines"] += report.lines
        total["bytes"] += report.segment_bytes + report.index_bytes
        total["quarantined"] += len(report.bad)
        _show(console, report)
    if not any(total.values()) and not console.json:
        console.note("nothing new")
    return total


def _show(console: Console, report: IngestReport) -> None:
    if not console.json:
        stored = report.segment_bytes + report.index_bytes
        lines = "1 line" if report.lines == 1 else f"{report.lines:,} lines"
        console.line(f"{lines} stored ({shown_bytes(stored)})")
    for frame in report.bad:
        console.note(f"quarantined: {frame.reason}: {frame.key}")
    for rule, reason in report.rules_failed.items():
        console.note(f"rule {rule}: {reason}")
