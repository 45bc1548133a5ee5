"""Simulated jobs as a watch sees them: their lines come in time order, round by round, by a fake clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.watch.alerts import Notice
from ranklog.spmd.watch.news import Patience, StreamNews
from ranklog.spmd.watch.watching import Watching
from tests.faults.job import Job
from tests.faults.triage import imported

ROUND_NS = 10 * SECOND_NS
ROUNDS_MAX = 20_000


@dataclass
class Watched:
    """What a watch told. `live`: without the ends of streams, as of a job that is not over."""

    notices: list[Notice] = field(default_factory=list)
    watching: Watching = field(default_factory=Watching)

    @property
    def fired(self) -> list[tuple[str, str]]:
        return [(n.kind, s) for n in self.notices if n.state == "fired" for s in n.subjects]

    @property
    def resolved(self) -> list[tuple[str, str]]:
        return [(n.kind, s) for n in self.notices if n.state == "resolved" for s in n.subjects]


def watch_job(job: Job, *, ends: bool, after_s: float = 0.0, delay_s: float = 3.0) -> Watched:
    """Watch a job from its first line on. `after_s`: how long after its last line; `delay_s`: how late
    lines become known. `ends`: streams end with code 0 when their last line was seen."""
    with imported(job) as client:
        lines = sorted(client.lines("", run="job"), key=lambda line: line.ts_ns)
        return feed(lines, ends=ends, after_s=after_s, delay_s=delay_s)


def feed(
    lines: list[Line],
    *,
    ends: bool,
    after_s: float = 0.0,
    delay_s: float = 3.0,
    exit_code: int = 0,
    patience: Patience | None = None,
) -> Watched:
    """Lines in order of time into a new watch."""
    watched = Watched(watching=Watching(patience))
    for now, part in _rounds(lines, after_s, delay_s):
        news = _news(part, ended=False, exit_code=None)
        watched.watching.take(part, news, now)
        watched.notices += watched.watching.judge(now)
    if ends:
        now = (lines[-1].ts_ns if lines else 0) + int((after_s + delay_s + 1) * SECOND_NS)
        news = _news(lines, ended=True, exit_code=exit_code)
        watched.watching.take([], news, now)
        watched.notices += watched.watching.judge(now)
    return watched


def _rounds(lines: list[Line], after_s: float, delay_s: float) -> Iterator[tuple[int, list[Line]]]:
    at, delay = 0, int(delay_s * SECOND_NS)
    now = lines[0].ts_ns
    last = lines[-1].ts_ns + int(after_s * SECOND_NS) + delay
    for _ in range(ROUNDS_MAX):
        now += ROUND_NS
        start = at
        while at < len(lines) and lines[at].ts_ns + delay <= now:
            at += 1
        yield now, lines[start:at]
        if now > last:
            return
        if at < len(lines) and at == start and lines[at].ts_ns - now > 7200 * SECOND_NS:
            now = lines[at].ts_ns - 7200 * SECOND_NS  # nothing changes in between


def _news(lines: list[Line], *, ended: bool, exit_code: int | None) -> list[StreamNews]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.stream_id, []).append(line)
    return [
        StreamNews(
            stream_id,
            own[0].attempt,
            own[0].rank if len({line.rank for line in own}) == 1 else None,
            own[0].host,
            max(line.ts_ns for line in own),
            last_iteration=max(
                (i for line in own if (i := line.iteration) is not None), default=None
            ),
            end=max(line.seq for line in own) + 1,
            ended=ended,
            exit_code=exit_code if ended else None,
        )
        for stream_id, own in found.items()
    ]
