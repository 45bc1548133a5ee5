"""Points from frames to table: what was recorded comes back, and queries mean what the page says."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.client.point_answer import PointPage
from ranklog.client.point_columns import SCHEMA
from ranklog.client.points import PointAnswer, read_points, search_points
from ranklog.client.reader import Reader, local_reader
from ranklog.client.search import begin
from ranklog.client.words import read_query
from ranklog.errors import BadInput, BadQuery
from ranklog.ingest.batch import IngestReport, ingest_batch
from ranklog.limits import HOUR_NS
from ranklog.model import query as q
from ranklog.model.frame import NO_RANK, STREAM_RANK, Fence
from ranklog.model.record import Record as Delivered
from ranklog.plan.tree import all_of
from ranklog.scan.evaluate import evaluate
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from ranklog.stream.frames import decode_frame, encode_frame
from tests.point_frames import STREAM, T0, Record, point_frame
from tests.point_oracle import told

OTHER = replace(STREAM, rank=5, local_rank=5, host="gpu-2.cluster", incarnation="1")
HOSTS = replace(STREAM, rank=None, local_rank=None, host="gpu-2.cluster", channel="host")
STREAMS = (STREAM, OTHER, HOSTS)
SUMMARY = {
    "count": 4,
    "nan": 1,
    "inf": 2,
    "min": -1.0,
    "max": 2.5,
    "mean": 0.5,
    "std": 1.25,
    "norm": 3.0,
    "quantiles": {"0.05": -1.0, "0.5": 0.25},
    "histogram": {"edges": [-1.0, 0.0, 2.5], "counts": [3, 1]},
}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Scans that travel as bytes, which DuckDB answers without Arrow."""

    store: Store

    def invoke(self, task: bytes) -> bytes:
        return evaluate(task, self.store)


def stored(*batches: Sequence[Record], store: Store | None = None) -> Store:
    """Each batch as a frame and an ingest of its own, streams' seqs going on."""
    store = MemoryStore() if store is None else store
    seqs: dict[Any, int] = {}
    for number, records in enumerate(batches, 1):
        frame = point_frame(records, first_seq=seqs, number=number)
        for entry in frame.streams:
            seqs[entry.stream] = entry.first_seq + entry.rows
        ingest(store, encode_frame(frame), number)
    return store


def ingest(store: Store, data: bytes, number: int) -> IngestReport:
    name = f"{number:04d}"
    record = Delivered(data, T0 + HOUR_NS, name)
    return ingest_batch([record], store=store, source="s", first=name, last=name)


def ask(
    reader: Reader, text: str = "", columns: Sequence[str] | None = None, **shape: Any
) -> PointAnswer:
    query = read_query(f"kind:point {text}", {"run": "llama"}, now_ns=T0 + HOUR_NS, **shape)
    return search_points(reader, query, columns)


def shown(answer: PointAnswer) -> list[tuple[Any, ...]]:
    """As `told` tells the points of records."""
    rows = answer.table.select(
        ["series", "dims", "value", "summary", "rank", "iteration", "ts_ns"]
    ).to_pylist()
    return sorted(
        (
            (
                row["series"],
                row["dims"],
                None if row["value"] is None else repr(row["value"]),
                None if row["summary"] is None else row["summary"]["count"],
                *(row["rank"], row["iteration"], row["ts_ns"]),
            )
            for row in rows
        ),
        key=repr,
    )


# --- what was recorded --------------------------------------------------------------------------
def test_every_column_of_a_point() -> None:
    record = Record(
        {"loss": 2.5, "g": SUMMARY},
        {"shard": 2, "layer": "h.3"},
        T0 + 7,
        120,
        OTHER,
        context={"dataset": "c4/en", "lr": 0.5},
    )
    answer = ask(local_reader(stored([record]), "acme"))

    assert answer.table.schema == SCHEMA
    summary, loss = sorted(answer.table.to_pylist(), key=lambda row: str(row["series"]))
    assert loss == {
        "run_id": "llama@17",
        "attempt": 0,
        "rank": 5,
        "host": "gpu-2.cluster",
        "stream": OTHER.stream_id,
        "seq": 0,
        "ts_ns": T0 + 7,
        "iteration": 120,
        "series": "loss",
        "dims": '{"layer":"h.3","shard":2}',
        "value": 2.5,
        "summary": None,
        "metadata": '{"dataset":"c4/en","lr":0.5}',
    }
    assert summary["value"] is None
    assert summary["summary"] == {
        **SUMMARY,
        "quantiles": [("0.05", -1.0), ("0.5", 0.25)],
        "histogram": {"edges": [-1.0, 0.0, 2.5], "counts": [3.0, 1.0]},
    }


