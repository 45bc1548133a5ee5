"""The words of a caller (query text, restrictions, shape) as a Query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypedDict

from ranklog.errors import BadInput, BadQuery
from ranklog.limits import WORLD_RANKS_MAX
from ranklog.model.query import Query
from ranklog.plan.parse import parse_query
from ranklog.plan.restrict import restrict
from ranklog.plan.times import parse_duration

ORDERS = (None, "newest", "oldest")
_RANK_DIGITS_MAX = 18


class Restrictions(TypedDict, total=False):
    """What every reading call can AND to its query, in the words of the command line."""

    run: str | None
    attempt: str | int | None
    rank: str | int | None
    host: str | None
    level: str | int | None
    iteration: str | int | None
    since: str | None
    until: str | None
    last: str | None
    tz: str
    mute_common: bool


def read_query(
    text: str, given: Restrictions, *, now_ns: int, series: bool = False, **shape: Any
) -> Query:
    """Parse and restrict; `series`: a word is the name of a series. Raises BadQuery, BadInput."""
    unknown = set(given) - Restrictions.__annotations__.keys()
    if unknown:
        raise BadInput(
            f"unknown restriction {sorted(unknown)[0]}",
            hint="run attempt rank host level iteration since until last tz mute_common",
        )
    check_query(text)
    words: dict[str, Any] = dict(given)
    zone = words.pop("tz", None) or "UTC"
    muted = bool(words.pop("mute_common", False))
    query = parse_query(text, now_ns=now_ns, tz=zone, series=series).to_query(**shape)
    query = replace(query, mute_common=muted) if muted else query
    return restrict(query, now_ns=now_ns, tz=zone, **words)


def check_query(text: object, hint: str = 'a text; "" asks for all') -> None:
    """Raises BadInput for what is no text."""
    if not isinstance(text, str):
        raise BadInput(f"{text!r:.80} is no query", hint=hint)


def check_shape(limit: int | None, order: str | None) -> int | None:
    """The limit as a number of lines, None for none. Raises BadInput."""
    if order not in ORDERS:
        raise BadInput(f"no order {order!r}", hint="newest or oldest")
    if limit is not None and limit < 0:
        raise BadInput(f"a limit of {limit} lines", hint="0 means none")
    return limit or None


def check_timeout(timeout_s: float | None) -> float | None:
    """Seconds, more than none. Raises BadInput."""
    if timeout_s is not None and not 0 < timeout_s < 1e9:
        raise BadInput(f"a query of {timeout_s:g} seconds", hint="give it some time: 10")
    return timeout_s


def parse_every(text: str | None) -> tuple[int | None, int | None]:
    """`10s` is (ns, None), `100i` is (None, iterations). Raises BadQuery."""
    if not text:
        return None, None
    if text.endswith("i") and text[:-1].isdecimal() and int(text[:-1]) > 0:
        return None, int(text[:-1])
    try:
        width = parse_duration(text)
        if width <= 0:
            raise ValueError("a bucket has a width")
    except ValueError as error:
        raise BadQuery(
            f"{text!r} is no bucket: {error}", hint="10s of time, or 100i iterations"
        ) from error
    return width, None


def field_names(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Fields to count by, from a list or from text with commas; `step` means iteration. Raises BadInput."""
    names = names_in(by)
    return tuple(dict.fromkeys("iteration" if name == "step" else name for name in names))


def names_in(given: str | Sequence[str] | None) -> list[str]:
    """Names, from a list or from text with commas. Raises BadInput."""
    names: Any = given.split(",") if isinstance(given, str) else () if given is None else given
    try:
        return [name for name in map(str.strip, names) if name]
    except TypeError as error:
        hint = "a list of texts, or a text with commas: time,rank"
        raise BadInput(f"{given!r:.80} names no fields", hint=hint) from error


def parse_ranks(text: str | Sequence[int] | None) -> list[int]:
    """`0,7` or `0-3` or numbers, WORLD_RANKS_MAX at most. Raises BadInput."""
    if text is None:
        return []
    if not isinstance(text, str):
        return [int(rank) for rank in text]
    spans: list[range] = []
    for part in filter(None, (item.strip() for item in text.split(","))):
        low, dash, high = part.partition("-")
        if not _is_rank(low) or (dash and not _is_rank(high)):
            raise BadInput(f"{part!r} is no rank", hint="write 0,7 or 0-3")
        if dash and int(high) < int(low):
            raise BadInput(f"{part!r} ends before it begins", hint=f"write {high}-{low}")
        spans.append(range(int(low), int(high or low) + 1))
    if sum(map(len, spans)) > WORLD_RANKS_MAX:
        raise BadInput(f"{text[:80]!r} names over {WORLD_RANKS_MAX:,} ranks", hint="name fewer")
    return list(dict.fromkeys(chain.from_iterable(spans)))


def _is_rank(word: str) -> bool:
    return word.isdecimal() and len(word) <= _RANK_DIGITS_MAX
