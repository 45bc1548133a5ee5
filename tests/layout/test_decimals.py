"""Decimals give back the very doubles, and what no decimal is stays a double."""

from __future__ import annotations

import math
import struct

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ranklog.layout.decimals import as_decimals

PRINTED = st.integers(0, 6).flatmap(
    lambda scale: st.lists(
        st.none() | st.integers(-(2**40), 2**40).map(lambda whole: whole / 10**scale),
        min_size=60,
        max_size=80,
    )
)
ANY = st.lists(st.none() | st.floats(), min_size=60, max_size=80)


def bits(values: list[float | None]) -> list[bytes | None]:
    return [None if value is None else struct.pack("<d", value) for value in values]


@given(PRINTED | ANY)
@example([0.1, 9007199254.740991] * 30)
@example([0.1, -0.0] * 30)
def test_every_double_comes_back(values: list[float | None]) -> None:
    column = as_decimals(pa.array(values, pa.float64()))
    if pa.types.is_decimal(column.type):
        values_now = [None if value is None else float(value) for value in column.to_pylist()]
        assert bits(values_now) == bits(values)
    else:
        assert column.equals(pa.array(values, pa.float64())) or any(
            value is not None and math.isnan(value) for value in values
        )


@pytest.mark.parametrize("way", ["PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BINARY_PACKED"])
def test_duckdb_reads_the_very_doubles(way: str, tmp_path: object) -> None:
    random = np.random.default_rng(1)
    for scale in range(7):
        values = np.round(random.uniform(-9e9, 9e9, 5000), scale)
        column = as_decimals(pa.array(values))
        assert column.type == pa.decimal128(18, scale)
        path = f"{tmp_path}/{scale}.parquet"
        pq.write_table(
            pa.table({"x": column}),
            path,
            use_dictionary=False,
            column_encoding={"x": way},
            store_decimal_as_integer=True,
        )
        found = duckdb.sql(f"SELECT CAST(x AS DOUBLE) AS x FROM '{path}'").fetchnumpy()["x"]
        assert (found == values).all()
        # several segments of several scales are brought to one
        paths = [f"{tmp_path}/{at}.parquet" for at in range(scale + 1)]
        sql = f"SELECT CAST(x AS DOUBLE) AS x FROM read_parquet({paths}, union_by_name=true)"
        assert set(values.tolist()) <= set(duckdb.sql(sql).fetchnumpy()["x"].tolist())


@pytest.mark.parametrize("odd", [math.nan, math.inf, -0.0, 1 / 3, 1e10])
def test_one_value_that_is_no_decimal_keeps_the_doubles(odd: float) -> None:
    assert as_decimals(pa.array([0.5] * 100 + [odd])).type == pa.float64()
    assert as_decimals(pa.array([0.5] * 100)).type == pa.decimal128(18, 1)


def test_few_values_are_not_worth_it() -> None:
    assert as_decimals(pa.array([0.5, None] * 20)).type == pa.float64()
