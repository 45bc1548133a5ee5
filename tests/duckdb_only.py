"""Scans without the reader of few lines, as where Arrow is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ranklog.scan import evaluate


@contextmanager
def duckdb_only(only: bool = True) -> Iterator[None]:
    """DuckDB reads every line inside the block; not `only`: as ever."""
    with pytest.MonkeyPatch.context() as patch:
        if only:
            patch.setattr(evaluate, "arrow_reader", lambda: None)
        yield
