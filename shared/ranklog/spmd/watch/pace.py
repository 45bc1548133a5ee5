"""How fast a run goes: its usual time between iterations, and what is out of it.

The usual time is the median of the last gaps between iterations that are spoken of, its spread the
median absolute deviation (MAD); both ignore the few long gaps of checkpoints and evaluations.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.spmd.watch.news import Patience

GAPS_KEPT = 256
GAPS_MIN = 4  # fewer say nothing about what is usual
# A drop of throughput: the last so many gaps against those before them.
RECENT, BEFORE_MIN = 12, 24
DROP_FACTOR, DROP_MADS, DROP_ENDS_FACTOR = 1.4, 8.0, 1.2
# Iterations that are counted anew after so many usual gaps are another attempt's.
RESTART_GAPS = 5
# Iterations that must begin after an error before it is said that the run survived it.
WENT_ON = 3
# Hosts' clocks differ.
CLOCKS_NS = 3 * SECOND_NS


@dataclass(slots=True)
class Pace:
    """Iterations over time. `gaps`: (ns, iterations) between new ones; `starts`: when the last few
    began; `usual_ns`: the time per iteration before it dropped, kept while it is low."""

    highest: int | None = None
    last_ns: int | None = None
    gaps: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    starts: deque[int] = field(default_factory=lambda: deque(maxlen=WENT_ON))
    usual_ns: float | None = None
    longest_ns: int = 0

    def new(self, iteration: int, ts_ns: int, *, stalled: bool) -> None:
        """An iteration that was not spoken of before began. Gaps of stalls are not usual."""
        if self.highest is not None and self.last_ns is not None and iteration > self.highest:
            gap = max(0, ts_ns - self.last_ns)
            if not stalled:
                self.gaps.append((gap, iteration - self.highest))
                self.longest_ns = max((ns for ns, _ in self.gaps), default=0)
        elif self.highest is not None and self.last_ns is not None:
            usual = self.gap_ns
            if usual is not None and ts_ns - self.last_ns > RESTART_GAPS * usual:
                self.gaps.clear()  # a restart, not an epoch: its pace is another
                self.usual_ns = None
        self.highest = iteration
        self.last_ns = ts_ns if self.last_ns is None else max(ts_ns, self.last_ns)
        self.starts.append(self.last_ns)

    @property
    def gap_ns(self) -> float | None:
        """The usual time between iterations that are spoken of."""
        if len(self.gaps) < GAPS_MIN:
            return None
        return float(statistics.median(ns for ns, _ in self.gaps))

    def patience_ns(self, patience: Patience) -> float:
        """How long no new iteration is no news. A pause that the run made before may come again."""
        usual = self.gap_ns
        if usual is None:
            return patience.start_ns
        spread = statistics.median(abs(ns - usual) for ns, _ in self.gaps)
        late = usual + patience.times * spread
        return max(patience.times * usual, late, 2 * self.longest_ns, patience.floor_ns)

    def went_on(self, ts_ns: int) -> bool:
        """Whether iterations began after this time, so that what was said then ended nothing."""
        return len(self.starts) == WENT_ON and self.starts[0] > ts_ns + CLOCKS_NS

    def drop(self) -> tuple[float, float] | None:
        """(usual, now) in ns per iteration while it takes clearly longer than it did."""
        each = [ns / count for ns, count in self.gaps]
        if len(each) < RECENT:
            return None
        now = statistics.median(each[-RECENT:])
        if self.usual_ns is not None:
            if now < DROP_ENDS_FACTOR * self.usual_ns:
                self.usual_ns = None
                return None
            return self.usual_ns, now
        before = each[:-RECENT]
        if len(before) < BEFORE_MIN:
            return None
        usual = statistics.median(before)
        spread = statistics.median(abs(value - usual) for value in before)
        # the quickest quarter too: a few evaluations among the last ones are no drop
        quick = statistics.quantiles(each[-RECENT:], n=4)[0]
        bound = max(DROP_FACTOR * usual, usual + DROP_MADS * spread)
        if usual <= 0 or now < bound or quick < DROP_ENDS_FACTOR * usual:
            return None
        self.usual_ns = usual
        return usual, now

    def to_json(self) -> dict[str, Any]:
        """For a file of state."""
        return {
            "highest": self.highest,
            "last_ns": self.last_ns,
            "gaps": list(self.gaps),
            "starts": list(self.starts),
            "usual_ns": self.usual_ns,
            "longest_ns": self.longest_ns,
        }

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Pace:
        """Inverse of to_json."""
        found = cls(said["highest"], said["last_ns"])
        found.gaps.extend((int(ns), int(count)) for ns, count in said["gaps"])
        found.starts.extend(said["starts"])
        found.usual_ns, found.longest_ns = said["usual_ns"], said["longest_ns"]
        return found
