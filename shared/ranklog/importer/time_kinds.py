"""Times as logs write them: one parser per kind, many values at once.

Shapes: n values of one kind (a key of `rules.heads.TIME_KINDS`), a binary array without nulls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.importer.lines import I64, U8, Flags
from ranklog.importer.times import (
    FULL,
    MINUTE_NS,
    NO_DATE,
    NO_TIME,
    NO_YEAR,
    NO_ZONE,
    Parsed,
    civil_days,
)
from ranklog.importer.windows import buffers, cut, extract, factorise, to_flags, to_integers
from ranklog.limits import DAY_NS, HOUR_NS, SECOND_NS

_MONTHS = b"JanFebMarAprMayJunJulAugSepOctNovDec"


def parse_times(values: Any, kind: str) -> Parsed | None:
    """Times of one kind; None for a kind that says no wall-clock time (uptimes)."""
    parser = _PARSERS.get(kind)
    return None if parser is None else parser(values.cast(pa.binary()))


# --- kinds --------------------------------------------------------------------------------------
def _iso(values: Any) -> Parsed:
    """YYYY-MM-DD HH:MM:SS, a fraction, a zone."""
    digits, fits = _fixed(values, 19)
    local = _civil(digits, (0, 4), (5, 7), (8, 10), 11)
    fraction, offset = _fraction_and_zone(cut(values, 19))
    return _full(_checked(local, fits, fraction), offset)


def _us_date(values: Any) -> Parsed:
    digits, fits = _fixed(values, 19)
    local = _civil(digits, (6, 10), (0, 2), (3, 5), 11)
    return _full(_checked(local, fits, 0))


def _compact(values: Any) -> Parsed:
    digits, fits = _fixed(values, 17)
    fraction, _ = _fraction_and_zone(cut(values, 17))
    return _full(_checked(_civil(digits, (0, 4), (4, 6), (6, 8), 9), fits, fraction))


def _ampm(values: Any) -> Parsed:
    """12 AM is midnight, 12 PM noon."""
    digits, fits = _fixed(values, 22)
    hour = _number(digits, 11, 13)
    is_afternoon = digits[:, 20] == ord("P") - 48
    shift = np.where(is_afternoon, 12, 0) - np.where(hour == 12, 12, 0)
    local = _civil(digits, (0, 4), (5, 7), (8, 10), 11)
    return _full(_checked(local + np.where(local == NO_TIME, 0, shift * HOUR_NS), fits, 0))


def _ctime(values: Any) -> Parsed:
    """Sun Feb 23 16:24:18 2025."""
    digits, fits = _fixed(values, 24)
    month = _month(cut(values, 4, 7))
    return _full(_checked(_with_month(digits, (20, 24), month, (8, 10), 11), fits, 0))


def _date_utc(values: Any) -> Parsed:
    """Sun Feb 23 16:24:18 UTC 2025."""
    digits, fits = _fixed(values, 28)
    month = _month(cut(values, 4, 7))
    return _absolute(_checked(_with_month(digits, (24, 28), month, (8, 10), 11), fits, 0))


def _month_name(values: Any) -> Parsed:
    """Feb 25 2025 13:59:45."""
    digits, fits = _fixed(values, 20)
    month = _month(cut(values, 0, 3))
    return _full(_checked(_with_month(digits, (7, 11), month, (4, 6), 12), fits, 0))


def _syslog(values: Any) -> Parsed:
    """Feb 14 05:03:41, the day padded with a blank."""
    digits, fits = _fixed(values, 15)
    month = _month(cut(values, 0, 3))
    return _yearless(digits, fits, month, _number(digits, 4, 6), 7, 0)


def _us_month_day(values: Any) -> Parsed:
    digits, fits = _fixed(values, 14)
    return _yearless(digits, fits, _number(digits, 0, 2), _number(digits, 3, 5), 6, 0)


def _glog(values: Any) -> Parsed:
    digits, fits = _fixed(values, 13)
    fraction, _ = _fraction_and_zone(cut(values, 13))
    return _yearless(digits, fits, _number(digits, 0, 2), _number(digits, 2, 4), 5, fraction)


def _c10d(values: Any) -> Parsed:
    """The month is not padded: 430 is April 30. Padded, it is glog's."""
    is_short = pc.equal(cut(values, 3, 4).cast(pa.string()), " ")
    padded = pc.if_else(is_short, pc.binary_join_element_wise(b"0", values, b""), values)
    return _glog(padded.cast(pa.binary()))


def _clock(values: Any) -> Parsed:
    digits, fits = _fixed(values, 8)
    local = _checked(_clock_ns(digits, 0), fits, 0)
    nothing = np.zeros_like(local)
    return Parsed(NO_DATE, local, nothing, nothing, np.full_like(local, NO_ZONE))


def _epoch_ms(values: Any) -> Parsed:
    return _absolute(_times_or_none(to_integers(values, NO_TIME), 1_000_000))


def _epoch_us(values: Any) -> Parsed:
    """Seconds, with or without a fraction."""
    _, groups = extract(values, r"^(?P<seconds>\d+)(?P<rest>(?:\.\d{1,9})?)$")
    seconds = _times_or_none(to_integers(groups["seconds"], NO_TIME), SECOND_NS)
    fraction, _ = _fraction_and_zone(groups["rest"].fill_null(b""))
    return _absolute(np.where(seconds == NO_TIME, NO_TIME, seconds + fraction))


