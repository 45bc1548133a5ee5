"""A parsed query: the tree of terms, and what restricts and shapes the answer.

A term is true or false of a line, never unknown: a comparison with an absent field is false, and Not
is the exact complement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

BUILTIN_FIELDS = frozenset(
    [
        "run",
        "run_id",
        "attempt",
        "rank",
        "local_rank",
        "host",
        "stream",
        "channel",
        "level",
        "iteration",
        "call_site",
        "template",
        "logger",
        "function",
        "group",
        "time",
        "series",
        "source",
        "id",
        "copy",
        "superseded",
        "kind",
    ]
)
# `step` is accepted at the edges and means iteration.
FIELD_ALIASES = {"step": "iteration"}


@dataclass(frozen=True, slots=True)
class Everything:
    """`*`, and the empty query."""


@dataclass(frozen=True, slots=True)
class Contains:
    """The text contains this literally, case-sensitive."""

    literal: str


@dataclass(frozen=True, slots=True)
class Matches:
    """The text has a match of an RE2 expression, unanchored. `flags`: subset of "ims", sorted."""

    pattern: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Exact:
    """A text value, whole and case-sensitive. `quoted` values compare with strings only."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Glob:
    """A text value with wildcards: `parts` joined by `*` (any run) and `?` (one character).

    `pattern` is an anchored RE2 expression that means the same.
    """

    source: str
    pattern: str


@dataclass(frozen=True, slots=True)
class RegexValue:
    """A search in the value."""

    pattern: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A bare number: compares with int and float values. NaN and infinities are values."""

    value: int | float
    source: str


@dataclass(frozen=True, slots=True)
class Range:
    """low <= x < high, or low <= x <= high where `inclusive`; None is open. Times are int ns."""

    low: int | float | None
    high: int | float | None
    inclusive: bool = False


@dataclass(frozen=True, slots=True)
class Null:
    """The field is absent."""


@dataclass(frozen=True, slots=True)
class Present:
    """The field is there."""


Value: TypeAlias = "Exact | Glob | RegexValue | Number | Range | Null | Present"


@dataclass(frozen=True, slots=True)
class Field:
    """`key op value,…`: true if any value holds. `op` is one of : >= <= > < !=.

    Built-in fields hold parsed values: levels, ranks, iterations and attempts are Number or Range,
    `time` is a Range of ns, `call_site` an Exact or Glob that matches path endings.
    """

    key: str
    op: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Not:
    item: Expr


@dataclass(frozen=True, slots=True)
class And:
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or:
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Spike:
    """Values farther from the running median than `factor` x running MAD, or x the median."""

    series: str
    where: Expr
    factor: float
    ratio: bool = False


@dataclass(frozen=True, slots=True)
class Near:
    """Rows near a match of `query`. `axis`: iteration | time (distance in ns then).

    `side`: both | before | after (the row comes at most `distance` before / after the match).
    `scope`: rank | host | any.
    """

    query: Expr
    axis: str
    distance: int
    side: str = "both"
    scope: str = "rank"


@dataclass(frozen=True, slots=True)
class NearSet:
    """A Near after its inner query was answered: intervals, half-open, per scope key.

    `groups` maps the scope's key (as JSON text: `["run_id", rank]`, `["run_id","host"]`,
    `["run_id"]`, `["stream id"]`) to merged intervals on `axis`: time, iteration, or seq in a stream.
    """

    axis: str
    scope: str
    groups: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


Expr: TypeAlias = (
    "Everything | Contains | Matches | Field | Not | And | Or | Spike | Near | NearSet"
)


@dataclass(frozen=True, slots=True)
class RunSelector:
    """`NAME`, `NAME@LAUNCH`, `NAME~1`, `NAME~ok`, `NAME@*`."""

    name: str
    launch: str | None = None  # "*": all
    back: int = 0
    ok: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What a reader asks. `expr` holds the text's terms and the options', AND-ed.

    `since_ns` and `until_ns` are the bounds that were given (half-open, None: not given);
    `last_ns` a span back from the newest line in scope.
    """

    expr: Expr
    run: RunSelector | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    last_ns: int | None = None
    limit: int | None = None  # None: no limit
    order: str | None = None  # newest | oldest | None
    cursor: str | None = None
    context: int = 0
    full_scan: bool = False
    explain: bool = False
    count: bool = False
    by: tuple[str, ...] = ()
    every_ns: int | None = None
    every_iterations: int | None = None
    top: int | None = None  # of a count: only the groups with the most lines
    stats: tuple[str, ...] = ()  # of a count: keys whose numbers are told
    kind: str = "line"
    timeout_s: float | None = None  # of the whole query: what is not read then is named
    mute_common: bool = False  # without what every rank of the scope says at the same rate
