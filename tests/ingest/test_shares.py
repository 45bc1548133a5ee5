"""What a batch says of each tenant in it: counts, how long lines were under way, what was set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from ranklog.ingest.batch import IngestReport, ingest_batch
from ranklog.ingest.local import ingest_stream
from ranklog.ingest.shares import keep_measures, measured
from ranklog.model.record import Record
from ranklog.objectives import names
from ranklog.objectives.keeping import read_measures
from ranklog.objectives.recorder import Recorder
from ranklog.store.memory import MemoryStore
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame, stream

SECOND = 1_000_000_000
ARRIVAL = T0 + 2 * SECOND
COMMITTED = T0 + 5 * SECOND
HALF = Fraction(1, 2)


def ingest(store: MemoryStore, records: Sequence[bytes]) -> IngestReport:
    given = [Record(data, ARRIVAL, f"{at:04d}") for at, data in enumerate(records)]
    return ingest_batch(given, store=store, source="s", first="0", last="1")


def frame(tenant: str, texts: Sequence[str], *, certified: str = "producer") -> bytes:
    one = replace(stream(), tenant=tenant, certified=certified)
    return encode_frame(make_frame([Row(text, stream=one) for text in texts], tenant=tenant))


def test_each_tenant_has_its_own_lines_and_bytes() -> None:
    report = ingest(MemoryStore(), [frame("acme", ["ab", "c"]), frame("other", ["def"])])
    found = measured(report, COMMITTED)
    assert found.keys() == {"acme", "other"}
    acme, other = found["acme"].counts, found["other"].counts
    assert (acme[names.LINES], acme[names.TEXT_BYTES], acme[names.FRAMES]) == (2, 3, 1)
    assert (other[names.LINES], other[names.TEXT_BYTES], other[names.FRAMES]) == (1, 3, 1)
    stored = report.segment_bytes + report.index_bytes
    assert acme[names.STORED_BYTES] + other[names.STORED_BYTES] == stored
    assert report.shares["acme"].runs == ["llama"]


def test_freshness_is_from_arrival_and_delay_from_the_lines_own_time() -> None:
    report = ingest(MemoryStore(), [frame("acme", ["ab", "c"])])
    acme = measured(report, COMMITTED)["acme"]
    freshness, delay = acme.times(names.FRESHNESS), acme.times(names.DELAY)
    assert (freshness.count, delay.count) == (2, 2)
    assert freshness.quantile(HALF) == pytest.approx(3_000, rel=1 / 11)
    assert delay.quantile(HALF) == pytest.approx(5_000, rel=1 / 11)


def test_delays_of_many_rows_are_those_of_each() -> None:
    delays_s = [0, 0.0004, 0.5, 3, 7_000, 10**8]
    rows = [Row("x", ts=COMMITTED - int(s * SECOND)) for s in delays_s]
    one = replace(stream(), certified="producer")
    data = encode_frame(make_frame([replace(row, stream=one) for row in rows]))
    found = measured(ingest(MemoryStore(), [data]), COMMITTED)["acme"].times(names.DELAY)
    expected = type(found)()
    for s in delays_s:
        expected.add(s * 1000)
    assert found == expected


def test_imported_lines_have_no_delay() -> None:
    report = ingest(MemoryStore(), [frame("acme", ["ab"], certified="import")])
    acme = measured(report, COMMITTED)["acme"]
    assert (acme.times(names.DELAY).count, acme.times(names.FRESHNESS).count) == (0, 1)


def test_a_batch_that_comes_again_is_measured_once() -> None:
    store = MemoryStore()
    assert measured(ingest(store, [frame("acme", ["ab"])]), COMMITTED)
    assert measured(ingest(store, [frame("acme", ["ab"])]), COMMITTED) == {}


def test_what_is_set_aside_is_counted_with_whom_it_names() -> None:
    whole = frame("acme", ["ab"])
    damaged = whole[:-1] + bytes([whole[-1] ^ 1])
    report = ingest(MemoryStore(), [damaged, b"nobody's"])
    found = {tenant: item.counts for tenant, item in measured(report, COMMITTED).items()}
    assert found == {"acme": {names.QUARANTINED: 1}, None: {names.QUARANTINED: 1}}


def test_a_local_stream_leaves_its_measures_in_the_store(tmp_path: Path) -> None:
    disk, store = DiskStream(tmp_path, sync=False), MemoryStore()
    disk.put("key", frame("acme", ["ab", "c"]))
    recorder = Recorder(store)
    assert [report.lines for report in ingest_stream(disk, store, recorder)] == [2]
    found, _ = read_measures(store, "acme", 0, 2**62)
    assert found.counts[names.LINES] == found.times(names.FRESHNESS).count == 2


def test_what_names_nobody_is_recorded_with_nobody() -> None:
    store, kept = MemoryStore(), MemoryStore()
    keep_measures(ingest(store, [b"nobody's"]), Recorder(kept), COMMITTED)
    assert list(kept.list("")) == []
