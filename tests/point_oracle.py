"""What a query means of a point, in plain Python: the answer that stored points are compared with."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ranklog.model import query as q
from ranklog.model.frame import NO_RANK, STREAM_RANK
from ranklog.model.point import NOT_MEASURED, canonical_json
from tests.point_frames import Record

# (series, dims, value, summary's count, rank, iteration, ts, run id): what tells points apart.
Told = tuple[Any, ...]
# What canonical JSON writes as text.
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def told(records: Sequence[Record], expr: q.Expr | None = None) -> list[Told]:
    """Points of the records that match, sorted; NaN is the text "nan"."""
    found = []
    for record in records:
        for name, value in record.values.items():
            if expr is None or holds(expr, record, name):
                found.append(_told(record, name, value))
    return sorted(found, key=repr)


def _told(record: Record, name: str, value: Any) -> Told:
    summary = value["count"] if isinstance(value, dict) else None
    plain = number_of(value)
    shown = repr(float(plain)) if plain is not None else None
    dims = canonical_json(record.dims)
    return (name, dims, shown, summary, rank_of(record), record.iteration, record.ts)


def number_of(value: Any) -> float | None:
    """A scalar; None: a summary, or not measured."""
    if isinstance(value, dict) or value is None or value == NOT_MEASURED:
        return None
    return float(value)


def rank_of(record: Record) -> int | None:
    if record.rank == STREAM_RANK:
        return record.stream.rank
    return None if record.rank == NO_RANK else record.rank


def holds(expr: q.Expr, record: Record, name: str) -> bool:
    """Whether the point matches."""
    if isinstance(expr, q.Everything):
        return True
    if isinstance(expr, q.And):
        return all(holds(item, record, name) for item in expr.items)
    if isinstance(expr, q.Or):
        return any(holds(item, record, name) for item in expr.items)
    if isinstance(expr, q.Not):
        return not holds(expr.item, record, name)
    assert isinstance(expr, q.Field), expr
    if expr.key == "host" and expr.op == ":" and record.stream.host is not None:
        short = record.stream.host.partition(".")[0]  # a host answers to its short form, too
        return _field(expr, record.stream.host) or _field(expr, short)
    return _field(expr, _under(expr.key, record, name))


def _under(key: str, record: Record, name: str) -> Any:
    stream = record.stream
    builtin = {
        "series": name,
        "rank": rank_of(record),
        "iteration": record.iteration,
        "time": record.ts,
        "host": stream.host,
        "run_id": stream.run_id,
        "attempt": stream.attempt,
        "value": number_of(record.values[name]),
        "level": None,
        "superseded": "false",
        "kind": "point",
    }
    if key in builtin:
        return builtin[key]
    for values in (record.dims, record.context or {}):
        if key in values:
            return values[key]
    return number_of(record.values[name]) if name == key else None


def _field(term: q.Field, held: Any) -> bool:
    if held is None:
        return term.op == ":" and any(isinstance(v, q.Null) for v in term.values)
    if term.op != "!=":
        return any(_one(term.op, v, held) for v in term.values)
    if any(isinstance(v, q.Null) for v in term.values):
        return True
    # texts compare with texts, numbers with numbers: either kind says whether it is none of them
    texts = [v for v in term.values if isinstance(v, (q.Exact, q.Glob, q.RegexValue))]
    numbers = [v for v in term.values if isinstance(v, (q.Number, q.Range))]
    of_text = isinstance(held, str) and texts and not any(_one(":", v, held) for v in texts)
    number = _FLOATS.get(held) if isinstance(held, str) else held
    known = number is not None and number == number
    of_number = known and numbers and not any(_one(":", v, held) for v in numbers)
    return bool(of_text or of_number)


def _one(op: str, wanted: q.Value, held: Any) -> bool:
    if isinstance(wanted, q.Null):
        return False
    if isinstance(wanted, q.Present):
        return True
    if isinstance(wanted, q.Number):
        held = _FLOATS.get(held) if isinstance(held, str) else held
        if held is None:
            return False
        x, y = held, wanted.value
        if y != y:
            return op == ":" and x != x
        return {":": x == y, ">": x > y, "<": x < y, ">=": x >= y, "<=": x <= y}[op]
    if isinstance(wanted, q.Range):
        held = _FLOATS.get(held) if isinstance(held, str) else held
        if held is None or held != held:
            return False
        above = wanted.low is None or held >= wanted.low
        high = wanted.high
        below = high is None or (held <= high if wanted.inclusive else held < high)
        return above and below
    if not isinstance(held, str):
        return False
    if isinstance(wanted, q.Exact):
        return held == wanted.text
    if isinstance(wanted, q.Glob):
        return re.match(wanted.pattern.removesuffix("$") + r"\Z", held) is not None
    return re.search(wanted.pattern, held) is not None
