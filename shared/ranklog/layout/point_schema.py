"""Columns of a segment of points. Pure: the types are in `point_segment`.

Two kinds of rows, in row groups of their own: first the *records* (what one call recorded: its
stream, seq, time, iteration, rank, context), then the *points*, clustered by (series, dimensions,
rank, iteration). A point's `rec` is the row number of its record, so what many values share is there
once. Columns of the other kind of rows are null.
"""

from __future__ import annotations

# --- records
STREAM = "stream"  # int32: position in the stream table
SEQ = "seq"  # int64
TS = "ts"  # int64: ns since the epoch
ITERATION = "iteration"  # int64, null: none
RANK = "rank"  # int32, null: the stream's, -1 none
CONTEXT = "context"  # int32: place among the contexts, null: none
# --- points
SID = "sid"  # int32: place among the segment's series, which are sorted
REC = "rec"  # int32: the record's row
DIGITS = "digits"  # int64: the value is digits / 10^scale, exactly
SCALE = "scale"  # int32: 0 to 22
VALUE = "value"  # double: where no short decimal is the value; null with `digits`: not measured
# --- summaries of tensors; only there if there are such. A part that a summary has not is null.
COUNTS = ("s_count", "s_nan", "s_inf")  # int64
NUMBERS = ("s_min", "s_max", "s_mean", "s_std", "s_norm")  # double
QUANTILES = "s_quantiles"  # binary: doubles, (share, value) each
HISTOGRAM = "s_histogram"  # binary: doubles, the edges, then the counts of the bins

RECORD_COLUMNS = (STREAM, SEQ, TS, ITERATION, RANK, CONTEXT)
VALUE_COLUMNS = (DIGITS, SCALE, VALUE)
SUMMARY_COLUMNS = (*COUNTS, *NUMBERS, QUANTILES, HISTOGRAM)
POINT_COLUMNS = (SID, REC, *VALUE_COLUMNS)
SCALE_MAX = 22  # 10^22 is the last power of ten that is a double
# Key-value metadata of the file, beside the stream table and the version of lines.
SERIES_METADATA = "ranklog.series"
KIND_METADATA = "ranklog.kind"
