"""The model against a stack that runs here: the same shards, window and functions, over a real object store.

Shards are queues of this process, read as the event source mapping reads them; what a batch and a question do is
ranklog itself, over S3's protocol on loopback. The model gets the times of the machine and the store as this very
run measures them, before and after and in between, so that other work on the machine is in both.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ranklog.client import Client
from ranklog.ingest.batch import Record, ingest_batch
from ranklog.rules.ruleset import RuleSet
from ranklog.store.s3 import S3Store
from ranklog.stream.frames import encode_frame
from tests.bench.corpus import corpus
from tests.bench.scale import measuring
from tests.bench.scale.counting import CountingStore
from tests.bench.scale.ingesting import Ingest, IngestSetting
from tests.bench.scale.kernel import Clock, Environment, Fixed, Linear, Measured, Pool
from tests.bench.scale.querying import MIX, Queries, QuerySetting, Stored
from tests.bench.scale.rates import Rates
from tests.bench.scale.shards import Frames, Shard

TOLERANCE = 0.25
SHARDS, WINDOW_S, POLL_S, SECONDS = 2, 1.0, 0.25, 30.0
FRAMES_PER_S, FRAME_LINES = 4.0, 1_024  # of a shard
_QUESTIONS = 150
_LOAD = 0.5
_SOLO = 4


@dataclass(frozen=True, slots=True)
class Check:
    """One figure, as the model says and as it was measured."""

    name: str
    model: float
    measured: float
    unit: str

    @property
    def ratio(self) -> float:
        """Model by measured."""
        return self.model / self.measured if self.measured else float("nan")

    @property
    def ok(self) -> bool:
        """Within the tolerance."""
        return abs(self.ratio - 1) <= TOLERANCE

    def to_json(self) -> dict[str, Any]:
        """For the file of figures."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**found, "ratio": self.ratio, "ok": self.ok}


@dataclass(slots=True)
class _Run:
    """What was measured of the write path."""

    fresh_s: list[float] = field(default_factory=list)
    batch_lines: list[int] = field(default_factory=list)
    invocation_s: list[float] = field(default_factory=list)
    store_s: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)


@contextmanager
def local_store(server: Any) -> Iterator[CountingStore]:
    """A bucket of its own in an object store on loopback, counted."""
    client = server.client("s3")
    name = f"scale-{random.getrandbits(48):012x}"
    client.create_bucket(Bucket=name)
    try:
        yield CountingStore(S3Store(name, "", client))
    finally:
        client.close()


def check(rates: Rates, server: Any, seconds: float = SECONDS) -> list[Check]:
    """Every figure that both sides have."""
    with local_store(server) as store:
        writing = _check_ingest(rates, store, seconds)
        reading = _check_questions(rates, store)
    return [*writing, *reading]


# --- the write path -----------------------------------------------------------------------------
class _Shard:
    """Records put and not read; the reader gathers what is there at its polls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.records: deque[tuple[float, Record, int]] = deque()


def _put_frames(shard: _Shard, frames: Sequence[tuple[bytes, int, int]], ends_s: float) -> None:
    """Frames at random moments, FRAMES_PER_S in the mean."""
    moment = time.monotonic()
    for number, (data, arrival_ns, lines) in enumerate(frames):
        moment += random.expovariate(FRAMES_PER_S)
        if moment > ends_s:
            return
        time.sleep(max(0.0, moment - time.monotonic()))
        record = Record(data, arrival_ns, f"{number:012d}")
        shard.records.append((moment, record, lines))


def _read_shard(
    shard: _Shard, store: CountingStore, rules: RuleSet, ends_s: float, run: _Run
) -> None:
    """Poll; when a batch's window is over, ingest it."""
    poll = time.monotonic() + random.random() * POLL_S
    held: list[tuple[float, Record, int]] = []
    opened: float | None = None
    while time.monotonic() < ends_s or held or shard.records:
        time.sleep(max(0.0, poll - time.monotonic()))
        while shard.records:
            held.append(shard.records.popleft())
        if held and opened is None:
            opened = poll
        if opened is not None and poll >= opened + WINDOW_S - 1e-6:
            _invoke(shard, store, rules, held, run)
            held, opened = [], None
        while poll <= time.monotonic():
            poll += POLL_S


