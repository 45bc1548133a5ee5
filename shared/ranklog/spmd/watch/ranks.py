"""Each rank's signs of life: who is silent, gone, late or behind while its peers are not.

Ranks are held against the run, not against the wall clock, wherever that is possible: what all of them
do at once is a stall or the way of their lines, and no rank's.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.spmd.watch.news import Patience, StreamNews
from ranklog.spmd.watch.pace import Pace

_KEPT = 9
_MIN = 4  # gaps of a rank that tell what is usual for it
# A process that sent no heartbeat for so long is gone: a quiet one sends one a minute.
GONE_NS = 180 * SECOND_NS


@dataclass(slots=True)
class RankPulse:
    """One rank of the newest attempt. `gaps` ns between its lines as they became known, `steps`
    iterations between those that it named."""

    rank: int
    host: str | None = None
    last_ns: int | None = None
    alive_ns: int | None = None
    iteration: int | None = None
    gaps: deque[int] = field(default_factory=lambda: deque(maxlen=_KEPT))
    steps: deque[int] = field(default_factory=lambda: deque(maxlen=_KEPT))
    hole_ns: int | None = None  # when lines of it were found missing
    owed: bool = False  # lines of it are known and have not arrived
    ended: bool = False
    exit_code: int | None = None

    def spoke(self, ts_ns: int) -> None:
        """A line of this time became known."""
        if self.last_ns is not None and ts_ns > self.last_ns:
            self.gaps.append(ts_ns - self.last_ns)
        self.last_ns = ts_ns if self.last_ns is None else max(ts_ns, self.last_ns)

    def reached(self, iteration: int) -> None:
        """It named an iteration; a lower one begins anew."""
        if self.iteration is not None and iteration > self.iteration:
            self.steps.append(iteration - self.iteration)
        self.iteration = iteration

    def patience_ns(self, patience: Patience) -> float | None:
        """How long it may say nothing while others go on; None: it says too little to tell."""
        if len(self.gaps) < _MIN:
            return None
        return max(
            patience.times * statistics.median(self.gaps), 2.0 * max(self.gaps), patience.floor_ns
        )


@dataclass(frozen=True, slots=True)
class OddRank:
    """`verdict`: silent (its process lives, or nothing says otherwise), gone, late, lagging."""

    rank: int
    verdict: str
    for_ns: int = 0
    behind: int = 0


class Ranks:
    """All ranks of the newest attempt."""

    def __init__(self) -> None:
        self.pulses: dict[int, RankPulse] = {}

    def of(self, rank: int) -> RankPulse:
        """The pulse of a rank, new where it was not heard of."""
        found = self.pulses.get(rank)
        if found is None:
            found = self.pulses[rank] = RankPulse(rank)
        return found

    def take(self, news: StreamNews) -> None:
        """What a commit says of a rank's stream."""
        if news.rank is None:
            return
        pulse = self.of(news.rank)
        pulse.host = news.host or pulse.host
        if news.alive_ns is not None:
            pulse.alive_ns = max(news.alive_ns, pulse.alive_ns or 0)
        if news.last_ns is not None:
            pulse.spoke(news.last_ns)
        if news.last_iteration is not None and news.last_iteration > (pulse.iteration or -1):
            pulse.reached(news.last_iteration)

    @property
    def last_ns(self) -> int | None:
        """The newest time of any rank's line."""
        times = (pulse.last_ns for pulse in self.pulses.values())
        return max((ts for ts in times if ts is not None), default=None)

    def silent(self, pace: Pace, patience: Patience, now_ns: int) -> list[OddRank]:
        """Ranks that say nothing while others do, or whose processes are gone; by rank. `now_ns`: less
        how late lines arrive."""
        live = self._live()
        found = {odd.rank: odd for odd in _gone(live, patience, now_ns)}
        for pulse in live:
            odd = _silent(pulse, pace, patience, now_ns)
            if odd is not None:
                found.setdefault(pulse.rank, odd)
        return [found[rank] for rank in sorted(found)]

    def lagging(self, pace: Pace, patience: Patience, *, stalled: bool) -> list[OddRank]:
        """Ranks that speak of iterations long done; in a stall who stopped first; by rank."""
        live = self._live()
        usual, patient = pace.gap_ns, 0.0
        if usual is not None:
            each = statistics.median(count for _, count in pace.gaps)
            patient = pace.patience_ns(patience) / max(usual, 1) * each
        behind = [
            odd
            for pulse in (live if patient else ())
            if (odd := _behind(pulse, pace.highest or 0, patient, patience)) is not None
        ]
        found = {odd.rank: odd for odd in behind}
        for odd in _stopped_first(live, pace) if stalled else ():
            found.setdefault(odd.rank, odd)
        return [found[rank] for rank in sorted(found)]

    def _live(self) -> list[RankPulse]:
        return [pulse for pulse in self.pulses.values() if not pulse.ended]


