"""Points as values: canonical JSON of dimensions and contexts, what stands for "not measured"."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

# A value that says it was not measured, beside None.
NOT_MEASURED = "N/A"
# Dimensions of a point that has none.
NO_DIMS = "{}"


def canonical_json(values: Mapping[str, Any]) -> str:
    """Keys sorted, no blanks: equal mappings of int, float and str have equal texts, so that dimensions
    are compared as text. NaN and infinities are strings, as in every answer."""
    if not values:
        return NO_DIMS
    try:
        return json.dumps(
            values, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
    except ValueError:
        return canonical_json({key: _finite(value) for key, value in values.items()})


def counted_summary(
    low: float,
    high: float,
    totals: tuple[float, float, float],
    limits: Sequence[float],
    counts: Sequence[float],
) -> dict[str, Any]:
    """The summary of a tensor whose values were counted elsewhere: `totals` are their number, sum and sum
    of squares; `counts[b]` lie up to `limits[b]`, the upper ends of the buckets."""
    count, total, squares = map(float, totals)
    mean = total / count if count else None
    edges = [float(low), *(min(float(limit), float(high)) for limit in limits)]
    return {
        "count": int(count),
        "min": float(low) if count else None,
        "max": float(high) if count else None,
        "mean": mean,
        "std": None if mean is None else math.sqrt(max(squares / count - mean * mean, 0.0)),
        "norm": math.sqrt(max(squares, 0.0)) if count else None,
        "nan": 0,
        "inf": 0,
        "quantiles": None,
        "histogram": {"edges": edges, "counts": [float(n) for n in counts]} if count else None,
    }


def _finite(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def context_values(text: str) -> dict[str, Any]:
    """The mapping of a canonical text. Raises ValueError for what is no JSON object."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{text:.40} is no object")
    return found
