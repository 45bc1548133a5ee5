"""What the planner asks a scan to do, and what the scan says back: values only, as versioned JSON.

A task names segments and how to read them; an outcome holds columns (a list per column) or groups,
and one tag. Rows refer to streams and templates by their position in the segment's tables: the
planner has the index at hand and names them, so that no stream table travels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ranklog.errors import Corrupt, NewerVersion
from ranklog.model import query as q
from ranklog.plan.codec import NodeCodec

VERSION = 1

OK, FAILED, SKIPPED = "ok", "failed", "skipped"

Pairs: TypeAlias = "tuple[tuple[int, int], ...]"
# A set of streams or templates that holds every one of the segment.
ALL: Pairs = ((0, 2**31 - 1),)


@dataclass(frozen=True, slots=True)
class Nothing:
    """Matches no line."""


@dataclass(frozen=True, slots=True)
class InStreams:
    """The line's stream is in the segment's set number `slot`."""

    slot: int


@dataclass(frozen=True, slots=True)
class InTemplates:
    """The line's template is in the segment's set number `slot`."""

    slot: int


@dataclass(frozen=True, slots=True)
class RankIs:
    """A term on rank: `slot` holds the streams whose own rank fulfils it, `field` the overrides' test."""

    slot: int
    field: q.Field


@dataclass(frozen=True, slots=True)
class InSeries:
    """The point's series is in the segment's set number `slot`."""

    slot: int


@dataclass(frozen=True, slots=True)
class InContexts:
    """The context of the point's record is in the segment's set number `slot`."""

    slot: int


LeafExpr: TypeAlias = "q.Expr | Nothing | InStreams | InTemplates | RankIs | InSeries | InContexts"

EXPR_CODEC = NodeCodec(
    q.Everything,
    q.Contains,
    q.Matches,
    q.Exact,
    q.Glob,
    q.RegexValue,
    q.Number,
    q.Range,
    q.Null,
    q.Present,
    q.Field,
    q.Not,
    q.And,
    q.Or,
    q.Spike,
    q.Near,
    q.NearSet,
    Nothing,
    InStreams,
    InTemplates,
    RankIs,
    InSeries,
    InContexts,
)


@dataclass(frozen=True, slots=True)
class SegmentScan:
    """One segment and how to read it. All ranges are half-open.

    `number` is the planner's name for the segment. `ranked`: some rows have a rank of their own.
    `rows`: row ranges that might match (None: all); `certain`: every row in them does.
    `tids`: templates that might match (None: all). `slots`: sets of stream positions or template
    ids, as ranges, for InStreams, InTemplates and RankIs. `columns`: metadata columns of the segment
    and optional columns (overflow, raw) that the task needs. `overflow`: metadata names in overflow. `skip`: (stream, first
    seq, end seq) of rows that another segment answers. `wanted`: (stream, first, end, group or -1):
    only these rows. `order`: place of each stream by stream_id where it is not its position.
    `ranks`: each stream's own rank, `keys`: each stream's key in every near set; both only where a
    near set needs them; `hosts`: its host's, for lines without a rank. `after`: (ts, place, whether
    the stream at this place is the one, seq): only rows behind it in the task's order. `small` and
    `text`: byte ranges to fetch where the store has no local file; `late`: those of text that is
    read where it must be. `sums`: checksums of all of these (plan/sums), "": there are none. `same`:
    columns that have one value (None: none) in every row of `rows`, where whole lines are wanted.
    `records`: rows before the first point, of a segment of points.
    """

    number: int
    key: str
    length: int
    etag: str
    footer: int
    min_ts: int
    max_ts: int
    columns: tuple[str, ...] = ()
    overflow: tuple[str, ...] = ()
    ranked: bool = True
    rows: Pairs | None = None
    certain: bool = False
    tids: tuple[int, ...] | None = None
    slots: tuple[Pairs, ...] = ()
    skip: tuple[tuple[int, int, int], ...] = ()
    wanted: tuple[tuple[int, int, int, int], ...] | None = None
    order: tuple[int, ...] | None = None
    ranks: tuple[int | None, ...] = ()
    keys: tuple[tuple[int, ...], ...] = ()
    hosts: tuple[int, ...] = ()
    after: tuple[int, int, bool, int] | None = None
    small: Pairs = ()
    text: Pairs = ()
    late: Pairs = ()
    sums: str = ""
    same: tuple[tuple[str, int | None], ...] = ()
    records: int = 0


