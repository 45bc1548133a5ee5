"""The read path over a small store: scope, order, groups, context, warnings, plans."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.client.indexes import IndexCache
from ranklog.client.local import Local
from ranklog.errors import BadInput, BadQuery, NotFound
from ranklog.ingest.batch import ingest_batch
from ranklog.model.frame import Drop, Fence, FrameStream, StreamEnd
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import STREAM, T0, Row, make_frame, stream

SECOND = 1_000_000_000
HOUR = 3_600 * SECOND


def put(store: MemoryStore, name: str, rows: list[Row], **options: object) -> None:
    """One frame through ingest."""
    data = encode_frame(make_frame(rows, **options))  # type: ignore[arg-type]
    report = ingest_batch(
        [Record(data, T0 + 100 * 24 * HOUR, name)], store=store, source="k", first=name, last=name
    )
    assert report.bad == []


def ended(one: Stream, lines: int, code: int | None = 0, **notes: object) -> FrameStream:
    return FrameStream(one, 0, 0, end=StreamEnd(lines, code), **notes)  # type: ignore[arg-type]


@pytest.fixture
def store() -> MemoryStore:
    memory = MemoryStore()
    rows = [
        Row(
            f"step {i} loss {i / 8}", ts=T0 + i * SECOND, stream=stream(rank), iteration=i, level=20
        )
        for i in range(20)
        for rank in (0, 1)
    ]
    put(memory, "1", rows, streams=[ended(stream(0), 20), ended(stream(1), 20)])
    return memory


@pytest.fixture
def client(store: MemoryStore) -> Client:
    return Client(store=store, tenant="acme")


def texts(answer: object) -> list[str]:
    return [line.text for line in answer.lines]  # type: ignore[attr-defined]


def test_the_newest_lines_are_kept_and_come_oldest_first(client: Client) -> None:
    answer = client.search("loss rank:0", run="llama", limit=2)
    assert texts(answer) == ["step 18 loss 2.25", "step 19 loss 2.375"]
    assert (answer.truncated, answer.completeness.state) == (True, "complete")


def test_an_id_reads_only_the_segment_that_holds_the_line(store: MemoryStore) -> None:
    put(store, "2", [Row(f"later {i}", ts=T0 + HOUR + i) for i in range(5)], first_seq={STREAM: 40})
    client = Client(store=store, tenant="acme")
    (line,) = client.search("later 3", run="llama", limit=1).lines
    found = client.search(f"id:{line.id}", run="llama", context=1)
    assert texts(found) == ["later 2", "later 3", "later 4"]
    assert [shown.match for shown in found.lines] == [False, True, False]
    plan = client.search(f"id:{line.id}", run="llama", explain=True).explain
    assert [segment["row_groups"]["kept"] for segment in plan["segments"]] == [0, 1]
    others = client.search(f"NOT id:{line.id} later", run="llama")
    assert texts(others) == ["later 0", "later 1", "later 2", "later 4"]


def test_an_order_says_which_end_comes_first(client: Client) -> None:
    newest = client.search("rank:0", run="llama", limit=2, order="newest")
    oldest = client.search("rank:0", run="llama", limit=2, order="oldest")
    assert texts(newest) == ["step 19 loss 2.375", "step 18 loss 2.25"]
    assert texts(oldest) == ["step 0 loss 0.0", "step 1 loss 0.125"]


def test_nothing_found_in_a_complete_run_is_complete(client: Client) -> None:
    answer = client.search("absent", run="llama")
    assert (answer.lines, answer.completeness.state, answer.next) == ([], "complete", None)


def test_without_run_and_time_it_is_the_newest_day_and_says_so(
    store: MemoryStore, client: Client
) -> None:
    put(store, "2", [Row("long ago", ts=T0 - 50 * HOUR, stream=stream(7))])
    answer = client.search("")
    assert answer.report.defaulted
    assert answer.report.to_ns == T0 + 19 * SECOND + 1
    assert answer.report.from_ns == answer.report.to_ns - 24 * HOUR
    assert len(answer.lines) == 40
    assert len(client.search("", run="llama").lines) == 41
    assert texts(client.search("", since="2026-02-26", until="2026-02-28")) == ["long ago"]


def test_last_counts_back_from_the_newest_line_in_scope(client: Client) -> None:
    assert len(client.search("last:3s rank:0", run="llama").lines) == 4
    assert len(client.search("rank:0", last="3s", run="llama").lines) == 4
    assert len(client.search("rank:0", last="3s").lines) == 4


def test_an_empty_store_answers_nothing() -> None:
    empty = Client(store=MemoryStore(), tenant="acme")
    answer = empty.search("x")
    assert (answer.lines, answer.completeness.state) == ([], "complete")
    assert empty.count("x").count == 0
    assert empty.runs().rows == []


def test_a_run_that_is_not_there_names_those_that_are(client: Client) -> None:
    with pytest.raises(NotFound, match="did you mean llama"):
        client.search("", run="lama")


def test_a_tenant_sees_its_own_lines_only(store: MemoryStore) -> None:
    assert Client(store=store, tenant="other").search("").lines == []


def test_run_selectors_choose_launches(store: MemoryStore, client: Client) -> None:
    later = replace(stream(0), launch="18")
    rows = [Row("second launch", ts=T0 + HOUR, stream=later)]
    put(store, "2", rows, streams=[ended(later, 1, code=1)])
    assert texts(client.search("", run="llama")) == ["second launch"]
    assert client.search("", run="llama").report.run_ids == ["llama@18"]
    assert len(client.search("", run="llama~1").lines) == 40
    assert len(client.search("", run="llama@17").lines) == 40
    assert len(client.search("", run="llama@*").lines) == 41
    assert client.search("", run="llama~ok").report.run_ids == ["llama@17"]
    assert len(client.search("run:llama@17", since="2026-01-01").lines) == 40
    with pytest.raises(NotFound):
        client.search("", run="llama~2")
    with pytest.raises(NotFound):
        client.search("", run="llama@99")


def test_launches_of_one_hour_are_ordered_by_their_first_line(
    store: MemoryStore, client: Client
) -> None:
    later = replace(stream(0), launch="zz")
    put(store, "2", [Row("a little later", ts=T0 + 5, stream=later)])
    assert client.search("", run="llama").report.run_ids == ["llama@zz"]


def test_a_match_shows_its_group(store: MemoryStore, client: Client) -> None:
    rows = [
        Row("Traceback (most recent call last)", ts=T0, level=40, group=0),
        Row('  File "a.py"', ts=T0, level=40, group=1),
        Row("ValueError: bad", ts=T0, level=40, group=2),
        Row("after", ts=T0 + 1),
    ]
    put(store, "2", rows)
    answer = client.search("ValueError", run="llama")
    assert [(line.text, line.match) for line in answer.lines] == [
        ("Traceback (most recent call last)", False),
        ('  File "a.py"', False),
        ("ValueError: bad", True),
    ]
    assert texts(client.search("ValueError", run="llama", groups=False)) == ["ValueError: bad"]
    assert client.count("ValueError", run="llama").count == 1


def test_context_is_of_the_same_stream(client: Client) -> None:
    answer = client.search('"step 5 " rank:1', run="llama", context=1)
    assert [(line.text, line.rank, line.match) for line in answer.lines] == [
        ("step 4 loss 0.5", 1, False),
        ("step 5 loss 0.625", 1, True),
        ("step 6 loss 0.75", 1, False),
    ]


@pytest.mark.parametrize("query", [None, 5, b"x", ["x"]])
def test_a_query_that_is_no_text_is_refused(client: Client, query: Any) -> None:
    remote = Client(api="http://127.0.0.1:1")  # it does not get as far as that
    for asked in (client, remote):
        for ask in (asked.search, asked.count, asked.runs, asked.patterns, asked.triage):
            with pytest.raises(BadInput, match="is no query"):
                ask(query, run="llama")
    with pytest.raises(BadInput, match="is no query"):
        client.search(query, pin="pin-0123456789abcdef")


@pytest.mark.parametrize("names", [5, [5], b"ab", [None]])
def test_fields_that_are_no_texts_are_refused(client: Client, names: Any) -> None:
    with pytest.raises(BadInput, match="names no fields"):
        client.search(fields=names)
    with pytest.raises(BadInput, match="names no fields"):
        client.count(by=names)


def test_ranks_that_end_before_they_begin_are_refused(client: Client) -> None:
    with pytest.raises(BadInput, match="'1-0' ends before it begins"):
        client.compare(run="llama", ranks="1-0")


def test_fields_are_a_list_or_a_text_with_commas(client: Client) -> None:
    assert client.search(fields="rank, text").fields == ("rank", "text")
    assert client.search(fields=["step"]).fields == ("step",)


def test_a_key_that_nothing_has_is_a_warning(client: Client) -> None:
    answer = client.search("RuntimeError:x", run="llama")
    assert answer.report.warnings == [
        'no line in scope has the key RuntimeError; for text write "RuntimeError: …"'
    ]


def test_a_pattern_re2_cannot_run_is_refused_before_anything_is_read(client: Client) -> None:
    with pytest.raises(BadQuery, match="RE2"):
        client.search("/(?=a)/", run="no-such-run")


def test_explain_scans_nothing(client: Client) -> None:
    answer = client.search("step OR absent-word", run="llama", explain=True)
    assert answer.lines == []
    assert answer.report.segments_scanned == 0
    assert answer.explain is not None
    assert answer.explain["query"] == '("step" OR "absent-word")'


def test_explain_names_what_excluded_a_segment(client: Client) -> None:
    answer = client.search("zookeeper", run="llama", explain=True)
    assert answer.report.segments_pruned == answer.report.segments_listed == 1
    assert answer.explain is not None and answer.explain["segments"][0]["excluded_by"]


def test_counts_by_field_and_bucket(client: Client) -> None:
    assert client.count("loss", run="llama").groups() == [{"count": 40}]
    assert client.count("", run="llama", by="rank").groups() == [
        {"rank": 0, "count": 20},
        {"rank": 1, "count": 20},
    ]
    buckets = client.count("/step 1?[05] /", run="llama", every="5i").groups()
    assert buckets == [{"bucket_iteration": i, "count": 2} for i in (0, 5, 10, 15)]
    empty = client.count("iteration:0,15", run="llama", every="5s").groups()
    assert [group["count"] for group in empty] == [2, 0, 0, 2]


@pytest.mark.parametrize("every", ["x", "0i", "-5s", "5"])
def test_a_bucket_must_have_a_width(client: Client, every: str) -> None:
    with pytest.raises(BadQuery):
        client.count("", run="llama", every=every)


def test_a_cursor_of_another_query_is_refused(client: Client) -> None:
    cursor = client.search("loss", run="llama", limit=1).next
    with pytest.raises(BadInput, match="another query"):
        client.search("step", run="llama", limit=1, cursor=cursor)
    with pytest.raises(BadInput, match="damaged"):
        client.search("step", run="llama", limit=1, cursor="x")


def test_lines_walks_through_all_pages(client: Client) -> None:
    assert len({line.id for line in client.lines("loss", run="llama", page=7)}) == 40


def test_the_same_frame_twice_counts_once(store: MemoryStore, client: Client) -> None:
    rows = [Row(f"once {i}", ts=T0 + i, stream=stream(5)) for i in range(4)]
    put(store, "2", rows)
    put(store, "3", [*rows, Row("more", ts=T0 + 9, stream=stream(5))])
    assert client.count("once", run="llama").count == 4
    assert len(client.search("once", run="llama", full_scan=True).lines) == 4
    assert client.count("more", run="llama").count == 1


def test_a_gap_is_named(store: MemoryStore, client: Client) -> None:
    one = stream(6)
    put(store, "2", [Row("a", stream=one)], streams=[ended(one, 5)])
    completeness = client.search("zzz", run="llama").completeness
    assert completeness.state == "gaps"
    assert completeness.gaps == [
        {"stream": one.stream_id, "rank": 6, "first_seq": 1, "last_seq": 4}
    ]


def test_drops_are_told(store: MemoryStore, client: Client) -> None:
    one = stream(6)
    notes = ended(one, 1, drops=(Drop(9, "quota"),), fences=(Fence(T0 // HOUR, ((0, 1),)),))
    put(store, "2", [Row("a", stream=one)], streams=[notes])
    assert client.search("", run="llama").completeness.dropped == [
        {"stream": one.stream_id, "rank": 6, "lines": 9, "reason": "quota"}
    ]


def test_a_damaged_index_makes_the_answer_partial(store: MemoryStore, client: Client) -> None:
    [index] = [item.key for item in store.list("acme/index/")]
    store.put(index, store.get(index)[:-50] + b"x" * 50)
    data = store.get(index)
    store.put(index, data[:8] + b"\xff" * 8 + data[16:])
    answer = client.search("loss", run="llama")
    assert (answer.lines, answer.completeness.state) == ([], "partial")
    assert answer.completeness.skipped_tasks[0]["segment"] == index


def test_a_missing_segment_makes_the_answer_partial(store: MemoryStore, client: Client) -> None:
    [segment] = [item.key for item in store.list("acme/data/")]
    store.delete(segment)
    answer = client.search("loss", run="llama")
    assert (answer.lines, answer.completeness.state) == ([], "partial")
    assert answer.completeness.skipped_tasks[0]["segment"] == segment


def test_a_limit_stops_before_older_segments_are_read(store: MemoryStore) -> None:
    for hour in range(1, 30):
        rows = [Row(f"hourly {i}", ts=T0 + hour * HOUR + i, stream=STREAM) for i in range(5)]
        put(store, f"h{hour}", rows, first_seq={STREAM: 5 * hour})
    client = Client(store=store, tenant="acme")
    assert isinstance(client._backend, Local)
    client._backend.reader.concurrency = 64
    answer = client.search("hourly", run="llama", limit=3)
    assert texts(answer) == ["hourly 2", "hourly 3", "hourly 4"]
    assert answer.report.segments_scanned < 10


def test_spikes_and_what_is_near_them(store: MemoryStore, client: Client) -> None:
    one = stream(2)
    values = [1.0 + (i % 3) / 100 for i in range(30)]
    values[25] = 80.0
    rows = [
        Row(f"v {i}", ts=T0 + i * SECOND, stream=one, iteration=i, metadata={"grad_norm": v})
        for i, v in enumerate(values)
    ]
    put(store, "2", rows)
    assert texts(client.search("spike(grad_norm, 8)", run="llama")) == ["v 25"]
    near = "near(spike(grad_norm, ratio:10), iteration, before 1) v"
    assert texts(client.search(near, run="llama")) == ["v 24", "v 25"]


def test_a_line_without_an_iteration_carries_the_last_one_of_its_rank(
    store: MemoryStore, client: Client
) -> None:
    one = stream(2)
    rows = [
        Row(
            f"line {i}",
            ts=T0 + i * SECOND,
            stream=one,
            **({"iteration": i // 4} if i % 4 == 0 else {}),  # type: ignore[arg-type]
        )
        for i in range(16)
    ]
    put(store, "2", rows)
    found = texts(client.search('near("line 5", iteration, 0) rank:2', run="llama"))
    assert found == [f"line {i}" for i in (4, 5, 6, 7)]


def test_arrow_has_a_row_per_line_and_typed_metadata(store: MemoryStore, client: Client) -> None:
    rows = [Row("m", stream=stream(3), metadata={"loss": 0.5, "who": "x", "n": 3})]
    put(store, "2", rows)
    table = client.search("rank:3", run="llama").to_arrow()
    assert table.num_rows == 1
    row = table.to_pylist()[0]
    assert (row["meta.loss"], row["meta.who"], row["meta.n"], row["rank"]) == (0.5, "x", 3, 3)


def test_a_note_that_a_stream_ended_is_no_line_and_moves_no_window(
    store: MemoryStore, client: Client
) -> None:
    """It is filed by its arrival, months after the lines."""
    one = stream(4)
    put(store, "2", [Row("the last line", ts=T0 + 20 * SECOND, stream=one)])
    put(store, "3", [Row("x", ts=T0 + 10, stream=stream(5))], streams=[ended(one, 1)])
    assert client.search("").report.to_ns == T0 + 20 * SECOND + 1
    bounded = client.search("rank:4", run="llama", until="2026-03-01T02").completeness
    assert [item["rank"] for item in bounded.behind] == [5]


def test_an_end_that_came_alone_makes_a_default_answer_complete() -> None:
    store = MemoryStore()
    put(store, "1", [Row("x", stream=stream(0))])
    data = encode_frame(make_frame([], streams=[ended(stream(0), 1)], number=2))
    record = Record(data, T0 + HOUR, "2")
    ingest_batch([record], store=store, source="k", first="2", last="2")
    assert Client(store=store, tenant="acme").search("absent").completeness.state == "complete"


@pytest.mark.parametrize("tag", [b"head", b"tmpl", b"site", b"blom", b"fram"])
@pytest.mark.parametrize("query", ["", "loss", "/step \\d+/", "level>=INFO", "call_site:a.py"])
def test_a_damaged_section_of_an_index_makes_the_answer_partial(tag: bytes, query: str) -> None:
    store = MemoryStore()
    put(store, "1", [Row("step 1 loss q7z", level=20)])
    put(store, "2", [Row("step 2 loss q8z", level=20)], first_seq={STREAM: 1})
    index = next(item.key for item in store.list("acme/index/") if item.key.endswith(".2.2.idx"))
    data = bytearray(store.get(index))
    at = data.index(tag, 12)
    start, length = struct.unpack_from("<II", data, at + 4)
    if length:
        data[start + length // 2] ^= 0xFF
    else:
        data[at] ^= 0xFF
    store.put(index, bytes(data))
    completeness = Client(store=store, tenant="acme").search(query, run="llama").completeness
    assert completeness.state == "partial"
    assert [item["segment"] for item in completeness.skipped_tasks] == [index]


def test_an_index_that_went_after_it_was_listed_makes_the_answer_partial() -> None:
    class Vanishing(MemoryStore):
        def get(self, key: str) -> bytes:
            if key.endswith(".2.2.idx"):
                raise NotFound(f"no object {key}")
            return super().get(key)

    store = Vanishing()
    put(store, "1", [Row("a", stream=stream(kind="arrival"))])
    put(store, "2", [Row("b", stream=stream(kind="arrival"))])
    completeness = Client(store=store, tenant="acme").search("", run="llama").completeness
    assert completeness.state == "partial"
    assert completeness.skipped_tasks[0]["segment"].endswith(".2.2.idx")


def test_an_index_that_can_not_be_read_is_in_the_default_window() -> None:
    store = MemoryStore()
    put(store, "1", [Row("old", ts=T0)])
    put(store, "2", [Row("new", ts=T0 + 90 * HOUR)], first_seq={STREAM: 1})
    index = next(item.key for item in store.list("acme/index/") if item.key.endswith(".2.2.idx"))
    store.put(index, b"junk")
    completeness = Client(store=store, tenant="acme").search("").completeness
    assert [item["segment"] for item in completeness.skipped_tasks] == [index]


def test_what_others_put_into_a_launch_is_passed_over(store: MemoryStore, client: Client) -> None:
    store.put("acme/runs/llama/17/hours/.keep", b"")
    assert len(client.search("loss", run="llama").lines) == 40


def test_a_cache_smaller_than_a_query_loses_no_index() -> None:
    store = MemoryStore()
    for i in range(6):
        put(store, f"{i}", [Row(f"line {i}", ts=T0 + i)], first_seq={STREAM: i})
    found = [item.key for item in store.list("acme/index/")]
    cache = IndexCache(store, bytes_max=1)
    for last in range(1, 7):  # what was loaded last is cached, and dropped by what comes next
        assert [index.key for index in cache.load(found[:last]).indexes] == found[:last]


def test_keys_that_differ_in_case_are_keys_of_their_own() -> None:
    store = MemoryStore()
    put(store, "1", [Row("a", metadata={"Loss": 0.5, "loss": 1.5, "LOSS": 2.5})])
    client = Client(store=store, tenant="acme")
    [line] = client.search("", run="llama").lines
    assert line.metadata == {"Loss": 0.5, "loss": 1.5, "LOSS": 2.5}
    found = {query: len(client.search(query).lines) for query in ("loss>1", "Loss>1", "LOSS>2")}
    assert found == {"loss>1": 1, "Loss>1": 0, "LOSS>2": 1}
    answer = client.sql("select * from lines", run="llama")
    assert [name for name in answer.columns if name.lower() == "meta.loss"] == ["meta.LOSS"]


@pytest.mark.parametrize("seed", range(8))
def test_batches_with_any_borders_in_any_order_show_each_line_once(seed: int) -> None:
    chance = random.Random(seed)
    rows = [Row(f"line {i}", ts=T0 + i * HOUR // 4, stream=stream(i % 2)) for i in range(24)]
    frames = [
        make_frame(
            rows[at : at + 4],
            number=at,
            first_seq={stream(0): at // 2, stream(1): at // 2},
            streams=[ended(stream(rank), 12) for rank in (0, 1)] if at == 20 else (),
        )
        for at in range(0, 24, 4)
    ]
    store = MemoryStore()
    batches = [[number] for number in range(6)]  # each at least once
    batches += [chance.sample(range(6), chance.randint(1, 6)) for _ in range(6)]
    chance.shuffle(batches)
    for name, batch in enumerate(batches):
        found = [Record(encode_frame(frames[i]), T0 + 9 * HOUR, str(i)) for i in batch]
        ingest_batch(found, store=store, source="k", first=str(name), last=str(name))
    client = Client(store=store, tenant="acme")
    answer = client.search("", run="llama", order="oldest")
    assert texts(answer) == [row.text for row in rows]
    assert answer.completeness.state == "complete"
    assert client.count("line", run="llama").rows == [((), 24)]
    assert client.search("", run="llama", full_scan=True, order="oldest").lines == answer.lines
