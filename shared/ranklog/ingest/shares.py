"""A tenant's share of a batch: what was stored of it, and how long its lines were under way.

Shapes: a frame has n rows; times are int64 ns, of all rows at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ranklog.ingest.records import Received
from ranklog.objectives import names
from ranklog.objectives.histogram import LAST, Histogram, edge
from ranklog.objectives.measures import Measures

if TYPE_CHECKING:
    from ranklog.ingest.parts import IngestReport
    from ranklog.objectives.recorder import Recorder

# Who numbers lines as they are said; what is imported has the time it had.
_TIMELY = frozenset(["producer", "agent"])
_EDGES_NS = np.array([edge(bucket) * 1e6 for bucket in range(LAST)])
# Counts of a report that are told by tenant: member of the report -> name of the measure.
_COUNTED = {
    "lines": names.LINES,
    "points": names.POINTS,
    "text_bytes": names.TEXT_BYTES,
    "segment_bytes": names.STORED_BYTES,
    "index_bytes": names.STORED_BYTES,
    "refused": names.REFUSED,
    "repeated": names.REPEATED,
}


@dataclass(slots=True)
class Share:
    """`counts` by name of the measure. `is_new`: some of it was not stored by an earlier attempt."""

    counts: dict[str, int] = field(default_factory=dict)
    frames: Sequence[Received] = ()
    is_new: bool = False

    @property
    def runs(self) -> list[str]:
        """Names of the runs that its frames are of, sorted."""
        streams = {entry.stream.run for item in self.frames for entry in item.frame.streams}
        return sorted(streams)

    def measures(self, committed_ns: int) -> Measures:
        """What is measured of it, where all of it was searchable at `committed_ns`. What an earlier
        attempt stored was measured then."""
        made = Measures()
        if not self.is_new:
            return made
        made.count(names.FRAMES, len(self.frames))
        for name, count in self.counts.items():
            made.count(name, count)
        for item in self.frames:
            made.took(names.FRESHNESS, (committed_ns - item.arrival_ns) / 1e6, item.frame.rows)
        made.times(names.DELAY).merge(_delays(self.frames, committed_ns))
        return made


@contextmanager
def sharing(report: IngestReport, tenant: str, frames: Sequence[Received]) -> Iterator[None]:
    """What the block adds to the report is the tenant's."""
    before = {member: getattr(report, member) for member in _COUNTED}
    committed = len(report.committed)
    yield
    share = Share(frames=frames, is_new=len(report.committed) > committed)
    for member, name in _COUNTED.items():
        share.counts[name] = share.counts.get(name, 0) + getattr(report, member) - before[member]
    report.shares[tenant] = share


def measured(report: IngestReport, committed_ns: int) -> dict[str | None, Measures]:
    """By tenant; None: frames that name nobody."""
    found: dict[str | None, Measures] = {
        tenant: share.measures(committed_ns) for tenant, share in report.shares.items()
    }
    for bad in report.bad:
        found.setdefault(bad.tenant, Measures()).count(names.QUARANTINED)
    return {tenant: measures for tenant, measures in found.items() if measures}


def keep_measures(report: IngestReport, recorder: Recorder, committed_ns: int) -> None:
    """Keep what is measured of a batch with each tenant that it names."""
    for tenant, measures in measured(report, committed_ns).items():
        if tenant is not None:
            recorder.add(tenant, measures)


def _delays(frames: Iterable[Received], now_ns: int) -> Histogram:
    """How old rows are by their own time, of frames of producers and agents."""
    times = [np.frombuffer(item.frame.ts, "<i8") for item in frames if _is_timely(item)]
    made = Histogram()
    if times:
        buckets = np.searchsorted(_EDGES_NS, now_ns - np.concatenate(times))
        found, counts = np.unique(buckets, return_counts=True)
        made.buckets.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
    return made


def _is_timely(item: Received) -> bool:
    return all(entry.stream.certified in _TIMELY for entry in item.frame.streams)
