"""The read path by events: a root lists, opens indexes, plans, scatters, merges; scans read and match.

A question looks at whole hours (the one that goes on and the one before it): all of the tenant's indexes in
them are listed and opened, then pruned. A root keeps indexes it has opened, as far as its cache goes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranklog.limits import (
    INDEX_CACHE_BYTES_MAX,
    INDEX_GETS_IN_FLIGHT_MAX,
    KIB,
    MIB,
    SCATTER_CONCURRENCY_MAX,
    TASK_BYTES_TARGET,
    TASK_SEGMENTS_MAX,
)
from tests.bench.scale.counting import PAGE_KEYS
from tests.bench.scale.kernel import Clock, Environment, Pool, RateLimit
from tests.bench.scale.rates import QueryRate, Rates
from tests.bench.scale.times import Times

# What an index takes in the cache, by its bytes (client/indexes).
_EXPANSION = 10
_ROUND_BYTES = 256 * KIB
# Share of each kind of question; "a question" of the page is this mix.
MIX: Mapping[str, float] = {
    "rare literal": 0.4,
    "absent literal": 0.1,
    "one id": 0.2,
    "count by call site": 0.2,
    "dense regex": 0.1,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """What lies in the hours a question looks at. `new_per_s`: index objects that come, by their own
    PUT; `keys`: index keys listed, with those that were replaced and are not deleted yet; `hours`: folders."""

    text: float
    segments: float
    objects: float
    index_bytes: float
    keys: float
    new_per_s: float
    hours: int = 2

    def to_json(self) -> dict[str, float]:
        """As a table shows it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class QuerySetting:
    """The deployment. `front_s`: around a question (gateway, root); `invoke_s`: around a scan; `get_per_s`:
    what a tenant's folder takes."""

    front_s: Times
    invoke_s: Times
    request: Times
    bytes_per_s: float
    cold_root_s: float
    cold_scan_s: float
    roots: float
    scans: float
    scaling_per_s: float
    get_per_s: float
    cpu: float = 1.0
    cpu_noise: Times | None = None


