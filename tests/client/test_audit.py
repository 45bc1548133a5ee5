"""Every frame's fate: what is stored, deleted, dropped, missing or altered shows."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ranklog.client.audit import Audit, audit
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.compact.compacting import Compactor
from ranklog.compact.reindex import reindex
from ranklog.errors import TooLarge
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import COMPACT_GRACE_S, SECOND_NS
from ranklog.model.frame import Drop, FrameStream
from ranklog.model.query import RunSelector
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame, header_hash
from tests.ingest.frames import T0, Row, make_frame, stream

HOUR = 3_600_000_000_000


class Agent:
    """One agent's chain of frames, three rows of two ranks in each; frame 2 has rows of two hours."""

    def __init__(self, **notes: Any) -> None:
        self.frames: list[bytes] = []
        previous = ""
        for number in range(4):
            rows = [
                Row(f"line {number} {i}", ts=T0 + i * (number == 2) * HOUR, stream=stream(i % 2))
                for i in range(3)
            ]
            firsts = {stream(0): 2 * number, stream(1): number}
            streams = [FrameStream(stream(0), 0, 0, **notes)] if number == 1 and notes else []
            frame = make_frame(rows, first_seq=firsts, number=number, streams=streams)
            frame = type(frame)(**{**_members(frame), "previous": previous})
            previous = header_hash(frame)
            self.frames.append(encode_frame(frame))


def _members(frame: Any) -> dict[str, Any]:
    return {name: getattr(frame, name) for name in frame.__slots__}


def put(store: MemoryStore, data: bytes, name: str) -> None:
    report = ingest_batch(
        [Record(data, T0 + HOUR, name)], store=store, source="k", first=name, last=name
    )
    assert report.bad == []


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    for at, data in enumerate(Agent().frames):
        put(made, data, str(at))
    return made


def audited(store: MemoryStore) -> Audit:
    return audit(local_reader(store, "acme"))


def states(found: Audit) -> list[tuple[int, str]]:
    return [(fate.number, fate.state) for fate in found.frames]


def segments(store: MemoryStore) -> list[str]:
    return [item.key for item in store.list("acme/data/")]


def test_frames_that_are_stored_as_they_were_sent_are_verified(store: MemoryStore) -> None:
    found = audited(store)
    assert states(found) == [(n, "verified") for n in range(4)]
    assert (found.state, found.totals["rows"], found.segments) == ("verified", 12, [])
    put(store, Agent().frames[1], "again")  # the same frame twice
    assert states(audited(store)) == [(n, "verified") for n in range(4)]


def test_a_frame_that_never_arrived_is_missing() -> None:
    store = MemoryStore()
    for at in (0, 3):
        put(store, Agent().frames[at], str(at))
    found = audited(store)
    assert [(f.number, f.last, f.state) for f in found.frames] == [
        (0, 0, "verified"),
        (1, 2, "missing"),
        (3, 3, "verified"),
    ]
    assert (found.state, found.totals["missing"]) == ("missing", 2)


def test_deleted_rows_are_deleted_and_dropped_lines_are_counted() -> None:
    store = MemoryStore()
    for at, data in enumerate(Agent(drops=(Drop(7, "quota"),)).frames):
        put(store, data, str(at))
    reader = local_reader(store, "acme")
    query = read_query('"line 1 0"', {"run": "llama"}, now_ns=T0)
    delete(reader, find_deletion(reader, query, who="t"))
    found = audited(store)
    assert states(found)[1] == (1, "deleted")
    assert (found.frames[1].lines, found.frames[1].dropped, found.state) == (1, 7, "verified")


def test_a_row_that_was_changed_in_a_segment_alters_the_frames_that_it_holds(
    store: MemoryStore,
) -> None:
    key = segments(store)[0]
    table = pq.read_table(io.BytesIO(store.get(key)))
    texts = ["changed", *table.column("text").to_pylist()[1:]]
    place = table.schema.get_field_index("text")
    changed = table.set_column(
        place, table.schema.field("text"), pa.array(texts, table.schema.field("text").type)
    )
    sink = io.BytesIO()
    pq.write_table(changed, sink)
    store.put(key, sink.getvalue())
    found = audited(store)
    assert found.state == "altered"
    assert [state for _, state in states(found)].count("altered") == 1
    assert [item["segment"] for item in found.segments] == [key]


def test_a_segment_that_is_swapped_for_another_alters_both(store: MemoryStore) -> None:
    a, b = segments(store)[:2]
    first, second = store.get(a), store.get(b)
    store.put(a, second)
    store.put(b, first)
    found = audited(store)
    assert {item["segment"] for item in found.segments} == {a, b}
    assert found.state == "altered"


