"""The write path by events: frames in shards, the event source mapping that gathers them, functions that
store them, S3's limits on the way.

For each shard, and each of its batches that run at once, in turn:

    open     the first record is read that nothing has taken yet
    ready    the window is over, or the payload is full
    begin    an environment of the function is there; what came meanwhile goes along
    done     segments and indexes are put: what was in the batch is searchable

Frames of a shard come as a Poisson process (many hosts, each at its own pace), so that those between two
reads are spread evenly over the time between; freshness is of a few of each batch, each standing for its share.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.bench.scale.kernel import Clock, Environment, Pool, RateLimit
from tests.bench.scale.rates import Rates
from tests.bench.scale.shards import Frames, Shard
from tests.bench.scale.times import Times, quantile

# Frames of a batch whose freshness is noted.
_NOTED = 3
# Base64 in JSON, as the mapping delivers records.
_PAYLOAD_SHARE = 0.74


@dataclass(frozen=True, slots=True)
class IngestSetting:
    """The deployment. `put`: a PUT's time; `cpu`: seconds here by seconds there; `overhead_s`: around an
    invocation; `cold_s`: a first use; `most` and `scaling_per_s`: environments; `put_per_s`: PUTs a second
    that each tenant's folder of segments, and that of indexes, takes."""

    window_s: float
    poll_s: float
    propagation_s: float
    records_max: int
    payload_bytes: float
    put: Times
    overhead_s: Times
    cold_s: float
    most: float
    scaling_per_s: float
    put_per_s: float
    cpu: float = 1.0
    parallel: int = 1
    cpu_noise: Times | None = None


@dataclass(slots=True)
class IngestResult:
    """What happened in `seconds`, after the warm-up. Frames: `drawn` were put in all, `stored` are
    searchable, `waiting` neither; freshness is from PutRecords to searchable."""

    seconds: float = 0.0
    batches: int = 0
    parts: int = 0
    lines: float = 0.0
    puts: float = 0.0
    busy: float = 0.0
    peak: int = 0
    function_s: float = 0.0
    cold_starts: int = 0
    slowed: int = 0
    drawn: int = 0
    stored: int = 0
    waiting: int = 0
    offered_lines: float = 0.0
    fresh_s: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def freshness(self, share: float) -> float:
        """Seconds; NaN where nothing was stored."""
        return quantile(self.fresh_s, self.weights, share)

    @property
    def keeps_up(self) -> bool:
        """Whether nearly all that came was stored: else there is a queue that grows."""
        return self.lines >= 0.93 * self.offered_lines

    def to_json(self) -> dict[str, Any]:
        """Figures, without the samples."""
        batches = max(1, self.batches)
        return {
            "batches_per_s": self.batches / self.seconds,
            "segments_per_s": self.parts / self.seconds,
            "puts_per_s": self.puts / self.seconds,
            "lines_per_batch": self.lines / batches,
            "lines_per_segment": self.lines / max(1, self.parts),
            "functions_mean": self.busy,
            "functions_peak": self.peak,
            "invocation_s": self.function_s / batches,
            "put_waits_share": self.slowed / max(1.0, self.puts),
            "freshness_p50_s": self.freshness(0.5),
            "freshness_p99_s": self.freshness(0.99),
            "keeps_up": self.keeps_up,
        }


@dataclass(slots=True)
class _Lane:
    """One reader of a shard: `upto` is the put time of the last frame that it has taken."""

    per_s: float
    tenants: int
    phase: float
    upto: float = 0.0


