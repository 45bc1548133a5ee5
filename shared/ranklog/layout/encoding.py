"""How each column of a segment is written: the encoding that is smallest, found by trying.

What is best differs by job: sequence numbers of one file run in steps, times of another repeat, one
rank's lines share long beginnings. A sample of each column is written in every encoding that suits
its type; a column of one value, and one of few values, is not worth the trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ranklog.layout import schema
from ranklog.limits import ROW_GROUP_ROWS

DICTIONARY = "DICTIONARY"
PLAIN = "PLAIN"
DELTA = "DELTA_BINARY_PACKED"
SPLIT = "BYTE_STREAM_SPLIT"
PREFIX = "DELTA_BYTE_ARRAY"

_INT_WAYS = (DELTA, SPLIT, DICTIONARY, PLAIN)
_FLOAT_WAYS = (PLAIN, DICTIONARY, SPLIT)
_STRING_WAYS = (DICTIONARY, PLAIN)
_TEXT_WAYS = (PREFIX, PLAIN)
# Ascending in a time bucket: nothing beats the deltas.
_FIXED = {schema.TID: DELTA, schema.LEVEL: DICTIONARY, schema.FLAGS: DICTIONARY}
_SAMPLE_ROWS = 4_096
_SAMPLE_PARTS = 4
_TRIED_VALUES_MIN = 48
_TRIAL_LEVEL = 3

# Statistics that a reader of the bare file is helped by; the index has the bounds of all numbers.
_STATISTICS = (
    schema.TID,
    schema.STREAM,
    schema.SEQ,
    schema.TS,
    schema.LEVEL,
    schema.ITERATION,
    schema.RANK,
)
# A segment of less text is written at levels that cost more a line, as its text compresses worse.
SMALL_TEXT_BYTES = 8 * 1024 * 1024
# Beginnings that neighbours share are written once, and little is left for a higher level to find; it
# takes three times the CPU, so text has it only where it saves more than one byte in so many.
_TEXT_LEVEL_FAST, _TEXT_LEVEL, _TEXT_LEVEL_SMALL = 1, 6, 12
_LEVEL_SAVES = 12
_COLUMN_LEVEL, _COLUMN_LEVEL_SMALL = 3, 15
# A page is the least that can be unpacked: who looks for one line of a large segment unpacks one.
_PAGE_BYTES, _PAGE_BYTES_SMALL = 256 * 1024, 4 * 1024 * 1024


def writer_options(columns: Mapping[str, Any], text_bytes: int) -> dict[str, Any]:
    """Options of the Parquet writer for these columns (Arrow arrays by name)."""
    small = text_bytes <= SMALL_TEXT_BYTES
    fixed = _FIXED if small else _FIXED | {schema.TEXT: PREFIX}
    ways = {name: fixed.get(name) or _smallest(name, column) for name, column in columns.items()}
    column_level = _COLUMN_LEVEL_SMALL if small else _COLUMN_LEVEL
    levels = dict.fromkeys(columns, column_level)
    levels[schema.TEXT] = _TEXT_LEVEL_SMALL if small else _text_level(columns[schema.TEXT])
    return {
        "compression": "zstd",
        "compression_level": levels,
        "use_dictionary": [name for name, way in ways.items() if way == DICTIONARY],
        "column_encoding": {name: way for name, way in ways.items() if way != DICTIONARY},
        "write_statistics": [name for name in _STATISTICS if name in columns],
        "data_page_size": _PAGE_BYTES_SMALL if small else _PAGE_BYTES,
        "max_rows_per_page": ROW_GROUP_ROWS,
        "store_schema": False,
        "store_decimal_as_integer": True,
    }


def _smallest(name: str, column: Any) -> str:
    """The encoding in which a sample of the column takes fewest bytes."""
    if pa.types.is_dictionary(column.type):
        return DICTIONARY
    ways = _ways(name, column.type)
    count = len(column) - column.null_count
    if len(ways) == 1 or count < _TRIED_VALUES_MIN:
        return ways[-1] if name != schema.TEXT else PLAIN
    sample = _sample(column)
    if name != schema.TEXT and _is_constant(sample):
        return DICTIONARY
    return min(ways, key=lambda way: _written_bytes(sample, way))


def _text_level(column: Any) -> int:
    """The level for text of a large segment."""
    sample = _sample(column)
    fast, best = (_written_bytes(sample, PREFIX, n) for n in (_TEXT_LEVEL_FAST, _TEXT_LEVEL))
    return _TEXT_LEVEL if (fast - best) * _LEVEL_SAVES > fast else _TEXT_LEVEL_FAST


def _ways(name: str, type_: Any) -> tuple[str, ...]:
    if name == schema.TEXT:
        return _TEXT_WAYS
    if name in (schema.OVERFLOW, schema.RAW):
        return (PLAIN,)
    if pa.types.is_floating(type_):
        return _FLOAT_WAYS
    return _STRING_WAYS if pa.types.is_string(type_) else _INT_WAYS


def _sample(column: Any) -> Any:
    """Values from a few places of the column: rows are clustered, one place would not speak for all."""
    values = column.drop_null() if column.null_count else column
    if len(values) <= _SAMPLE_ROWS:
        return values
    size = _SAMPLE_ROWS // _SAMPLE_PARTS
    step = (len(values) - size) // (_SAMPLE_PARTS - 1)
    parts = [values.slice(at * step, size) for at in range(_SAMPLE_PARTS)]
    return pa.concat_arrays(parts)


def _is_constant(values: Any) -> bool:
    if pa.types.is_floating(values.type):
        return False
    extent = pc.min_max(values)
    return bool(extent["min"].as_py() == extent["max"].as_py())


def _written_bytes(sample: Any, way: str, level: int = _TRIAL_LEVEL) -> int:
    """Bytes of the pages of the sample in this encoding, at this level of zstd."""
    sink = pa.BufferOutputStream()
    dictionary = way == DICTIONARY
    pq.write_table(
        pa.table({"sample": sample}),
        sink,
        compression="zstd",
        compression_level=level,
        use_dictionary=dictionary,
        column_encoding=None if dictionary else {"sample": way},
        write_statistics=False,
        store_schema=False,
        store_decimal_as_integer=True,
    )
    return int(sink.tell())
