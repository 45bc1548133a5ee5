"""What of a text is a value."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.spmd.variables import shape, shown_template, split, variables, without_clock


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("no value here", "no value here"),
        ("loss: 2.31", "loss: <*>"),
        ("loss: nan", "loss: <*>"),
        ("loss: -1.5e-05", "loss: <*>"),
        ("infinite nano", "infinite nano"),
        ("2024-01-02 12:30:01,123 [rank3]: step=5", "<*> [<*>]: step=<*>"),
        ("I0102 12:30:01.123456 77 foo.cc:12] x", "<*> <*> foo.cc:<*>] x"),
        ("ip 10.0.0.1 torch v2.13.0rc1", "ip <*> torch <*>"),
        ("took 12.5ms", "took <*>"),
        ("step    7/  100", "step <*>/ <*>"),
        ("a-1 1-2", "a-<*> <*>-<*>"),
    ],
)
def test_a_shape_replaces_each_value_by_one_sign(text: str, shown: str) -> None:
    assert shown_template(shape(text)) == shown


def test_values_have_the_name_before_them_and_a_number() -> None:
    found = variables('step=5 loss: 2.5 "lr": 1e-4 took 12.5ms grad nan')
    assert [(v.name, v.number) for v in found[:4]] == [
        ("step", 5),
        ("loss", 2.5),
        ("lr", 1e-4),
        ("took", 12.5),
    ]
    assert found[4].name == "grad"
    assert isinstance(found[4].number, float)
    assert math.isnan(found[4].number)


def test_a_time_is_a_clock_and_no_number() -> None:
    assert [(v.clock, v.number) for v in variables("12:30:01.5 at 1700000000.25")] == [
        (True, None),
        (True, None),
    ]


@given(st.text(alphabet="a1 .-:=/+eE9[]\x00n", max_size=40))
def test_a_shape_has_as_many_signs_as_the_text_has_values(text: str) -> None:
    assert shape(text).count("\x00") == len(split(text))


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("2024-01-02 12:30:01,123 INFO x", "INFO x"),
        ("I0102 12:30:01.123456 77 foo.cc:12] x", "77 foo.cc:12] x"),
        ("7 2024-01-02 x", "7 2024-01-02 x"),
        ("12:30:01", "12:30:01"),
        ("", ""),
    ],
)
def test_a_leading_time_can_be_left_out(text: str, rest: str) -> None:
    assert without_clock(text) == rest
