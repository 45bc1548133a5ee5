"""The time each line itself has: its head's, one inside it, or its wrapper's."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.importer.classify import NO_HEAD, Heads
from ranklog.importer.envelopes import Peeled
from ranklog.importer.inherit import last_known
from ranklog.importer.lines import I64
from ranklog.importer.time_kinds import parse_times
from ranklog.importer.times import (
    NO_DATE,
    NO_TIME,
    Anchor,
    align_to_wrapper,
    has_zone,
    resolve,
)
from ranklog.importer.windows import extract, matches

_ISO = r"\d{4}[-/]\d\d[-/]\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
# Times that stand inside lines without a head: (expression, kind).
_INSIDE = (
    # torchelastic's failure summary
    (r"^ *time +: (?P<time>" + _ISO + r")", "iso"),
    # Megatron's milestones, often the only times of a file
    (r"^\[[^\]]+\] datetime: (?P<time>" + _ISO + r")", "iso"),
    # a dict that a program prints, with Python's time.time()
    (r"'timestamp': (?P<time>\d{9,10}(?:\.\d{1,9})?)\b", "epoch_us"),
    (r"Aborted at (?P<time>\d{9,10}) \(unix time\)", "epoch_us"),
    # a row of a monitor's table, the time first or last
    (r"^(?P<time>" + _ISO + r") *,", "iso"),
    (r",\s?(?P<time>" + _ISO + r")\r?$", "iso"),
)
# What a line with a time inside has to contain, to be looked at more closely.
_MAYBE = r"\d{4}[-/]\d\d[-/]\d\d[ T_]\d\d:\d\d:\d\d|'timestamp': \d|\(unix time\)"


def own_times(bodies: Any, peeled: Peeled, heads: Heads, zone: tzinfo, anchor: Anchor) -> I64:
    """n times, NO_TIME where a line says none."""
    own = np.full(len(heads.head), NO_TIME, np.int64)
    zoned = np.zeros(len(own), np.bool_)
    for group in heads.times:
        if group.parsed.completeness != NO_DATE:
            own[group.rows] = resolve(group.parsed, own[group.rows], zone, anchor)
            zoned[group.rows] = has_zone(group.parsed)
    _add_inside(own, bodies, heads, zone, anchor)
    _add_wrappers(own, zoned, peeled, zone, anchor)
    for group in heads.times:
        if group.parsed.completeness == NO_DATE:
            before = last_known(own, NO_TIME)[group.rows]
            own[group.rows] = resolve(group.parsed, before, zone, anchor)
    return own


def _add_inside(own: I64, bodies: Any, heads: Heads, zone: tzinfo, anchor: Anchor) -> None:
    rows = np.flatnonzero((own == NO_TIME) & (heads.head == NO_HEAD))
    if not len(rows):
        return
    rows = rows[matches(bodies.take(pa.array(rows)), _MAYBE)]
    for pattern, kind in _INSIDE:
        if not len(rows):
            return
        matched, groups = extract(bodies.take(pa.array(rows)), pattern)
        parsed = parse_times(groups["time"].filter(pa.array(matched)), kind)
        if matched.any() and parsed is not None:
            own[rows[matched]] = resolve(parsed, own[rows[matched]], zone, anchor)
        rows = rows[~matched]


def _add_wrappers(own: I64, zoned: Any, peeled: Peeled, zone: tzinfo, anchor: Anchor) -> None:
    """A wrapper's time where there is no other; where there is, it says the zone."""
    rows = peeled.time_rows
    if not len(rows):
        return
    parsed = parse_times(peeled.times, "iso")
    if parsed is None:
        return
    wrapper = resolve(parsed, own[rows], zone, anchor)
    both = (own[rows] != NO_TIME) & (wrapper != NO_TIME)
    own[rows[both]] = align_to_wrapper(own[rows[both]], zoned[rows[both]], wrapper[both])
    alone = own[rows] == NO_TIME
    own[rows[alone]] = wrapper[alone]
