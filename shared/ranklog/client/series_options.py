"""What a caller says of series beside the query, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranklog.client.words import check_timeout, parse_every
from ranklog.errors import BadInput
from ranklog.limits import SERIES_POINTS_DEFAULT, SERIES_POINTS_MIN

AGGREGATES = ("mean", "min", "max", "spread", "std", "median", "sum", "count", "last")
KINDS = ("spike", "drift", "plateau", "nan")
STATS = ("mean", "min", "max", "std", "norm", "nan", "inf", "count")


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """As in `Client.series`. `max_points` None: all. Raises BadInput."""

    by: tuple[str, ...] | None = None
    every: str | None = None
    aggregate: str | None = None
    max_points: int | None = SERIES_POINTS_DEFAULT
    stat: str = "mean"
    detect: tuple[str, ...] = ()
    superseded: bool = False
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        check_timeout(self.timeout_s)
        parse_every(self.every)
        object.__setattr__(self, "max_points", self.max_points or None)
        if self.aggregate is not None and self.aggregate not in AGGREGATES:
            raise BadInput(f"no aggregate {self.aggregate!r}", hint=" ".join(AGGREGATES))
        if self.stat not in STATS:
            raise BadInput(f"no statistic {self.stat!r} of a tensor", hint=" ".join(STATS))
        if self.max_points is not None and self.max_points < SERIES_POINTS_MIN:
            raise BadInput(
                f"{self.max_points} points a series",
                hint=f"at least {SERIES_POINTS_MIN}, or 0: all",
            )
        for kind in self.detect:
            if kind not in KINDS:
                raise BadInput(f"nothing detects {kind!r}", hint=" ".join(KINDS))

    @property
    def folds(self) -> str | None:
        """The aggregate, None where points are shown as they are."""
        plain = self.aggregate is None and self.by is None and self.every is None
        return None if plain else self.aggregate or "mean"


def kinds_of(words: bool | str | Sequence[str]) -> tuple[str, ...]:
    """`True`, `"spike,nan"` or names."""
    if isinstance(words, bool):
        return KINDS if words else ()
    parts = words.split(",") if isinstance(words, str) else words
    return tuple(part.strip() for part in parts if part.strip())
