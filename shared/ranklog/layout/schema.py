"""Names and order of a segment's columns. Pure: the types are in `segment`.

Rows are clustered: each template is one contiguous run per time bucket. No order by time is
promised. `rank` null means the stream's rank, -1 no rank. `group` is the seq of the group's first
line, null for a line that is a record of its own.
"""

from __future__ import annotations

TID = "tid"  # int32: template, alphabetical within the segment; 0 matches everything
STREAM = "stream"  # int32: position in the stream table
SEQ = "seq"  # int64
TS = "ts"  # int64: ns since the epoch
LEVEL = "level"  # int16
ITERATION = "iteration"  # int64
RANK = "rank"  # int32
GROUP = "grp"  # int64 (`group` is a word of SQL)
FLAGS = "flags"  # int16: bits of model.frame
BODY_AT = "body_at"  # int32: byte offset in the text where envelopes end
CALL_SITE = "call_site"
FUNCTION = "function"
LOGGER = "logger"
OVERFLOW = "overflow"  # JSON object of metadata beyond the column limit
RAW = "raw"  # binary: the line's bytes where they are no UTF-8
TEXT = "text"

BASE_COLUMNS = (
    TID,
    STREAM,
    SEQ,
    TS,
    LEVEL,
    ITERATION,
    RANK,
    GROUP,
    FLAGS,
    BODY_AT,
    CALL_SITE,
    FUNCTION,
    LOGGER,
)
# Only there when a row has a value.
OPTIONAL_COLUMNS = (OVERFLOW, RAW)
METADATA_TYPES = ("int", "float", "str")
NO_RANK = -1
# Key-value metadata of the Parquet file: the stream table, the format's version.
STREAMS_METADATA = "ranklog.streams"
VERSION_METADATA = "ranklog.version"
SEGMENT_VERSION = 2  # 2: floats may be DECIMAL
# Metadata of these names fills the built-in column where that is empty.
ITERATION_KEYS = ("iteration", "step")
TS_CLAIMED_KEY = "ts_claimed"


def metadata_column(type_: str, key: str) -> str:
    """Parquet name of a metadata key: `int:loss_scale`."""
    return f"{type_}:{key}"


def parse_metadata_column(name: str) -> tuple[str, str] | None:
    """(type, key) of a metadata column's name; None for another column."""
    type_, colon, key = name.partition(":")
    return (type_, key) if colon and type_ in METADATA_TYPES else None
