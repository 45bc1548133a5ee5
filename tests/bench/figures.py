"""Figures beside their marks, and the table that shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `mark`: the bound it is to keep, None: there is none; `least`: the bound is
    the smallest value that is good, not the largest."""

    name: str
    value: float
    unit: str = ""
    mark: float | None = None
    least: bool = False

    @property
    def ok(self) -> bool:
        """Whether the mark is kept."""
        if self.mark is None:
            return True
        return self.value >= self.mark if self.least else self.value <= self.mark

    def row(self) -> str:
        """`name   value unit   <= mark   ok`."""
        shown = f"{self.name:58} {_number(self.value):>12} {self.unit:10}"
        if self.mark is None:
            return shown.rstrip()
        sign = ">=" if self.least else "<="
        return f"{shown} {sign} {_number(self.mark):>8}   {'ok' if self.ok else 'MISS'}"

    def to_json(self) -> dict[str, Any]:
        """For the file of figures."""
        return {"name": self.name, "value": self.value, "unit": self.unit, "mark": self.mark}


def _number(value: float) -> str:
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def show(figures: Iterable[Figure]) -> None:
    """A line each."""
    for figure in figures:
        print(figure.row(), flush=True)
