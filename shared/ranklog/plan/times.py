"""Times and durations as users write them; every result is whole nanoseconds.

A time is RFC 3339 or a start of one: `2026-05-01`, `2026-05-01T10`, `…T10:30`, `…T10:30:15.25Z`. The
upper end of a range may leave out what it shares with the lower: `2026-05-01T10:00..10:30`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
INT64_MAX = 2**63 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DURATION_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(ns|us|µs|ms|s|m|h|d|w)")
_ZONE = re.compile(r"(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})$")
_TIME = re.compile(
    r"(?P<Y>[0-9]{4})-(?P<M>[0-9]{2})-(?P<D>[0-9]{2})"
    r"(?:[Tt ](?P<h>[0-9]{2})(?::(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?:[.,](?P<f>[0-9]{1,9}))?)?)?)?"
)
_SECONDS = r"[0-9]{2}(?:[.,][0-9]{1,9})?"
# Upper ends that leave something out -> the parts they give, likeliest reading first.
_TAILS = (
    (re.compile(r"([0-9]{2}-[0-9]{2})[Tt ](.+)"), ("Y",)),
    (re.compile(r"([0-9]{2})[Tt ](.+)"), ("Y", "M")),
    (re.compile(r"[0-9]{2}-[0-9]{2}"), ("Y",)),
    (re.compile(rf"[0-9]{{2}}:[0-9]{{2}}:{_SECONDS}"), ("Y", "M", "D")),
    (re.compile(r"[0-9]{2}:[0-9]{2}"), ("Y", "M", "D")),
    (re.compile(rf"[0-9]{{2}}:{_SECONDS}"), ("Y", "M", "D", "h")),
)
_PARTS = ("Y", "M", "D", "h", "m", "s")
_JOINTS = {"M": "-", "D": "-", "h": "T", "m": ":", "s": ":"}
_SPANS = {"D": UNITS_NS["d"], "h": UNITS_NS["h"], "m": UNITS_NS["m"], "s": UNITS_NS["s"]}


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as written: where it starts, and how long the span is that its digits name."""

    start_ns: int
    span_ns: int


def parse_zone(name: str) -> tzinfo:
    """A zone by IANA name, `UTC`, or an offset like `+02:00`; ValueError if it is none."""
    if name.upper() in ("UTC", "Z"):
        return timezone.utc
    if re.fullmatch(r"[+-][0-9]{2}:?[0-9]{2}", name):
        return _offset(name)
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(f"unknown time zone {name!r}") from error


def parse_duration(text: str) -> int:
    """`1h`, `90s`, `1.5h`, `1h30m` in nanoseconds; ValueError if it is none of these."""
    at, total = 0, 0
    while at < len(text):
        part = _DURATION_PART.match(text, at)
        if part is None:
            break
        whole, fraction, unit = part.groups()
        total += int(whole) * UNITS_NS[unit]
        if fraction:
            total += int(fraction) * UNITS_NS[unit] // 10 ** len(fraction)
        at = part.end()
    if at == 0 or at < len(text):
        raise ValueError(f"{text!r} is no duration; units are ns us ms s m h d w, as in 90s or 1h")
    if total > INT64_MAX:
        raise ValueError(f"{text!r} is longer than 292 years")
    return total


def parse_moment(text: str, zone: tzinfo) -> Moment:
    """A full or shortened RFC 3339 time; without a zone of its own it is in `zone`."""
    suffix = _ZONE.search(text) if ":" in text or text[-1:] in "Zz" else None
    body = text[: suffix.start()] if suffix else text
    found = _TIME.fullmatch(body)
    if found is None:
        raise ValueError(
            f"{text!r} is no time; write it like 2026-05-01T10:30:00Z, or shorter: 2026-05-01T10"
        )
    given = {name: part for name, part in found.groupdict().items() if part is not None}
    fraction = given.pop("f", "")
    try:
        day = datetime(int(given["Y"]), int(given["M"]), int(given["D"]))
        hour, minute, second = (int(given.get(name, "0")) for name in ("h", "m", "s"))
        clock = time(hour, minute, second)
        local = datetime.combine(day, clock, _offset(suffix.group()) if suffix else zone)
        since_epoch = local - _EPOCH
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is no time: {error}") from error
    start = (since_epoch // timedelta(seconds=1)) * UNITS_NS["s"] + int(fraction.ljust(9, "0") or 0)
    if not -INT64_MAX <= start <= INT64_MAX:
        raise ValueError(f"{text!r} is outside the years 1678 to 2261")
    finest = [name for name in _PARTS if name in given][-1]
    return Moment(start, 10 ** (9 - len(fraction)) if fraction else _SPANS[finest])


def parse_upper(text: str, lower: str, zone: tzinfo) -> int:
    """The upper end of a range whose lower end was written as `lower`."""
    try:
        return parse_moment(text, zone).start_ns
    except ValueError:
        candidates = list(_completed(text, lower))
        if not candidates:
            raise
    floor = parse_moment(lower, zone).start_ns
    moments = [parse_moment(candidate, zone).start_ns for candidate in candidates]
    return next((moment for moment in moments if moment > floor), moments[0])


def _completed(text: str, lower: str) -> list[str]:
    """`text` with the parts of `lower` that it may have left out, likeliest reading first."""
    suffix = _ZONE.search(text) if ":" in text or text[-1:] in "Zz" else None
    lower_suffix = _ZONE.search(lower) if ":" in lower or lower[-1:] in "Zz" else None
    zone = (suffix or lower_suffix).group() if suffix or lower_suffix else ""  # type: ignore[union-attr]
    body = text[: suffix.start()] if suffix else text
    full = _TIME.fullmatch(lower[: lower_suffix.start()] if lower_suffix else lower)
    if full is None:
        return []
    given = {name: part for name, part in full.groupdict().items() if part and name != "f"}
    finest = len(given) - 1
    shapes: list[tuple[str, ...]] = [shared for shape, shared in _TAILS if shape.fullmatch(body)]
    if re.fullmatch(_SECONDS if "s" in given else r"[0-9]{2}", body):
        shapes.append(_PARTS[:finest])
    return [
        _prefix(given, shared) + body + zone
        for shared in shapes
        if all(name in given for name in shared)
    ]


def _prefix(given: dict[str, str], shared: tuple[str, ...]) -> str:
    parts = "".join(_JOINTS.get(name, "") + given[name] for name in shared)
    return parts + _JOINTS[_PARTS[len(shared)]]


def _offset(text: str) -> tzinfo:
    if text in ("Z", "z"):
        return timezone.utc
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    if minutes >= 24 * 60:
        raise ValueError(f"{text!r} is no offset from UTC")
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def render_time(ns: int) -> str:
    """RFC 3339 in UTC with 9 digits, as the JSON member `time` has it."""
    seconds, rest = divmod(ns, UNITS_NS["s"])
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
