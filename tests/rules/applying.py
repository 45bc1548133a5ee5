"""Rules applied to lines, with templates made the plain way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.layout.tokens_pure import template_of
from ranklog.rules.ruleset import Extraction, RuleSet

Value = int | float | str


def evaluate(rules: RuleSet, lines: Sequence[str], *, catch_all: bool = False) -> Extraction:
    """Evaluate on bodies of one stream; `catch_all` gives every line template 0."""
    of_line = ["" if catch_all or "\x00" in line else template_of(line) for line in lines]
    templates = ["", *sorted(set(of_line) - {""})]
    number = {template: i for i, template in enumerate(templates)}
    tids = np.array([number[t] for t in of_line], np.int32)
    streams = np.zeros(len(lines), np.int32)
    return rules.evaluate(pa.array(list(lines), pa.string()), tids, templates, streams, ())


def values(extraction: Extraction, lines: int) -> list[dict[str, Value]]:
    """Per line key -> value; checks the shape of columns, and that no key has two types in a line."""
    found: list[dict[str, Value]] = [{} for _ in range(lines)]
    for column in extraction.columns:
        assert column.rows.dtype == np.uint32
        assert (np.diff(column.rows.astype(np.int64)) > 0).all()
        plain: list[Any] = (
            column.values.to_pylist() if column.type == "str" else column.values.tolist()
        )
        assert {type(v).__name__ for v in plain} <= {column.type}
        for row, value in zip(column.rows.tolist(), plain, strict=True):
            assert column.key not in found[row], column.key
            found[row][column.key] = value
    return found


def extracted(
    rules: RuleSet, lines: Sequence[str], *, catch_all: bool = False
) -> list[dict[str, Value]]:
    return values(evaluate(rules, lines, catch_all=catch_all), len(lines))
