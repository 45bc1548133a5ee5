"""Where a line's time goes, from the begin of its PutRecords to the end of the answer that shows it.

    put      until Kinesis has it
    poll     until the mapping has read it
    window   until its batch goes out: the window is over, and the batch before it is done
    ingest   until the function has returned
    turn     until the reader begins to ask
    answer   until it has the answer

Times are of `time.monotonic()`. The stages of a line add up to its lag, also where one begins before the one
before it has ended: a question may find what the function stored before that has returned.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STAGES = ("put", "poll", "window", "ingest", "turn", "answer")


@dataclass(frozen=True, slots=True)
class Passage:
    """When a line was put, and when each stage ended, in the order of STAGES; the last is when it was seen."""

    put_s: float
    ends_s: tuple[float, ...]

    @property
    def lag_s(self) -> float:
        """All of it."""
        return self.ends_s[-1] - self.put_s

    @property
    def spent_s(self) -> dict[str, float]:
        """Seconds of each stage."""
        seen_s = self.ends_s[-1]
        times = itertools.accumulate(
            self.ends_s, lambda before, end: min(max(before, end), seen_s), initial=self.put_s
        )
        return {
            stage: after - before
            for stage, (before, after) in zip(STAGES, itertools.pairwise(times), strict=True)
        }


def share_of(values: Iterable[float], share: float) -> float:
    """The value that so many of them lie below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def medians(lines: Sequence[Passage]) -> dict[str, float]:
    """Of each stage; they do not add up to the median of the lags."""
    spent = [line.spent_s for line in lines]
    return {stage: statistics.median(one[stage] for one in spent) for stage in STAGES}


def slowest(lines: Sequence[Passage], share: float = 0.99) -> dict[str, float]:
    """The mean of each stage over the lines at or above that quantile of the lags: what a p99 is made of."""
    bound_s = share_of((line.lag_s for line in lines), share)
    spent = [line.spent_s for line in lines if line.lag_s >= bound_s]
    return {stage: statistics.fmean(one[stage] for one in spent) for stage in STAGES}


def by_time(lines: Sequence[Passage], every_s: float) -> list[dict[str, float]]:
    """p50, p99 and longest lag of what was put in each stretch of so many seconds: whether it grows."""
    first_s = min(line.put_s for line in lines)
    lags: dict[int, list[float]] = {}
    for line in lines:
        lags.setdefault(int((line.put_s - first_s) // every_s), []).append(line.lag_s)
    return [
        {
            "from_s": number * every_s,
            "p50_s": statistics.median(found),
            "p99_s": share_of(found, 0.99),
            "max_s": max(found),
        }
        for number, found in sorted(lags.items())
    ]
