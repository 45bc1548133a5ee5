"""Conversions by buffers say what Arrow's own say, slices included, and leave pandas alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.scan.arrays import flags, indices, numbers

TYPES = [pa.int64(), pa.int32(), pa.int16(), pa.float64()]


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-(2**15), 2**15 - 1), max_size=70),
    cut=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    type_=st.sampled_from(TYPES),
)
def test_numbers_are_those_of_the_array(
    values: list[int], cut: tuple[int, int], type_: pa.DataType
) -> None:
    array = pa.array(values, type_).slice(*cut)
    found = numbers(array)
    assert found.tolist() == array.to_pylist()
    assert found.dtype == array.to_numpy(zero_copy_only=False).dtype


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.booleans(), max_size=70), cut=st.tuples(*[st.integers(0, 40)] * 2))
def test_flags_are_those_of_the_array(values: list[bool], cut: tuple[int, int]) -> None:
    array = pa.array(values, pa.bool_()).slice(*cut)
    assert flags(array).tolist() == array.to_pylist()
    assert flags(array).dtype == np.bool_


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_indices_take_what_they_name(dtype: type) -> None:
    places = np.arange(10, dtype=dtype)[::3]
    assert pa.array(list("abcdefghij")).take(indices(places)).to_pylist() == list("adgj")


def test_a_search_does_not_import_pandas() -> None:
    code = (
        "import sys, numpy as np, pyarrow as pa, pyarrow.compute as pc\n"
        "from ranklog.scan.arrays import flags, indices, numbers\n"
        "texts = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], 'i4')),"
        " pa.py_buffer(b'ab')])\n"
        "flags(pc.match_substring(texts, 'a')), texts.take(indices(np.arange(2)))\n"
        "numbers(indices(np.arange(2)))\n"
        "sys.exit('pandas' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