def test_a_summary_without_some_of_its_parts_has_nulls() -> None:
    bare = {"count": 0, "nan": 8, "inf": 0, "min": None}
    record = Record({"g": bare, "h": SUMMARY, "i": {**SUMMARY, "histogram": None}})
    rows = ask(
        local_reader(stored([record]), "acme"), columns=["series", "summary"]
    ).table.to_pylist()

    found = {row["series"]: row["summary"] for row in rows}
    absent = dict.fromkeys(("min", "max", "mean", "std", "norm", "quantiles", "histogram"))
    assert found["g"] == {"count": 0, "nan": 8, "inf": 0, **absent}
    assert found["h"]["histogram"] == {"edges": [-1.0, 0.0, 2.5], "counts": [3.0, 1.0]}
    assert found["i"]["histogram"] is None and found["i"]["std"] == 1.25


numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1e-300, 5e-324, 1.5e300, 2.0**53, 123456.0, 0.1, 2.31457, 1e22]),
    st.integers(-(10**6), 10**6).map(lambda n: n / 10**5),
    st.integers(-(2**60), 2**60),
)
values = st.one_of(numbers, st.sampled_from([None, "N/A", SUMMARY]))
names = st.sampled_from(["loss", "grad_norm", "a/b", "ü", "lr"])
plain = st.one_of(
    st.sampled_from(["h.1", "h.2", "", "ü\U0001f600", 'q"\\', "7", "NaN"]),
    st.integers(-3, 7),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
)
dims = st.dictionaries(st.sampled_from(["layer", "module", "loss"]), plain, max_size=2)
records = st.builds(
    Record,
    values=st.dictionaries(names, values, min_size=1, max_size=4),
    dims=dims,
    ts=st.integers(0, 3).map(lambda step: T0 + step * 1_000),
    iteration=st.none() | st.integers(-2, 5),
    stream=st.sampled_from(STREAMS),
    rank=st.sampled_from([STREAM_RANK, STREAM_RANK, NO_RANK, 7]),
    context=st.none() | st.dictionaries(st.sampled_from(["lr", "phase"]), plain, max_size=2),
)
batches = st.lists(st.lists(records, min_size=1, max_size=6), min_size=1, max_size=3)


@settings(max_examples=20, deadline=None)
@given(batches)
def test_what_was_recorded_comes_back_to_the_last_bit(found: list[list[Record]]) -> None:
    store = stored(*found)
    whole = [record for batch in found for record in batch]
    assert shown(ask(local_reader(store, "acme"))) == told(whole)
    table = ask(local_reader(store, "acme"), columns=["value", "summary"]).table
    bits = sorted(
        struct.pack("<d", v) for v in table["value"].to_pylist() if v is not None and v == v
    )
    given_ = [v for record in whole for v in record.values.values()]
    assert bits == sorted(
        struct.pack("<d", float(v))
        for v in given_
        if isinstance(v, (int, float)) and not math.isnan(v)
    )


# --- what a query means -------------------------------------------------------------------------
TERMS = [
    *("series:loss", "series:*r*", "series!=loss", "series:/^a/", "layer:h.*", "layer:h.1,h.2"),
    *("layer:7", 'layer:"7"', "layer:*", "layer:null", "layer!=h.1", "layer>=0", "layer:0..3"),
    *("rank:3", "rank:5-7", "rank:null", "rank!=3", "iteration:1", "iteration:0..3"),
    *("iteration>=2", "iteration:null", "host:gpu-2", "attempt:0", "value>0", "value:NaN"),
    *("value:Inf", "value:null", "value:*", "value<=0", "loss>1", "loss:null", "lr:*", "lr!=1"),
    *("phase:h.?", "phase:NaN", "lr:/./", "level:ERROR", "level:null", "module:null", "loss!=0.5"),
    *("time:2026-03-01T00:00:00.000001Z..", "grad_norm:-1..1", "kind:point", "superseded:false"),
]
queries = st.recursive(
    st.sampled_from(TERMS),
    lambda inner: st.one_of(
        inner.map(lambda text: f"NOT ({text})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} OR {pair[1]})"),
    ),
    max_leaves=4,
)


