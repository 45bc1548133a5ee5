"""Whatever the store, the clock and the credentials do while frames are ingested: nothing lost or doubled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.errors import RanklogError, StoreFull, Throttled, Unavailable
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import DAY_NS, HOUR_NS
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import ObjectInfo
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import STREAM, T0, Row, make_frame

FRAMES = 6


class Faulty(MemoryStore):
    """Some calls fail, before or after they did their work: a time-out tells nothing of a PUT."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__()
        self.draw = random.Random(seed)
        self.share = share

    def fault(self) -> None:
        if self.draw.random() < self.share:
            raise self.draw.choice((Unavailable, Throttled, StoreFull))("for now")

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        self.fault()
        etag = super().put(key, data, if_absent=if_absent)
        self.fault()
        return etag

    def get(self, key: str) -> bytes:
        self.fault()
        return super().get(key)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        self.fault()
        return super().list(prefix, start_after=start_after)


def records(arrivals: list[int]) -> list[Record]:
    found = []
    for number, arrival_ns in enumerate(arrivals):
        rows = [
            Row(f"line {2 * number + i}", ts=T0 + (2 * number + i) * HOUR_NS // 4) for i in (0, 1)
        ]
        frame = make_frame(rows, first_seq={STREAM: 2 * number}, number=number)
        found.append(Record(encode_frame(frame), arrival_ns, f"{number:03d}"))
    return found


def ingest(store: MemoryStore, batch: list[Record]) -> None:
    """As Lambda does: again, until it is stored."""
    for _ in range(500):
        try:
            ingest_batch(
                batch, store=store, source="s", first=batch[0].sequence, last=batch[-1].sequence
            )
            return
        except RanklogError as error:
            assert error.retryable or isinstance(error, StoreFull)
    raise AssertionError("never stored")


def shown(store: MemoryStore) -> list[str]:
    answer = Client(store=store, tenant="acme").search(
        "line", limit=None, order="oldest", since="2026-02-27", until="2026-03-04", groups=False
    )
    assert answer.completeness.skipped_tasks == []
    return sorted((line.text for line in answer.lines), key=lambda text: int(text.split()[1]))


ALL = [f"line {i}" for i in range(2 * FRAMES)]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.floats(0, 0.04), st.lists(st.integers(1, FRAMES - 1), max_size=3))
def test_faults_of_the_store_and_batches_that_are_cut_lose_and_double_nothing(
    seed: int, share: float, cuts: list[int]
) -> None:
    store = Faulty(seed, share)
    batch = records([T0 + DAY_NS] * FRAMES)
    edges = [0, *sorted(set(cuts)), FRAMES]
    for first, end in pairwise(edges):
        ingest(store, batch[first:end])
    ingest(store, batch)  # as when an answer was lost
    store.share = 0.0
    assert shown(store) == ALL


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(-9, 9), min_size=FRAMES, max_size=FRAMES))
def test_a_clock_that_jumps_by_hours_while_frames_arrive_loses_nothing(jumps: list[int]) -> None:
    store = MemoryStore()
    for record in records([T0 + DAY_NS + jump * HOUR_NS for jump in jumps]):
        ingest(store, [record])
    assert shown(store) == ALL


def test_a_clock_of_arrival_that_is_behind_files_lines_by_arrival_and_keeps_what_they_claim() -> (
    None
):
    store = MemoryStore()
    for record in records([T0 - DAY_NS] * FRAMES):
        ingest(store, [record])
    assert shown(store) == ALL
    lines = Client(store=store, tenant="acme").search("line", limit=None, since="2026-02-27").lines
    assert {line.metadata["ts_claimed"] for line in lines} == {
        T0 + i * HOUR_NS // 4 for i in range(2 * FRAMES)
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_store_that_is_full_for_long_takes_everything_when_it_has_room(seed: int) -> None:
    store = Faulty(seed, 1.0)
    batch = records([T0 + DAY_NS] * FRAMES)
    for _ in range(20):
        with pytest.raises(RanklogError):
            ingest_batch(batch, store=store, source="s", first="000", last="005")
    store.share = 0.0
    ingest(store, batch)
    assert shown(store) == ALL
