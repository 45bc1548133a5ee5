"""A small store of points: two ranks, a restart, tensors, a host."""

from __future__ import annotations

import math
from dataclasses import replace

from ranklog.ingest.batch import ingest_batch
from ranklog.limits import HOUR_NS
from ranklog.model.record import Record as Delivered
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from ranklog.stream.frames import encode_frame
from tests.point_frames import STREAM, T0, Record, point_frame

OTHER = replace(STREAM, rank=5, local_rank=5, incarnation="1")
AGAIN = replace(STREAM, attempt=1, incarnation="2")
HOST = replace(STREAM, rank=None, local_rank=None, incarnation="3")
SECOND = 10**9
SUMMARY = {
    "count": 8,
    "min": -1.0,
    "max": 3.0,
    "mean": 1.0,
    "std": 1.0,
    "norm": 4.0,
    "nan": 0,
    "inf": 0,
    "quantiles": {"0.5": 1.0},
    "histogram": {"edges": [-1.0, 1.0, 3.0], "counts": [3.0, 5.0]},
}


def records() -> list[Record]:
    found = []
    for stream, first, last in ((STREAM, 0, 20), (OTHER, 0, 20), (AGAIN, 15, 25)):
        for step in range(first, last):
            at = T0 + (step + 30 * stream.attempt) * SECOND
            values = {"loss": 5.0 - step / 10, "lr": 0.1}
            found.append(Record(values, {}, at, step, stream))
            found.append(Record({"grad_norm": float(step)}, {"layer": "h.3"}, at, step, stream))
            if step % 10 == 0:
                found.append(Record({"activation": SUMMARY}, {"module": "mlp"}, at, step, stream))
    found.append(Record({"loss": math.nan}, {}, T0 + 21 * SECOND, 20, OTHER))
    found.append(Record({"loss": None}, {}, T0 + 22 * SECOND, 21, OTHER))
    for second in (0, 10, 20):
        found.append(Record({"host.load_1m": 1.0}, {}, T0 + second * SECOND, None, HOST))
    return found


def stored(store: Store | None = None) -> Store:
    store = MemoryStore() if store is None else store
    data = encode_frame(point_frame(records(), number=1))
    ingest_batch([Delivered(data, T0 + HOUR_NS, "1")], store=store, source="s", first="1", last="1")
    return store
