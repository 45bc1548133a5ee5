"""A frame that ingest itself breaks on holds up nobody: the batch is cut until it is alone, and set aside.

Only what no frame of ours should do is met so: a bug. What the store, the memory or the disk refuses is
raised as ever, since the next attempt may be taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

from ranklog.errors import RanklogError
from ranklog.ingest.parts import IngestReport
from ranklog.ingest.quarantine import BadFrame
from ranklog.ingest.records import Received
from ranklog.ingest.shares import Share

# Not a frame's fault: the machine's, the store's, or what the whole batch is told.
OTHERS_FAULTS = (RanklogError, MemoryError, OSError, ImportError)


def ingest_apart(
    received: Sequence[Received],
    first: str,
    last: str,
    ingest: Callable[[Sequence[Received], str, str], IngestReport],
    keep: Callable[[Received, str], BadFrame],
) -> IngestReport:
    """`ingest` of all frames under the names `first` and `last`, or of their halves under their own."""
    try:
        return ingest(received, first, last)
    except OTHERS_FAULTS:
        raise
    except Exception as error:
        if not received:
            raise
        if len(received) == 1:
            return IngestReport(bad=[keep(received[0], f"ingest failed: {error!r:.300}")])
    middle = len(received) // 2
    report = IngestReport()
    for half in (received[:middle], received[middle:]):
        names = half[0].sequence, half[-1].sequence
        _add(report, ingest_apart(half, *names, ingest, keep))
    return report


def _add(report: IngestReport, part: IngestReport) -> None:
    for name in (item.name for item in fields(IngestReport)):
        said = getattr(part, name)
        if isinstance(said, dict):
            continue
        setattr(report, name, getattr(report, name) + said)
    report.rules_failed |= part.rules_failed
    report.refused_of += part.refused_of
    for tenant, share in part.shares.items():
        known = report.shares.get(tenant, Share())
        counts = {
            name: known.counts.get(name, 0) + share.counts.get(name, 0)
            for name in known.counts.keys() | share.counts.keys()
        }
        frames = (*known.frames, *share.frames)
        report.shares[tenant] = Share(counts, frames, known.is_new or share.is_new)
