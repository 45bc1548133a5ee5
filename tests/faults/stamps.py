"""Times as the frameworks write them, from nanoseconds since 1970, UTC. The second's text is kept."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import lru_cache

SECOND = 1_000_000_000
MS = 1_000_000


@lru_cache(maxsize=1 << 16)
def second(seconds: int) -> str:
    """2026-03-09 04:05:06"""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def iso(ns: int) -> str:
    return second(ns // SECOND)


def iso_comma(ns: int) -> str:
    """Python logging's: 2026-03-09 04:05:06,789"""
    return f"{second(ns // SECOND)},{ns // MS % 1000:03d}"


def iso_us(ns: int) -> str:
    return f"{second(ns // SECOND)}.{ns // 1000 % 1_000_000:06d}"


def iso_t(ns: int) -> str:
    return second(ns // SECOND).replace(" ", "T")


def c10d(ns: int) -> str:
    """309 04:05:06.789012345, the month not padded."""
    text = second(ns // SECOND)
    return f"{int(text[5:7])}{text[8:10]} {text[11:]}.{ns % SECOND:09d}"


def glog(ns: int) -> str:
    """0309 04:05:06.789000, as torch's logging pads it."""
    text = second(ns // SECOND)
    return f"{text[5:7]}{text[8:10]} {text[11:]}.{ns // MS % 1000:03d}000"


def elastic(ns: int) -> str:
    """2026-03-09_04:05:06"""
    return second(ns // SECOND).replace(" ", "_")


@lru_cache(maxsize=1 << 12)
def ctime(seconds: int) -> str:
    """Mon Mar  9 04:05:06 2026"""
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.strftime("%a %b ") + f"{moment.day:2d}" + moment.strftime(" %H:%M:%S %Y")


@lru_cache(maxsize=1 << 12)
def ampm(seconds: int) -> str:
    """2026-03-09 04:05:06 AM"""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %I:%M:%S %p")
