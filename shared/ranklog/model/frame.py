"""What one Kinesis record carries: a header, and columns of lines from many streams of one agent.

Shapes: a frame has n rows; every column is bytes of n little-endian numbers, in row order. Rows of
one stream stand in seq order and have consecutive seq: row k of stream s has
`streams[s].first_seq + (rows of s before k)`. Nothing per row is a Python object, so that an ingest
can hand the bytes to numpy and Arrow as they are, and a producer can fill them from `array`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranklog.model.stream import Stream

NO_LEVEL = 0  # int16
NO_SITE = 0  # uint32: index + 1 into Frame.sites
STREAM_RANK = -(2**31)  # int32: the line's rank is its stream's
NO_RANK = -1  # int32: the line has no rank, whatever its stream's
NO_ITERATION = -(2**63)  # int64
NO_GROUP = 0xFFFFFFFF  # uint32: the line is a record of its own

# Bits of the flags column (uint16).
TS_INHERITED = 1 << 0  # the line has no time; it has its predecessor's in the stream
TS_ARRIVAL = 1 << 1  # nothing before it had a time either: the file's or the arrival's
TS_CLAIMED = 1 << 2  # the claimed time was wild; filed by arrival, metadata int ts_claimed keeps it
LEVEL_INFERRED = 1 << 3  # a traceback without a level is an ERROR
LEVEL_INHERITED = 1 << 4  # a continuation line has its group's level
NO_LF = 1 << 5  # no line feed followed this line: end of file, or the next row continues it
INVALID_UTF8 = 1 << 6  # `raw` holds the bytes; text has U+FFFD in place of the bad ones
ITERATION_CARRIED = 1 << 7


@dataclass(frozen=True, slots=True)
class Fence:
    """All lines of a stream in one event hour: seq ranges, half-open. Nothing else is there."""

    hour: int  # hours since the epoch
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Drop:
    """Lines that a policy dropped before they got a seq, or that were too old to be stored.

    `frame`: in an index (agent, number) of the frame that told it; None in a frame itself, and in indexes
    of before.
    """

    lines: int
    reason: str
    frame: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The stream is closed: no line has seq >= end_seq."""

    end_seq: int
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class FrameStream:
    """A stream as a frame names it; it may have no row here (an empty file, a late fence)."""

    stream: Stream
    first_seq: int
    rows: int
    fences: tuple[Fence, ...] = ()
    drops: tuple[Drop, ...] = ()
    end: StreamEnd | None = None
    manifests: tuple[bytes, ...] = ()  # pieces of what its process says of the run: zlib of JSON
    alive_ns: int | None = None  # its process was seen alive then: a heartbeat


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where lines were logged. `site` is `file:line`; function and logger where known."""

    site: str | None
    function: str | None = None
    logger: str | None = None


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """Values of one key and type for some rows, rows ascending.

    `values` is int64 or float64 per row; for "str", UTF-8 bytes cut by `lengths` (uint32).
    """

    key: str
    type: str  # int | float | str
    rows: bytes  # uint32
    values: bytes
    lengths: bytes = b""  # uint32, "str" only


@dataclass(frozen=True, slots=True)
class PointColumns:
    """Values of a frame of kind "point", whose rows are records of telemetry.

    Shapes: n records, v values, s sets of names, u summaries. Record r has the names of set `set[r]`
    and as many values; values stand record by record. Texts are UTF-8, concatenated, cut by lengths.
    """

    set: bytes  # uint32[n]
    context: bytes  # uint32[n]: 0 none, else index + 1 into contexts
    values: bytes  # float64[v]; NaN where it was not measured, or is a summary
    missing: bytes = b""  # uint32, ascending: values that were not measured
    name_length: bytes = b""  # uint32: names of series
    names: bytes = b""
    dims_length: bytes = b""  # uint32: dimensions, as canonical JSON
    dims: bytes = b""
    set_dims: bytes = b""  # uint32[s]: index into dims
    set_size: bytes = b""  # uint32[s]: how many names
    set_name: bytes = b""  # uint32: indexes into names, set by set
    context_length: bytes = b""  # uint32: metadata of contexts, as canonical JSON
    contexts: bytes = b""
    summary: bytes = b""  # uint32[u], ascending: values that are summaries
    summary_flags: bytes = b""  # uint16[u]: a bit for each of SUMMARY_PARTS that is there
    summary_counts: bytes = b""  # int64[3 u]: count, nan, inf
    summary_numbers: bytes = b""  # float64[5 u]: min, max, mean, std, norm
    quantile_size: bytes = b""  # uint32[u]: how many quantiles
    quantiles: bytes = b""  # float64: (share, value) each
    bin_size: bytes = b""  # uint32[u]: how many bins
    histograms: bytes = b""  # float64: bins + 1 edges, then counts of the bins


# Parts of a summary that may be missing, in the order of their bits.
SUMMARY_PARTS = ("min", "max", "mean", "std", "norm", "quantiles", "histogram")
KIND_LINE, KIND_POINT = "line", "point"


@dataclass(frozen=True, slots=True)
class Frame:
    """See the module. In a frame of kind "point" rows are records, `points` has what they hold, and
    of the columns stream, ts, rank and iteration have rows; the others are empty. `number` is dense per agent; `previous` is the hash of the header before."""

    tenant: str
    agent: str  # the agent's incarnation: hex
    number: int
    previous: str  # hex, "" for the first
    streams: tuple[FrameStream, ...]
    rows: int
    stream: bytes  # uint16[n]: index into streams
    ts: bytes  # int64[n]: ns since the epoch
    level: bytes  # int16[n]
    site: bytes  # uint32[n]
    body_at: bytes  # uint32[n]: byte offset in the text where envelopes end
    flags: bytes  # uint16[n]
    group: bytes  # uint32[n]: how many seq back the group's first line is (0: it is the first)
    rank: bytes  # int32[n]
    iteration: bytes  # int64[n]
    text_length: bytes  # uint32[n]: bytes
    text: bytes  # UTF-8, concatenated
    sites: tuple[CallSite, ...] = ()
    metadata: tuple[MetadataColumn, ...] = ()
    raw_rows: bytes = b""  # uint32
    raw_length: bytes = b""  # uint32
    raw: bytes = b""
    kind: str = KIND_LINE
    points: PointColumns | None = None
