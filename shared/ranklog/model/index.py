"""What the small object beside a segment says: enough to plan without opening the segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ranklog.model.frame import Drop, Fence, StreamEnd
from ranklog.model.stream import Stream


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """The segment that an index commits. `hash` is of its bytes and ends its name."""

    key: str
    length: int
    hash: str
    etag: str  # sent as If-Match; "" where the store has none


class Pass(NamedTuple):
    """A stretch of a stream's lines in which iterations only go on. `first`: the iteration it begins
    with, `second` the other that is named next (`first` if none is), `high` the highest; where (seq,
    ns) first and high are named first."""

    first_seq: int
    first_ns: int
    first: int
    second: int
    high_seq: int
    high_ns: int
    high: int


@dataclass(slots=True)  # frozen, thousands of them would take three times as long to read
class StreamEntry:
    """A stream's rows in one segment, not to be changed. Its position in the table is the column
    `stream`.

    `ranges`: half-open seq ranges of the rows that are in this segment, sorted, coalesced.
    `ranks`: (rank, lines) of lines whose rank is not the stream's; -1 is "no rank". `passes`: none
    where no line has an iteration, or the index is of before.
    """

    stream: Stream
    stream_id: str
    lines: int
    text_bytes: int
    min_ts: int | None
    max_ts: int | None
    ranges: tuple[tuple[int, int], ...]
    max_iteration: int | None = None
    ranks: tuple[tuple[int, int], ...] = ()
    fences: tuple[Fence, ...] = ()
    drops: tuple[Drop, ...] = ()
    end: StreamEnd | None = None
    alive_ns: int | None = None  # the last heartbeat of its process in the batch
    passes: tuple[Pass, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Min and max of a numeric column in a row group; None where no row has a value.

    NaN takes no part in min and max and is told apart by `has_nan`.
    """

    low: int | float | None
    high: int | float | None
    has_null: bool
    has_nan: bool = False


@dataclass(frozen=True, slots=True)
class RowGroup:
    """`first_row` counts in the segment. `chunks`: column -> (offset, length) in the object.

    `bounds`: ts, seq, body_at, level, iteration, rank (the line's, streams' included) and each
    numeric metadata column by its Parquet name. `runs`: folded letter runs (>= 3, not a-f only) inside
    mixed tokens, None when there were too many; `hex_runs`: runs of only a-f were seen.
    `bloom`: (offset, length) in the index's bloom section; length 0: no tokens.
    """

    first_row: int
    rows: int
    chunks: dict[str, tuple[int, int]]
    bounds: dict[str, Bounds]
    streams: frozenset[int]
    runs: frozenset[str] | None
    hex_runs: bool
    bloom: tuple[int, int]


@dataclass(frozen=True, slots=True)
class SiteCount:
    """One (call site, function, logger, level, template) of the segment."""

    call_site: str | None
    function: str | None
    logger: str | None
    level: int | None
    tid: int
    count: int
    text_bytes: int
    min_ts: int
    max_ts: int
    ranks: tuple[tuple[int, int], ...]  # (rank, lines); -1 is "no rank"


@dataclass(frozen=True, slots=True)
class SiteTimes:
    """Lines of the index's sites, in their order, by time: `counts[site][i]` are of
    [(first + i) * width_ns, (first + i + 1) * width_ns)."""

    width_ns: int
    first: int
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class TemplateRows:
    """A run of rows of one template, in row order over the segment."""

    tid: int
    first_row: int
    rows: int


@dataclass(frozen=True, slots=True)
class FrameRef:
    """A frame that the batch held, as its header says it: for audit. Indexes of before have no more than
    the first three, and `parts` None.

    `previous`: hash of the header before; `payload_hash` of its canonical columns; `parts`: (stream_id,
    first seq, end seq) of its rows; `dropped`: lines that policies left out before they got a seq.
    """

    agent: str
    number: int
    header_hash: str
    previous: str = ""
    payload_hash: str = ""
    parts: tuple[tuple[str, int, int], ...] | None = None
    dropped: int = 0


class Contested(NamedTuple):
    """Lines [first, end) that frames claimed with different content; those in the segment are of `frame`,
    the smallest hash of a header. "" where that is unknown: then nothing says that they differ."""

    stream_id: str
    first: int
    end: int
    frame: str


@dataclass(frozen=True, slots=True)
class IndexHead:
    """Everything but templates, blooms, call sites and the Parquet footer.

    `columns`: Parquet name -> kind, for metadata columns (`int:k`, `float:k`, `str:k`).
    `overflow`: metadata names that are only in the overflow column. `tid` 0 matches everything;

    `envelopes`: templates of text[:body_at], "" where there is none; every one ends in a separator
    (no letter, digit or placeholder), so that a line's text is envelope + body and no token spans
    both; None: too many or not so, and then nothing about text excludes a row. Blooms, letter runs
    and longest mixed tokens cover envelopes too. `odd_case`: the text has U+212A or U+017F, which
    case-insensitive RE2 takes for k and s; such literals are doubt then.
    """

    version: int
    kind: str
    segment: SegmentRef | None
    rows: int
    min_ts: int
    max_ts: int
    text_bytes: int
    streams: tuple[StreamEntry, ...]
    row_groups: tuple[RowGroup, ...]
    columns: tuple[str, ...]
    overflow: tuple[str, ...] = ()
    frames: Sequence[FrameRef] = ()
    contested: tuple[Contested, ...] = ()
    replaces: tuple[str, ...] = ()
    bloom_key: str = "mixed"  # which tokens the blooms hold: layout.grams
    extra: dict[str, object] = field(default_factory=dict)
    envelopes: tuple[str, ...] | None = ("",)
    odd_case: bool = False
