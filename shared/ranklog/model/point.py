"""Points as values: canonical JSON of dimensions and contexts, what stands for "not measured"."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
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
