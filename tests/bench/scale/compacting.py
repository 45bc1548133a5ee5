"""Compaction by events: passes over an hour that goes on, merge after merge, one pass at a time.

A tenant's hour has one compactor at a time (a lease, and on AWS a FIFO queue with a group per tenant and
hour); a pass that Lambda ends after 15 minutes is taken up by the next schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ranklog.limits import (
    COMPACT_GRACE_S,
    COMPACT_OBJECTS_MAX,
    COMPACT_SEGMENT_BYTES_MAX,
    COMPACT_SPLIT_BYTES_MIN,
    COMPACT_TEXT_BYTES_MAX,
)
from tests.bench.scale.aws import limit
from tests.bench.scale.kernel import Clock
from tests.bench.scale.rates import Rates
from tests.bench.scale.times import Times

SCHEDULE_S = 300.0
# Hours that are simulated; the first is for warming up.
_HOURS = 3
_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class CompactSetting:
    """`request`: a GET or PUT; `gets_at_once`: of indexes, when a pass looks at its hour; `bytes_per_s`: of one connection; `cpu`: seconds here by seconds there."""

    request: Times
    bytes_per_s: float
    cpu: float = 1.0
    schedule_s: float = SCHEDULE_S
    time_max_s: float = limit("function time")
    gets_at_once: int = 1


@dataclass(slots=True)
class CompactResult:
    """Of one tenant, in the hours after the first. `busy`: share of the time that its compactor works;
    `fresh_text`: bytes of text that lie in segments not merged yet, in the mean; `lag_s`: seconds from a
    segment's commit to its merge, in the mean."""

    seconds: float
    merges: int = 0
    merged_text: float = 0.0
    offered_text: float = 0.0
    busy_s: float = 0.0
    gets: float = 0.0
    puts: float = 0.0
    lists: float = 0.0
    fresh_text: float = 0.0

    @property
    def keeps_up(self) -> bool:
        """Whether what is merged is what comes, but for what waits to be enough for a merge."""
        spare = 3 * COMPACT_TEXT_BYTES_MAX
        return self.merged_text >= 0.9 * self.offered_text - spare

    @property
    def busy(self) -> float:
        """Compactors at work, in the mean."""
        return self.busy_s / self.seconds

    def to_json(self) -> dict[str, Any]:
        """Figures of one tenant."""
        per_s = self.offered_text / self.seconds
        return {
            "compactors_busy": self.busy,
            "merges_per_s": self.merges / self.seconds,
            "merged_text_per_s": self.merged_text / self.seconds,
            "gets_per_s": self.gets / self.seconds,
            "puts_per_s": self.puts / self.seconds,
            "lists_per_s": self.lists / self.seconds,
            "fresh_text_bytes": self.fresh_text,
            "lag_s": self.fresh_text / per_s if per_s else 0.0,
            "keeps_up": self.keeps_up,
        }


