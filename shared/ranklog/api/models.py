"""Bodies of requests: every member optional, unknown members refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ranklog.limits import (
    CONTEXT_LINES_MAX,
    GROUPS_MAX,
    QUERY_BYTES_MAX,
    QUERY_LIMIT_DEFAULT,
    SERIES_POINTS_DEFAULT,
    STATS_MAX,
    TAIL_PAGE_ROWS_MAX,
    TAIL_WAIT_S_MAX,
    TASK_SECONDS_MAX,
)

Text = Annotated[str, Field(max_length=QUERY_BYTES_MAX)]
Seconds = Annotated[float, Field(gt=0, le=TASK_SECONDS_MAX, strict=False)]
Number = Annotated[int, Field(ge=0, le=2**53)]


class Restrictions(BaseModel):
    """The query, and what every reading command can AND to it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: Text = ""
    run: Text | None = Field(None, description="NAME, NAME@LAUNCH, NAME~1, NAME~ok or NAME@*")
    attempt: Text | int | None = None
    rank: Text | int | None = Field(None, description="3, 0-7 or 0,4")
    host: Text | None = None
    level: Text | None = Field(None, description="this level or above")
    iteration: Text | int | None = Field(None, description="A..B, half-open")
    since: Text | None = Field(None, description="RFC 3339, or a span back from now: 1h")
    until: Text | None = None
    last: Text | None = Field(None, description="a span back from the newest line in scope: 10m")
    tz: Text = "UTC"
    full_scan: bool = False
    mute_common: bool | None = Field(
        None, description="without what every rank says at the same rate"
    )


class SearchBody(Restrictions):
    """A search. `limit` 0: none. `pin` true: keep what it looked at; the name of a pin: ask again."""

    limit: Number | None = Field(None, description="0: none; null: 1000, or what the pin has")
    order: Literal["newest", "oldest"] | None = None
    cursor: Text | None = None
    fields: list[Text] = []
    context: Annotated[int, Field(ge=0, le=CONTEXT_LINES_MAX)] = 0
    explain: bool = False
    pin: bool | Text = False
    timeout: Seconds | None = None


class CountBody(Restrictions):
    """A count, whole or by fields and buckets."""

    explain: bool = False
    timeout: Seconds | None = None
    by: list[Text] = []
    every: Text | None = Field(None, description="10s (time) or 100i (iterations)")
    top: Annotated[int, Field(ge=1, le=GROUPS_MAX)] | None = Field(
        None, description="only so many groups, those with the most lines"
    )
    stats: list[Text] = Field(
        [],
        max_length=STATS_MAX,
        description="numeric metadata to tell min, max, mean, quantiles of",
    )


class SeriesBody(Restrictions):
    """Series: their points, or with `columns` an object per series, in a random order that stays."""

    by: list[Text] | None = Field(
        None, description="fold all but these fields: rank, host, attempt, dimensions"
    )
    every: Text | None = Field(None, description="fold buckets: 10s (time) or 100i (iterations)")
    aggregate: (
        Literal["mean", "min", "max", "spread", "std", "median", "sum", "count", "last"] | None
    ) = None
    max_points: Number = Field(SERIES_POINTS_DEFAULT, description="per series; 0: all")
    stat: Literal["mean", "min", "max", "std", "norm", "nan", "inf", "count"] = "mean"
    detect: bool | list[Literal["spike", "drift", "plateau", "nan"]] = False
    superseded: bool = False
    columns: bool = False
    cursor: Text | None = Field(None, description="series behind the last one of another answer")
    timeout: Seconds | None = None


class SeriesPage(BaseModel):
    """`points`, or `series` with `columns`; `next` goes on where not all series fitted."""

    points: list[dict[str, Any]] = []
    series: list[dict[str, Any]] = []
    downsampled: dict[str, Any] | None
    aggregate: str | None
    events: list[dict[str, Any]]
    next: str | None
    completeness: dict[str, Any]
    report: dict[str, Any]


class CompareBody(Restrictions):
    """Ranks of a run side by side, or `run` against `with`."""

    ranks: Text | None = Field(None, description="2 to 8 ranks: 0,7 or 0-3")
    with_: Text | None = Field(None, alias="with", description="another run to hold `run` against")
    all: bool = Field(False, description="equal stretches too")
    limit: Number = Field(QUERY_LIMIT_DEFAULT, description="at most so many hunks; 0: all")


class MissingBody(Restrictions):
    """Who did not say it. `all`: who did as well."""

    by: Literal["rank", "host", "stream"] = "rank"
    all: bool = False


class OutliersBody(Restrictions):
    """Every rank of a run against its peers; `attempt` another than the last."""


class OutliersAnswer(BaseModel):
    """Ranks that deviate, the oddest first; what they share and a heat map in `summary`."""

    outliers: list[dict[str, Any]]
    summary: dict[str, Any]
    completeness: dict[str, Any]
    report: dict[str, Any]