def _gone(live: list[RankPulse], patience: Patience, now_ns: int) -> list[OddRank]:
    """Processes whose heartbeats stopped. Ranks that never sent one are not looked at."""
    bound = max(GONE_NS, patience.floor_ns)
    quiet = [
        (pulse, now_ns - max(pulse.alive_ns, pulse.last_ns or 0))
        for pulse in live
        if pulse.alive_ns is not None
    ]
    return [OddRank(pulse.rank, "gone", for_ns) for pulse, for_ns in quiet if for_ns > bound]


def _silent(pulse: RankPulse, pace: Pace, patience: Patience, now_ns: int) -> OddRank | None:
    """It says nothing while the run goes on past what it last said."""
    bound = pulse.patience_ns(patience)
    if bound is None or pulse.last_ns is None or pace.last_ns is None:
        return None
    if pace.last_ns - pulse.last_ns <= bound:
        return None
    verdict = "late" if pulse.owed or pulse.hole_ns is not None else "silent"
    return OddRank(pulse.rank, verdict, now_ns - pulse.last_ns)


def _behind(pulse: RankPulse, highest: int, patient: float, patience: Patience) -> OddRank | None:
    """It speaks, of iterations that its peers did long ago: `patient` of them at least."""
    if pulse.iteration is None or len(pulse.steps) < _MIN:
        return None
    behind = highest - pulse.iteration
    if behind <= patient or behind <= patience.times * statistics.median(pulse.steps):
        return None
    return OddRank(pulse.rank, "lagging", behind=behind)


def _stopped_first(live: list[RankPulse], pace: Pace) -> list[OddRank]:
    """In a stall: who had named each iteration and not the last one. Half of them are no exception."""
    counting = [
        pulse
        for pulse in live
        if pulse.iteration is not None and len(pulse.steps) >= _MIN and max(pulse.steps) == 1
    ]
    if pace.highest is None or len(counting) < 3:
        return []
    behind = [p for p in counting if p.iteration is not None and p.iteration < pace.highest]
    if not behind or 2 * len(behind) >= len(counting):
        return []
    return [OddRank(p.rank, "lagging", behind=pace.highest - (p.iteration or 0)) for p in behind]


def pulse_json(pulse: RankPulse) -> list[Any]:
    """For a file of state: the members in order."""
    return [
        *(pulse.rank, pulse.host, pulse.last_ns, pulse.alive_ns, pulse.iteration),
        *(list(pulse.gaps), list(pulse.steps), pulse.hole_ns, pulse.owed),
        *(pulse.ended, pulse.exit_code),
    ]


def read_pulse(said: list[Any]) -> RankPulse:
    """Inverse of pulse_json."""
    pulse = RankPulse(*said[:5])
    pulse.gaps.extend(said[5])
    pulse.steps.extend(said[6])
    pulse.hole_ns, pulse.owed, pulse.ended, pulse.exit_code = said[7:]
    return pulse