_PARSERS = {
    "iso": _iso,
    "us_date": _us_date,
    "us_month_day": _us_month_day,
    "glog_mmdd": _glog,
    "c10d_md": _c10d,
    "compact": _compact,
    "epoch_ms": _epoch_ms,
    "epoch_us": _epoch_us,
    "ctime": _ctime,
    "date_utc": _date_utc,
    "month_name": _month_name,
    "syslog": _syslog,
    "ampm": _ampm,
    "clock": _clock,
}


# --- pieces -------------------------------------------------------------------------------------
def _fixed(values: Any, width: int) -> tuple[I64, Flags]:
    """The first `width` bytes minus "0" (n × width, a blank is 0), and which values are as long."""
    fits = to_flags(pc.greater_equal(pc.binary_length(values), width))
    padded = pc.if_else(pa.array(fits), values, b" " * width).cast(pa.binary())
    offsets, buffer = buffers(padded)
    content: U8 = np.frombuffer(buffer, np.uint8)
    rows = content[offsets[:-1, None] + np.arange(width)].astype(np.int64)
    rows[rows == 32] = 48
    return rows - 48, fits


def _number(digits: I64, start: int, stop: int) -> I64:
    value = np.zeros(len(digits), np.int64)
    for column in range(start, stop):
        value = value * 10 + digits[:, column]
    return value


def _clock_ns(digits: I64, at: int) -> I64:
    """ns of the day of HH:MM:SS; a leap second is the next minute's first."""
    hour, minute = _number(digits, at, at + 2), _number(digits, at + 3, at + 5)
    second = _number(digits, at + 6, at + 8)
    valid = (hour < 24) & (minute < 60) & (second <= 60) & (hour >= 0) & (minute >= 0)
    return np.where(
        valid & (second >= 0), (hour * 3600 + minute * 60 + second) * SECOND_NS, NO_TIME
    )


def _civil(
    digits: I64, year: tuple[int, int], month: tuple[int, int], day: tuple[int, int], clock: int
) -> I64:
    return _with_month(digits, year, _number(digits, *month), day, clock)


def _with_month(
    digits: I64, year: tuple[int, int], month: I64, day: tuple[int, int], clock: int
) -> I64:
    years, days = _number(digits, *year), _number(digits, *day)
    time = _clock_ns(digits, clock)
    valid = (month >= 1) & (month <= 12) & (days >= 1) & (days <= 31) & (time != NO_TIME)
    valid &= (years >= 1970) & (years < 2262)
    months, years = np.where(valid, month, 1), np.where(valid, years, 1970)
    date = civil_days(years, months, days)
    # 30 February is in no month.
    valid &= date.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) == (
        (years - 1970) * 12 + months - 1
    )
    return np.where(valid, date * DAY_NS + time, NO_TIME)


def _month(values: Any) -> I64:
    codes, names = factorise(values)
    numbers = [_MONTHS.find(name) // 3 + 1 if name else 0 for name in names]
    return np.array(numbers, np.int64)[codes]


def _fraction_and_zone(rest: Any) -> tuple[I64, I64]:
    """ns of `.123` or `,123456`, and the offset of `Z`, `+08:00`, `-0700`."""
    count = len(rest)
    _, groups = extract(rest, r"^(?:[.,](?P<fraction>\d{1,9}))?(?P<zone> ?Z|[+-]\d\d:?\d\d)?")
    digits = groups["fraction"]
    codes, zones = factorise(groups["zone"])
    offset = np.array([_zone_ns(zone) for zone in zones] or [NO_ZONE], np.int64)
    if not count or not pc.max(pc.binary_length(digits)).as_py():
        return np.zeros(count, np.int64), offset[codes] if count else np.empty(0, np.int64)
    fraction = to_integers(digits, 0)
    width = np.asarray(
        pc.binary_length(digits).fill_null(0).to_numpy(zero_copy_only=False), np.int64
    )
    return fraction * 10 ** (9 - width), offset[codes]


def _zone_ns(zone: bytes | None) -> int:
    if not zone:
        return NO_ZONE
    if zone.strip() == b"Z":
        return 0
    digits = zone[1:].replace(b":", b"")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-minutes if zone[:1] == b"-" else minutes) * MINUTE_NS


def _checked(local: I64, fits: Flags, fraction: I64 | int) -> I64:
    return np.where(fits & (local != NO_TIME), local + fraction, NO_TIME)


def _full(local: I64, offset: I64 | None = None) -> Parsed:
    nothing = np.zeros_like(local)
    return Parsed(
        FULL, local, nothing, nothing, np.full_like(local, NO_ZONE) if offset is None else offset
    )


def _absolute(times: I64) -> Parsed:
    return _full(times, np.zeros_like(times))


def _yearless(
    digits: I64, fits: Flags, month: I64, day: I64, clock: int, fraction: I64 | int
) -> Parsed:
    time = _checked(_clock_ns(digits, clock), fits, fraction)
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    local = np.where(valid, time, NO_TIME)
    month, day = np.where(valid, month, 1), np.where(valid, day, 1)
    return Parsed(NO_YEAR, local, month, day, np.full_like(local, NO_ZONE))


def _times_or_none(values: I64, unit_ns: int) -> I64:
    """Counts of a unit as ns, where they fit 63 bits."""
    fits = (values >= 0) & (values < (1 << 62) // unit_ns)
    return np.where(fits, values * np.where(fits, unit_ns, 0), NO_TIME)