class TriageBody(Restrictions):
    """What happened to a run; `attempt` an earlier one than the last."""


class TriageAnswer(BaseModel):
    """Class, suspects and timeline of one attempt."""

    run: str
    attempt: int
    class_: str = Field(alias="class")
    undecidable: bool
    suspects: list[dict[str, Any]]
    timeline: list[dict[str, Any]]
    last_iteration: int | None
    last_checkpoint: dict[str, Any] | None
    next_steps: list[dict[str, Any]]
    completeness: dict[str, Any]
    report: dict[str, Any]


class StacksBody(Restrictions):
    """Ranks of a run by where their stack dumps say they stand."""

    thread: Literal["main", "all"] = Field("main", description="main threads, or all of a process")


class StacksAnswer(BaseModel):
    """Groups of ranks with equal stacks, the odd ones first; `missing`: ranks without a dump."""

    groups: list[dict[str, Any]]
    missing: list[int]
    completeness: dict[str, Any]
    report: dict[str, Any]


class ExportBody(Restrictions):
    """Lines as newline-delimited JSON or as text, page by page."""

    format: Literal["jsonl", "text"] = "jsonl"
    cursor: Text | None = None


class RunsParameters(BaseModel):
    """Restrictions as parameters of a GET."""

    model_config = ConfigDict(extra="forbid")

    run: Text | None = None
    since: Text | None = None
    until: Text | None = None
    last: Text | None = None
    tz: Text = "UTC"


class RunListParameters(RunsParameters):
    """Runs that a query over their manifests finds; with the whole manifest, if asked."""

    query: Text = ""
    manifest: bool = False


class SloParameters(BaseModel):
    """The period of objectives: a month up to now where nothing is said."""

    model_config = ConfigDict(extra="forbid")

    since: Text | None = Field(None, description="RFC 3339, or a span back from now: 30d")
    until: Text | None = None
    tz: Text = "UTC"


class SloAnswer(BaseModel):
    """Each objective with its value, target and what is left of its error budget; what they are from."""

    objectives: list[dict[str, Any]]
    stored: dict[str, int]
    counts: dict[str, int]
    unread: list[dict[str, str]]
    period: dict[str, Any]


class StreamsParameters(BaseModel):
    """The run stands in the path."""

    model_config = ConfigDict(extra="forbid")

    attempt: Text | None = None
    rank: Text | None = None
    host: Text | None = None


class CallSitesParameters(RunsParameters):
    """Call sites of the lines that match."""

    query: Text = ""
    attempt: Text | None = None
    rank: Text | None = None
    host: Text | None = None
    level: Text | None = None
    iteration: Text | None = None
    uneven: bool = False
    every: Text | None = Field(None, description="also by buckets: 10s (time) or 100i (iterations)")
    mute_common: bool | None = None
    full_scan: bool = False


class PatternsParameters(RunsParameters):
    """Templates of the lines that match. `limit` 0: all."""

    query: Text = ""
    attempt: Text | None = None
    rank: Text | None = None
    host: Text | None = None
    level: Text | None = None
    iteration: Text | None = None
    with_: Text | None = Field(None, alias="with", description="an earlier run: NAME, or ~1")
    limit: Number = QUERY_LIMIT_DEFAULT
    full_scan: bool = False


class TailParameters(RunsParameters):
    """A step of a tail. `wait`: seconds to wait for a line; `limit`: lines looked at; `watch`: lines
    that a watch looks at, and what is new of streams."""

    query: Text = ""
    attempt: Text | None = None
    rank: Text | None = None
    host: Text | None = None
    level: Text | None = None
    iteration: Text | None = None
    mute_common: bool | None = None
    cursor: Text | None = None
    wait: Annotated[float, Field(ge=0, le=TAIL_WAIT_S_MAX)] = TAIL_WAIT_S_MAX
    limit: Annotated[int, Field(ge=1, le=TAIL_PAGE_ROWS_MAX)] = TAIL_PAGE_ROWS_MAX
    watch: bool = False


class TailAnswer(BaseModel):
    """Lines, and objects of `kind` gap and skipped; `next` goes on."""

    items: list[dict[str, Any]]
    streams: list[dict[str, Any]] = []
    next: str


class SearchAnswer(BaseModel):
    """What a search answers; `lines` are the lines of the interfaces."""

    lines: list[dict[str, Any]]
    next: str | None
    truncated: bool
    completeness: dict[str, Any]
    report: dict[str, Any]


class Rows(BaseModel):
    """Rows under a name of their own, with completeness and report."""

    completeness: dict[str, Any]
    report: dict[str, Any]


class Health(BaseModel):
    """That it is there, and which."""

    status: Literal["ok"]
    version: str


class Problem(BaseModel):
    """RFC 9457, with kind, hint and position of ours."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
    hint: str | None
    position: int | None
