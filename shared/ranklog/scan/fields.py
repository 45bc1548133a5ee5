"""SQL of one field's term: numbers, texts, call sites, metadata. Same meaning as plan/values.

The SQL may be NULL where the field is absent; scan/sql decides what that means. Integers stand in
the SQL as they are, everything else is a parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ranklog.layout import schema
from ranklog.model import query as q
from ranklog.plan.tasks import ALL, Pairs, SegmentScan
from ranklog.plan.values import text_values

AddParameter: TypeAlias = Callable[[str], str]

_INT64 = 2**63
_SQL = {":": "=", "!=": "<>", ">=": ">=", "<=": "<=", ">": ">", "<": "<"}


def regex(pattern: str, flags: str) -> str:
    """A pattern with its flags inside, where RE2 reads them all."""
    return f"(?{flags}){pattern}" if flags else pattern


def in_ranges(column: str, ranges: Pairs) -> str:
    """Membership in half-open ranges of small integers."""
    if not ranges:
        return "false"
    if ranges == ALL:
        return "true"
    singles = [str(low) for low, high in ranges if high == low + 1]
    parts = [f"{column} BETWEEN {low} AND {high - 1}" for low, high in ranges if high > low + 1]
    if singles:
        parts.append(f"{column} IN ({', '.join(singles)})")
    return f"({' OR '.join(parts)})"


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


# --- numbers ------------------------------------------------------------------------------------
def numbers_sql(column: str, op: str, values: Sequence[q.Value], *, is_float: bool = False) -> str:
    """A term on a numeric column."""
    parts = [_number_sql(column, op, value, is_float) for value in values]
    return f"({(' AND ' if op == '!=' else ' OR ').join(parts)})"


def _number_sql(column: str, op: str, value: q.Value, is_float: bool) -> str:
    if isinstance(value, q.Null):
        return f"({column} IS {'NOT ' if op == '!=' else ''}NULL)"
    if isinstance(value, q.Present):
        return "false" if op == "!=" else f"({column} IS NOT NULL)"
    compare = _compare_float if is_float else _compare_int
    if isinstance(value, q.Number):
        return compare(column, op, value.value)
    assert isinstance(value, q.Range), value
    parts = {
        "low": None if value.low is None else compare(column, ">=", value.low),
        "high": None
        if value.high is None
        else compare(column, "<=" if value.inclusive else "<", value.high),
    }
    return _range_sql(column, op, parts["low"], parts["high"], is_float)


def _range_sql(column: str, op: str, low: str | None, high: str | None, is_float: bool) -> str:
    """`low` and `high` are SQL of "not below the range" and "not above it"; None: open."""
    present = f"({column} IS NOT NULL)" + (f" AND NOT isnan({column})" if is_float else "")
    above, below = low or "true", high or "true"
    wanted = {
        ":": f"{above} AND {below}",
        "!=": f"NOT ({above} AND {below})",
        ">=": above,
        "<": f"NOT {above}",
        "<=": below,
        ">": f"NOT {below}",
    }[op]
    return f"({present} AND {wanted})"


def whole_comparison(op: str, value: int | float) -> tuple[str, int] | bool:
    """How whole numbers of 64 bits compare with a number: operator and int64, or what holds for all."""
    if isinstance(value, float):
        if math.isnan(value):
            return op == "!="
        if math.isinf(value):
            value = _INT64 * 2 if value > 0 else -_INT64 * 2
        elif value.is_integer():
            value = int(value)
        elif op in (":", "!="):
            return op == "!="
        else:  # x < 2.5 is x <= 2, x >= 2.5 is x >= 3
            op, value = ("<=", math.floor(value)) if op[0] == "<" else (">=", math.ceil(value))
    if not -_INT64 <= value < _INT64:
        return op == "!=" or ((op[0] == "<") == (value > 0) and op != ":")
    return op, int(value)


def double_comparison(op: str, value: int | float) -> tuple[str, float] | bool:
    """How doubles that are not NaN compare with a number that is not: operator and double, or what
    holds for all."""
    try:
        near = float(value)
    except OverflowError:
        near = math.copysign(math.inf, value)
    if near != value:  # an int that no float is
        if op in (":", "!="):
            return op == "!="
        below = near < value
        op = ("<=" if below else "<") if op[0] == "<" else (">" if below else ">=")
    return op, near


def _compare_int(column: str, op: str, value: int | float) -> str:
    asked = whole_comparison(op, value)
    if isinstance(asked, bool):
        return f"({column} IS NOT NULL)" if asked else "false"
    op, number = asked
    return f"({column} {_SQL[op]} {number})"


def _compare_float(column: str, op: str, value: int | float) -> str:
    number = f"({column} IS NOT NULL AND NOT isnan({column}))"
    if isinstance(value, float) and math.isnan(value):
        return {":": f"isnan({column})", "!=": number}.get(op, "false")
    asked = double_comparison(op, value)
    if isinstance(asked, bool):
        return number if asked else "false"
    op, near = asked
    literal = "'" + repr(near) + "'::DOUBLE"
    return f"({column} {_SQL[op]} {literal} AND NOT isnan({column}))"


# --- texts --------------------------------------------------------------------------------------
def texts_sql(column: str, term: q.Field, add: AddParameter) -> str:
    """A term on a text column, values compared whole and case-sensitive."""
    return _any_text(term, [_text_sql(column, term.op, value, add) for value in text_values(term)])


def _any_text(term: q.Field, parts: Sequence[str]) -> str:
    """`!=` is "there, and none of them"."""
    joined = " OR ".join(parts)
    return f"(NOT ({joined}))" if term.op == "!=" else f"({joined})"


def _text_sql(column: str, op: str, value: q.Value, add: AddParameter) -> str:
    if isinstance(value, q.Exact):
        return f"({column} {'=' if op == '!=' else _SQL[op]} {add(value.text)})"
    if isinstance(value, q.Glob):
        return f"regexp_matches({column}, {add(value.pattern)})"
    if isinstance(value, q.RegexValue):
        return f"regexp_matches({column}, {add(regex(value.pattern, value.flags))})"
    return _absence(column, value)


def _absence(column: str, value: q.Value) -> str:
    return f"({column} IS {'' if isinstance(value, q.Null) else 'NOT '}NULL)"


def call_site_sql(column: str, term: q.Field, add: AddParameter) -> str:
    """`trainer.py:88` and `trainer.py` match every path that ends in `/trainer.py`."""
    parts = [_call_site_value(column, value, term.op, add) for value in text_values(term)]
    return _any_text(term, parts)


def _call_site_value(column: str, value: q.Value, op: str, add: AddParameter) -> str:
    if isinstance(value, q.Exact):
        return f"regexp_matches({column}, {add(path_ending(value.text, glob=False))})"
    if isinstance(value, q.Glob):
        return f"regexp_matches({column}, {add(path_ending(value.source, glob=True))})"
    return _text_sql(column, op, value, add)


def path_ending(value: str, *, glob: bool) -> str:
    """RE2 for call sites whose path ends in this file, at this line if the value names one."""
    line = "" if re.search(r":[0-9*?]+$", value) else "(:[0-9]+)?"
    return f"(?s)(^|/){_glob_body(value) if glob else literal_regex(value)}{line}$"


def literal_regex(text: str) -> str:
    """RE2 that matches exactly this text."""
    return re.sub(r"([^0-9A-Za-z_\u0080-\U0010ffff\x00/])", r"\\\1", text)


def _glob_body(source: str) -> str:
    """A wildcard value as RE2, not anchored; `\\*` is a star."""
    out = []
    for match in re.finditer(r"\\(.)|(\*)|(\?)|(.)", source, re.DOTALL):
        escaped, star, mark, plain = match.groups()
        out.append(".*" if star else "." if mark else literal_regex(escaped or plain))
    return "".join(out)


# --- metadata -----------------------------------------------------------------------------------
def metadata_value(segment: SegmentScan, type_: str, key: str) -> str | None:
    """SQL of a metadata value, None where no row of the segment has it."""
    name = schema.metadata_column(type_, key)
    if name in segment.columns:
        return quoted(name)
    return overflow_sql(name) if name in segment.overflow else None


def overflow_sql(name: str, table: str = "") -> str:
    """SQL of a metadata value (`float:loss`) that is in the overflow column; `table`: `f.`."""
    pointer = "/" + name.replace("~", "~0").replace("/", "~1")
    text = f"({table}{schema.OVERFLOW} ->> {text_literal(pointer)})"
    types = {"int:": "BIGINT", "float:": "DOUBLE"}
    type_ = types.get(name[: name.index(":") + 1])
    return text if type_ is None else f"TRY_CAST({text} AS {type_})"


def text_literal(text: str) -> str:
    """A text as SQL writes it, where no parameter can stand."""
    return "'" + text.replace("'", "''") + "'"


def metadata_sql(segment: SegmentScan, term: q.Field, add: AddParameter) -> str:
    """A term on metadata: numbers look at int and float values, texts at strings."""
    columns = {t: metadata_value(segment, t, term.key) for t in schema.METADATA_TYPES}
    there = [f"({column} IS NOT NULL)" for column in columns.values() if column is not None]
    numbers = [v for v in term.values if isinstance(v, (q.Number, q.Range))]
    texts = [v for v in term.values if isinstance(v, (q.Exact, q.Glob, q.RegexValue))]
    parts = []
    for type_, column in columns.items():
        if column is None:
            continue
        if type_ == "str" and texts:
            parts.append(texts_sql(column, q.Field(term.key, term.op, tuple(texts)), add))
        elif type_ != "str" and numbers:
            parts.append(numbers_sql(column, term.op, numbers, is_float=type_ == "float"))
    present = f"({' OR '.join(there)})" if there else "false"
    for value in term.values:
        if isinstance(value, q.Null):
            parts.append(present if term.op == "!=" else f"(NOT {present})")
        elif isinstance(value, q.Present) and term.op != "!=":
            parts.append(present)
    # each part is false, not NULL, where its own value is absent: another type may hold
    return f"({' OR '.join(f'coalesce({part}, false)' for part in parts)})" if parts else "false"
