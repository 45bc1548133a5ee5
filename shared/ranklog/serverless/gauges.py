"""What the metrics function tells of each tenant: how complete, fresh and well its lines are, as CloudWatch gauges.

Each is told per tenant and, as the worst of all tenants, by service alone: that is what alarms look at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ranklog.client.reader import Reader
from ranklog.client.slo import stored_lines
from ranklog.ingest.quarantine import NOTE, REPLAYED
from ranklog.layout import keys
from ranklog.limits import HOUR_NS
from ranklog.objectives import names
from ranklog.objectives.keeping import MINUTE_NS, read_measures
from ranklog.objectives.targets import P50, P99
from ranklog.store.protocol import Store

# What is looked at: lines of so many hours, measures of so many minutes.
STORED_NS = 2 * HOUR_NS
RECENT_NS = 15 * MINUTE_NS
# Of these the smallest is the worst; of the others the largest.
_SMALLEST = frozenset([names.COMPLETENESS])

Gauges = dict[str, float | None]


def tenant_gauges(reader: Reader, now_ns: int) -> Gauges:
    """Of one tenant; None: nothing to tell. Raises what the store raises, Corrupt, NewerVersion."""
    stored, _ = stored_lines(reader, max(0, now_ns - STORED_NS), now_ns)
    kept = stored.lines + stored.deleted
    known = kept + stored.missing
    recent, _ = read_measures(reader.store, reader.tenant, now_ns - RECENT_NS, now_ns)
    freshness = recent.times(names.FRESHNESS)
    return {
        names.COMPLETENESS: 100 * kept / known if known else None,
        names.LOST_LINES: stored.lost,
        names.STREAMS_BEHIND: stored.streams_behind,
        names.QUARANTINE_WAITING: waiting_frames(reader.store, reader.tenant),
        names.FRESHNESS_P50: freshness.quantile(P50),
        names.FRESHNESS_P99: freshness.quantile(P99),
    }


def waiting_frames(store: Store, tenant: str | None) -> int:
    """Frames in a tenant's quarantine, or (None) in nobody's, that were not replayed. LISTs only."""
    found = [info.key for info in store.list(keys.quarantine_prefix(tenant))]
    replayed = {key.removesuffix(REPLAYED) for key in found if key.endswith(REPLAYED)}
    return sum(not key.endswith(NOTE) and key not in replayed for key in found)


@dataclass(slots=True)
class Worst:
    """The worst of each gauge over tenants."""

    gauges: Gauges = field(default_factory=dict)

    def add(self, others: Gauges) -> None:
        for name, value in others.items():
            known = self.gauges.get(name)
            if value is None or known is None:
                self.gauges[name] = value if known is None else known
            else:
                self.gauges[name] = (min if name in _SMALLEST else max)(known, value)


def worst_of(tenants: Iterable[Gauges]) -> Gauges:
    """The worst of each."""
    worst = Worst()
    for gauges in tenants:
        worst.add(gauges)
    return worst.gauges
