"""Text becomes the value it shows, or stays text; nothing raises."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.limits import METADATA_STRING_BYTES_MAX
from ranklog.rules.values import ABSENT, FLOAT, INT, known_type, parse_values


def one(text: str, type_name: str):
    typed = parse_values(pa.array([text], pa.string()), type_name)
    kind = int(typed.kind[0])
    if kind == ABSENT:
        return None
    value = {INT: int(typed.ints[0]), FLOAT: float(typed.floats[0])}.get(
        kind, typed.text[0].as_py()
    )
    return (value, float(typed.second[0])) if typed.has_second[0] else value


CASES = [
    ("number", "5", 5),
    ("number", "-5", -5),
    ("number", "+5", 5),
    ("number", "007", 7),
    ("number", "5.5", 5.5),
    ("number", "5.", 5.0),
    ("number", ".5", 0.5),
    ("number", "1e-3", 0.001),
    ("number", "1.500E-04", 0.00015),
    ("number", "inf", math.inf),
    ("number", "-Infinity", -math.inf),
    ("number", "info", "info"),
    ("number", "nano", "nano"),
    ("number", "-1.0", -1.0),
    ("number", "", None),
    ("number", "N/A", None),
    ("number", "[N/A]", None),
    ("number", "-", None),
    ("number", "?", None),
    ("number", "None", None),
    ("number", "null", None),
    ("number", "1,234", 1234.0),
    ("number", "20,592.5", 20592.5),
    ("number", "1,23", "1,23"),
    ("number", "9223372036854775807", 9223372036854775807),
    ("number", "9223372036854775808", "9223372036854775808"),
    ("number", "-9223372036854775807", -9223372036854775807),
    ("number", "123456789012345678901234567890", "123456789012345678901234567890"),
    ("number", "0.7227 %", 0.7227),
    ("number", "45.35%", 45.35),
    ("number", "71.67 ms", 71.67),
    ("number", "153.81GB", 153.81),
    ("number", "0.0651 (0.0732)", (0.0651, 0.0732)),
    ("number", "13372.8/13364.7", (13372.8, 13364.7)),
    ("number", "153.81GB/102.17GB/255.98GB/60.09%", 153.81),
    ("number", "[1.875e-05, 1.875e-05]", 1.875e-05),
    ("number", "(0.9, 0.95)", 0.9),
    ("number", "'20.714'", 20.714),
    ("number", '"1"', 1),
    ("number", "True", 1),
    ("number", "false", 0),
    ("number", "0:06:38", 398.0),
    ("number", "1 day, 0:06:38", 86798.0),
    ("number", "12:49", "12:49"),
    ("number", "2025-01-01", "2025-01-01"),
    ("number", "0x12", "0x12"),
    ("number", "1.2.3", "1.2.3"),
    ("int", "5", 5),
    ("int", "3.0", 3),
    ("int", "1,829", 1829),
    ("int", "0.7", 0.7),
    ("int", "nan", "NAN"),
    ("int", "x", "x"),
    ("int", "18446744073709551616", "18446744073709551616"),
    ("float", "5", 5.0),
    ("float", "18446744073709551616", 18446744073709551616.0),
    ("float", "x", "x"),
    ("bool", "True", 1),
    ("str", " 5 ", "5"),
    ("str", "N/A", None),
    ("percent", "2.34%", 2.34),
    ("duration", "12:49", 769.0),
    ("duration", "6:28:43", 23323.0),
    ("duration", "1-02:03:04", 93784.0),
    ("duration", "5 min", 300.0),
    ("duration:ms", "1251.885s", 1251885.0),
    ("duration:ms", "20365019ms", 20365019.0),
    ("duration:ms", "7", 7.0),
    ("duration:ms", "5 GB", "5 GB"),
    ("size", "1.5 KiB", 1536.0),
    ("size:GiB", "1024 MiB", 1.0),
    ("size:MB", "1GB", 1000.0),
    ("rate", "62.50it/s", 62.5),
    ("rate", "2.00s/it", 0.5),
    ("ranges", "²", "²"),
    ("ranges", "0-1,3-4,6-7", "0,1,3,4,6,7"),
    ("ranges", "5", "5"),
    ("ranges", "0-99999999", "0-99999999"),
]


@pytest.mark.parametrize(("type_name", "text", "expected"), CASES)
def test_a_value_is_parsed_as_its_type(type_name: str, text: str, expected) -> None:
    found = one(text, type_name)
    if expected == "NAN":
        assert isinstance(found, float) and math.isnan(found)
        return
    assert found == expected or (
        isinstance(found, float) and math.isclose(found, expected, rel_tol=1e-12)
    )
    assert type(found) is type(expected)


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=12),
            st.from_regex(r"[-+]?[0-9,]{0,25}[.eE%:/ ]?[0-9]{0,4}(ms|GB|s/it|\))?", fullmatch=True),
            st.sampled_from([text for _, text, _ in CASES]),
        ),
        max_size=8,
    ),
    st.sampled_from(sorted({t for t, _, _ in CASES})),
)
def test_values_do_not_depend_on_their_neighbours(texts: list[str], type_name: str) -> None:
    typed = parse_values(pa.array(texts, pa.string()), type_name)
    assert len(typed.kind) == len(texts)
    for i, text in enumerate(texts):
        alone = parse_values(pa.array([text], pa.string()), type_name)
        assert int(alone.kind[0]) == int(typed.kind[i])
        assert alone.ints[0] == typed.ints[i] or alone.kind[0] != INT
        assert repr(alone.floats[0]) == repr(typed.floats[i]) or alone.kind[0] != FLOAT
        assert alone.text[0] == typed.text[i]


def test_integers_of_every_size_are_exact_or_text() -> None:
    for value in [2**53 + 1, 2**62 + 1, 2**63 - 1, -(2**63) + 1, 0]:
        assert one(str(value), "int") == value


def test_a_long_string_is_cut_at_the_limit_of_metadata() -> None:
    assert one("x" * 5000, "str") == "x" * METADATA_STRING_BYTES_MAX
    cut = one("é" * 5000, "str")
    assert len(cut.encode()) <= METADATA_STRING_BYTES_MAX and set(cut) == {"é"}


def test_types_are_known_by_name_and_unit() -> None:
    known = ["int", "float", "str", "bool", "number", "percent", "rate", "ranges"]
    assert all(map(known_type, [*known, "duration", "duration:ms", "size", "size:GiB"]))
    assert not any(
        map(known_type, ["", "integer", "duration:GB", "size:ms", "int:ms", "duration:x"])
    )
