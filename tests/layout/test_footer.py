"""A slim footer: the file reads as before, statistics and places of chunks stay, and it is smaller."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout.footer import _Thrift, slim_footer

COLUMN = st.sampled_from(["ints", "texts", "floats", "flags"])


def written(columns: dict[str, Any], rows_a_group: int = 2) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink, pa.table(columns).schema, use_dictionary=["texts"], store_schema=False
    ) as writer:
        writer.write_table(pa.table(columns), row_group_size=rows_a_group)
        writer.add_key_value_metadata({"k": "v" * 30})
    return sink.getvalue()


def columns_of(count: int) -> dict[str, Any]:
    return {
        "ints": pa.array(range(count), pa.int64()),
        "texts": pa.array([f"é{i % 3}" if i % 4 else None for i in range(count)], pa.string()),
        "floats": pa.array([i / 4 for i in range(count)], pa.float64()),
        "flags": pa.array([i % 2 == 0 for i in range(count)], pa.bool_()),
    }


@given(st.integers(0, 9), st.integers(1, 4), st.sets(COLUMN, min_size=1))
def test_a_file_reads_as_before(count: int, rows_a_group: int, names: set[str]) -> None:
    columns = {name: values for name, values in columns_of(count).items() if name in names}
    data = written(columns, rows_a_group)
    slim = slim_footer(data)
    assert pq.read_table(io.BytesIO(slim)).equals(pq.read_table(io.BytesIO(data)))
    before, after = pq.read_metadata(io.BytesIO(data)), pq.read_metadata(io.BytesIO(slim))
    assert (after.metadata, after.num_rows) == (before.metadata, before.num_rows)
    for group in range(before.num_row_groups):
        for column in range(before.num_columns):
            chunks = [m.row_group(group).column(column).to_dict() for m in (before, after)]
            assert chunks[0] == chunks[1]


def test_it_is_smaller_by_a_fifth_and_duckdb_reads_it(tmp_path: Path) -> None:
    data = written(columns_of(40), rows_a_group=40)
    slim = slim_footer(data)
    footers = [int.from_bytes(one[-8:-4], "little") for one in (data, slim)]
    assert footers[1] < 0.8 * footers[0]
    assert slim[: len(slim) - footers[1] - 8] == data[: len(data) - footers[0] - 8]
    path = tmp_path / "slim.parquet"
    path.write_bytes(slim)
    found = duckdb.sql(f"SELECT count(*), sum(ints), min(texts) FROM '{path}' WHERE ints >= 20")
    assert found.fetchall() == [(20, sum(range(20, 40)), "é0")]
    assert slim_footer(slim) == slim


# A struct of field 1 (a varint), 20 (a list of booleans, long form), 40 (a double) and 41 (a set).
FIRST, LIST, DOUBLE, SET = (
    b"\x16\x05",
    b"\x09\x28\x21\x01\x02",
    b"\x07\x50" + b"d" * 8,
    b"\x1a\x13x",
)


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ({}, FIRST + LIST + DOUBLE + SET),
        ({20: None}, FIRST + DOUBLE + SET),
        ({40: None}, FIRST + LIST + b"\x0a\x52" + SET[1:]),
        ({1: None, 40: None}, LIST + b"\x0a\x52" + SET[1:]),
        ({20: None, 40: None, 41: None}, FIRST),
    ],
)
def test_fields_keep_their_numbers(gone: dict[int, None], left: bytes) -> None:
    found = _Thrift(FIRST + LIST + DOUBLE + SET + b"\x00").struct_without(gone)
    assert found == left + b"\x00"


@pytest.mark.parametrize("data", [b"\x1d\x00", b"\x1b\x00", b"\x19\x1d\x00"])
def test_unknown_types_are_told(data: bytes) -> None:
    with pytest.raises(ValueError, match="in a Parquet footer"):
        _Thrift(data).struct_without({})
    with pytest.raises(ValueError, match="not a list of structs"):
        _Thrift(b"\x19\x16\x02\x00").struct_without({1: {2: None}})
