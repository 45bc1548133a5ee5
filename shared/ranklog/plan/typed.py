"""A field's values get their types: numbers, ranges, levels, times, texts with wildcards."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

from ranklog.errors import BadQuery
from ranklog.model.levels import LEVEL_NAMES, parse_level
from ranklog.model.query import (
    Exact,
    Glob,
    Null,
    Number,
    Present,
    Range,
    RegexValue,
    Value,
)
from ranklog.plan.lexer import RawValue, glob_literal, quote
from ranklog.plan.times import INT64_MAX, parse_duration, parse_moment, parse_upper

RANKS = frozenset(["rank", "local_rank", "attempt"])
INTEGERS = RANKS | {"iteration", "group"}
FLAGS = frozenset(["copy", "superseded"])
TIMES = frozenset(["time", "since", "until"])
TEXTS = frozenset(
    [
        "run",
        "run_id",
        "host",
        "stream",
        "channel",
        "call_site",
        "template",
        "logger",
        "function",
        "series",
        "source",
        "id",
    ]
)
KINDS = ("line", "point")

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"(?P<sign>[+-]?)(?:(?P<nan>NaN|nan)|Inf|inf|Infinity)")
_RANK_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")  # longer ones are floats; int() refuses 4,301 digits


@dataclass(frozen=True, slots=True)
class Clock:
    """What relative times and times without a zone mean."""

    now_ns: int
    zone: tzinfo


def typed_value(key: str, op: str, raw: RawValue, clock: Clock) -> Value:
    """The value that `key op` compares with; BadQuery says what would fit."""
    value = _read(key, raw, clock)
    if op in (">", "<", ">=", "<=") and key not in TIMES and not _is_ordered(key, value):
        strings = "" if key in TEXTS else f', to compare strings {key}{op}"{raw.glob}"'
        raise BadQuery(
            f"{key}{op} compares numbers, and {raw.source} is none",
            hint=f"for the text write {quote(key + op + raw.source)}{strings}",
            position=raw.start,
        )
    if isinstance(value, Range) and _is_reversed(value):
        raise BadQuery(
            f"{key}:{raw.source} ends before it begins",
            hint=f"the smaller end comes first; for the text write {quote(key + ':' + raw.source)}",
            position=raw.start,
        )
    if op == "!=" and isinstance(value, Present):
        raise BadQuery(f"{key}!=* is never true", hint=f"absent is {key}:null", position=raw.start)
    return value


def _is_reversed(value: Range) -> bool:
    return value.low is not None and value.high is not None and value.low > value.high


def _is_ordered(key: str, value: Value) -> bool:
    if isinstance(value, Exact):
        return value.quoted and key not in TEXTS and key not in FLAGS and key != "kind"
    return isinstance(value, Number)


def _read(key: str, raw: RawValue, clock: Clock) -> Value:
    if key in TIMES:
        return _time(key, raw, clock)
    if raw.kind == "bare" and key not in FLAGS and key != "kind":
        if raw.source == "null":
            return Null()
        if raw.source == "*":
            return Present()
    reader = _READERS.get(key)
    if reader is not None:
        if raw.kind == "regex":
            raise _misfit(key, raw, "it holds no text to search in")
        return reader(key, raw)
    if raw.kind == "regex":
        return RegexValue(raw.pattern, raw.flags)
    if raw.kind == "bare" and key not in TEXTS:
        number = parse_number(raw.source) or parse_range(raw)
        if number is not None:
            return number
    return text_value(raw.glob, quoted=raw.kind == "quoted")


def text_value(glob: str, *, quoted: bool) -> Exact | Glob:
    """Exact where the glob has no wildcard."""
    literal = glob_literal(glob)
    return Exact(literal, quoted) if literal is not None else Glob(glob, glob_pattern(glob))


def glob_pattern(glob: str) -> str:
    """An anchored RE2 expression that means the same as the glob."""
    wild = {"*": ".*", "?": "."}
    parts = re.findall(r"\\.|.", glob, re.DOTALL)
    return "(?s)^" + "".join(wild.get(part) or escape_re2(part[-1]) for part in parts) + "$"


def escape_re2(text: str) -> str:
    """An RE2 expression that matches `text` literally."""
    return re.sub(
        r"[\x00-/:-@\[-^`{-\x7f]",
        lambda found: "\\" + found[0] if found[0].isprintable() else f"\\x{ord(found[0]):02x}",
        text,
    )


def parse_number(source: str) -> Number | None:
    """A bare number, NaN or infinity; None for other text. Beyond 64 bits it is a float."""
    special = _NOT_FINITE.fullmatch(source)
    if special is not None:
        # math.nan itself, so that parsed queries with NaN compare equal
        infinity = -math.inf if special["sign"] == "-" else math.inf
        return Number(math.nan if special["nan"] else infinity, source)
    if not _NUMBER.fullmatch(source):
        return None
    if _INTEGER.fullmatch(source) and abs(int(source)) <= INT64_MAX:
        return Number(int(source), source)
    return Number(float(source), source)


def parse_range(raw: RawValue) -> Range | None:
    """`a..b`, `a..`, `..b` of numbers; None if it is not of that form."""
    low_text, dots, high_text = raw.source.partition("..")
    if not dots or (not low_text and not high_text):
        return None
    low, high = (parse_number(end) if end else None for end in (low_text, high_text))
    if (low_text and low is None) or (high_text and high is None):
        return None
    ends = (low.value if low else None, high.value if high else None)
    if any(end != end for end in ends):
        raise BadQuery("a range has no NaN", hint="write key:NaN", position=raw.start)
    return Range(*ends)


def _integer(key: str, raw: RawValue) -> Value:
    """Rank, attempt, iteration, group: whole numbers and ranges of them."""
    dashed = _RANK_RANGE.fullmatch(raw.source)
    if dashed is not None:
        return _dashed_range(key, raw, int(dashed[1]), int(dashed[2]))
    value = parse_number(raw.source) or parse_range(raw)
    if value is None or raw.kind != "bare":
        raise _misfit(key, raw, "write a whole number" + (" or 0-7" if key in RANKS else ""))
    ends = (value.value,) if isinstance(value, Number) else (value.low, value.high)
    whole = [None if end is None else _whole(key, raw, end) for end in ends]
    if isinstance(value, Range):
        return Range(whole[0], whole[1])
    assert whole[0] is not None
    return Number(whole[0], raw.source)


def _dashed_range(key: str, raw: RawValue, low: int, high: int) -> Range:
    if key not in RANKS:
        raise _misfit(key, raw, f"a range of {key} is half-open: {key}:{low}..{high + 1}")
    if low > high:
        raise _misfit(key, raw, f"the range is empty, write {key}:{high}-{low}")
    return Range(low, high, inclusive=True)


def _whole(key: str, raw: RawValue, number: int | float) -> int:
    if not (isinstance(number, int) or number.is_integer()) or abs(number) > INT64_MAX:
        raise _misfit(key, raw, "write a whole number below 2^63")
    if key in RANKS and number < 0:
        raise _misfit(key, raw, f"it is never negative; without one is {key}:null")
    return int(number)


def _level(key: str, raw: RawValue) -> Value:
    low, dots, high = raw.source.partition("..")
    if dots and raw.kind == "bare" and (low or high):
        ends = [_level_number(key, end, raw) if end else None for end in (low, high)]
        return Range(ends[0], ends[1])
    number = _level_number(key, raw.glob, raw)
    return Number(number, LEVEL_NAMES.get(number, str(number)))


def _level_number(key: str, text: str, raw: RawValue) -> int:
    number = parse_level(text) if text.isascii() and len(text) < 10 else None
    if number is None or number > 32767:
        names = " ".join(LEVEL_NAMES.values())
        raise _misfit(key, raw, f"levels are {names}, or a number")
    return number


def _flag(key: str, raw: RawValue) -> Value:
    if raw.glob.lower() not in ("true", "false"):
        raise _misfit(key, raw, f"write {key}:true or {key}:false")
    return Exact(raw.glob.lower())


def _kind(key: str, raw: RawValue) -> Value:
    if raw.glob not in KINDS:
        raise _misfit(key, raw, "write kind:line or kind:point")
    return Exact(raw.glob)


_READERS: dict[str, Callable[[str, RawValue], Value]] = {
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLAGS, _flag),
    "level": _level,
    "kind": _kind,
}


def _time(key: str, raw: RawValue, clock: Clock) -> Range:
    """A Range of ns: `A..B`, a time (the span its digits name), a duration back from now."""
    text = raw.glob
    try:
        if raw.kind == "regex":
            raise ValueError("a time holds no text to search in")
        if key != "time":
            return Range(_moment(text, clock), None)
        low, dots, high = text.partition("..")
        if dots:
            return _time_range(low, high, clock)
        if _is_duration(text):
            raise ValueError(f"a span is no range; write since:{text}")
        moment = parse_moment(text, clock.zone)
        return Range(moment.start_ns, moment.start_ns + moment.span_ns)
    except ValueError as error:
        raise BadQuery(
            f"{key}:{raw.source}: {error}",
            hint="for example time:2026-05-01T10:00..10:30, since:1h, until:2026-05-01",
            position=raw.start,
        ) from error


def _time_range(low: str, high: str, clock: Clock) -> Range:
    if not low and not high:
        raise ValueError("the range has no end")
    start = _moment(low, clock) if low else None
    if not high:
        return Range(start, None)
    if not low or _is_duration(low) or _is_duration(high):
        return Range(start, _moment(high, clock))
    return Range(start, parse_upper(high, low, clock.zone))


def _moment(text: str, clock: Clock) -> int:
    """A time, or a duration back from now."""
    if _is_duration(text):
        return clock.now_ns - parse_duration(text)
    return parse_moment(text, clock.zone).start_ns


def _is_duration(text: str) -> bool:
    return re.fullmatch(r"[0-9.]+[a-zµ][0-9.a-zµ]*", text) is not None


def _misfit(key: str, raw: RawValue, wanted: str) -> BadQuery:
    return BadQuery(
        f"{raw.source} can't be a value of {key}: {wanted}",
        hint=f"for the text write {quote(key + ':' + raw.source)}",
        position=raw.start,
    )
