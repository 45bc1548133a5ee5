"""Points of merged segments are those of the frames, to their last bit."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from ranklog.client.points import read_points
from ranklog.client.reader import local_reader
from ranklog.client.search import begin
from ranklog.client.words import read_query
from ranklog.ingest.batch import ingest_batch
from ranklog.model.frame import NO_RANK, STREAM_RANK, Fence, Frame
from ranklog.model.record import Record as Delivered
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.compact.stores import DAY_NS, GRACE_NS, SteppedStore, compact
from tests.corpus_lines import TENANT
from tests.point_frames import STREAM, T0, Record, point_frame

SECOND = 1_000_000_000
OTHER = replace(STREAM, rank=5, local_rank=5, host="gpu-2.cluster", incarnation="1")
SUMMARY = {
    "count": 4,
    "nan": 1,
    "inf": 2,
    "min": -1.0,
    "mean": 0.5,
    "norm": 3.0,
    "quantiles": {"0.05": -1.0, "0.5": 0.25},
    "histogram": {"edges": [-1.0, 0.0, 2.5], "counts": [3, 1]},
}
BARE = {"count": 0, "nan": 0, "inf": 0}
VALUES = [
    0.1,
    1 / 3,
    -0.0,
    0.0,
    1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
    7,
    None,
    SUMMARY,
    BARE,
]


def ingest_points(store: MemoryStore, frame: Frame, name: str) -> None:
    record = Delivered(encode_frame(frame), T0 + DAY_NS, name)
    report = ingest_batch([record], store=store, source="p", first=name, last=name)
    assert report.bad == []


def points_of(store: MemoryStore, query: str = "*") -> list[str]:
    """Every point whole, by a reader without a cache."""
    given = {"since": "2026-02-28", "until": "2026-03-03"}
    parsed = read_query(f"kind:point {query}", given, now_ns=T0)  # type: ignore[arg-type]
    run = begin(local_reader(store, TENANT), parsed, points=True)
    table = read_points(run, run.expr())
    assert run.failed == [] and run.scope.failed == []
    return sorted(json.dumps(row, default=repr, sort_keys=True) for row in table.to_pylist())


def random_records(rng: random.Random, count: int) -> list[Record]:
    found = []
    for at in range(count):
        values: dict[str, Any] = {
            name: rng.choice(VALUES) for name in rng.sample(["loss", "lr", "gradient/norm"], 2)
        }
        found.append(
            Record(
                values,
                dims=rng.choice([{}, {"layer": "h.0"}, {"layer": "h.1", "part": "mlp"}]),
                ts=T0 + at * 400 * SECOND,
                iteration=rng.choice([None, at]),
                stream=rng.choice([STREAM, OTHER]),
                rank=rng.choice([STREAM_RANK, NO_RANK, 1]),
                context=rng.choice([None, {"phase": "train"}, {"phase": "eval", "n": 3}]),
            )
        )
    return found


@pytest.mark.parametrize("seed", range(6))
def test_points_are_the_same_before_during_and_after(seed: int) -> None:
    rng = random.Random(seed)
    store = SteppedStore()
    seqs = {STREAM: 0, OTHER: 0}
    for number in range(5):
        records = random_records(rng, 12)
        fences = {STREAM: [Fence(T0 // (3_600 * SECOND) + number, ())]}
        frame = point_frame(records, first_seq=seqs, number=number + 1, fences=fences)
        for copy in range(rng.randint(1, 2)):
            ingest_points(store, frame, f"{number}-{copy}")
        for record in records:
            seqs[record.stream] += 1
    queries = ["*", "series:loss", "layer:h.0", "rank:5", "iteration:2..5", "phase:eval"]
    before = {query: points_of(store, query) for query in queries}
    assert len(before["*"]) > 50
    report = compact(store)
    assert report.failed == {} and report.merges > 0
    assert {query: points_of(store, query) for query in queries} == before
    store.clock_ns += GRACE_NS
    assert compact(store).deleted > 0
    assert all(".~1." in key for key in store.names("index/"))
    assert {query: points_of(store, query) for query in queries} == before