def _invoke(
    shard: _Shard,
    store: CountingStore,
    rules: RuleSet,
    held: Sequence[tuple[float, Record, int]],
    run: _Run,
) -> None:
    started = time.monotonic()
    records = [record for _, record, _ in held]
    first, last = records[0].sequence, records[-1].sequence
    source = f"{shard.name}.{time.monotonic_ns()}"
    ingest_batch(records, store=store, rules=rules, source=source, first=first, last=last)
    done = time.monotonic()
    run.invocation_s.append(done - started)
    run.batch_lines.append(sum(lines for _, _, lines in held))
    run.commits.append(done)
    run.fresh_s += [done - put for put, _, _ in held]


def _check_ingest(rates: Rates, store: CountingStore, seconds: float) -> list[Check]:
    rules = RuleSet.load()
    needed = int(SHARDS * FRAMES_PER_S * seconds * FRAME_LINES * 1.5)
    frames = [
        (encode_frame(frame), int.from_bytes(frame.ts[-8:], "little"), frame.rows)
        for frame in corpus(needed, frame_rows=FRAME_LINES)
    ]
    ends_s = time.monotonic() + seconds
    run, shards = _Run(), [_Shard(f"shard{number}") for number in range(SHARDS)]
    threads = []
    for number, shard in enumerate(shards):
        own = frames[number::SHARDS]
        threads.append(threading.Thread(target=_put_frames, args=(shard, own, ends_s)))
        threads.append(
            threading.Thread(target=_read_shard, args=(shard, store, rules, ends_s, run))
        )
    store.reset()
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _compare_ingest(rates, store, run, time.monotonic() - started)


def _compare_ingest(rates: Rates, store: CountingStore, run: _Run, took_s: float) -> list[Check]:
    batches = len(run.batch_lines)
    puts = store.seconds["PUT"]
    line_s = Linear.fit(
        run.batch_lines,
        [
            max(1e-3, spent - len(puts) / batches * float(np.mean(puts)))
            for spent in run.invocation_s
        ],
    )
    frames = Frames(FRAME_LINES, 40_000.0, FRAMES_PER_S)
    local = replace(rates, ingest_s=line_s, puts=len(puts) / batches)
    setting = IngestSetting(
        window_s=WINDOW_S,
        poll_s=POLL_S,
        propagation_s=0.0,
        records_max=1_000,
        payload_bytes=6e6,
        put=Measured(tuple(puts)),
        overhead_s=Fixed(0.0),
        cold_s=0.0,
        most=SHARDS,
        scaling_per_s=1e9,
        put_per_s=1e9,
    )
    found = Ingest([Shard(1, 1)] * SHARDS, frames, local, setting).run(600, 20)
    model = found.to_json()
    return [
        Check("freshness p50", model["freshness_p50_s"], _share(run.fresh_s, 0.5), "s"),
        Check("freshness p99", model["freshness_p99_s"], _share(run.fresh_s, 0.99), "s"),
        Check("batches a second", model["batches_per_s"], batches / took_s, "1/s"),
        Check("lines a batch", model["lines_per_batch"], float(np.mean(run.batch_lines)), ""),
        Check("functions at work", model["functions_mean"], sum(run.invocation_s) / took_s, ""),
        Check("PUTs a segment", rates.puts, len(puts) / store.requests["PUT index"], ""),
    ]


def _share(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share))


# --- the read path ------------------------------------------------------------------------------
def _check_questions(rates: Rates, store: CountingStore) -> list[Check]:
    with Client(store=store, tenant=measuring.TENANT, concurrency=1) as client:
        words = {name: measuring.words_of(client, name) for name in MIX}
        for name in MIX:
            measuring.ask(client, name, words[name])
        store.reset()
        wall, cpu, requests = _alone(client, words, store)
        asked, served, took = _open_loop(client, words, _LOAD / wall)
        again, more_cpu, _ = _alone(client, words, store)
        request = Measured(tuple(store.seconds["LIST"] + store.seconds["GET"]))
        state = _state(store)
    waiting = (requests["LIST"] + requests["GET"]) * request.mean
    stretch = max(1.0, (wall + again - 2 * waiting) / (cpu + more_cpu))
    model = _model_alone(rates, state, request, stretch)
    replayed = _replay(asked, served)
    return [
        Check("LISTs of a question", model["lists"], requests["LIST"], ""),
        Check("GETs of a question", model["gets"], requests["GET"], ""),
        Check("a question alone, mean", model["mean_s"], (wall + again) / 2, "s"),
        Check("question at half load, p50", _share(replayed, 0.5), _share(took, 0.5), "s"),
        Check("question at half load, p99", _share(replayed, 0.99), _share(took, 0.99), "s"),
    ]