class Compaction:
    """One tenant that writes `text_per_s` in segments of `segment_lines`."""

    def __init__(
        self, rates: Rates, text_per_s: float, segment_lines: float, setting: CompactSetting
    ) -> None:
        self._rates, self._setting = rates, setting
        self._text_per_s = text_per_s
        self._segment_lines = segment_lines
        self._clock = Clock()
        self._taken = 0.0  # text that merges have taken, of all that came
        self._pass_until = 0.0
        self._result = CompactResult((_HOURS - 1) * _HOUR_S)
        self._fresh_area = 0.0
        self._fresh_since = 0.0

    @property
    def merge_text(self) -> float:
        """Text of one merge: what its memory takes, or its stored bytes."""
        per_line = self._rates.segment.at(self._segment_lines)
        by_stored = COMPACT_SEGMENT_BYTES_MAX / per_line * self._rates.line_bytes
        return min(COMPACT_TEXT_BYTES_MAX, by_stored)

    @property
    def merge_s(self) -> float:
        """Seconds of one merge: segments are read one after the other, made, put."""
        rates, setting = self._rates, self._setting
        lines = self.merge_text / rates.line_bytes
        reads = max(1.0, lines / self._segment_lines)
        moved = lines * (rates.segment.at(self._segment_lines) + rates.merged_segment)
        waits = (reads + 2) * setting.request.mean
        return rates.merge_s.at(lines) * setting.cpu + waits + moved / setting.bytes_per_s

    def run(self) -> CompactResult:
        """Passes by the schedule, over some hours."""
        end = _HOURS * _HOUR_S
        tick = self._setting.schedule_s
        for number in range(1, int(end / tick) + 1):
            self._clock.at(number * tick, self._pass)
        self._clock.run(end)
        self._note_fresh(end)
        found = self._result
        found.offered_text = self._text_per_s * found.seconds
        found.fresh_text = self._fresh_area / found.seconds
        return found

    def _came(self) -> float:
        return self._clock.now * self._text_per_s

    def _counted(self) -> bool:
        return self._clock.now >= _HOUR_S

    def _pass(self) -> None:
        """Merge what is enough for it; bundle the indexes of the minutes that are over."""
        if self._clock.now < self._pass_until:
            return
        waiting = self._came() - self._taken
        stored = waiting / self._rates.line_bytes * self._rates.segment.at(self._segment_lines)
        closing = self._clock.now % _HOUR_S < self._setting.schedule_s
        due = stored >= COMPACT_SEGMENT_BYTES_MAX or closing
        budget_s = self._setting.time_max_s - self._look_s()
        most = max(0, int(max(0.0, budget_s) / self.merge_s))
        wanted = math.ceil(waiting / self.merge_text) if closing else int(waiting / self.merge_text)
        merges = min(most, wanted) if due else 0
        text = min(waiting, merges * self.merge_text)
        took = self._look_s() + self.merge_s * text / self.merge_text
        took = min(took, self._setting.time_max_s)
        self._pass_until = self._clock.now + took
        if self._counted():
            self._count(merges, text, took)
        self._clock.at(self._pass_until, lambda: self._merged(text))

    def _merged(self, text: float) -> None:
        self._note_fresh(self._clock.now)
        self._taken += text

    def _note_fresh(self, now: float) -> None:
        """Text that no merge has taken, over the time since it was last looked at: it grows evenly."""
        start, self._fresh_since = max(self._fresh_since, _HOUR_S), max(now, _HOUR_S)
        if now > start:
            middle = (start + now) / 2
            self._fresh_area += (middle * self._text_per_s - self._taken) * (now - start)

    def _segments_per_s(self) -> float:
        return self._text_per_s / self._rates.line_bytes / self._segment_lines

    @property
    def listed(self) -> float:
        """Index objects that a pass finds: what was replaced stays for its grace, until the next pass."""
        kept_s = COMPACT_GRACE_S + self._setting.schedule_s / 2
        return self._segments_per_s() * kept_s + COMPACT_OBJECTS_MAX

    def _look_s(self) -> float:
        """LIST the hour, GET and open all in it, one after the other, once a pass."""
        size = self._rates.index.at(self._segment_lines) * self._segment_lines
        each = (
            self._setting.request.mean / self._setting.gets_at_once
            + self._rates.open_s.at(size) * self._setting.cpu
        )
        pages = math.ceil(self.listed / 1_000) * self._setting.request.mean
        return 4 * pages + self.listed * each

    def _count(self, merges: int, text: float, took: float) -> None:
        found = self._result
        lines = text / self._rates.line_bytes
        minutes = self._setting.schedule_s / 60
        made = max(merges, lines * self._rates.merged_segment / COMPACT_SPLIT_BYTES_MIN / 8)
        found.merges += merges
        found.merged_text += text
        found.busy_s += took
        found.gets += lines / self._segment_lines + self.listed
        found.puts += 2 * made + minutes
        found.lists += 4 * math.ceil(self.listed / 1_000)
