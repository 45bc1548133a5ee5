"""Fewer lines of a call site that says very much: a bucket of tokens each, off unless asked for.

Warnings and above always pass. What is left out is counted by level and call site, and told as drops
of the stream, so that an answer says what it does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ranklog import limits
from ranklog.model.levels import WARNING, level_name

# Call sites that one process's sampler knows; the rest shares one bucket.
SITES_MAX = 65_536


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_ns: int


class Sampler:
    """At most `rate` lines a second of a call site, and `burst` at once. Times are the lines' own."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate / limits.SECOND_NS
        self._burst = max(1.0, burst)
        self._buckets: dict[int, _Bucket] = {}

    def kept(self, sites: Sequence[int], levels: Sequence[int], ts: Sequence[int]) -> list[int]:
        """Which of the lines pass, by place; `sites` are the process's numbers of call sites."""
        return [
            line
            for line, (site, level) in enumerate(zip(sites, levels, strict=True))
            if level >= WARNING or self._take(site, ts[line])
        ]

    def _take(self, site: int, ts_ns: int) -> bool:
        bucket = self._buckets.get(site)
        if bucket is None:
            if len(self._buckets) >= SITES_MAX:
                site = -1
            bucket = self._buckets.setdefault(site, _Bucket(self._burst, ts_ns))
        since = max(0, ts_ns - bucket.at_ns)
        bucket.tokens = min(self._burst, bucket.tokens + since * self._rate)
        bucket.at_ns = max(bucket.at_ns, ts_ns)
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True


def reasons(left_out: Counter[tuple[int, str]]) -> dict[str, int]:
    """Drops by reason from lines by (level, call site): `sampled INFO train.py:88`."""
    return {
        f"sampled {level_name(level) if level else '-'} {site}": lines
        for (level, site), lines in left_out.items()
    }
