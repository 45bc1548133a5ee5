"""A reading: names and values that share dimensions. A source gives those of one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol


class Reading(NamedTuple):
    """`values` name -> number, or None where a sensor did not answer; `dims` tell which of several."""

    values: Mapping[str, float | None]
    dims: Mapping[str, str | int] = {}


class Source(Protocol):
    """Something that can be read. May raise: then it has nothing to say this time."""

    def read(self, now_ns: int) -> Iterable[Reading]:
        """What it measures at `now_ns` (monotonic); rates are per second since the time before."""
        ...


class Rates:
    """Counters to rates: what a counter gained per second since it was last looked at."""

    def __init__(self) -> None:
        self._before: dict[object, tuple[int, float]] = {}

    def of(self, key: object, count: float, now_ns: int) -> float | None:
        """None the first time, and where the counter went back: a reset is no rate."""
        at_ns, before = self._before.get(key, (now_ns, count))
        self._before[key] = (now_ns, count)
        seconds = (now_ns - at_ns) / 1e9
        return (count - before) / seconds if seconds > 0 and count >= before else None

    def reading(
        self, prefix: str, counts: Mapping[str, float], now_ns: int, **dims: str | int
    ) -> list[Reading]:
        """`counts` name -> counter as one reading of rates; none where nothing can be said yet."""
        key = (prefix, *dims.items())
        rates = {name: self.of((key, name), count, now_ns) for name, count in counts.items()}
        known = {f"{prefix}{name}": rate for name, rate in rates.items() if rate is not None}
        return [Reading(known, dims)] if known else []
