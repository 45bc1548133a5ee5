"""Levels: numbers of Python's logging, with TRACE and SUCCESS; any case, the usual short forms."""

from __future__ import annotations

from types import MappingProxyType

TRACE, DEBUG, INFO, SUCCESS, WARNING, ERROR, CRITICAL = 5, 10, 20, 25, 30, 40, 50

LEVEL_NAMES = MappingProxyType(
    {
        TRACE: "TRACE",
        DEBUG: "DEBUG",
        INFO: "INFO",
        SUCCESS: "SUCCESS",
        WARNING: "WARNING",
        ERROR: "ERROR",
        CRITICAL: "CRITICAL",
    }
)

LEVEL_NUMBERS = MappingProxyType(
    {name: number for number, name in LEVEL_NAMES.items()}
    | {"WARN": WARNING, "FATAL": CRITICAL}
    | {"ERR": ERROR, "CRIT": CRITICAL, "ALERT": CRITICAL, "EMERG": CRITICAL, "NOTICE": INFO}
    | {"T": TRACE, "D": DEBUG, "I": INFO, "W": WARNING, "E": ERROR, "F": CRITICAL, "C": CRITICAL}
)


def parse_level(text: str) -> int | None:
    """Number of a level's name in any case, or of digits; None if it is neither."""
    if text.isdigit():
        return int(text)
    return LEVEL_NUMBERS.get(text.upper())


def level_name(number: int) -> str:
    """Name of a level's number; others keep their number: `LEVEL 15`."""
    return LEVEL_NAMES.get(number, f"LEVEL {number}")
