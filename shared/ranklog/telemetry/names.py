"""Stable names of series: one name and one unit per meaning, whatever the framework calls it.

METRICS is data: per stable name its unit, which way is better, and the names that writers use, with the
factor into the unit. A writer's name is compared folded (lower snake, `/` and `.` kept), so that
`Grad Norm`, `grad-norm` and `gradNorm` are one. A name that no row has is a series as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from ranklog.telemetry.metrics import DIMENSION_KEYS, METRICS, NO_SERIES

_CAMEL = re.compile(r"([a-z0-9])([A-Z])")
_OTHER = re.compile(r"[^a-z0-9/.]+")
_ENDINGS = {
    "ms": "ms",
    "us": "us",
    "mb": "MB",
    "gb": "GB",
    "mib": "MiB",
    "gib": "GiB",
    "percent": "%",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """`better` is "down", "up" or "". `measured` False: a value of -1 says that nothing was measured."""

    name: str
    unit: str
    better: str
    title: str
    aliases: MappingProxyType[str, float]
    minus_one: bool


@dataclass(frozen=True, slots=True)
class Known:
    """A written name's series, and the factor that brings its values into the series' unit. `place`: of
    several names in one record that of the smallest is the series, the others stay what they are."""

    series: str
    factor: float
    minus_one: bool = False
    place: int = 0


def _table() -> dict[str, Metric]:
    table = {}
    for name, unit, better, minus_one, title, written in METRICS:
        aliases = {name: 1.0}
        for word in written.split():
            alias, _, factor = word.partition("*")
            aliases[alias] = float(factor or 1)
        table[name] = Metric(name, unit, better, title, MappingProxyType(aliases), minus_one)
    return table


BY_NAME = MappingProxyType(_table())
_BY_ALIAS = {
    alias: Known(metric.name, factor, metric.minus_one, place)
    for metric in BY_NAME.values()
    for place, (alias, factor) in enumerate(metric.aliases.items())
}


@lru_cache(maxsize=65536)
def folded(written: str) -> str:
    """Lower snake: `Train/lmLoss (ms)` is `train/lm_loss_ms`."""
    return _OTHER.sub("_", _CAMEL.sub(r"\1_\2", written).lower()).strip("_./")


@lru_cache(maxsize=65536)
def known(written: str) -> Known:
    """The series of a written name; itself where the table has no row for it."""
    found = _BY_ALIAS.get(folded(written))
    return found or Known(written, 1.0)


def is_metric(key: str) -> bool:
    """Whether the table has a row for a name."""
    return folded(key) in _BY_ALIAS


def is_series_key(key: str) -> bool:
    """Whether numeric metadata of lines under this key is a series for who asks for many: identities,
    counts of a launch and the like are none. Who names one gets it all the same."""
    return key not in NO_SERIES and key not in DIMENSION_KEYS


def is_dimension(key: str) -> bool:
    """Whether metadata of a line under this key says which part of the model its values are of."""
    return key in DIMENSION_KEYS


def names_of(written: str) -> tuple[str, ...]:
    """What a query may call it: the stable name, the written one and that one folded."""
    return tuple(dict.fromkeys((known(written).series, written, folded(written))))


def better_of(series: str) -> int:
    """Which way is better: -1 down, 1 up, 0 unknown."""
    metric = BY_NAME.get(series)
    return 0 if metric is None else {"down": -1, "up": 1}.get(metric.better, 0)


def unit_of(series: str) -> str:
    """The unit, "" for none; of a name without a row what its ending says."""
    metric = BY_NAME.get(series)
    if metric is not None:
        return metric.unit
    return _ENDINGS.get(series.rpartition("_")[2], "") if "_" in series else ""


def aliases_among(series: str, keys: Iterable[str]) -> list[str]:
    """Those of the keys whose series this is."""
    return sorted(key for key in keys if known(key).series == series)
