"""What a written time lacks: its zone, its year, its date; and what is known that fills it in.

Shapes: n times of one kind, as `time_kinds` reads them. Results are ns since the epoch, NO_TIME where
a value is not a time after all (month 13, second 75).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

import numpy as np

from ranklog.importer.lines import I64, Flags
from ranklog.limits import DAY_NS, HOUR_NS, SECOND_NS

NO_TIME = -(2**63)
NO_ZONE = NO_TIME
MINUTE_NS = 60 * SECOND_NS
_QUARTER_NS = 15 * MINUTE_NS
# How far a wrapper's time may be from the program's, beside whole quarters of an hour.
_WRAPPER_LAG_NS = 2 * MINUTE_NS
# A clock without a date is believed this near to the time before it.
_CLOCK_NEAR_NS = HOUR_NS
# Completeness of a date.
FULL, NO_YEAR, NO_DATE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Parsed:
    """What n values say. `month` and `day` matter where there is no year.

    `local`: ns since the epoch as if the zone were UTC (without a date: ns of the day);
    `offset`: of the zone in ns, NO_ZONE where none is written.
    """

    completeness: int
    local: I64
    month: I64
    day: I64
    offset: I64

    def keep(self, mask: Flags) -> Parsed:
        """The values where the mask is set."""
        columns = (self.local, self.month, self.day, self.offset)
        return Parsed(self.completeness, *(column[mask] for column in columns))


@dataclass(frozen=True, slots=True)
class Anchor:
    """What is known of a file's times: near what, or not after what, its year-less lines lie."""

    near_ns: int | None  # a dated line of the file, or the user's --date
    not_after_ns: int  # when the file was last written
    date_given: bool = False


def resolve(parsed: Parsed, before: I64, zone: tzinfo, anchor: Anchor) -> I64:
    """Nanoseconds since the epoch. `before`: the last known time before each value, or NO_TIME."""
    if parsed.completeness == FULL:
        return _to_utc(parsed.local, parsed.offset, zone)
    if parsed.completeness == NO_YEAR:
        return _to_utc(_add_year(parsed, zone, anchor), parsed.offset, zone)
    return _add_date(parsed, before, zone, anchor)


def has_zone(parsed: Parsed) -> Flags:
    """Which values say their zone."""
    zoned: Flags = parsed.offset != NO_ZONE
    return zoned


def _to_utc(local: I64, offset: I64, zone: tzinfo) -> I64:
    zoned = np.where(offset == NO_ZONE, zone_offsets(local, zone), offset)
    return np.where(local == NO_TIME, NO_TIME, local - zoned)


def zone_offsets(local: I64, zone: tzinfo) -> I64:
    """Offset of local times from UTC, in ns. Zones change at whole quarters of an hour."""
    quarters, place = np.unique(local // _QUARTER_NS, return_inverse=True)
    offsets = [_offset(int(quarter), zone) for quarter in quarters]
    return np.array(offsets, np.int64)[place]


def _offset(quarter: int, zone: tzinfo) -> int:
    try:
        moment = datetime(1970, 1, 1) + timedelta(minutes=15 * quarter)
        offset = moment.replace(tzinfo=zone).utcoffset()
    except (OverflowError, ValueError):
        return 0
    return 0 if offset is None else int(offset.total_seconds()) * SECOND_NS


def _add_year(parsed: Parsed, zone: tzinfo, anchor: Anchor) -> I64:
    """The year that puts a time nearest to the anchor, or the last that is not in the future."""
    reference = anchor.not_after_ns if anchor.near_ns is None else anchor.near_ns
    reference += int(zone_offsets(np.array([reference]), zone)[0])
    year = datetime.fromtimestamp(reference / SECOND_NS, timezone.utc).year
    clock = parsed.local
    choices = np.stack(
        [
            civil_days(np.full_like(clock, y), parsed.month, parsed.day) * DAY_NS + clock
            for y in range(year - 4, year + 2)
        ]
    )
    distance = np.abs(choices - reference)
    if anchor.near_ns is None:
        distance[choices > reference + DAY_NS] = np.iinfo(np.int64).max
    # 29 February only exists in some years.
    leap = (parsed.month == 2) & (parsed.day == 29)
    common = np.array([y % 4 != 0 for y in range(year - 4, year + 2)])
    distance[common[:, None] & leap] = np.iinfo(np.int64).max
    best: I64 = np.take_along_axis(choices, distance.argmin(axis=0)[None], 0)[0]
    return np.where(clock == NO_TIME, NO_TIME, best)


def _add_date(parsed: Parsed, before: I64, zone: tzinfo, anchor: Anchor) -> I64:
    """The day that puts a clock's time nearest to the line before."""
    near = np.where(
        before == NO_TIME, NO_TIME if anchor.near_ns is None else anchor.near_ns, before
    )
    known = (near != NO_TIME) & (parsed.local != NO_TIME)
    near = np.where(known, near, 0)
    local_near = near + zone_offsets(near, zone)
    days = np.floor_divide(local_near - parsed.local + DAY_NS // 2, DAY_NS)
    times = _to_utc(days * DAY_NS + parsed.local, np.full_like(near, NO_ZONE), zone)
    if not anchor.date_given:
        known &= np.abs(times - near) <= _CLOCK_NEAR_NS
    return np.where(known, times, NO_TIME)


def align_to_wrapper(own: I64, has_zone: Flags, wrapper: I64) -> I64:
    """Times that a program and its wrapper both wrote: the program's, in the wrapper's zone.

    Programs write finer and earlier, but often local time without saying so. Off by whole quarters
    of an hour, the program's time is shifted; off by anything else, the wrapper's counts.
    """
    difference = wrapper - own
    shift = np.round(difference / _QUARTER_NS).astype(np.int64) * _QUARTER_NS
    fits = np.abs(difference - shift) <= _WRAPPER_LAG_NS
    return np.where(has_zone, own, np.where(fits, own + shift, wrapper))


def civil_days(year: I64, month: I64, day: I64) -> I64:
    """Days since the epoch of civil dates."""
    months = (year - 1970) * 12 + month - 1
    first: I64 = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first + day - 1