def _alone(
    client: Client, words: dict[str, str], store: CountingStore
) -> tuple[float, float, dict[str, float]]:
    """(seconds, CPU, requests) of a question of the mix in the mean, one at a time."""
    wall = cpu = 0.0
    requests = {"LIST": 0.0, "GET": 0.0}
    for name, share in MIX.items():
        for _ in range(_SOLO):
            before = dict(store.requests)
            started, spent = time.perf_counter(), time.process_time()
            measuring.ask(client, name, words[name])
            wall += share * (time.perf_counter() - started) / _SOLO
            cpu += share * (time.process_time() - spent) / _SOLO
            for kind in requests:
                requests[kind] += share * (store.requests[kind] - before.get(kind, 0)) / _SOLO
    return wall, cpu, requests


def _open_loop(
    client: Client, words: dict[str, str], per_s: float
) -> tuple[list[float], list[float], list[float]]:
    """Questions that come by chance to one that answers them in turn: when each was asked, how long it was
    worked on, seconds from asked to answered."""
    waiting: queue.Queue[tuple[float, str] | None] = queue.Queue()
    moments: list[float] = []
    served: list[float] = []
    took: list[float] = []

    def answer() -> None:
        while (item := waiting.get()) is not None:
            started = time.monotonic()
            measuring.ask(client, item[1], words[item[1]])
            served.append(time.monotonic() - started)
            took.append(time.monotonic() - item[0])

    worker = threading.Thread(target=answer)
    worker.start()
    moment = time.monotonic()
    for name in random.choices(list(MIX), list(MIX.values()), k=_QUESTIONS):
        moment += random.expovariate(per_s)
        time.sleep(max(0.0, moment - time.monotonic()))
        moments.append(moment)
        waiting.put((moment, name))
    waiting.put(None)
    worker.join()
    return moments, served, took


def _replay(asked: Sequence[float], served: Sequence[float]) -> list[float]:
    """The model's one server, asked at the same moments, each question as long as one of those that were
    measured, by chance; a hundred times."""
    found: list[float] = []
    generator, samples = np.random.default_rng(3), Measured(tuple(served))
    for _ in range(100):
        clock = Clock()
        pool = Pool(clock, most=1)
        for moment in asked:
            clock.at(moment - asked[0], _asker(pool, clock, samples, generator, found))
        clock.run(1e6)
    return found


def _asker(
    pool: Pool, clock: Clock, samples: Measured, generator: np.random.Generator, found: list[float]
) -> Any:
    def ask() -> None:
        asked = clock.now

        def use(environment: Environment) -> None:
            def done() -> None:
                found.append(clock.now - asked)
                pool.give_back(environment)

            clock.after(samples.draw(generator), done)

        pool.take(use)

    return ask


def _state(store: CountingStore) -> Stored:
    """What lies in the store, as the model describes it."""
    listed = list(store.list(f"{measuring.TENANT}/index/"))
    text, _ = measuring.held_in(store)
    count = float(len(listed))
    return Stored(text, count, count, float(sum(i.length for i in listed)), count, 0.0)


def _model_alone(
    rates: Rates, state: Stored, request: Measured, stretch: float
) -> dict[str, float]:
    """A question of the mix with nobody else: scans run in the root, indexes are known. `stretch`: what a
    second of CPU takes on this machine just now."""
    setting = QuerySetting(
        front_s=Fixed(0.0),
        invoke_s=Fixed(0.0),
        request=request,
        bytes_per_s=500e6,
        cold_root_s=0.0,
        cold_scan_s=0.0,
        roots=1,
        scans=1,
        scaling_per_s=1e9,
        get_per_s=1e9,
        cpu=stretch,
    )
    found = Queries(rates, state, setting, 1e-3).run(800, warm_roots=1, warm_scans=1)
    shown = found.to_json()
    return {
        "lists": shown["lists"],
        "gets": shown["gets"],
        "mean_s": float(np.mean(found.latencies)),
    }