def test_an_index_under_anothers_name_is_altered(store: MemoryStore) -> None:
    names = [item.key for item in store.list("acme/index/")]
    by_hour = {name.split("/")[3]: name for name in names}
    assert len(by_hour) > 1
    a, b = list(by_hour.values())[:2]
    store.put(a, store.get(b))
    found = audited(store)
    assert a in {item["index"] for item in found.segments}
    assert found.state == "altered"


def test_a_segment_that_is_gone_takes_its_rows_with_it(store: MemoryStore) -> None:
    store.delete(segments(store)[0])
    found = audited(store)
    assert (found.state, found.totals["missing"]) == ("missing", 1)


def test_a_frame_that_names_another_one_before_it_is_altered() -> None:
    store = MemoryStore()
    frames = Agent().frames
    put(store, frames[0], "0")
    forged = make_frame([Row("forged", stream=stream(5))], number=1)
    put(store, encode_frame(type(forged)(**{**_members(forged), "previous": "ab" * 16})), "1")
    assert states(audited(store)) == [(0, "verified"), (1, "altered")]


def test_two_frames_of_one_number_are_altered() -> None:
    store = MemoryStore()
    put(store, Agent().frames[0], "0")
    put(store, encode_frame(make_frame([Row("other", stream=stream(5))], number=0)), "1")
    assert states(audited(store)) == [(0, "altered")]


def test_a_run_has_the_frames_of_agents_that_sent_rows_of_it(store: MemoryStore) -> None:
    other = make_frame([Row("x", stream=stream(0, run="other"))], number=0)
    other = type(other)(**{**_members(other), "agent": "0b"})
    put(store, encode_frame(other), "o")
    assert len(audited(store).frames) == 5
    found = audit(local_reader(store, "acme"), RunSelector("other"))
    assert [(f.agent, f.state) for f in found.frames] == [("0b", "verified")]


def lose_indexes(store: MemoryStore, names: str = "") -> int:
    keys = [item.key for item in store.list("acme/index/") if names in item.key]
    for key in keys:
        store.delete(key)
    return len(keys)


def test_segments_whose_indexes_are_gone_are_missing_until_they_are_reindexed(
    store: MemoryStore,
) -> None:
    whole = len(segments(store))
    lose_indexes(store)
    found = audited(store)
    assert (found.state, len(found.segments)) == ("missing", whole)
    assert {item["segment"] for item in found.segments} == set(segments(store))
    assert all("ranklog reindex" in item["why"] for item in found.segments)
    assert sum(int(item["why"].split("its ")[1].split()[0]) for item in found.segments) == 12
    reindex(store, "acme")
    assert audited(store).segments == []


def test_one_segment_without_an_index_is_named_beside_those_that_have_one(
    store: MemoryStore,
) -> None:
    lose_indexes(store, ".k.3.3.")
    [lost] = audited(store).segments
    assert (lost["state"], ".k.3.3." in lost["index"]) == ("missing", True)
    run = RunSelector("llama")
    assert len(audit(local_reader(store, "acme"), run).segments) == 1
    put(store, Agent().frames[0], "again")
    lose_indexes(store, ".again.")
    assert len(audited(store).segments) == 1  # others have the rows of a leftover
    reader = local_reader(store, "acme")
    delete(reader, find_deletion(reader, read_query("", {"run": "llama"}, now_ns=T0), who="t"))
    assert audited(store).segments == []  # nothing is to be shown of it


def test_an_audit_of_what_a_merge_replaced_names_nothing(store: MemoryStore) -> None:
    newest = max(item.modified_ns or 0 for item in store.list("acme/"))
    for age_s in (86_400, 86_400 + COMPACT_GRACE_S + 1):
        Compactor(store, "acme", newest + age_s * SECOND_NS).run()
        assert audited(store).segments == []


def test_a_segment_without_an_index_that_is_damaged_is_altered(store: MemoryStore) -> None:
    lose_indexes(store)
    key = segments(store)[0]
    store.put(key, b"PAR1 no more")
    states = {item["segment"]: item["state"] for item in audited(store).segments}
    assert states.pop(key) == "altered"
    assert set(states.values()) == {"missing"}


def test_what_has_no_index_counts_for_how_much_an_audit_may_read(store: MemoryStore) -> None:
    lose_indexes(store)
    with pytest.raises(TooLarge):
        audit(local_reader(store, "acme"), bytes_max=100)
