"""What a pass takes is bounded by what one merge may take, however much the hour holds; nothing outlives it."""

from __future__ import annotations

import gc

import pytest

from ranklog.compact import choose
from ranklog.ingest.batch import ingest_batch
from ranklog.layout.index import SegmentIndex
from ranklog.model.record import Record
from ranklog.stream.frames import encode_frame
from tests.compact.stores import LATER, SteppedStore, answered, compact
from tests.ingest.frames import STREAM, T0, Row, make_frame

LINES, ROUNDS = 20, 20
LINE = "x" * 90
# of eight batches
MERGE_BYTES = 8 * LINES * (len(LINE) + 8)


def say(store: SteppedStore, number: int) -> None:
    first = number * LINES
    rows = [Row(f"{LINE} {n:06d}", ts=T0 + n) for n in range(first, first + LINES)]
    data, name = encode_frame(make_frame(rows, first_seq={STREAM: first})), f"{number:06d}"
    ingest_batch([Record(data, T0, name)], store=store, source="k", first=name, last=name)


def indexes_alive() -> int:
    gc.collect()
    return sum(isinstance(one, SegmentIndex) for one in gc.get_objects())


def test_a_pass_over_an_hour_that_grows_merges_no_more_than_a_merge_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choose, "COMPACT_TEXT_BYTES_MAX", MERGE_BYTES)
    store, before = SteppedStore(), indexes_alive()
    merged = []
    for number in range(ROUNDS):
        say(store, 2 * number)
        say(store, 2 * number + 1)
        store.clock_ns = (
            LATER + number * 3_600 * 10**9
        )  # what was replaced before has had its grace
        merged.append(compact(store).rows)
    assert indexes_alive() <= before
    in_one = MERGE_BYTES // (len(LINE) + 7)
    assert max(merged) <= in_one + 2 * LINES
    assert max(merged[ROUNDS // 2 :]) <= max(merged[: ROUNDS // 2])
    assert len(answered(store, "*")) == 2 * ROUNDS * LINES > 4 * in_one
