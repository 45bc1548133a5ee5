"""One figure of the model beside the same one measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

TOLERANCE = 0.25


@dataclass(frozen=True, slots=True)
class Check:
    """One figure, as the model says and as it was measured."""

    name: str
    model: float
    measured: float
    unit: str

    @property
    def ratio(self) -> float:
        """Model by measured."""
        return self.model / self.measured if self.measured else float("nan")

    @property
    def ok(self) -> bool:
        """Within the tolerance."""
        return abs(self.ratio - 1) <= TOLERANCE

    def to_json(self) -> dict[str, Any]:
        """For the file of figures."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**found, "ratio": self.ratio, "ok": self.ok}


def share_of(values: Sequence[float], share: float) -> float:
    """The value below which that share of them lies."""
    return float(np.quantile(values, share))
