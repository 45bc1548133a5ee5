"""Which limit a size meets first: each load beside what there is, and what to do about it.

A remedy is something that ranklog has today, by a setting or another stack; what would have to be built is told
as new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ranklog.limits import INDEX_CACHE_BYTES_MAX
from tests.bench.scale.aws import limit
from tests.bench.scale.querying import _EXPANSION
from tests.bench.scale.scenarios import Outcome
from tests.bench.scale.shards import load_of

# A question that takes longer is given up by the HTTP API.
ANSWER_S = 29.0


@dataclass(frozen=True, slots=True)
class Pressure:
    """`load` of `capacity`, in `unit`, and the remedy."""

    name: str
    load: float
    capacity: float
    unit: str
    remedy: str

    @property
    def ratio(self) -> float:
        """Over 1 the limit is broken."""
        return self.load / self.capacity

    def to_json(self) -> dict[str, Any]:
        """For the file of figures."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**found, "ratio": self.ratio}


def pressures(outcome: Outcome) -> list[Pressure]:
    """The fullest first."""
    found = [*_writing(outcome), *_compacting(outcome), *_reading(outcome)]
    return sorted(found, key=lambda one: -one.ratio)


def _writing(outcome: Outcome) -> list[Pressure]:
    frames, scenario = outcome.frames, outcome.scenario
    wire = frames.per_s * frames.wire_bytes * scenario.hosts
    puts = outcome.ingest.puts / outcome.ingest.seconds / outcome.share
    return [
        Pressure(
            "a host's frames in one shard",
            load_of(frames),
            1.0,
            "shards",
            "new: a partition key for each process in place of each host",
        ),
        Pressure(
            "frames into one on-demand stream",
            wire / 1e6,
            limit("stream on demand") / 1e6,
            "MB/s",
            "more streams, a stack for each group of tenants",
        ),
        Pressure(
            "shards of the account",
            len(outcome.shards),
            limit("shards of an account"),
            "shards",
            "raise the quota; agents that put segments into S3 themselves",
        ),
        Pressure(
            "ingest functions at once",
            outcome.functions,
            limit("concurrency"),
            "environments",
            "raise the account's quota; a longer window",
        ),
        Pressure(
            "PUTs into a tenant's segments and indexes",
            puts / 2 / scenario.tenants,
            limit("S3 PUT"),
            "PUT/s of a prefix",
            "a longer window; new: keys spread over several prefixes of an hour",
        ),
    ]


def _compacting(outcome: Outcome) -> list[Pressure]:
    found = outcome.compaction
    load = found.busy if found.keeps_up else max(1.01, found.busy) * 1.1
    return [
        Pressure(
            "the one compactor of a tenant's hour",
            load,
            1.0,
            "functions",
            "a longer window; new: an hour compacted in parts",
        )
    ]


def _reading(outcome: Outcome) -> list[Pressure]:
    stored = outcome.stored
    first = outcome.queries[min(outcome.queries)]
    count = max(1, first.count)
    gets = first.gets / count
    scans = first.scan_s / count + first.root_s / count
    return [
        Pressure(
            "indexes of a question in a root's memory",
            stored.index_bytes / 1e6,
            INDEX_CACHE_BYTES_MAX / _EXPANSION / 1e6,
            "MB",
            "fewer hours; new: a table of runs by hour, so that others' indexes are not opened",
        ),
        Pressure(
            "a root's time, one question at a time",
            first.root_s / count,
            ANSWER_S,
            "s",
            "fewer hours; new: the same table, roots that share an hour",
        ),
        Pressure(
            "questions a second: GETs of a tenant, at one a second",
            gets,
            limit("S3 GET") * 2 * outcome.scenario.tenants,
            "GET/s",
            "the same question again is answered from memory; new: the same table",
        ),
        Pressure(
            "questions a second: functions, at one a second",
            scans,
            limit("concurrency"),
            "environments",
            "raise the account's quota; shorter spans",
        ),
    ]