@dataclass(frozen=True, slots=True)
class NearRows:
    """A near set as columns: row i is the interval [low[i], high[i]) of (key[i], rank[i]) on `axis`.

    `by_rank`: rank takes part. A line without a rank looks for `-2 - key` of its host.
    """

    axis: str
    by_rank: bool
    key: tuple[int, ...]
    rank: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Return rows. `whole`: every column; else only identity, time, rank, iteration, `values` (metadata
    as numbers), `texts` (metadata that is text), and of the base columns and text those that
    `columns` names.

    With a limit every row that ties with the last one in time comes too: the merge cuts exactly.
    """

    limit: int | None = None
    newest: bool = True
    whole: bool = True
    values: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Groups:
    """Return counts by `keys`: stream, tid, rank, level, iteration, call_site, function, logger,
    `ts/<ns>`, `iteration/<n>` buckets, or `meta:<key>`. `extent`: also bytes, first and last time;
    `stats`: of these metadata keys, or `iteration`, the numbers (merge/numbers). `seqs`: also the
    first and last seq, where `stream` is a key.
    """

    keys: tuple[str, ...] = ()
    extent: bool = False
    stats: tuple[str, ...] = ()
    seqs: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """Return points: their series, their record's columns and values as `columns` names them (layout/
    point_schema; `value` is the value, whichever way it is stored)."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PointTask:
    """As Task, over segments of points."""

    expr: LeafExpr
    segments: tuple[SegmentScan, ...]
    shape: Points
    near: tuple[NearRows, ...] = ()
    deadline_s: float | None = None
    spill: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """`near[i]` belongs to the i-th NearSet met in `expr`, depth first."""

    expr: LeafExpr
    segments: tuple[SegmentScan, ...]
    shape: Lines | Groups
    near: tuple[NearRows, ...] = ()
    deadline_s: float | None = None
    spill: str | None = None  # key under tmp/ for an outcome too large to return inline


AnyTask: TypeAlias = "Task | PointTask"


@dataclass(slots=True)
class SegmentFailure:
    """A segment that a task could not read: named, so that no answer is silently short. `late`: there
    was no time for it; asked again, it may be read."""

    number: int
    key: str
    reason: str
    retryable: bool = False
    late: bool = False


@dataclass(slots=True)
class Outcome:
    """`columns`: name -> values, one row per line or group. `failed` names segments left out.

    `tag` is ok when every segment was read, failed when at least one was not, skipped when the task
    was not run. `stored`: the outcome is in the store under this key and nothing is inline.
    `tables`: points by number of the segment, as Arrow, where they do not travel.
    """

    tag: str = OK
    reason: str | None = None
    retryable: bool = False
    columns: dict[str, list[Any]] = field(default_factory=dict)
    failed: list[SegmentFailure] = field(default_factory=list)
    bytes_read: int = 0
    scan_ms: float = 0.0
    scanned: int = 0
    stored: str | None = None
    tables: dict[int, Any] = field(default_factory=dict)


_SCAN_CODEC = NodeCodec(SegmentScan, NearRows, Lines, Groups, Points)


def encode_task(task: AnyTask) -> bytes:
    """JSON bytes."""
    return _dumps(
        {
            "version": VERSION,
            "expr": EXPR_CODEC.to_json(task.expr),
            "segments": [_SCAN_CODEC.to_json(segment) for segment in task.segments],
            "shape": _SCAN_CODEC.to_json(task.shape),
            "near": [_SCAN_CODEC.to_json(rows) for rows in task.near],
            "deadline_s": task.deadline_s,
            "spill": task.spill,
        }
    )


def decode_task(data: bytes) -> AnyTask:
    """Raises Corrupt or NewerVersion."""
    value = _loads(data)
    shape = _SCAN_CODEC.from_json(value["shape"])
    kind = PointTask if isinstance(shape, Points) else Task
    return kind(
        expr=EXPR_CODEC.from_json(value["expr"]),
        segments=tuple(_SCAN_CODEC.from_json(item) for item in value["segments"]),
        shape=shape,
        near=tuple(_SCAN_CODEC.from_json(item) for item in value["near"]),
        deadline_s=value["deadline_s"],
        spill=value["spill"],
    )


def encode_outcome(outcome: Outcome) -> bytes:
    """JSON bytes. Floats that are no JSON numbers must be text already (scan/evaluate sees to it)."""
    return _dumps(
        {
            "version": VERSION,
            "tag": outcome.tag,
            "reason": outcome.reason,
            "retryable": outcome.retryable,
            "columns": outcome.columns,
            "failed": [[f.number, f.key, f.reason, f.retryable, f.late] for f in outcome.failed],
            "bytes_read": outcome.bytes_read,
            "scan_ms": outcome.scan_ms,
            "scanned": outcome.scanned,
            "stored": outcome.stored,
        }
    )


def decode_outcome(data: bytes) -> Outcome:
    """Raises Corrupt or NewerVersion."""
    value = _loads(data)
    return Outcome(
        tag=value["tag"],
        reason=value["reason"],
        retryable=value["retryable"],
        columns=value["columns"],
        failed=[SegmentFailure(*item) for item in value["failed"]],
        bytes_read=value["bytes_read"],
        scan_ms=value["scan_ms"],
        scanned=value["scanned"],
        stored=value["stored"],
    )


def _dumps(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


def _loads(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise Corrupt(f"a task or outcome is not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("version"), int):
        raise Corrupt("a task or outcome has no version")
    if value["version"] > VERSION:
        raise NewerVersion(
            f"a task or outcome has version {value['version']}, this ranklog reads {VERSION}",
            hint="deploy all functions of one release",
        )
    return value
