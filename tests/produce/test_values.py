from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

from ranklog.produce import trouble
from ranklog.produce.values import clean_metadata, clean_value


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Device:
    def __init__(self, type_: str) -> None:
        self.type = type_


class Tensor:
    """What of a tensor is looked at; `item` on a device would wait for it."""

    dtype = "float32"

    def __init__(self, device: str, shape: tuple[int, ...], value: float) -> None:
        self.device = Device(device)
        self.shape = shape
        self.value = value

    def item(self) -> float:
        assert self.device.type == "cpu", "a device was synchronised"
        return self.value

    def __str__(self) -> str:
        assert self.device.type == "cpu", "a device was synchronised"
        return f"tensor({self.value})"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, 1),
        (False, 0),
        (5, 5),
        (2**63 - 1, 2**63 - 1),
        (2**63, "9223372036854775808"),
        (-(2**63), -(2**63)),
        (2.5, 2.5),
        ("text", "text"),
        (None, None),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.int16(7), 7),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (np.bool_(True), 1),
        (np.array(3), 3),
        (np.array([1, 2]), "[1 2]"),
        (np.str_("s"), "s"),
        (Tensor("cpu", (), 1.5), 1.5),
        (Tensor("cpu", (2,), 1.5), "tensor(1.5)"),
        (Level.HIGH, 3),
        (Colour.RED, "Colour.RED"),
        ([1, "a"], "[1, 'a']"),
        (Unprintable(), "<Unprintable>"),
    ],
)
def test_a_value_is_a_number_or_text_or_absent(value: Any, expected: Any) -> None:
    cleaned = clean_value(value)

    assert (cleaned, type(cleaned)) == (expected, type(expected))


def test_a_tensor_on_a_device_is_refused_with_one_warning_and_never_read(
    capfd: pytest.CaptureFixture[str],
) -> None:
    trouble.counts.clear()
    values = {"a": Tensor("cuda", (), 1.0), "b": Tensor("xpu", (3,), 1.0), "c": 1}

    assert clean_metadata(values) == {"c": 1}
    assert capfd.readouterr().err.count("ranklog: a tensor on a device") == 1
    assert trouble.counts["tensor"] == 2


def test_long_text_is_cut_to_1024_bytes_between_characters() -> None:
    assert clean_value("x" * 2000) == "x" * 1024
    assert clean_value("é" * 1000) == "é" * 512
    assert clean_value("a" + "é" * 1000) == "a" + "é" * 511
