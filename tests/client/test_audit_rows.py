"""Audit proves rows, not only bytes: a segment that was written anew, with every name, hash and checksum
re-made, is found out by what its rows add up to, after compaction as before it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ranklog.client.audit import Audit, audit
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.ingest.batch import ingest_batch
from ranklog.layout.build import build_segment, find_facts
from ranklog.layout.point_build import build_points
from ranklog.layout.rows import Rows
from ranklog.model.frame import CallSite
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame, header_hash
from tests.client.altering import live_indexes, with_section, write_altered
from tests.compact.stores import GRACE_NS, SteppedStore, compact
from tests.compact.test_points import ingest_points, random_records
from tests.ingest.frames import T0, Row, make_frame, stream
from tests.point_frames import STREAM as POINT_STREAM
from tests.point_frames import point_frame

HOUR = 3_600_000_000_000
STREAM_ID = stream(1).stream_id


def frames() -> list[bytes]:
    """A chain of three frames; each has four lines of rank 1 and two of rank 0, in one hour."""
    found, previous = [], ""
    for number in range(3):
        rows = [
            Row(
                f"loss 0.{number}{i} on ranké 1",
                ts=T0 + 10 * number + i,
                stream=stream(int(i < 4)),
                level=20,
                site=CallSite("train.py:1", "step", "root"),
                iteration=number,
                metadata={"loss": number / 8, "n": number, "name": f"v{i}"},
                raw=b"\xff" if i == 3 else None,
            )
            for i in range(6)
        ]
        first = {stream(1): 4 * number, stream(0): 2 * number}
        frame = replace(make_frame(rows, first_seq=first, number=number), previous=previous)
        previous = header_hash(frame)
        found.append(encode_frame(frame))
    return found


@pytest.fixture
def store() -> SteppedStore:
    made = SteppedStore()
    for number, data in enumerate(frames()):
        name = str(number)
        record = Record(data, T0 + HOUR, name)
        ingest_batch([record], store=made, source="k", first=name, last=name)
    return made


def audited(store: MemoryStore) -> Audit:
    return audit(local_reader(store, "acme"))


def build_lines(rows: Rows, chosen: Any, beside: Any) -> Any:
    return build_segment(rows, find_facts(rows), chosen, rows.metadata, beside)


def at(rows: Any, seq: int, stream_id: str = STREAM_ID) -> int:
    place = rows.stream_ids.index(stream_id)
    [row] = np.flatnonzero((rows.stream == place) & (rows.seq == seq)).tolist()
    return int(row)


def one(column: Any, row: int, change: Callable[[Any], Any]) -> Any:
    changed = column.copy()
    changed[row] = change(changed[row])
    return changed


def text_byte(rows: Rows, row: int) -> Rows:
    return replace(rows, text=one(rows.text, int(rows.offsets[row]), lambda byte: byte ^ 1))


def text_cut(rows: Rows, row: int) -> Rows:
    """The last byte of the line belongs to the next one."""
    return replace(rows, offsets=one(rows.offsets, row + 1, lambda place: place - 1))


def metadata_value(key: str, change: Callable[[Any], Any]) -> Callable[[Rows, int], Rows]:
    def changed(rows: Rows, row: int) -> Rows:
        kept = []
        for column in rows.metadata:
            if column.key == key:
                values = column.values
                place = int(np.flatnonzero(column.rows == row)[0])
                if column.type == "str":
                    texts = values.to_pylist()
                    texts[place] = change(texts[place])
                    column = replace(column, values=pa.array(texts, pa.string()))
                else:
                    column = replace(column, values=one(values, place, change))
            kept.append(column)
        return replace(rows, metadata=tuple(kept))

    return changed


def without_metadata(rows: Rows, row: int) -> Rows:
    kept = []
    for column in rows.metadata:
        there = column.rows != row
        values = column.values
        values = values.filter(pa.array(there)) if column.type == "str" else values[there]
        kept.append(replace(column, rows=column.rows[there], values=values))
    return replace(rows, metadata=tuple(kept))


def numbers(name: str, change: Callable[[Any], Any]) -> Callable[[Rows, int], Rows]:
    return lambda rows, row: replace(rows, **{name: one(getattr(rows, name), row, change)})


def raw_bytes(rows: Rows, row: int) -> Rows:
    raws = rows.raw.to_pylist()
    place = int(np.flatnonzero(rows.raw_rows == row)[0])
    raws[place] = b"\xfe"
    return replace(rows, raw=pa.array(raws, pa.binary()))


def other_site(rows: Rows, row: int) -> Rows:
    sites = (*rows.sites, CallSite("train.py:2", "step", "root"))
    return replace(rows, sites=sites, site=one(rows.site, row, lambda _: len(sites)))


CHANGES: dict[str, Callable[[Rows, int], Rows]] = {
    "a byte of text": text_byte,
    "a nanosecond": numbers("ts", lambda ns: ns + 1),
    "a level": numbers("level", lambda level: level + 10),
    "an iteration": numbers("iteration", lambda iteration: iteration + 1),
    "a rank": numbers("rank", lambda _: 7),
    "a group": numbers("group", lambda _: 0),
    "a flag": numbers("flags", lambda flags: flags ^ 8),
    "where the body begins": numbers("body_at", lambda _: 2),
    "a call site": other_site,
    "a float's last bit": metadata_value("loss", lambda value: np.nextafter(value, 9)),
    "an integer": metadata_value("n", lambda value: value + 1),
    "a text of metadata": metadata_value("name", lambda value: value + "x"),
    "no metadata": without_metadata,
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("compacted", [False, True])
def test_an_altered_line_is_named_by_frame_stream_and_seq(
    store: SteppedStore, what: str, compacted: bool
) -> None:
    if compacted:
        assert compact(store).failed == {}
        store.clock_ns += GRACE_NS
        compact(store)
    index = live_indexes(store)[0 if compacted else 1]
    change = CHANGES[what]
    key = write_altered(store, index, lambda rows: change(rows, at(rows, 5)), build_lines)
    found = audited(store)
    assert [(fate.number, fate.state, fate.lines, fate.places) for fate in found.frames] == [
        (0, "verified", 6, ()),
        (1, "altered", 1, ((STREAM_ID, 5, 6),)),
        (2, "verified", 6, ()),
    ]
    assert found.segments == [
        {
            "segment": key,
            "index": index.key,
            "state": "altered",
            "why": "rows do not add up to what ingest summed",
            "rows": [{"stream": STREAM_ID, "first_seq": 5, "last_seq": 5}],
        }
    ]
    assert found.state == "altered"


def test_an_altered_original_of_bytes_that_are_no_text_is_found(store: SteppedStore) -> None:
    write_altered(
        store, live_indexes(store)[0], lambda rows: raw_bytes(rows, at(rows, 3)), build_lines
    )
    assert audited(store).frames[0].places == ((STREAM_ID, 3, 4),)


def test_of_two_altered_lines_of_a_stream_all_lines_of_it_there_are_in_doubt(
    store: SteppedStore,
) -> None:
    def change(rows: Rows) -> Rows:
        return text_byte(text_byte(rows, at(rows, 4)), at(rows, 6))

    write_altered(store, live_indexes(store)[1], change, build_lines)
    found = audited(store)
    assert [fate.state for fate in found.frames] == ["verified", "altered", "verified"]
    assert found.frames[1].places == ((STREAM_ID, 4, 8),)


def test_lines_that_swap_their_texts_are_altered(store: SteppedStore) -> None:
    def change(rows: Rows) -> Rows:
        a, b = at(rows, 4), at(rows, 5)  # texts of one length
        text = rows.text.copy()
        first = slice(int(rows.offsets[a]), int(rows.offsets[a + 1]))
        second = slice(int(rows.offsets[b]), int(rows.offsets[b + 1]))
        text[first], text[second] = rows.text[second], rows.text[first]
        return replace(rows, text=text)

    write_altered(store, live_indexes(store)[1], change, build_lines)
    assert audited(store).state == "altered"


@pytest.mark.parametrize("compacted", [False, True])
def test_a_byte_that_moves_from_a_line_to_the_next_alters_them(
    store: SteppedStore, compacted: bool
) -> None:
    if compacted:
        compact(store)
    index = live_indexes(store)[0 if compacted else 1]
    write_altered(store, index, lambda rows: text_cut(rows, at(rows, 5)), build_lines)
    assert audited(store).frames[1].state == "altered"


def test_all_rows_are_summed_and_stay_so_when_some_are_deleted(store: SteppedStore) -> None:
    assert audited(store).totals["rows_summed"] == 18
    reader = local_reader(store, "acme")
    query = read_query('"loss 0.11"', {"run": "llama"}, now_ns=T0)
    delete(reader, find_deletion(reader, query, who="t"))
    from ranklog.delete.tombstones import load

    for _ in range(2):
        assert compact(store, hidden=load(store, "acme").hidden).failed == {}
        store.clock_ns += GRACE_NS
    found = audited(store)
    assert [fate.state for fate in found.frames] == ["verified", "deleted", "verified"]
    assert (found.totals["rows_summed"], found.segments) == (17, [])


def test_a_batch_that_is_stored_twice_adds_up_after_a_merge(store: SteppedStore) -> None:
    record = Record(frames()[1], T0 + HOUR, "again")
    ingest_batch([record], store=store, source="k", first="again", last="again")
    report = compact(store)
    assert (report.failed, report.dropped) == ({}, 6)
    store.clock_ns += GRACE_NS
    compact(store)
    found = audited(store)
    assert (found.state, found.totals["rows_summed"]) == ("verified", 18)


def test_a_merge_leaves_what_was_altered_where_it_is(store: SteppedStore) -> None:
    index = live_indexes(store)[1]
    write_altered(store, index, lambda rows: text_byte(rows, at(rows, 5)), build_lines)
    report = compact(store)
    assert report.failed == {index.key: "its segment has other rows than it was given"}
    store.clock_ns += GRACE_NS
    compact(store)
    assert len(live_indexes(store)) == 2  # the merge of the other two, and the evidence
    assert [fate.state for fate in audited(store).frames] == ["verified", "altered", "verified"]


def test_an_index_of_before_is_verified_by_the_segments_hash_and_says_so(
    store: SteppedStore,
) -> None:
    index = live_indexes(store)[0]
    store.put(index.key, with_section(index.data, b"rsum", None))
    found = audited(store)
    assert [fate.state for fate in found.frames] == ["verified"] * 3
    assert [bool(fate.why) for fate in found.frames] == [True, False, False]
    assert found.totals["rows_summed"] == 12


# --- points -------------------------------------------------------------------------------------
def point_store() -> SteppedStore:
    store = SteppedStore()
    rng = random.Random(3)
    for number in range(3):
        records = [
            replace(record, stream=POINT_STREAM, ts=T0 + 10 * number)
            for record in random_records(rng, 8)
        ]
        ingest_points(
            store,
            point_frame(records, first_seq={POINT_STREAM: 8 * number}, number=number),
            str(number),
        )
    return store


def value(rows: Any, row: int) -> Any:
    return replace(
        rows, values=one(rows.values, first_number(rows, row), lambda v: np.nextafter(v, 1e9))
    )


def first_number(rows: Any, row: int) -> int:
    """A finite value of the record."""
    first = int(rows.first[row])
    there = np.isfinite(rows.values[first : first + int(rows.size[row])])
    return first + int(np.flatnonzero(there)[0])


def has_number(rows: Any, row: int) -> bool:
    first = int(rows.first[row])
    return bool(np.isfinite(rows.values[first : first + int(rows.size[row])]).any())


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        value,
        lambda rows, row: replace(rows, ts=one(rows.ts, row, lambda ns: ns + 1)),
        lambda rows, row: replace(rows, iteration=one(rows.iteration, row, lambda _: 77)),
        lambda rows, row: replace(rows, rank=one(rows.rank, row, lambda _: 9)),
        lambda rows, row: replace(
            rows,
            key=one(rows.key, first_number(rows, row), lambda k: (k + 1) % len(rows.series_name)),
        ),
    ],
    ids=["a value's last bit", "a nanosecond", "an iteration", "a rank", "another series"],
)
def test_an_altered_point_is_named_by_frame_stream_and_seq(
    change: Callable[[Any, int], Any], compacted: bool
) -> None:
    store = point_store()
    assert [fate.state for fate in audited(store).frames] == ["verified"] * 3
    if compacted:
        assert compact(store).failed == {}
        store.clock_ns += GRACE_NS
        compact(store)
        assert audited(store).state == "verified"
    index = live_indexes(store)[0 if compacted else 1]
    chosen: list[int] = []

    def altered(rows: Any) -> Any:
        seqs = [
            seq for seq in range(8, 16) if has_number(rows, at(rows, seq, POINT_STREAM.stream_id))
        ]
        chosen.append(seqs[0])
        return change(rows, at(rows, seqs[0], POINT_STREAM.stream_id))

    write_altered(store, index, altered, build_points)
    found = audited(store)
    assert [fate.state for fate in found.frames] == ["verified", "altered", "verified"]
    [seq] = chosen
    assert found.frames[1].places == ((POINT_STREAM.stream_id, seq, seq + 1),)