@settings(max_examples=30, deadline=None)
@given(batches, queries)
def test_pruned_equals_full_scan_equals_elsewhere_equals_the_oracle(
    found: list[list[Record]], text: str
) -> None:
    store = stored(*found)
    reader = local_reader(store, "acme")
    parsed = read_query(f"kind:point ({text})", {"run": "llama"}, now_ns=T0 + HOUR_NS)
    whole = [
        record
        for batch in found
        for record in batch
        if (parsed.since_ns or 0) <= record.ts < (parsed.until_ns or 2**63)
    ]
    expected = told(whole, parsed.expr)

    assert shown(ask(reader, f"({text})")) == expected
    assert shown(ask(reader, f"({text})", full_scan=True)) == expected
    elsewhere = local_reader(store, "acme", invoker=Elsewhere(store))
    assert shown(ask(elsewhere, f"({text})")) == expected


@pytest.mark.parametrize("text", ["word", "/regex/", '"string"'])
def test_points_have_no_text(text: str) -> None:
    with pytest.raises(BadQuery, match="no text"):
        ask(local_reader(stored([Record({"a": 1.0})]), "acme"), text)


def test_an_unknown_column_is_named_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="no column 'color'") as caught:
        ask(local_reader(stored([Record({"a": 1.0})]), "acme"), columns=["color"])
    assert "run_id" in str(caught.value.hint)


def test_no_points_are_an_empty_table_of_the_columns() -> None:
    answer = ask(local_reader(stored([Record({"a": 1.0})]), "acme"), "series:b", ["value", "rank"])
    assert len(answer) == 0
    assert answer.table.column_names == ["value", "rank"]
    assert answer.report.segments_pruned == 1


# --- exactly once, complete, damaged --------------------------------------------------------------
def test_records_that_are_stored_twice_are_shown_once() -> None:
    first = [Record({"a": float(n), "b": 1.0}, ts=T0 + n, iteration=n) for n in range(4)]
    store = stored(first)
    again = point_frame(first[2:], first_seq={STREAM: 2}, number=2)
    ingest(store, encode_frame(again), 9)

    assert shown(ask(local_reader(store, "acme"))) == told(first)
    elsewhere = local_reader(store, "acme", invoker=Elsewhere(store))
    assert shown(ask(elsewhere)) == told(first)


def test_the_same_batch_again_commits_nothing() -> None:
    store = stored([Record({"a": 1.0})])
    keys = {item.key for item in store.list("acme/")}
    report = ingest(store, encode_frame(point_frame([Record({"a": 1.0})])), 1)

    assert (report.committed, len(report.already)) == ([], 1)
    assert {item.key for item in store.list("acme/")} == keys


