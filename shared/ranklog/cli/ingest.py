"""`ranklog ingest STREAM`: what producers put into a local stream, into a store."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
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
# Counts of lines that are not stored: why, as is said.
_NOT_STORED = {
    "known": "known from an earlier attempt",
    "repeated": "repeated",
    "refused": "refused: older than is kept",
}
_COUNTED = ("lines", *_NOT_STORED, "bytes", "quarantined")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Ingest what is there; with --follow, go on until ctrl-c. Ingesting again stores nothing."""
    from ranklog.stream.disk import DiskStream

    folder = Path(arguments.stream_words)
    if not (folder / "records").is_dir():
        raise BadInput(
            f"{folder} holds no local stream",
            hint="name the folder that producers have as destination",
        )
    store, _ = open_store_of(arguments, create=True)
    stream = DiskStream(folder)
    total = dict.fromkeys(_COUNTED, 0)
    for report in _reports(stream, store, follow=arguments.follow, again=arguments.again):
        stored = _counts(report)
        total = {name: count + stored[name] for name, count in total.items()}
        _show(console, report, stored)
    if console.json:
        console.object({"report": total})
    elif not any(total.values()):
        console.note(
            "nothing new" if arguments.again else "nothing new (--again: all that is there)"
        )
    return FOUND


def _reports(
    stream: DiskStream, store: Store, *, follow: bool, again: bool
) -> Iterator[IngestReport]:
    """One per batch; with `follow` they do not end."""
    from ranklog.ingest.local import ingest_stream
    from ranklog.objectives.recorder import Recorder

    recorder = Recorder(store, background=follow)
    try:
        yield from ingest_stream(stream, store, recorder, again=again)
        while follow:
            time.sleep(LOOK_EVERY_S)
            yield from ingest_stream(stream, store, recorder)
    finally:
        recorder.flush()


def _counts(report: IngestReport) -> dict[str, int]:
    return {
        "lines": report.lines - report.known,
        "known": report.known,
        "repeated": report.repeated,
        "refused": report.refused,
        "bytes": report.segment_bytes + report.index_bytes,
        "quarantined": len(report.bad),
    }


def _show(console: Console, report: IngestReport, stored: dict[str, int]) -> None:
    if console.json:
        console.object(stored)
    else:
        count = stored["lines"]
        said = "1 line" if count == 1 else f"{count:,} lines"
        # Not "stored": whether other records brought a line before, only its readers find out.
        parts = [f"{said} ingested"]
        parts += [f"{stored[name]:,} {why}" for name, why in _NOT_STORED.items() if stored[name]]
        console.line(f"{', '.join(parts)} ({shown_bytes(stored['bytes'])})")
    sys.stdout.flush()  # somebody may follow
    for frame in report.bad:
        console.note(f"quarantined: {frame.reason}: {frame.key}")
    for rule, reason in report.rules_failed.items():
        console.note(f"rule {rule}: {reason}")
