"""Requests that wait for a store, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ranklog import limits

In = TypeVar("In")
Out = TypeVar("Out")


def side_by_side(call: Callable[[In], Out], items: Sequence[In]) -> list[Out]:
    """In their order, INDEX_GETS_IN_FLIGHT_MAX at once where there are as many. Raises what a call raises."""
    width = min(limits.INDEX_GETS_IN_FLIGHT_MAX, len(items))
    if width <= 1:
        return [call(item) for item in items]
    with ThreadPoolExecutor(width, thread_name_prefix="ranklog-request") as pool:
        return list(pool.map(call, items))