class Ingest:
    """The write path of some shards."""

    def __init__(
        self,
        shards: list[Shard],
        frames: Frames,
        rates: Rates,
        setting: IngestSetting,
        seed: int = 1,
    ) -> None:
        self._frames, self._rates, self._setting = frames, rates, setting
        self._random = np.random.default_rng(seed)
        self._clock = Clock()
        self._pool = Pool(self._clock, setting.most, setting.scaling_per_s)
        tenants = max((shard.tenants for shard in shards), default=1)
        self._limits = [RateLimit(setting.put_per_s, setting.put_per_s) for _ in range(2)]
        self._cap = max(
            1,
            min(
                setting.records_max,
                int(setting.payload_bytes * _PAYLOAD_SHARE / max(1.0, frames.wire_bytes)),
            ),
        )
        self._lanes = [
            _Lane(
                shard.hosts * frames.per_s / setting.parallel,
                max(1, min(shard.tenants, tenants)),
                self._random.random() * setting.poll_s,
            )
            for shard in shards
            if shard.hosts
            for _ in range(setting.parallel)
        ]
        self._result = IngestResult()
        self._from_s = 0.0

    def run(self, seconds: float, warm_s: float) -> IngestResult:
        """What happens in `seconds` after `warm_s`."""
        # Shards are at different places of their rounds, as after a long time.
        for lane in self._lanes:
            lane.upto = self._random.random() * (self._setting.window_s + self._setting.poll_s)
            self._clock.at(lane.upto, functools.partial(self._open, lane))
        self._from_s = math.inf
        self._clock.run(warm_s)
        self._reset(warm_s)
        self._clock.run(warm_s + seconds)
        self._pool.settle()
        found = self._result
        found.seconds = seconds
        found.busy = self._pool.busy_s / seconds
        found.peak = self._pool.peak
        found.cold_starts = self._pool.cold_starts
        found.waiting = found.drawn - found.stored
        found.slowed = sum(one.slowed for one in self._limits)
        found.offered_lines = sum(lane.per_s for lane in self._lanes) * self._frames.lines * seconds
        return found

    def _reset(self, now: float) -> None:
        """Count from here on; frames that are on their way stay so."""
        waiting = self._result.drawn - self._result.stored
        self._result = IngestResult(drawn=waiting)
        self._from_s = now
        self._pool.settle()
        self._pool.busy_s, self._pool.peak, self._pool.cold_starts = 0.0, self._pool.busy, 0
        for one in self._limits:
            one.slowed = one.asked = 0

    def _poll_at(self, lane: _Lane, moment: float) -> float:
        """The first read at or after it."""
        poll_s = self._setting.poll_s
        return lane.phase + math.ceil((moment - lane.phase) / poll_s - 1e-9) * poll_s

    def _open(self, lane: _Lane) -> None:
        setting = self._setting
        first_put = lane.upto + self._random.exponential(1 / lane.per_s)
        visible = max(first_put + setting.propagation_s, self._clock.now)
        opened = self._poll_at(lane, visible)
        full = lane.upto + self._cap / lane.per_s + setting.propagation_s
        ready = min(opened + setting.window_s, max(opened, self._poll_at(lane, full)))

        def ask() -> None:
            self._pool.take(lambda environment: self._begin(lane, first_put, environment))

        self._clock.at(ready, ask)

    def _begin(self, lane: _Lane, first_put: float, environment: Environment) -> None:
        now, setting = self._clock.now, self._setting
        read = self._poll_at(lane, now) - (0 if self._poll_at(lane, now) <= now else setting.poll_s)
        upto = max(first_put, read - setting.propagation_s)
        count = 1 + int(self._random.poisson(lane.per_s * (upto - first_put)))
        if count > self._cap:
            upto = first_put + (upto - first_put) * (self._cap - 1) / max(1, count - 1)
            count = self._cap
        lane.upto = upto
        lines = count * self._frames.lines
        parts = min(lane.tenants, count)
        self._result.drawn += count
        took = self._duration(lines, parts, environment)

        def done() -> None:
            self._done(lane, (first_put, upto), count, (lines, parts, took))
            self._pool.give_back(environment)
            self._open(lane)

        self._clock.after(took, done)

    def _duration(self, lines: float, parts: int, environment: Environment) -> float:
        setting, rates = self._setting, self._rates
        cpu_s = (rates.ingest_s.at(lines) + rates.part_s * (parts - 1)) * setting.cpu
        if setting.cpu_noise is not None:
            cpu_s *= setting.cpu_noise.draw(self._random)
        took = setting.overhead_s.draw(self._random) + cpu_s
        took += setting.cold_s if environment.cold else 0.0
        # In the order of the commit: segment, (pointer), index, of one part after the other.
        puts = max(1, round(rates.puts)) * parts
        for number in range(puts):
            took += self._limits[number % 2].wait_s(self._clock.now + took)
            took += setting.put.draw(self._random)
        return took

    def _done(
        self, lane: _Lane, span: tuple[float, float], count: int, made: tuple[float, int, float]
    ) -> None:
        found, (lines, parts, took) = self._result, made
        found.stored += count
        if self._clock.now < self._from_s:
            return
        found.batches += 1
        found.parts += parts
        found.lines += lines
        found.puts += max(1, round(self._rates.puts)) * parts
        found.function_s += took
        noted = min(_NOTED, count)
        first, last = span
        for _ in range(noted):
            put = first + (last - first) * self._random.random()
            found.fresh_s.append(self._clock.now - put)
            found.weights.append(count / noted)
