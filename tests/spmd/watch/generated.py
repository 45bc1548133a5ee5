"""Lines of small runs by a fake clock, and a watch that is fed with them round by round."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.watch.alerts import Notice
from ranklog.spmd.watch.news import Patience, StreamNews
from ranklog.spmd.watch.watching import Watching

T0 = 1_777_629_600 * SECOND_NS


def line(rank: int | None, at_s: float, text: str = "", **changes: Any) -> Line:
    """A line of a rank's stream, `at_s` seconds after the start."""
    blank = Line(
        stream_id=f"s{rank}",
        seq=int(at_s * 1000),
        ts_ns=T0 + int(at_s * SECOND_NS),
        run="job",
        launch="l",
        attempt=0,
        rank=rank,
        local_rank=rank,
        host=None if rank is None else f"gpu-{rank // 4}",
        channel="logging",
        group=None,
        level=20,
        call_site="train.py:88",
        function="step",
        logger="train",
        text=text or "step",
        iteration=None,
    )
    return replace(blank, **changes)


def step(rank: int | None, at_s: float, iteration: int, loss: float = 2.5, **more: Any) -> Line:
    """A line that names an iteration and its loss."""
    text = f"iteration {iteration} loss {loss}"
    return line(rank, at_s, text, iteration=iteration, metadata={"loss": loss, **more})


def news(rank: int | None, at_s: float, **changes: Any) -> StreamNews:
    """A commit with a heartbeat of a rank."""
    host = None if rank is None else f"gpu-{rank // 4}"
    said = StreamNews(f"s{rank}", 0, rank, host, alive_ns=T0 + int(at_s * SECOND_NS))
    return replace(said, **changes)


@dataclass
class Story:
    """A run as it becomes known, in rounds of 10 s; `beats`: ranks whose heartbeats go on."""

    ranks: int = 8
    watching: Watching = field(default_factory=Watching)
    now_s: float = 0.0
    notices: list[Notice] = field(default_factory=list)
    beats: set[int] = field(default_factory=set)
    restart: bool = False  # the watch itself is ended and started again at each round

    def round(self, lines: Iterable[Line] = (), said: Iterable[StreamNews] = ()) -> list[Notice]:
        """10 s later: these became known."""
        self.now_s += 10
        if self.restart:
            kept = json.loads(json.dumps(self.watching.to_json()))
            self.watching = Watching.from_json(kept)
        now = T0 + int(self.now_s * SECOND_NS)
        alive = [news(rank, self.now_s - 1) for rank in sorted(self.beats)]
        self.watching.take(lines, [*alive, *said], now)
        new = self.watching.judge(now)
        self.notices += new
        return new

    def train(
        self,
        rounds: int,
        *,
        first: int,
        each_s: float = 2.0,
        ranks: Iterable[int] | None = None,
        value: Callable[[int, int], dict[str, float]] = lambda rank, iteration: {},
    ) -> int:
        """So many rounds of iterations of all ranks; returns the next iteration."""
        who = list(range(self.ranks) if ranks is None else ranks)
        iteration = float(first)
        for _ in range(rounds):
            lines = []
            count = 10 / each_s
            for k in range(int(iteration), int(iteration + count)):
                at = self.now_s + (k - iteration) * each_s
                lines += [step(rank, at + rank / 1000, k, **value(rank, k)) for rank in who]
            iteration += count
            self.round(lines)
        return int(iteration)

    def wait(self, seconds: float) -> None:
        """Rounds in which nothing comes."""
        for _ in range(int(seconds // 10)):
            self.round()

    @property
    def told(self) -> list[str]:
        """`fired stalled run` for each subject, in order."""
        return [f"{n.state} {n.kind} {subject}" for n in self.notices for subject in n.subjects]


PATIENCE = Patience()
