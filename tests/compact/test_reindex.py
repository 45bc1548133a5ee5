"""Indexes come back from segments: after they were deleted, and in the place of damaged ones."""

from __future__ import annotations

import pytest

from ranklog.client import Client
from ranklog.client.audit import audit
from ranklog.client.reader import local_reader
from ranklog.compact.reindex import reindex
from ranklog.errors import Unavailable
from ranklog.ingest import commit, parts
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import HOUR_NS, ORPHAN_AGE_S_MAX, SECOND_NS
from ranklog.model.record import Record as StreamRecord
from ranklog.store.protocol import Store
from ranklog.stream.frames import encode_frame
from tests.compact.stores import (
    GRACE_NS,
    LATER,
    SteppedStore,
    answered,
    compact,
    expected,
    ingest_one,
)
from tests.compact.test_points import ingest_points, points_of
from tests.corpus_lines import BOUNDS, TENANT, random_corpus
from tests.ingest.frames import T0, Row, make_frame, stream
from tests.point_frames import Record, point_frame

CORPUS = random_corpus(21, batches=4, rows=30)
QUERIES = ["*", "loss", "level>=WARNING", "dataset:c4*", "call_site:trainer.py", "iteration:1..51"]


@pytest.fixture
def store() -> SteppedStore:
    made = SteppedStore()
    for number in range(4):
        ingest_one(made, CORPUS, number)
    return made


def check(store: SteppedStore) -> None:
    for query in QUERIES:
        assert answered(store, query) == expected(CORPUS, query), query


def drop_indexes(store: SteppedStore) -> None:
    for key in store.names("index/"):
        store.delete(key)


def test_lines_are_found_again_after_every_index_was_deleted(store: SteppedStore) -> None:
    before = store.names("data/")
    drop_indexes(store)
    lost = Client(store=store, tenant=TENANT).search("*", **BOUNDS)  # type: ignore[arg-type]
    assert lost.lines == [] and "ranklog reindex" in lost.completeness.skipped_tasks[0]["reason"]
    report = reindex(store, TENANT)
    assert len(report.written) == len(before) and report.failed == {}
    assert store.names("data/") == before  # the same bytes: no segment was written again
    check(store)
    assert reindex(store, TENANT).written == []


def test_a_dry_run_writes_nothing(store: SteppedStore) -> None:
    drop_indexes(store)
    names = store.names("")
    assert len(reindex(store, TENANT, dry_run=True).written) == len(store.names("data/"))
    assert store.names("") == names


@pytest.mark.parametrize("at", [20, 200, -1], ids=["table", "section", "end"])
def test_a_damaged_index_is_written_anew_in_its_place(store: SteppedStore, at: int) -> None:
    for key in store.names("index/"):
        data = bytearray(store.get(key))
        data[at] ^= 0xFF
        store.put(key, bytes(data))
    answer = Client(store=store, tenant=TENANT).search("*", **BOUNDS)  # type: ignore[arg-type]
    assert answer.completeness.state == "partial"
    names = store.names("index/")
    report = reindex(store, TENANT)
    assert sorted(report.written) == names and report.damaged == []
    assert store.names("index/") == names
    check(store)


def test_a_damaged_index_whose_segment_is_gone_stays_and_is_told(store: SteppedStore) -> None:
    key = store.names("index/")[0]
    store.put(key, b"RLIX" + b"\0" * 40)
    late = key.split("/index/")[1].split("/")[:2]
    for segment in store.names("data/" + "/".join(late)):
        store.delete(segment)
    report = reindex(store, TENANT)
    assert key in report.damaged and key in store.names("index/")
    assert reindex(store, TENANT, drop_damaged=True).dropped == [key]
    assert key not in store.names("index/")


def test_what_a_merge_replaced_is_not_brought_back(store: SteppedStore) -> None:
    segments = {key: store.get(key) for key in store.names("data/")}
    compact(store)
    store.clock_ns += GRACE_NS
    compact(store)
    for key, data in segments.items():
        store.put(key, data)
    report = reindex(store, TENANT)
    assert report.written == [] and report.answered == sorted(segments)
    check(store)


@pytest.fixture
def halved(monkeypatch: pytest.MonkeyPatch) -> SteppedStore:
    """A batch of two hours is cut off before its last index, and comes again in halves, which file the rows
    of the smaller hour elsewhere."""
    store, put = SteppedStore(), commit.put_index

    def put_own(of: Store, key: str, data: bytes) -> bool:
        if "/late/" in key:
            raise Unavailable("not now")
        return put(of, key, data)

    records = [
        StreamRecord(
            encode_frame(
                make_frame(
                    [Row(f"line {hour} {n}", ts=T0 + hour * HOUR_NS + n) for n in range(count)],
                    first_seq={stream(): first},
                    number=hour,
                )
            ),
            LATER,
            f"{hour}",
        )
        for hour, first, count in ((0, 0, 20), (1, 20, 10))
    ]
    with monkeypatch.context() as broken, pytest.raises(Unavailable):
        broken.setattr(parts, "put_index", put_own)
        ingest_batch(records, store=store, source="k", first="0", last="1")
    for one in records:
        ingest_batch([one], store=store, source="k", first=one.sequence, last=one.sequence)
    return store


def test_rows_that_are_in_another_folder_are_not_missing_and_never_there_twice(
    halved: SteppedStore,
) -> None:
    assert len(halved.names("data/late/")) == 1 and halved.names("index/late/") == []
    found = audit(local_reader(halved, TENANT))
    assert (found.state, found.segments) == ("verified", [])
    asked = Client(store=halved, tenant=TENANT).search("line", limit=None, **BOUNDS)  # type: ignore[arg-type]
    assert len({line.id for line in asked.lines}) == len(asked.lines) == 30
    assert "ranklog reindex" in asked.completeness.skipped_tasks[0]["reason"]  # nobody can tell yet
    assert len(reindex(halved, TENANT).written) == 1
    assert len(answered(halved, "line")) == len(set(answered(halved, "line"))) == 30


def test_a_folder_of_which_nothing_was_committed_is_emptied_too(halved: SteppedStore) -> None:
    halved.clock_ns += (ORPHAN_AGE_S_MAX + 1) * SECOND_NS
    assert compact(halved).orphans == 1
    assert halved.names("data/late/") == []


def test_compacted_segments_are_found_again_and_points_too(store: SteppedStore) -> None:
    records = [Record({"loss": 0.1 * i, "lr": float("nan")}, iteration=i) for i in range(20)]
    ingest_points(store, point_frame(records), "p")
    compact(store)
    store.clock_ns += GRACE_NS
    compact(store)
    before = points_of(store)
    drop_indexes(store)
    assert reindex(store, TENANT).failed == {}
    assert points_of(store) == before
    check(store)
