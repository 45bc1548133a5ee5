"""Text to typed values, for whole columns.

Types: `int`, `float`, `str`, `bool` (1 or 0), `number` (int or float, as it is written), `percent`
(float, without the sign), `duration[:ns|us|ms|s|min|h]` and `size[:B|KiB|MiB|GiB|kB|MB|GB]` (float
in that unit, default s and B; a bare number is taken to be in it), `rate` (float per second: `it/s`
as it is, `s/it` inverted), `ranges` (`0-2,5` written out as `0,1,2,5`).

Shapes: n strings in, one `Typed` out. `kind[n]` says what each value became; `ints[n]`, `floats[n]`
and `second[n]` (the other number of `1.5 (1.6)` and `1.5/1.6`, NaN where `has_second[n]` is false)
hold where kind says so. Nothing here raises for a value: what is no number stays a string, what
says "nothing" (`N/A`, `-`, `?`, `None`, `null`) is absent, an integer beyond 64 bit is a string.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.limits import METADATA_STRING_BYTES_MAX

ABSENT, INT, FLOAT, STR = 0, 1, 2, 3

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0}
_SECONDS |= {"seconds": 1.0, "milliseconds": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}
_BYTES = {"B": 1.0, "bytes": 1.0}
_BYTES |= {f"{p}iB": 1024.0**i for i, p in enumerate("KMGTP", 1)}
_BYTES |= {f"{p}B": 1000.0**i for i, p in enumerate("kMGTP", 1)} | {"KB": 1000.0}

TYPES = frozenset(["int", "float", "str", "bool", "number", "percent", "rate", "ranges"])
UNITS = {"duration": _SECONDS, "size": _BYTES}

# Units that may follow a number; with any other word the value is text.
_UNIT = (
    r"%|ns|us|µs|ms|s|sec|secs|seconds|milliseconds|m|min|h|[kKMGTP]?i?B|bytes|W|J|[kMG]?bps|it/s|s/it"
    r"|(?:samples|tokens|images|imgs|items|seqs?)/s(?:ec)?|[kMGTP]?FLOPS|[kMGTP]?FLOPs?(?:/s(?:/\w+)?)?"
)
_NAN = r"(?i:inf(?:inity)?|nan)"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
NUMBER = rf"[-+]?(?:{_DIGITS}|{_NAN})"
_NUMBER_UNIT = (
    rf"^(?P<number>{NUMBER}) ?(?P<unit>{_UNIT})?"
    rf"(?:(?: \(|/)(?P<second>{NUMBER}) ?(?:{_UNIT})?\)?)?(?P<more>/[\d.][^ ]*)?$"
)
_CLOCK = (
    r"^(?:(?P<days>\d+) days?, |(?P<d>\d+)-)?(?:(?P<h>\d+):)?(?P<m>\d{1,2}):(?P<s>\d\d(?:\.\d+)?)$"
)
_LIST = rf"^[\[(]({NUMBER})(?:, [^\]]*)?,?[\])]$"
_NOTHING = pa.array(["", "N/A", "n/a", "[N/A]", "<N/A>", "-", "?", "None", "null", "NULL"])
_TRUE = pa.array(["True", "true", "TRUE"])
_FALSE = pa.array(["False", "false", "FALSE"])

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Typed:
    """See the module. `text` is what was parsed, trimmed and without quotes."""

    kind: npt.NDArray[np.int8]
    ints: npt.NDArray[np.int64]
    floats: Floats
    second: Floats
    has_second: Mask
    text: Any

    def part(self, rows: slice) -> Typed:
        """The values of some rows."""
        return Typed(
            self.kind[rows],
            self.ints[rows],
            self.floats[rows],
            self.second[rows],
            self.has_second[rows],
            self.text[rows],
        )


def known_type(name: str) -> bool:
    """Whether `name` is a type of this module."""
    base, _, unit = name.partition(":")
    return name in TYPES or (base in UNITS and (not unit or unit in UNITS[base]))


def parse_values(strings: Any, type_name: str) -> Typed:
    """Parse a string array without nulls as `type_name`."""
    text = pc.utf8_trim(strings, characters=" \t\r\"'")
    typed = _empty(text)
    base, _, unit = type_name.partition(":")
    if base == "str":
        typed.kind[~_in(text, _NOTHING)] = STR
    elif base == "ranges":
        typed.text = _write_out(text)
        typed.kind[~_in(text, _NOTHING)] = STR
    else:
        _parse_numbers(typed, short_clock=base == "duration")
        if base in UNITS:
            _convert(typed, UNITS[base], unit or ("s" if base == "duration" else "B"))
        elif base == "rate":
            _invert(typed)
        if base in ("float", "percent", "rate", "duration", "size"):
            _all_float(typed)
        elif base in ("int", "bool"):
            _all_int(typed)
    typed.text = _cut(typed)
    return typed


def _empty(text: Any) -> Typed:
    n = len(text)
    return Typed(
        np.zeros(n, np.int8),
        np.zeros(n, np.int64),
        np.full(n, np.nan),
        np.full(n, np.nan),
        np.zeros(n, np.bool_),
        text,
    )


def _in(text: Any, words: Any) -> Mask:
    return _mask(pc.is_in(text, value_set=words.cast(text.type)))


def _mask(array: Any) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _parse_numbers(typed: Typed, *, short_clock: bool) -> None:
    """Fill kind, ints, floats, second. `short_clock`: `12:49` is minutes and seconds."""
    text = typed.text
    typed.kind[:] = np.where(_in(text, _NOTHING), ABSENT, STR)
    digits = _mask(pc.match_substring_regex(text, r"^[-+]?\d+$"))
    if digits.any():
        _parse_digits(typed, np.flatnonzero(digits))
    rest = np.flatnonzero((typed.kind == STR) & ~digits)
    if len(rest):
        _parse_quantities(typed, rest, short_clock)
    for words, value in ((_TRUE, 1), (_FALSE, 0)):
        flags = _in(text, words)
        typed.kind[flags], typed.ints[flags], typed.floats[flags] = INT, value, value


def _parse_digits(typed: Typed, rows: npt.NDArray[np.int64]) -> None:
    """Integers; one beyond 64 bit stays a string, with its value as float beside it."""
    text = pc.utf8_ltrim(typed.text.take(pa.array(rows)), characters="+")
    typed.floats[rows] = pc.cast(text, pa.float64()).to_numpy(zero_copy_only=False)
    bare = pc.utf8_ltrim(text, characters="-0")
    length = pc.binary_length(bare).to_numpy(zero_copy_only=False)
    # Of 19 digits, those that do not sort after the greatest; the least int64 alone stays text.
    fits = (length < 19) | ((length == 19) & _mask(pc.less_equal(bare, "9223372036854775807")))
    rows, text = rows[fits], text.filter(pa.array(fits))
    typed.ints[rows] = pc.cast(text, pa.int64()).to_numpy(zero_copy_only=False)
    typed.kind[rows] = INT


def _parse_quantities(typed: Typed, rows: npt.NDArray[np.int64], short_clock: bool) -> None:
    """Decimals, exponents, commas, nan and inf, units, pairs, first items of lists, clock times."""
    text = typed.text.take(pa.array(rows))
    text = pc.replace_substring_regex(text, _LIST, r"\1")
    found = pc.extract_regex(text, _NUMBER_UNIT)
    hit = _mask(found.is_valid())
    here = rows[hit]
    found = found.filter(pa.array(hit))
    number = pc.replace_substring(pc.struct_field(found, "number"), ",", "")
    typed.floats[here] = pc.cast(number, pa.float64()).to_numpy(zero_copy_only=False)
    typed.kind[here] = FLOAT
    second = pc.struct_field(found, "second")
    there = _mask(pc.and_(pc.not_equal(second, ""), pc.equal(pc.struct_field(found, "more"), "")))
    if there.any():
        picked = pc.replace_substring(second.filter(pa.array(there)), ",", "")
        typed.second[here[there]] = pc.cast(picked, pa.float64()).to_numpy(zero_copy_only=False)
        typed.has_second[here[there]] = True
    _parse_clock(typed, rows[~hit], text.filter(pa.array(~hit)), short_clock)


def _parse_clock(typed: Typed, rows: npt.NDArray[np.int64], text: Any, short: bool) -> None:
    """`6:28:43`, `1 day, 0:06:38` and, where `short`, `12:49`: seconds."""
    found = pc.extract_regex(text, _CLOCK)
    hit = _mask(found.is_valid())
    if not short:
        hit &= ~_mask(pc.fill_null(pc.equal(pc.struct_field(found, "h"), ""), False))
    if not hit.any():
        return
    found = found.filter(pa.array(hit))
    total = np.zeros(int(hit.sum()))
    for name, seconds in (
        ("days", 86400.0),
        ("d", 86400.0),
        ("h", 3600.0),
        ("m", 60.0),
        ("s", 1.0),
    ):
        part = pc.struct_field(found, name)
        part = pc.if_else(pc.equal(part, ""), "0", part)
        total += seconds * pc.cast(part, pa.float64()).to_numpy(zero_copy_only=False)
    typed.floats[rows[hit]], typed.kind[rows[hit]] = total, FLOAT


def _units(typed: Typed) -> tuple[npt.NDArray[np.int64], list[str], npt.NDArray[np.int64]]:
    """(rows with a unit, distinct units, index of each row's unit)."""
    units = pc.extract_regex(typed.text, rf"^{NUMBER} ?(?P<unit>{_UNIT})$")
    rows = np.flatnonzero(_mask(units.is_valid()))
    if not len(rows):
        return rows, [], rows
    coded = pc.dictionary_encode(pc.struct_field(units.take(pa.array(rows)), "unit"))
    return rows, coded.dictionary.to_pylist(), np.asarray(coded.indices)


def _convert(typed: Typed, factors: dict[str, float], base: str) -> None:
    """Numbers with a unit become numbers in `base`; clock times are seconds already."""
    rows, names, codes = _units(typed)
    scale = np.array([factors.get(name, np.nan) for name in names]) / factors[base]
    if len(rows):
        typed.floats[rows] *= scale[codes]
        wrong = rows[np.isnan(scale[codes])]
        typed.kind[wrong] = STR
    if factors is _SECONDS:
        clock = _mask(pc.match_substring(typed.text, ":")) & (typed.kind == FLOAT)
        typed.floats[clock] /= factors[base]


def _invert(typed: Typed) -> None:
    slow = _mask(pc.ends_with(typed.text, "s/it")) & (typed.floats != 0)
    typed.floats[slow] = 1.0 / typed.floats[slow]


def _all_float(typed: Typed) -> None:
    """Integers as floats, those beyond 64 bit too."""
    typed.kind[(typed.kind == INT) | ((typed.kind == STR) & ~np.isnan(typed.floats))] = FLOAT


def _all_int(typed: Typed) -> None:
    """Whole floats as integers (`3.0`); others keep their type."""
    whole = (typed.kind == FLOAT) & (np.abs(typed.floats) < 2.0**53)
    whole &= np.floor(np.where(whole, typed.floats, 0.5)) == typed.floats
    typed.ints[whole] = typed.floats[whole].astype(np.int64)
    typed.kind[whole] = INT


def _write_out(text: Any) -> Any:
    """`0-2,5` -> `0,1,2,5`; per distinct value, which are few; absurd ranges stay as they are."""
    coded = pc.dictionary_encode(text)
    written = [_expand(value) for value in coded.dictionary.to_pylist()]
    return pa.array(written, text.type).take(coded.indices)


def _expand(ranges: str) -> str:
    numbers: list[int] = []
    for part in ranges.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():  # a superscript is no number
            return ranges
        low, high = int(first), int(last or first)
        if high - low + len(numbers) > 10_000:
            return ranges
        numbers.extend(range(low, high + 1))
    return ",".join(map(str, numbers))


def _cut(typed: Typed) -> Any:
    """Strings end at the limit of metadata strings."""
    if not (typed.kind == STR).any():
        return typed.text
    long = _mask(pc.greater(pc.binary_length(typed.text), METADATA_STRING_BYTES_MAX)) & (
        typed.kind == STR
    )
    if not long.any():
        return typed.text
    limit = METADATA_STRING_BYTES_MAX
    # A quarter of the limit in characters is within the limit in bytes, whatever the script.
    ascii_only = pc.string_is_ascii(typed.text)
    short = pc.if_else(
        ascii_only,
        pc.utf8_slice_codeunits(typed.text, 0, limit),
        pc.utf8_slice_codeunits(typed.text, 0, limit // 4),
    )
    return pc.if_else(pa.array(long), short, typed.text)
