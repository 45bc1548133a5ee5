"""Four sizes of the same deployment, each from its producers to its bill."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ranklog.limits import COMPACT_GETS_IN_FLIGHT_MAX, COMPACT_OBJECTS_MAX
from tests.bench.scale.aws import S3_BYTES_PER_S, S3_TIMES, limit
from tests.bench.scale.compacting import Compaction, CompactResult, CompactSetting
from tests.bench.scale.ingesting import Ingest, IngestResult, IngestSetting
from tests.bench.scale.querying import Queries, QueryResult, QuerySetting, Stored, little
from tests.bench.scale.rates import Rates
from tests.bench.scale.shards import (
    SHARDS_MIN,
    Frames,
    Producers,
    Shard,
    frames_of,
    load_of,
    spread,
)
from tests.bench.scale.times import Fixed

# Shards that are simulated; of more, so many by chance stand for all.
SHARDS_SIMULATED_MAX = 1_500
# Windows of which freshness is told, beside the scenario's own.
WINDOWS_S = (1.0, 5.0)
QUERY_RATES = (1, 10, 100, 1_000, 5_000)
_QUESTIONS = 300
# A question looks at the hour that goes on, half of it in the mean, and the one before.
_SCOPE_S = 1.5 * 3_600


@dataclass(frozen=True, slots=True)
class Scenario:
    """One size. `hosts` log at one pace; `window_s`: BatchWindowSeconds of the stack; `shards_min`: an
    on-demand stream has some from its first byte on, a provisioned one is of one or more."""

    name: str
    bytes_per_s: float
    hosts: int
    tenants: int = 1
    window_s: float = 5.0
    shards_min: int = SHARDS_MIN

    @property
    def producers(self) -> Producers:
        """Its hosts."""
        return Producers(self.hosts, self.bytes_per_s, self.tenants)


SCENARIOS = (
    Scenario("1 GB/h", 1e9 / 3_600, 64),
    Scenario("1 GB/h, 60 s", 1e9 / 3_600, 64, window_s=60.0),
    Scenario("1 TB/day", 1e12 / 86_400, 512),
    Scenario("1 GB/s", 1e9, 4_096),
    Scenario("100 GB/s", 100e9, 65_536, tenants=100),
)


@dataclass(slots=True)
class Outcome:
    """What the model says of a scenario, whole. `freshness`: by window, (p50, p99) in seconds."""

    scenario: Scenario
    frames: Frames
    shards: list[Shard]
    share: float  # of the shards that were simulated
    ingest: IngestResult
    compaction: CompactResult
    stored: Stored
    queries: dict[int, QueryResult]
    freshness: dict[float, tuple[float, float]]

    @property
    def segments_per_s(self) -> float:
        """Of all shards."""
        return self.ingest.parts / self.ingest.seconds / self.share

    @property
    def batches_per_s(self) -> float:
        """Of all shards."""
        return self.ingest.batches / self.ingest.seconds / self.share

    @property
    def functions(self) -> float:
        """Ingest functions at work at once, in the mean."""
        return self.ingest.busy / self.share

    @property
    def segment_lines(self) -> float:
        """Lines of a segment before compaction."""
        return self.ingest.lines / max(1, self.ingest.parts)

    def to_json(self) -> dict[str, Any]:
        """Figures of the whole deployment."""
        found = self.ingest.to_json()
        for name in ("batches_per_s", "segments_per_s", "puts_per_s", "functions_mean"):
            found[name] /= self.share
        return {
            "name": self.scenario.name,
            "bytes_per_s": self.scenario.bytes_per_s,
            "hosts": self.scenario.hosts,
            "tenants": self.scenario.tenants,
            "window_s": self.scenario.window_s,
            "frame_lines": self.frames.lines,
            "frame_bytes": self.frames.wire_bytes,
            "frames_per_s": self.frames.per_s * self.scenario.hosts,
            "wire_bytes_per_s": self.frames.per_s * self.frames.wire_bytes * self.scenario.hosts,
            "host_of_a_shard": load_of(self.frames),
            "shards": len(self.shards),
            "ingest": found,
            "freshness": {
                str(window): {"p50_s": p50, "p99_s": p99}
                for window, (p50, p99) in self.freshness.items()
            },
            "compaction": self.compaction.to_json(),
            "stored": self.stored.to_json(),
            "queries": {str(rate): found.to_json() for rate, found in self.queries.items()},
        }


def cold_s(rates: Rates, function: str) -> float:
    """A first use: the sandbox, and the imports as measured here."""
    return limit("cold start") + rates.import_s.get(function, 0.0) * limit("CPU")


def ingest_setting(scenario: Scenario, rates: Rates, window_s: float) -> IngestSetting:
    """AWS, its quotas raised as far as is needed: how far is told by itself (pressures.py)."""
    return IngestSetting(
        window_s=window_s,
        poll_s=limit("poll"),
        propagation_s=limit("propagation"),
        records_max=1_000,
        payload_bytes=limit("payload"),
        put=S3_TIMES,
        overhead_s=Fixed(limit("invoke")),
        cold_s=cold_s(rates, "ingest"),
        most=math.inf,
        scaling_per_s=math.inf,
        put_per_s=limit("S3 PUT") * scenario.tenants,
        cpu=limit("CPU"),
    )


def query_setting(rates: Rates) -> QuerySetting:
    """AWS, quotas raised."""
    return QuerySetting(
        front_s=Fixed(limit("gateway") + limit("invoke")),
        invoke_s=Fixed(limit("invoke")),
        request=S3_TIMES,
        bytes_per_s=S3_BYTES_PER_S,
        cold_root_s=cold_s(rates, "query"),
        cold_scan_s=cold_s(rates, "scan"),
        roots=math.inf,
        scans=math.inf,
        scaling_per_s=math.inf,
        get_per_s=limit("S3 GET"),
        cpu=limit("CPU"),
    )


def run_scenario(
    scenario: Scenario, rates: Rates, query_rates: Sequence[int] = QUERY_RATES
) -> Outcome:
    """From the producers to the questions."""
    frames = frames_of(scenario.producers, rates)
    shards = spread(scenario.producers, frames, least=scenario.shards_min)
    stride = max(1, math.ceil(len(shards) / SHARDS_SIMULATED_MAX))
    simulated = shards[::stride]
    share = sum(s.hosts for s in simulated) / scenario.hosts
    found: dict[float, IngestResult] = {}
    for window_s in dict.fromkeys((*WINDOWS_S, scenario.window_s)):
        setting = ingest_setting(scenario, rates, window_s)
        setting = replace(setting, put_per_s=setting.put_per_s * share)
        seconds = max(30.0, 10 * window_s)
        seconds = 1_200.0 if len(simulated) < 100 else seconds
        found[window_s] = Ingest(simulated, frames, rates, setting).run(seconds, 4 * window_s)
    ingest = found[scenario.window_s]
    segment_lines = ingest.lines / max(1, ingest.parts)
    compacting = CompactSetting(
        S3_TIMES, S3_BYTES_PER_S, limit("CPU"), gets_at_once=COMPACT_GETS_IN_FLIGHT_MAX
    )
    per_tenant = scenario.bytes_per_s / scenario.tenants
    compaction = Compaction(rates, per_tenant, segment_lines, compacting)
    compacted = compaction.run()
    segments_per_s = ingest.parts / ingest.seconds / share / scenario.tenants
    stored = what_is_stored(rates, per_tenant, segment_lines, segments_per_s, compaction, compacted)
    return Outcome(
        scenario=scenario,
        frames=frames,
        shards=shards,
        share=share,
        ingest=ingest,
        compaction=compacted,
        stored=stored,
        queries={r: ask(scenario, rates, stored, r) for r in query_rates},
        freshness={w: (one.freshness(0.5), one.freshness(0.99)) for w, one in found.items()},
    )


def provisioned(
    outcome: Outcome, rates: Rates, query_rates: Sequence[int] = QUERY_RATES
) -> Outcome:
    """The same over as few shards as the load fills to a half: where an on-demand stream has more than that,
    there are fewer and larger batches."""
    if len(outcome.shards) > SHARDS_MIN or outcome.scenario.shards_min < SHARDS_MIN:
        return outcome
    return run_scenario(replace(outcome.scenario, shards_min=1), rates, query_rates)


def what_is_stored(
    rates: Rates,
    text_per_s: float,
    segment_lines: float,
    segments_per_s: float,
    compaction: Compaction,
    result: CompactResult,
) -> Stored:
    """What a question of one tenant meets: merged segments, and those that wait to be merged."""
    text = text_per_s * _SCOPE_S
    fresh = min(text, result.fresh_text)
    fresh_lines = fresh / rates.line_bytes
    merged_lines = (text - fresh) / rates.line_bytes
    merged = (text - fresh) / compaction.merge_text
    waiting = fresh_lines / segment_lines
    index_bytes = merged_lines * rates.merged_index + fresh_lines * rates.index.at(segment_lines)
    # Closed minutes are bundled by the next pass; where passes do not keep up, nothing is.
    unbundled = segments_per_s * (60 + 300 / 2) if result.keeps_up else waiting
    objects = merged + min(waiting, unbundled + COMPACT_OBJECTS_MAX)
    return Stored(
        text=text,
        segments=merged + waiting,
        objects=max(1.0, objects),
        index_bytes=index_bytes,
        keys=max(compaction.listed, objects),
        new_per_s=segments_per_s,
    )


def ask(scenario: Scenario, rates: Rates, stored: Stored, per_s: int) -> QueryResult:
    """The mix, so many a second over all tenants, with as many warm environments as are in use. Where S3
    does not take the requests, there is no latency: a queue would only grow."""
    setting = query_setting(rates)
    few = 100 if stored.segments < 10_000 else 12
    first = Queries(rates, stored, setting, 1e-4, 1, seed=2).run(few, warm_roots=1, warm_scans=64)
    took = [first.root_s / first.count]
    tasks = first.tasks / first.count
    scan = [first.scan_s / first.tasks] if first.tasks else [0.0]
    if first.gets / first.count * per_s > setting.get_per_s * scenario.tenants * 2:
        first.latencies = []
        first.roots_busy, first.scans_busy = per_s * took[0], per_s * tasks * scan[0]
        return first
    return Queries(rates, stored, setting, per_s, scenario.tenants).run(
        _QUESTIONS,
        warm_roots=little(per_s, took),
        warm_scans=little(per_s * tasks, scan),
    )
