"""From which size on a way to carry frames keeps the mark, and what of its bill is there before ranklog does anything.

Sizes lie between those of the scenarios, with hosts in between as well; the mark is looked for by halving the
logarithm of the size, which takes the part of CloudWatch's price to fall with the size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.bench.scale import bill
from tests.bench.scale.rates import Rates
from tests.bench.scale.scenarios import SCENARIOS, Outcome, Scenario, provisioned, run_scenario

SMALLEST, LARGEST = 1e9 / 3_600, 1e9
# The size is known within 3600^(1/2^7), 7 %.
_STEPS = 7
WINDOWS_S = (5.0, 60.0)
# What the stream itself costs, whatever ingest, compaction and questions do.
_STREAM = "Kinesis"
_FIXED = "alarms, metrics, dashboard"


def hosts_at(bytes_per_s: float) -> int:
    """Between those of the scenarios of one tenant, by logarithms."""
    known = sorted({one.bytes_per_s: one.hosts for one in SCENARIOS if one.tenants == 1}.items())
    sizes, hosts = np.log(np.array(known, float)).T
    return round(math.exp(np.interp(math.log(bytes_per_s), sizes, hosts)))


def smallest(keeps: Callable[[float], bool], steps: int = _STEPS) -> float | None:
    """The smallest size between the bounds that keeps the mark, None: not even the largest does."""
    if keeps(SMALLEST):
        return SMALLEST
    if not keeps(LARGEST):
        return None
    low, high = SMALLEST, LARGEST
    for _ in range(steps):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def thresholds(rates: Rates) -> list[dict[str, Any]]:
    """For each window and way, bytes a second from which on the mark is kept; None: nowhere."""
    found = []
    for window_s in WINDOWS_S:
        parts: dict[float, dict[str, float]] = {}

        def keeps(size: float, way: str, window_s: float = window_s, known: Any = parts) -> bool:
            if size not in known:
                known[size] = _parts(size, window_s, rates)
            return bool(known[size][way] >= bill.MARK)

        for way in bill.WAYS:
            size = smallest(lambda one, way=way: keeps(one, way))  # type: ignore[misc]
            found.append({"way": way, "window_s": window_s, "bytes_per_s": size})
    return found


def _parts(size: float, window_s: float, rates: Rates) -> dict[str, float]:
    """CloudWatch's price by ours, for each way."""
    scenario = Scenario("between", size, hosts_at(size), window_s=window_s)
    outcome = run_scenario(scenario, rates, (1,))
    own = provisioned(outcome, rates, (1,))
    theirs = bill.total(bill.cloudwatch(outcome))
    return {way: theirs / bill.total(bill.bill(outcome, rates, way, own)) for way in bill.WAYS}


def floors(outcome: Outcome, own: Outcome, rates: Rates) -> dict[str, dict[str, float]]:
    """$ for a TB of what AWS bills for the stream alone, and for what is the same at every size of a stack, and
    the mark that all of a bill has to stay below."""
    mark = bill.total(bill.cloudwatch(outcome)) / bill.MARK
    found = {}
    for way in bill.WAYS:
        items = bill.bill(outcome, rates, way, own)
        found[way] = {
            "stream": sum(item.usd for item in items if item.name.startswith(_STREAM)),
            "watching": sum(item.usd for item in items if item.name == _FIXED),
            "mark": mark,
        }
    return found
