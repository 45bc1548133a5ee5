"""Times for people: in their zone, as long as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone, tzinfo

from ranklog.errors import BadInput
from ranklog.limits import SECOND_NS
from ranklog.plan.times import parse_zone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def zone_of(name: str | None) -> tzinfo:
    """The zone that `--tz` names; UTC without it."""
    try:
        return parse_zone(name or "UTC")
    except ValueError as error:
        raise BadInput(f"--tz: {error}", hint="for example Europe/Berlin, UTC or +02:00") from error


def _local(ns: int, zone: tzinfo) -> datetime:
    return (_EPOCH + timedelta(microseconds=ns // 1000)).astimezone(zone)


def shown_day(ns: int, zone: tzinfo) -> str:
    """`2026-05-01`."""
    return _local(ns, zone).strftime("%Y-%m-%d")


def shown_clock(ns: int, zone: tzinfo) -> str:
    """`10:30:15.250`."""
    return _local(ns, zone).strftime("%H:%M:%S.%f")[:-3]


def shown_time(ns: int | None, zone: tzinfo) -> str:
    """`2026-05-01 10:30:15`, with milliseconds where there are some, or `-`."""
    if ns is None:
        return "-"
    text = _local(ns, zone).strftime("%Y-%m-%d %H:%M:%S")
    part = ns % SECOND_NS // 1_000_000
    return f"{text}.{part:03d}" if part else text


def spread_view(times: Iterable[int | None], zone: tzinfo) -> Callable[[int | None], str]:
    """How to show these times: by the clock where all are of one day, else with the day."""
    days = {shown_day(ns, zone) for ns in times if ns is not None}
    if len(days) > 1:
        return lambda ns: shown_time(ns, zone)
    return lambda ns: "-" if ns is None else shown_clock(ns, zone)


def shown_span(ns: int) -> str:
    """`250ms`, `12.5s`, `3m20s`, `2h05m`, `3d04h`."""
    if ns < SECOND_NS:
        return f"{ns / 1e6:.0f}ms"
    seconds = ns / SECOND_NS
    if seconds < 60:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole // 60 % 60:02d}m"
    return f"{whole // 86_400}d{whole // 3600 % 24:02d}h"
