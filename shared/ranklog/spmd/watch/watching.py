"""A watch over one launch: facts in, alerts out.

take    lines and news of streams, as they become known
judge   what holds now; alerts of what began and ended since the last round

Memory: some hundred bytes per stream, and per rank and watched key.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.watch.alerts import Alerts, Condition, Notice
from ranklog.spmd.watch.faults import Faults
from ranklog.spmd.watch.news import Patience, StreamNews
from ranklog.spmd.watch.numbers import Numbers
from ranklog.spmd.watch.pace import Pace
from ranklog.spmd.watch.ranks import OddRank, Ranks, pulse_json, read_pulse
from ranklog.spmd.watch.streams import Streams, exit_code
from ranklog.spmd.watch.words import tell

VERSION = 1
# Words of a checkpoint or an evaluation, which take longer than an iteration.
BUSY = re.compile(r"heckpoint|\b[Ee]val|\b[Vv]alid|[Ss]anity [Cc]heck")
# How late lines arrive is known from the last rounds that brought some; more is no delay but a backlog.
_LAGS_KEPT, _LAG_MAX_NS = 8, 600 * SECOND_NS


class Watching:
    """One launch. Times are int ns of the watch's clock (`now_ns`) and of the hosts' (all others)."""

    def __init__(self, patience: Patience | None = None) -> None:
        self.patience = patience or Patience()
        self.alerts = Alerts(self.patience)
        self._pace, self._ranks = Pace(), Ranks()
        self._numbers, self._faults = Numbers(), Faults()
        self._streams = Streams()
        self._reached: dict[int | str, int] = {}  # last iteration by rank, by stream where none
        self._attempt = 0
        self._busy_ns: int | None = None
        self._closing_ns: int | None = None
        self._lags: deque[int] = deque(maxlen=_LAGS_KEPT)
        self._stalled = False
        self._rounds = 0

    # --- facts ----------------------------------------------------------------------------------
    def take(
        self,
        lines: Iterable[Line],
        news: Iterable[StreamNews],
        now_ns: int,
        holes: Iterable[int] = (),
    ) -> None:
        """What became known since the last time. `lines`: those that name iterations, values or errors,
        in order of time; `holes`: ranks of which lines are missing."""
        newest = 0
        for item in news:
            self._take_news(item, now_ns)
            newest = max(newest, item.last_ns or 0, item.alive_ns or 0)
        current = [line for line in lines if not (line.copy and line.rank is not None)]
        for line in current:
            newest = max(newest, line.ts_ns)
            self._take_line(line)
        self._faults.take(line for line in current if line.attempt >= self._attempt)
        for rank in holes:
            self._ranks.of(rank).hole_ns = now_ns
        late = now_ns - newest
        if newest and (self._rounds or late <= self.patience.floor_ns):  # at first all is old
            self._lags.append(min(late, _LAG_MAX_NS))

    def take_values(self, points: Iterable[Line]) -> None:
        """Points as lines that name values, in order of time. They come by another way than lines, sooner
        or later than these: one behind them is no step back."""
        for line in points:
            if line.attempt < self._attempt:
                continue
            self._numbers.take(line, points=True)
            if line.rank is not None:
                self._ranks.of(line.rank).spoke(line.ts_ns)
            highest = self._pace.highest
            if line.iteration is not None and (highest is None or line.iteration > highest):
                self._pace.new(line.iteration, line.ts_ns, stalled=self._stalled)
                self._faults.went_on(self._pace)

    def _take_news(self, news: StreamNews, now_ns: int) -> None:
        self._streams.take(news)
        if news.attempt > self._attempt:
            self._begin_attempt(news.attempt)
        if news.attempt < self._attempt or news.rank is None:
            return
        self._ranks.take(news)
        pulse = self._ranks.of(news.rank)
        own = self._streams.own(news.attempt, news.rank)
        pulse.owed = any(stream.fenced > stream.end for stream in own)
        pulse.ended = all(stream.ended for stream in own)
        pulse.exit_code = exit_code(own)
        if pulse.ended and pulse.exit_code == 0 and self._closing_ns is None:
            self._closing_ns = now_ns
        if pulse.hole_ns is not None and now_ns - pulse.hole_ns > self.patience.floor_ns:
            pulse.hole_ns = None

    def _begin_attempt(self, attempt: int) -> None:
        self._attempt = attempt
        self._ranks = Ranks()
        self._reached.clear()
        self._faults.begin_anew()
        self._pace = Pace()  # it may be slower, and compiles anew
        self._closing_ns = self._busy_ns = None

    def _take_line(self, line: Line) -> None:
        if line.attempt < self._attempt:
            return
        if line.rank is not None:
            self._ranks.of(line.rank).spoke(line.ts_ns)
        busy = BUSY.search(line.text) is not None or _in_phase(line)
        if busy:
            self._busy_ns = max(line.ts_ns, self._busy_ns or 0)
        if line.iteration is None:
            self._numbers.take(line)
            return
        if line.rank is not None and not busy:
            self._ranks.of(line.rank).reached(line.iteration)
        if not busy:
            self._progress(line)
        self._numbers.take(line)

    def _progress(self, line: Line) -> None:
        """A new iteration: a higher one than any, or a lower one of who counts anew."""
        assert line.iteration is not None
        speaker = line.stream_id if line.rank is None else line.rank
        before = self._reached.get(speaker)
        self._reached[speaker] = line.iteration
        highest = self._pace.highest
        anew = before is not None and line.iteration < before and before == highest
        if highest is None or line.iteration > highest or anew:
            self._pace.new(line.iteration, line.ts_ns, stalled=self._stalled)
            self._faults.went_on(self._pace)

    # --- judgement ------------------------------------------------------------------------------
    @property
    def state(self) -> str:
        """running, or how the newest attempt ended: finished, failed, unknown (nobody says how)."""
        return self._streams.state(self._attempt)

    def judge(self, now_ns: int, *, last: bool = False) -> list[Notice]:
        """What to tell. `last`: no other round comes."""
        self._rounds += 1
        holding = self._conditions(now_ns)
        if self.state != "running":
            held = {condition.key for condition in holding}
            for key, condition in self.alerts.fired.items():
                if key not in held:
                    condition.facts["run_ended"] = True
        return self.alerts.step(holding, now_ns, tell, last=last or self.state != "running")

    def _conditions(self, now_ns: int) -> list[Condition]:
        state, usual = self.state, now_ns - max(self._lags, default=0)
        if state in ("finished", "unknown"):
            return self._exits(now_ns)
        ended = state == "failed"
        found = [*self._exits(now_ns), *self._nan(), *self._errors(usual, ended=ended)]
        if ended:
            return found
        found += self._stall(usual)
        if not self._is_closing(now_ns):
            found += self._odd_ranks(usual, now_ns)
        drop = self._pace.drop()
        if drop is not None and self._pace.last_ns is not None:
            facts = {"usual_ns": drop[0], "now_ns": drop[1], "iteration": self._pace.highest}
            found.append(Condition("slow", "run", self._pace.last_ns, facts=facts))
        return found

    def _is_closing(self, now_ns: int) -> bool:
        """Whether the run is done and only its end is missing, or somebody ends it."""
        if self._faults.outside_ns is not None:
            return True
        since = self._closing_ns if self._closing_ns is not None else self._faults.success_ns
        return since is not None and now_ns - since < self.patience.start_ns

    def _stall(self, now_ns: int) -> list[Condition]:
        pace, patience = self._pace, self.patience
        bound = pace.patience_ns(patience)
        if pace.last_ns is None:  # lines that name no iteration are signs of life, too
            since = self._ranks.last_ns
        else:
            since = pace.last_ns
            busy = self._busy_ns is not None and self._busy_ns >= since
            if busy and not self._stalled:
                bound = max(patience.busy * bound, patience.start_ns)
        self._stalled = (
            since is not None and now_ns - since > bound and not self._is_closing(now_ns)
        )
        if since is None or not self._stalled:
            return []
        facts = {"iteration": pace.highest, "usual_ns": pace.gap_ns}
        return [Condition("stalled", "run", since, facts=facts)]

    def _odd_ranks(self, usual_ns: int, now_ns: int) -> list[Condition]:
        silent = self._ranks.silent(self._pace, self.patience, usual_ns)
        quiet = {odd.rank for odd in silent}
        found = [self._of_rank("silent", odd, now_ns - odd.for_ns) for odd in silent]
        for odd in self._ranks.lagging(self._pace, self.patience, stalled=self._stalled):
            told = ("lagging", f"rank {odd.rank}") in self.alerts.fired
            if told or odd.rank not in quiet:
                found.append(self._of_rank("lagging", odd, self._pace.last_ns or now_ns))
        return found

    def _of_rank(self, kind: str, odd: OddRank, since_ns: int) -> Condition:
        host = self._ranks.of(odd.rank).host
        facts = {"host": host, "for_ns": odd.for_ns, "behind": odd.behind}
        verdict = odd.verdict if kind == "silent" else ""
        return Condition(
            kind, f"rank {odd.rank}", since_ns, verdict, (odd.rank,), facts, single=True
        )

    def _nan(self) -> list[Condition]:
        return [
            Condition("nan", n.key, n.since_ns, "", n.ranks, facts)
            for n in self._numbers.not_finite()
            for facts in [{"iteration": n.iteration, "points": n.points}]
        ]

    def _errors(self, now_ns: int, *, ended: bool) -> list[Condition]:
        found = []
        for fault in self._faults.unsurvived(self._pace, now_ns, ended=ended):
            first = fault.said[0]
            ranks = tuple(sorted({rank for said in fault.said for rank in said.ranks}))
            facts = {"host": first.host, "text": first.text}
            found.append(Condition("error", fault.fault, first.ts_ns, "", ranks, facts))
        return found

    def _exits(self, now_ns: int) -> list[Condition]:
        """Ranks that ended, and not well."""
        found = []
        for rank, pulse in sorted(self._ranks.pulses.items()):
            if pulse.ended and pulse.exit_code:
                facts = {"host": pulse.host, "exit_code": pulse.exit_code}
                since = pulse.last_ns or now_ns
                key = f"rank {rank}"
                found.append(Condition("exit", key, since, "", (rank,), facts, single=True))
        return found

    # --- state ----------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        """All of it, so that a watch that starts again goes on where this one is."""
        return {
            "version": VERSION,
            "alerts": self.alerts.to_json(),
            "pace": self._pace.to_json(),
            "ranks": [pulse_json(pulse) for pulse in self._ranks.pulses.values()],
            "numbers": self._numbers.to_json(),
            "faults": self._faults.to_json(),
            "streams": self._streams.to_json(),
            "reached": list(self._reached.items()),
            "attempt": self._attempt,
            "busy_ns": self._busy_ns,
            "closing_ns": self._closing_ns,
            "lags": list(self._lags),
            "stalled": self._stalled,
        }

    @classmethod
    def from_json(cls, said: dict[str, Any], patience: Patience | None = None) -> Watching:
        """Inverse of to_json. Raises ValueError for another version."""
        if said.get("version") != VERSION:
            raise ValueError(f"state of version {said.get('version')}")
        found = cls(patience)
        found.alerts.read(said["alerts"])
        found._pace = Pace.from_json(said["pace"])
        for row in said["ranks"]:
            pulse = read_pulse(row)
            found._ranks.pulses[pulse.rank] = pulse
        found._numbers = Numbers.from_json(said["numbers"])
        found._faults = Faults.from_json(said["faults"])
        found._streams = Streams.from_json(said["streams"])
        found._reached = dict(said["reached"])
        found._attempt = said["attempt"]
        found._busy_ns, found._closing_ns = said["busy_ns"], said["closing_ns"]
        found._lags.extend(said["lags"])
        found._stalled = said["stalled"]
        return found


def _in_phase(line: Line) -> bool:
    """Whether it was logged inside `ranklog.phase("checkpoint")` or one of an evaluation."""
    phase = line.metadata.get("phase")
    return isinstance(phase, str) and BUSY.search(phase) is not None
