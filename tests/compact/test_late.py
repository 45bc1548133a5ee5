"""Lines that come late, and times that can't be: compaction merges them where they lie, and no answer changes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ranklog.client import Client
from ranklog.ingest.batch import ingest_batch
from ranklog.layout import keys
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.model.frame import TS_CLAIMED
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.stream.frames import encode_frame
from tests.compact.stores import DAY_NS, GRACE_NS, SteppedStore, compact
from tests.ingest.frames import T0, Row, make_frame, stream

Y1970, Y2100 = 90 * SECOND_NS, 4_102_444_800 * SECOND_NS
IMPORTED = replace(stream(5), certified="import", channel="train.log")
WIDE = {"since": "1970-01-01", "until": "2101-01-01"}


def put(store: SteppedStore, name: str, rows: list[Row], first: dict[Stream, int]) -> None:
    record = Record(encode_frame(make_frame(rows, first_seq=first, number=int(name))), T0, name)
    report = ingest_batch([record], store=store, source="k", first=name, last=name)
    assert report.bad == []


def shown(store: SteppedStore) -> list[tuple[str, int, int]]:
    """Every line as it is shown, for a reader without a cache."""
    answer = Client(store=store, tenant="acme").search("", limit=None, order="oldest", **WIDE)
    assert answer.completeness.skipped_tasks == []
    return sorted((line.text, line.ts_ns, line.seq) for line in answer.lines)


def tended(store: SteppedStore, passes: int = 3) -> None:
    for _ in range(passes):
        assert compact(store).failed == {}
        store.clock_ns += GRACE_NS


@pytest.mark.parametrize("seed", range(5))
def test_wild_times_are_kept_as_claims_and_found_where_they_were_filed(seed: int) -> None:
    rng, store = random.Random(seed), SteppedStore()
    store.clock_ns = T0
    times = [0, Y1970, T0 - 401 * DAY_NS, T0 + 2 * HOUR_NS, Y2100, -(2**62), 2**62, T0]
    for number in range(4):
        rng.shuffle(times)
        rows = [
            Row(f"{number} {ts}", ts=ts, stream=rng.choice([stream(0), IMPORTED])) for ts in times
        ]
        first = dict.fromkeys((stream(0), IMPORTED), 8 * number)
        put(store, str(number), rows, first)
    before = shown(store)
    assert len(before) == 32
    store.clock_ns = T0 + 3 * DAY_NS
    tended(store)
    assert shown(store) == before
    answer = Client(store=store, tenant="acme").search("", limit=None, **WIDE)
    for line in answer.lines:
        claimed = int(line.text.split()[1])
        imported = line.rank == 5
        is_wild = (
            claimed < 0 or claimed > T0 + HOUR_NS or (claimed < T0 - 400 * DAY_NS and not imported)
        )
        assert line.ts_ns == (T0 if is_wild else claimed)
        assert bool(line.flags & TS_CLAIMED) == is_wild
        assert line.metadata.get("ts_claimed") == (claimed if is_wild else None)
    # few lines of an hour lie with what came late that day; nothing lies in an hour that is yet to come
    days = {key.split("/")[2] for key in store.names("index/")}
    assert "late" in days and max(days - {"late"}) <= "2026-03-01"
    found = Client(store=store, tenant="acme").search(
        "", limit=None, since="1970-01-01", until="1970-01-02"
    )
    assert {line.ts_ns for line in found.lines} <= {0, Y1970}


@pytest.mark.parametrize("seed", range(5))
def test_lines_that_come_for_an_hour_that_was_merged_are_merged_into_it_later(seed: int) -> None:
    rng, store = random.Random(seed), SteppedStore()
    store.clock_ns = T0 + 3 * DAY_NS
    expected = []
    for number in range(9):
        rows = [Row(f"{number} {i}", ts=T0 + rng.randrange(HOUR_NS)) for i in range(3)]
        put(store, str(number), rows, {rows[0].stream: 3 * number})
        expected += [(row.text, row.ts, 3 * number + i) for i, row in enumerate(rows)]
        if rng.random() < 0.6:
            assert compact(store).failed == {}
            store.clock_ns += rng.choice([SECOND_NS, GRACE_NS])
        assert shown(store) == sorted(expected)
    tended(store)
    assert shown(store) == sorted(expected)
    assert len(store.names("index/2026-03-01/00/")) == 1
    assert len(store.names("data/2026-03-01/00/")) == 1


def test_a_batch_that_comes_again_after_its_index_was_merged_and_deleted_doubles_nothing() -> None:
    store = SteppedStore()
    store.clock_ns = T0 + 3 * DAY_NS
    for number in range(3):
        rows = [Row(f"{number} {i}", ts=T0 + i) for i in range(3)]
        put(store, str(number), rows, {rows[0].stream: 3 * number})
    before = shown(store)
    tended(store)
    put(store, "1", [Row(f"1 {i}", ts=T0 + i) for i in range(3)], {stream(3): 3})  # delivered again
    assert shown(store) == before
    tended(store)
    assert shown(store) == before
    assert len(store.names("index/")) == 1


def test_a_question_of_a_hundred_years_looks_at_the_days_that_hold_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = SteppedStore()
    put(store, "1", [Row("a", ts=T0), Row("b", ts=T0 + 1)], {stream(3): 0})
    asked: list[int] = []
    real = keys.index_hour_prefix
    monkeypatch.setattr(
        keys, "index_hour_prefix", lambda tenant, hour: (asked.append(hour), real(tenant, hour))[1]
    )
    assert [text for text, _, _ in shown(store)] == ["a", "b"]
    assert len(asked) <= 2 * 24
