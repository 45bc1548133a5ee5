"""Whatever a configuration is made of, it becomes values that JSON can say."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.produce import plain as module
from ranklog.produce.plain import CUT, plain
from ranklog.produce.secrets import MASK


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Optimizer:
    lr: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)


@dataclasses.dataclass
class Settings:
    optimizer: Optimizer = dataclasses.field(default_factory=Optimizer)
    out: Path = Path("/out")


class Modelled:
    def model_dump(self) -> dict[str, Any]:
        return {"width": 8}


class Broken:
    def to_dict(self) -> dict[str, Any]:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError


class OnDevice:
    dtype = "float32"
    device = "cuda:0"

    def __str__(self) -> str:
        raise AssertionError("waited for the device")


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Settings(), {"optimizer": {"lr": 0.1, "betas": [0.9, 0.95]}, "out": "/out"}),
        (argparse.Namespace(lr=0.1, _hidden=1), {"lr": 0.1}),
        (Modelled(), {"width": 8}),
        ({"a": {1, 2}, 3: None}, {"a": [1, 2], "3": None}),
        ({"api_key": "x", "max_tokens": 5, "tokens": [1]}, {"api_key": MASK, "max_tokens": 5, "tokens": [1]}),
        (float("nan"), "nan"),
        ({"c": Colour.RED}, {"c": "Colour.RED"}),
        (Point(1, 2), [1, 2]),
        (True, True),
        ({"x": OnDevice()}, {"x": None}),
        ("postgres://u:p@db", f"postgres://{MASK}@db"),
    ],
)  # fmt: skip
def test_a_configuration_becomes_plain(value: Any, expected: Any) -> None:
    assert plain(value) == expected


def test_a_stranger_that_raises_is_named_by_its_type() -> None:
    assert plain({"x": Broken()}) == {"x": "<Broken>"}


def test_what_contains_itself_ends() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop

    assert CUT in json.dumps(plain(loop), ensure_ascii=False)


def test_a_configuration_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VALUES_MAX", 10)

    assert plain({str(i): i for i in range(50)})[CUT] == CUT
    assert plain(list(range(50)))[-1] == CUT


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner)
        ),
        max_leaves=10,
    )
)
def test_whatever_it_is_json_can_say_it(value: Any) -> None:
    json.dumps(plain(value), allow_nan=False)
