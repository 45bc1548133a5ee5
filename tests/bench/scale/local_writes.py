"""The write path of the local stack: shards as queues of this process, read as the event source mapping reads
them; a batch is ranklog itself, over S3's protocol on loopback."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ranklog.ingest.batch import Record, ingest_batch
from ranklog.ingest.markers import Markers
from ranklog.rules.ruleset import RuleSet
from ranklog.stream.frames import encode_frame
from tests.bench.corpus import DURATION_NS, START_NS, corpus
from tests.bench.scale.checks import Check, share_of
from tests.bench.scale.counting import CountingStore
from tests.bench.scale.ingesting import Ingest, IngestSetting
from tests.bench.scale.rates import Rates
from tests.bench.scale.shards import Frames, Shard
from tests.bench.scale.times import Fixed, Linear, Measured

SHARDS, WINDOW_S, POLL_S, SECONDS = 2, 1.0, 0.25, 30.0
FRAMES_PER_S, FRAME_LINES = 4.0, 1_024  # of a shard


@dataclass(slots=True)
class _Run:
    """What was measured of the write path."""

    fresh_s: list[float] = field(default_factory=list)
    batch_lines: list[int] = field(default_factory=list)
    invocation_s: list[float] = field(default_factory=list)
    store_s: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)


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


def _read_shard(shard: _Shard, ingest: Callable[..., object], ends_s: float, run: _Run) -> None:
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
            _invoke(shard, ingest, held, run)
            held, opened = [], None
        while poll <= time.monotonic():
            poll += POLL_S


def _invoke(
    shard: _Shard,
    ingest: Callable[..., object],
    held: Sequence[tuple[float, Record, int]],
    run: _Run,
) -> None:
    started = time.monotonic()
    records = [record for _, record, _ in held]
    first, last = records[0].sequence, records[-1].sequence
    source = f"{shard.name}.{time.monotonic_ns()}"
    ingest(records, source=source, first=first, last=last)
    done = time.monotonic()
    run.invocation_s.append(done - started)
    run.batch_lines.append(sum(lines for _, _, lines in held))
    run.commits.append(done)
    run.fresh_s += [done - put for put, _, _ in held]


def check_ingest(rates: Rates, store: CountingStore, seconds: float) -> list[Check]:
    # the corpus is of a day long ago, whose markers are put with every batch
    markers = Markers(store, clock_ns=lambda: START_NS + DURATION_NS)
    ingest = partial(ingest_batch, store=store, rules=RuleSet.load(), markers=markers)
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
        threads.append(threading.Thread(target=_read_shard, args=(shard, ingest, ends_s, run)))
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
    # What a line takes beside its PUTs, as loaded as the machine was.
    beside_s = sum(run.invocation_s) - sum(puts)
    line_s = Linear(0.0, max(0.0, beside_s) / sum(run.batch_lines))
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
        Check("freshness p50", model["freshness_p50_s"], share_of(run.fresh_s, 0.5), "s"),
        Check("freshness p99", model["freshness_p99_s"], share_of(run.fresh_s, 0.99), "s"),
        Check("batches a second", model["batches_per_s"], batches / took_s, "1/s"),
        Check("lines a batch", model["lines_per_batch"], float(np.mean(run.batch_lines)), ""),
        Check("functions at work", model["functions_mean"], sum(run.invocation_s) / took_s, ""),
        Check("PUTs a segment", rates.puts, len(puts) / store.requests["PUT index"], ""),
    ]