def test_a_missing_record_is_a_gap_and_an_ended_stream_is_complete() -> None:
    store = MemoryStore()
    fences = {STREAM: [Fence(T0 // HOUR_NS, ((0, 2),))]}
    whole = point_frame([Record({"a": 1.0})] * 2, ends=[STREAM], fences=fences)
    ingest(store, encode_frame(whole), 1)
    assert ask(local_reader(store, "acme")).completeness.state == "complete"

    late = point_frame([Record({"a": 1.0}, stream=OTHER)], first_seq={OTHER: 3}, ends=[OTHER])
    ingest(store, encode_frame(late), 2)
    completeness = ask(local_reader(store, "acme")).completeness
    assert completeness.state == "gaps"
    assert [(gap["first_seq"], gap["last_seq"]) for gap in completeness.gaps] == [(0, 2)]


@pytest.mark.parametrize("damage", ["gone", "flipped"])
def test_a_segment_that_can_not_be_read_makes_the_answer_partial(damage: str) -> None:
    store = stored([Record({"a": 1.0})], [Record({"b": 2.0})])
    keys = [item.key for item in store.list("acme/data/")]
    if damage == "gone":
        store.delete(keys[0])
    else:
        data = bytearray(store.get(keys[0]))
        data[len(data) // 4] ^= 1
        store.put(keys[0], bytes(data))
    answer = ask(local_reader(store, "acme"))

    assert len(answer) == 1
    assert answer.completeness.state == "partial"
    assert [item["segment"] for item in answer.completeness.skipped_tasks] == [keys[0]]


def test_an_old_time_is_filed_by_arrival_and_kept_in_the_context() -> None:
    store = MemoryStore()
    frame = point_frame([Record({"a": 1.0}, ts=-5), Record({"a": 2.0})])
    ingest(store, encode_frame(frame), 1)
    rows = ask(local_reader(store, "acme"), columns=["ts_ns", "metadata"]).table.to_pylist()

    assert sorted(rows, key=lambda row: row["ts_ns"]) == [
        {"ts_ns": T0, "metadata": None},
        {"ts_ns": T0 + HOUR_NS, "metadata": '{"ts_claimed":-5}'},
    ]


def test_a_frame_survives_its_bytes() -> None:
    frame = point_frame([Record({"a": 1.0, "g": SUMMARY, "n": None}, {"x": 1}, context={"k": "v"})])
    assert decode_frame(encode_frame(frame)) == frame


# --- search, count, SQL, runs ---------------------------------------------------------------------
def job() -> Client:
    """Two ranks, three iterations, a layer; and a summary."""
    whole = [
        Record({"loss": 4.0 - n, "lr": 0.5}, {"layer": "h.1"}, T0 + n, n, stream)
        for n in range(3)
        for stream in (STREAM, OTHER)
    ]
    return Client(store=stored([*whole, Record({"g": SUMMARY}, ts=T0 + 9)]), tenant="acme")


def test_a_search_for_points_shows_the_objects_of_the_page() -> None:
    with job() as client:
        page = client.search("kind:point series:loss rank:3", run="llama", limit=2)
        summary = client.search("kind:point series:g", run="llama").to_json()["points"][0]

    assert isinstance(page, PointPage) and page.truncated
    assert [(point["iteration"], point["value"]) for point in page.points] == [(1, 3.0), (2, 2.0)]
    assert page.points[0] == {
        "kind": "point",
        "time": "2026-03-01T00:00:00.000000001Z",
        "ts_ns": T0 + 1,
        "run": "llama",
        "run_id": "llama@17",
        "attempt": 0,
        "rank": 3,
        "host": "gpu-1",
        "stream": STREAM.stream_id,
        "seq": 1,
        "iteration": 1,
        "series": "loss",
        "dims": {"layer": "h.1"},
        "value": 3.0,
        "summary": None,
        "metadata": {},
    }
    assert summary["value"] is None
    assert summary["summary"] == {
        **SUMMARY,
        "histogram": {"edges": [-1.0, 0.0, 2.5], "counts": [3.0, 1.0]},
    }


def test_the_order_says_which_end_is_kept_and_comes_first() -> None:
    with job() as client:
        asked = {"run": "llama", "limit": 2}
        newest = client.search("kind:point series:loss rank:3", order="newest", **asked)
        oldest = client.search("kind:point series:loss rank:3", order="oldest", **asked)
    assert isinstance(newest, PointPage) and isinstance(oldest, PointPage)
    assert [point["iteration"] for point in newest.points] == [2, 1]
    assert [point["iteration"] for point in oldest.points] == [0, 1]


def test_points_are_counted_by_fields_dimensions_and_buckets() -> None:
    with job() as client:
        assert client.count("kind:point", run="llama").count == 13
        by = client.count("kind:point", by="series,layer,rank", run="llama")
        every = client.count("kind:point series:loss", every="2i", run="llama")
    assert by.rows == [
        (("g", None, 3), 1),
        *[((name, "h.1", rank), 3) for name in ("loss", "lr") for rank in (3, 5)],
    ]
    assert every.groups() == [
        {"bucket_iteration": 0, "count": 4},
        {"bucket_iteration": 2, "count": 2},
    ]


def test_sql_has_points_with_dimensions_as_a_map_and_each_record_once() -> None:
    first = [Record({"a": 1.5 + n}, {"layer": "h.1"}, T0 + n, n) for n in range(3)]
    store = stored(first)
    ingest(store, encode_frame(point_frame(first[1:], first_seq={STREAM: 1}, number=2)), 9)
    with Client(store=store, tenant="acme") as client:
        rows = client.sql(
            "SELECT run_id, rank, iteration, series, dims['layer'], value FROM points ORDER BY ALL",
            run="llama",
        )
        lines = client.sql("SELECT count(*) FROM lines", run="llama")
    assert list(rows.rows()) == [("llama@17", 3, n, "a", "h.1", 1.5 + n) for n in range(3)]
    assert list(lines.rows()) == [(0,)]


def test_runs_count_points_and_streams_name_their_channel() -> None:
    with job() as client:
        [run] = client.runs().rows
        streams = client.streams(run="llama").rows
    assert (run["points"], run["lines"], run["ranks"]) == (13, 0, [3, 5])
    assert run["last_iteration"] == 2
    assert {(row["rank"], row["channel"]) for row in streams} == {
        (3, "telemetry"),
        (5, "telemetry"),
    }


def test_a_search_for_lines_is_complete_whatever_points_there_are() -> None:
    late = point_frame([Record({"a": 1.0})], first_seq={STREAM: 7}, ends=[STREAM])
    store = MemoryStore()
    ingest(store, encode_frame(late), 1)
    with Client(store=store, tenant="acme") as client:
        answer = client.search("", run="llama")
        assert answer.lines == [] and not answer.completeness.gaps
        assert client.search("kind:point", run="llama").completeness.gaps


def test_an_export_of_points_holds_them_all(tmp_path: Path) -> None:
    with job() as client:
        [parquet] = client.export("kind:point", out=tmp_path / "a", run="llama").rows
        [jsonl] = client.export(
            "kind:point series:loss", out=tmp_path / "b", format="jsonl", run="llama"
        ).rows
        page = client.search("kind:point series:loss", run="llama", limit=None)
        with pytest.raises(BadInput, match="no export format text for points"):
            client.export("kind:point", out=tmp_path / "c", format="text", run="llama")
    assert (parquet["file"], parquet["points"], jsonl["points"]) == ("points.parquet", 13, 6)
    table = pq.read_table(tmp_path / "a" / "points.parquet")
    assert table.column_names == SCHEMA.names and table.num_rows == 13
    text = (tmp_path / "b" / "points.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert isinstance(page, PointPage)
    assert sorted(lines, key=repr) == sorted(page.points, key=repr)


def test_a_key_that_no_point_has_is_a_warning() -> None:
    with job() as client:
        slip = client.search("kind:point leyer:h.1", run="llama")
        right = client.search("kind:point layer:h.1 value>0 loss>0", run="llama")
    assert slip.report.warnings == ["no point in scope has the key leyer"]
    assert right.report.warnings == []


def test_points_of_very_many_hours_are_filed_late_and_all_found() -> None:
    hours = [Record({"a": float(n)}, ts=T0 - n * HOUR_NS, iteration=n) for n in range(80)][::-1]
    store = stored(hours)
    assert any("/late/" in item.key for item in store.list("acme/index/"))
    assert shown(ask(local_reader(store, "acme"))) == told(hours)
    some = ask(local_reader(store, "acme"), "iteration:70..75")
    assert [row[5] for row in shown(some)] == [70, 71, 72, 73, 74]


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        (q.NearSet("iteration", "rank", (('["llama@17", 3]', ((1, 3),)),)), {(3, 1), (3, 2)}),
        (
            q.NearSet("iteration", "any", (('["llama@17"]', ((0, 1), (2, 3))),)),
            {(3, 0), (3, 2), (5, 0), (5, 2)},
        ),
        (
            q.NearSet("time", "host", (('["llama@17", "gpu-2.cluster"]', ((T0 + 1, T0 + 9),)),)),
            {(5, 1), (5, 2), (None, 1)},
        ),
        # what belongs to a host belongs to all ranks of it
        (
            q.NearSet("iteration", "rank", (('["llama@17", 5]', ((1, 2),)),)),
            {(5, 1), (None, 1)},
        ),
        (q.NearSet("iteration", "rank", ()), set()),
    ],
)
def test_points_near_a_match(near: q.NearSet, expected: set[tuple[int | None, int]]) -> None:
    whole = [Record({"a": 1.0}, {}, T0 + n, n, s) for n in range(3) for s in (STREAM, OTHER)]
    store = stored([*whole, Record({"a": 1.0}, {}, T0 + 1, 1, HOSTS)])
    query = read_query("kind:point", {"run": "llama"}, now_ns=T0 + HOUR_NS)
    for invoker in (None, Elsewhere(store)):
        run = begin(local_reader(store, "acme", invoker=invoker), query, points=True)
        for expr, wanted in ((near, expected), (q.Not(near), None)):
            table = read_points(
                run, all_of([*run.scope.restriction(), expr]), ["rank", "iteration"]
            )
            found = {(row["rank"], row["iteration"]) for row in table.to_pylist()}
            if wanted is None:
                assert len(table) == 7 - len(expected) and not found & expected
            else:
                assert found == wanted and len(table) == len(wanted)
        assert not run.failed, run.failed
