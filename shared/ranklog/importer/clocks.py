"""Two clocks in one file: times that say their zone, and times that don't and are hours off."""

from __future__ import annotations

from datetime import timezone

import numpy as np

from ranklog.importer.classify import Heads
from ranklog.importer.times import FULL, NO_TIME, Anchor, has_zone, resolve
from ranklog.limits import SECOND_NS

_QUARTER_NS = 15 * 60 * SECOND_NS
# Lines this near to each other were written at about the same time.
_NEAR_LINES = 20
_LAG_NS = 2 * 60 * SECOND_NS
_PAIRS_MIN = 3
_AGREEMENT_MIN = 0.6


def local_offset_of(heads: Heads) -> int | None:
    """Minutes by which zone-less times are ahead of UTC, where neighbouring lines prove it.

    None where there is no proof, 0 where they agree. The importer does not shift times by it (no
    zone means UTC unless the user says otherwise); it says so.
    """
    rows, times, zoned = _dated(heads)
    naive, absolute = np.flatnonzero(~zoned), np.flatnonzero(zoned)
    if not len(naive) or not len(absolute):
        return None
    place = np.searchsorted(rows[naive], rows[absolute], "right") - 1
    before = naive[np.maximum(place, 0)]
    near = (place >= 0) & (rows[absolute] - rows[before] <= _NEAR_LINES)
    ahead = (times[before] - times[absolute])[near]
    if len(ahead) < _PAIRS_MIN:
        return None
    quarters = np.round(ahead / _QUARTER_NS).astype(np.int64)
    common = int(np.median(quarters))
    fits = np.abs(ahead - common * _QUARTER_NS) <= _LAG_NS
    return common * 15 if fits.mean() >= _AGREEMENT_MIN else None


def _dated(heads: Heads) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines with whole dates, in order: (line, time as if in UTC, whether it says its zone)."""
    groups = [group for group in heads.times if group.parsed.completeness == FULL]
    if not groups:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
    rows = np.concatenate([group.rows for group in groups])
    times = np.concatenate(
        [resolve(group.parsed, group.rows, timezone.utc, Anchor(None, 0)) for group in groups]
    )
    zoned = np.concatenate([has_zone(group.parsed) for group in groups])
    order = np.argsort(rows, kind="stable")
    kept = order[times[order] != NO_TIME]
    return rows[kept], times[kept], zoned[kept]