@dataclass(slots=True)
class QueryResult:
    """Of `count` questions that were answered; requests are of one question in the mean."""

    count: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    lists: float = 0.0
    gets: float = 0.0
    tasks: float = 0.0
    read_bytes: float = 0.0
    root_s: float = 0.0
    scan_s: float = 0.0
    roots_busy: float = 0.0
    scans_busy: float = 0.0
    waits: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Means of a question, and quantiles of its latency."""
        count = max(1, self.count)
        return {
            "p50_s": float(np.quantile(self.latencies, 0.5)) if self.latencies else None,
            "p99_s": float(np.quantile(self.latencies, 0.99)) if self.latencies else None,
            "lists": self.lists / count,
            "gets": self.gets / count,
            "tasks": self.tasks / count,
            "read_bytes": self.read_bytes / count,
            "root_s": self.root_s / count,
            "scan_s": self.scan_s / count,
            "roots_busy": self.roots_busy,
            "scans_busy": self.scans_busy,
        }


def tasks_of(scans: float, bytes_each: float) -> tuple[int, float]:
    """(tasks, scans of a task), as plan/pack makes them."""
    if scans < 0.5:
        return 0, 0.0
    weight = max(bytes_each, _ROUND_BYTES)
    share = math.ceil(scans * weight / SCATTER_CONCURRENCY_MAX)
    target = max(1 * MIB, min(share, TASK_BYTES_TARGET))
    each = max(1.0, min(TASK_SEGMENTS_MAX, target // weight))
    return max(1, math.ceil(scans / each)), min(each, scans)


class Queries:
    """Questions that come by chance, `per_s` in the mean, over stores of `tenants` of one size."""

    def __init__(
        self,
        rates: Rates,
        stored: Stored,
        setting: QuerySetting,
        per_s: float,
        tenants: int = 1,
        mix: Mapping[str, float] = MIX,
        seed: int = 1,
    ) -> None:
        self._rates, self._stored, self._setting = rates, stored, setting
        self._per_s, self._tenants = per_s, tenants
        self._names = list(mix)
        self._shares = np.array([mix[name] for name in self._names]) / sum(mix.values())
        self._random = np.random.default_rng(seed)
        self._clock = Clock()
        self._roots = Pool(self._clock, setting.roots, setting.scaling_per_s)
        self._scans = Pool(self._clock, setting.scans, setting.scaling_per_s)
        self._index_gets = RateLimit(setting.get_per_s * tenants, setting.get_per_s * tenants)
        self._data_gets = RateLimit(setting.get_per_s * tenants, setting.get_per_s * tenants)
        self._found = QueryResult()

    def run(self, count: int, *, warm_roots: int = 0, warm_scans: int = 0) -> QueryResult:
        """So many questions, all answered."""
        self._roots.warm(warm_roots)
        self._scans.warm(warm_scans)
        moment = 0.0
        kinds = self._random.choice(len(self._names), size=count, p=self._shares)
        for kind in kinds:
            moment += self._random.exponential(1 / self._per_s)
            rate = self._rates.queries[self._names[kind]]
            self._clock.at(moment, functools.partial(self._ask, rate))
        self._clock.run(moment + 100_000)
        found = self._found
        found.seconds = moment
        found.roots_busy = found.root_s * self._per_s / max(1, found.count)
        found.scans_busy = found.scan_s * self._per_s / max(1, found.count)
        return found

    def _ask(self, rate: QueryRate) -> None:
        asked = self._clock.now
        self._roots.take(lambda environment: self._root(rate, asked, environment))

    def _root(self, rate: QueryRate, asked: float, environment: Environment) -> None:
        """List, open, plan; then scatter."""
        began = self._clock.now
        took = self._setting.front_s.draw(self._random)
        took += self._setting.cold_root_s if environment.cold else 0.0
        took += self._list_s() + self._open_s(environment)
        took += self._cpu(rate.plan_s.at(self._stored.segments) + rate.root_s / 2)
        text = self._stored.text / max(1.0, self._stored.segments)
        scans = rate.scanned(self._stored.segments, text / self._rates.line_bytes)
        tasks, each = tasks_of(scans, rate.read_bytes.at(text))
        self._found.tasks += tasks
        self._found.gets += scans * rate.gets
        self._found.read_bytes += scans * rate.read_bytes.at(text)
        left = [tasks]

        def merge() -> None:
            self._clock.after(self._cpu(rate.root_s / 2), answered)

        def answered() -> None:
            self._found.count += 1
            self._found.root_s += self._clock.now - began
            self._found.latencies.append(self._clock.now - asked)
            self._roots.give_back(environment)

        def scanned() -> None:
            left[0] -= 1
            if left[0] == 0:
                merge()

        def scatter() -> None:
            for _ in range(tasks):
                self._scans.take(lambda env: self._scan(rate, text, each, env, scanned))

        self._clock.after(took, scatter if tasks else merge)

    def _scan(
        self, rate: QueryRate, text: float, each: float, environment: Environment, then: Any
    ) -> None:
        """The segments of a task, one after the other."""
        setting = self._setting
        gets = max(1, round(each * rate.gets))
        took = setting.invoke_s.draw(self._random)
        took += setting.cold_scan_s if environment.cold else 0.0
        took += self._data_gets.wait_s(self._clock.now, gets)
        took += self._rounds(math.ceil(each), max(1, round(rate.gets)))
        took += each * rate.read_bytes.at(text) / setting.bytes_per_s
        took += self._cpu(each * rate.scan_s.at(text))

        def done() -> None:
            self._found.scan_s += took
            self._scans.give_back(environment)
            then()

        self._clock.after(took, done)

    def _list_s(self) -> float:
        """LISTs of the run and the tombstones, then of the hours, which are listed side by side."""
        pages = max(1, math.ceil(self._stored.keys / self._stored.hours / PAGE_KEYS))
        beside = max(0.0, self._rates.lists - self._stored.hours)
        self._found.lists += beside + pages * self._stored.hours
        return self._rounds(round(beside), 1) + self._rounds(pages, self._stored.hours)

    def _open_s(self, environment: Environment) -> float:
        """GET and open the indexes that this root does not hold."""
        stored, setting = self._stored, self._setting
        each = stored.index_bytes / max(1.0, stored.objects)
        share = min(1.0, stored.objects and self._news(environment) / stored.objects)
        objects = math.ceil(share * stored.objects)
        if not objects:
            return 0.0
        self._found.gets += objects
        self._found.read_bytes += objects * each
        took = self._index_gets.wait_s(self._clock.now, objects)
        waves = math.ceil(objects / INDEX_GETS_IN_FLIGHT_MAX)
        took += self._rounds(waves, min(objects, INDEX_GETS_IN_FLIGHT_MAX))
        took += objects * each / (8 * setting.bytes_per_s)
        segments = share * stored.segments
        size = stored.index_bytes / max(1.0, stored.segments)
        return took + self._cpu(segments * self._rates.open_s.at(size))

    def _news(self, environment: Environment) -> float:
        """Index objects that the environment does not hold."""
        stored = self._stored
        fits = stored.index_bytes * _EXPANSION <= INDEX_CACHE_BYTES_MAX
        fits &= self._tenants == 1 or stored.index_bytes * _EXPANSION * 4 <= INDEX_CACHE_BYTES_MAX
        if not fits:
            return stored.objects
        if environment.cold or math.isinf(environment.last_s):
            return 0.0 if not environment.cold else stored.objects
        return stored.new_per_s * (self._clock.now - environment.last_s)

    def _rounds(self, rounds: int, wide: int) -> float:
        """So many rounds of requests, `wide` at once: the slowest of each counts."""
        return self._setting.request.slowest(self._random, rounds, wide)

    def _cpu(self, seconds: float) -> float:
        noise = self._setting.cpu_noise
        return seconds * self._setting.cpu * (noise.draw(self._random) if noise else 1.0)


def little(per_s: float, seconds: Sequence[float]) -> int:
    """Environments that are in use in the mean, by Little's law, and a third more."""
    return math.ceil(per_s * sum(seconds) / max(1, len(seconds)) * 4 / 3)
