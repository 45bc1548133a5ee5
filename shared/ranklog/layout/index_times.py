"""Section `time` of the index: lines of call sites by time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from ranklog.layout.packed import pack_integers, unpack_integers
from ranklog.model.index import SiteTimes


def times_to_list(times: SiteTimes) -> list[Any]:
    """`[width, first, buckets, counts]`, counts site by site."""
    buckets = len(times.counts[0])
    return [
        times.width_ns,
        times.first,
        buckets,
        pack_integers(list(chain.from_iterable(times.counts))),
    ]


def times_from_list(data: Sequence[Any]) -> SiteTimes:
    """The inverse. Raises ValueError, TypeError on damage."""
    width_ns, first, buckets, packed = data
    counts = unpack_integers(packed)
    if width_ns < 1 or buckets < 1 or len(counts) % buckets:
        raise ValueError("counts are cut")
    rows = (tuple(counts[at : at + buckets]) for at in range(0, len(counts), buckets))
    return SiteTimes(width_ns, first, tuple(rows))
