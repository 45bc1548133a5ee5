"""Ingest: what goes in comes out, once, and the index tells nothing but the truth about it."""

from __future__ import annotations

import math
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.errors import Unavailable
from ranklog.ingest import records as records_module
from ranklog.ingest.batch import IngestReport, Record, ingest_batch
from ranklog.layout import (
    build,
    filters,
    keys,
    order,
    schema,
    templates,
    tokens,
    tokens_pure,
    variables,
)
from ranklog.layout.index import SegmentIndex
from ranklog.limits import DAY_NS, HOUR_NS
from ranklog.model.frame import (
    INVALID_UTF8,
    NO_GROUP,
    NO_ITERATION,
    NO_LEVEL,
    STREAM_RANK,
    TS_CLAIMED,
    CallSite,
    Drop,
    Fence,
    Frame,
    FrameStream,
    StreamEnd,
)
from ranklog.rules.rule import Rule
from ranklog.rules.ruleset import RuleSet
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame, header_hash
from tests.ingest.frames import STREAM, T0, Row, make_frame, stream
from tests.ingest.read_back import indexes, lines, table


def ingest(
    store: MemoryStore, *frames: Frame, arrival_ns: int = T0, first: str = "1"
) -> IngestReport:
    found = [Record(encode_frame(frame), arrival_ns, str(i)) for i, frame in enumerate(frames, 1)]
    return ingest_batch(found, store=store, source="s", first=first, last=str(len(found)))


# --- properties ---------------------------------------------------------------------------------
WORDS = [
    "step",
    "loss",
    "rank",
    "12",
    "0.5",
    "a1b2",
    "deadbeef7",
    "nccl2x",
    "é",
    "\x00",
    "\r",
    "\x1b[0m",
]
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=5).map(
    lambda parts: " ".join(parts).replace("\n", "")
)
VALUES = st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=5)
SITES = st.none() | st.builds(
    CallSite, *(st.none() | st.sampled_from(["a.py:1", "b", "\udcff"]) for _ in range(3))
)


@st.composite
def some_rows(draw: st.DrawFn) -> Row:
    text = draw(TEXTS)
    envelope = draw(st.sampled_from(["", "", "[rank3]: ", "3: "]))
    return Row(
        envelope + text,
        ts=T0 + draw(st.sampled_from([0, 1, 10**9, HOUR_NS, 3 * HOUR_NS])),
        stream=draw(st.sampled_from([stream(0), stream(1), stream(None)])),
        level=draw(st.sampled_from([NO_LEVEL, 10, 20, 40])),
        site=draw(SITES),
        body_at=len(envelope),
        flags=draw(st.integers(0, 255)),
        rank=draw(st.sampled_from([STREAM_RANK, -1, 7])),
        iteration=draw(st.sampled_from([NO_ITERATION, 0, 120])),
        group=draw(st.sampled_from([NO_GROUP, 0])),
        metadata=draw(st.dictionaries(st.sampled_from(["loss", "ds", "x y"]), VALUES, max_size=2)),
        raw=draw(st.none() | st.binary(max_size=3)),
    )


def optional(value: int, absent: int) -> int | None:
    return None if value == absent else value


def expected(rows: list[Row]) -> dict[tuple[str, int], dict[str, Any]]:
    seqs: dict[str, int] = {}
    found = {}
    for row in rows:
        stream_id = row.stream.stream_id
        seq = seqs.get(stream_id, 0)
        seqs[stream_id] = seq + 1
        site = row.site or CallSite(None)
        names = [
            n and n.replace("\udcff", "\\udcff") for n in (site.site, site.function, site.logger)
        ]
        found[stream_id, seq] = {
            "seq": seq,
            "ts": row.ts,
            "level": optional(row.level, NO_LEVEL),
            "iteration": optional(row.iteration, NO_ITERATION),
            "rank": optional(row.rank, STREAM_RANK),
            "grp": None if row.group == NO_GROUP else seq - row.group,
            "flags": row.flags,
            "body_at": row.body_at,
            "call_site": names[0],
            "function": names[1],
            "logger": names[2],
            "text": row.text,
            "raw": row.raw,
            "metadata": {f"{type(v).__name__}:{k}": v for k, v in row.metadata.items()},
        }
    return found


def same(mine: Any, other: Any) -> bool:
    if isinstance(mine, float) and math.isnan(mine):
        return isinstance(other, float) and math.isnan(other)
    if isinstance(mine, dict):
        return mine.keys() == other.keys() and all(same(v, other[k]) for k, v in mine.items())
    return bool(mine == other)


@given(st.lists(some_rows(), max_size=25))
@settings(deadline=None)
def test_every_line_comes_back_and_the_index_is_true_of_it(rows: list[Row]) -> None:
    store = MemoryStore()
    report = ingest(store, make_frame(rows), arrival_ns=T0 + 2 * HOUR_NS)
    assert (report.bad, report.lines) == ([], len(rows))
    found = lines(store)
    wanted = expected(rows)
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        line = {"raw": None} | found[key]
        assert same(row, {name: line[name] for name in row})
    for index in indexes(store):
        check_index(index, table(store, index))


@given(
    st.lists(some_rows(), max_size=12),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(1, 40),
    st.integers(1, 3),
)
@settings(deadline=None, max_examples=50)
def test_row_groups_and_buckets_of_any_size_are_true_too(
    rows: list[Row], group_rows: int, rare_rows: int, bucket_rows: int, alone_min: int
) -> None:
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "ROW_GROUP_ROWS", group_rows)
        patch.setattr(order, "RARE_ROWS_MAX", rare_rows)
        for module in (filters, build):
            patch.setattr(module, "GRAMS_TEXT_BYTES_MIN", 0)
        patch.setattr(variables, "_ROWS_ALONE_MIN", alone_min)
        patch.setattr(order, "TIME_BUCKET_ROWS", bucket_rows)
        ingest(store, make_frame(rows), arrival_ns=T0 + 2 * HOUR_NS)
    for index in indexes(store):
        found = table(store, index)
        check_index(index, found)
        check_variables(index, found)


def check_variables(index: SegmentIndex, rows: list[dict[str, Any]]) -> None:
    """Each placeholder's longest token is one of its rows'."""
    longest = [bytearray(template.count("\0")) for template in index.templates]
    for row in rows:
        body = row["text"].encode()[row["body_at"] :].decode()
        tokens_ = [t for t in re.findall("[0-9A-Za-z]+", body) if re.search("[0-9]", t)]
        if row["tid"]:
            mine = longest[row["tid"]]
            mine[:] = [max(a, min(len(t), 255)) for a, t in zip(mine, tokens_, strict=True)]
    if rows:
        assert index.longest_variables == tuple(map(bytes, longest))


def check_index(index: SegmentIndex, rows: list[dict[str, Any]]) -> None:
    """What the index claims, checked row by row."""
    head = index.head
    assert head.rows == len(rows) == sum(run.rows for run in index.template_rows)
    assert head.rows == sum(group.rows for group in head.row_groups)
    assert sum(site.count for site in index.sites) == len(rows)
    assert list(index.templates[1:]) == sorted(set(index.templates[1:]))
    if rows:
        assert (head.min_ts, head.max_ts) == (
            min(r["ts"] for r in rows),
            max(r["ts"] for r in rows),
        )
    for run in index.template_rows:
        assert {r["tid"] for r in rows[run.first_row : run.first_row + run.rows]} == {run.tid}
    for number, group in enumerate(head.row_groups):
        part = rows[group.first_row : group.first_row + group.rows]
        assert group.streams == {row["stream"] for row in part}
        for name, bounds in group.bounds.items():
            check_bounds(bounds, [value_of(head, row, name) for row in part])
        for row in part:
            check_row(index, number, row)
    for place, entry in enumerate(head.streams):
        mine = sorted(row["seq"] for row in rows if row["stream"] == place)
        assert [seq for low, high in entry.ranges for seq in range(low, high)] == mine
        assert entry.lines == len(mine)
        assert entry.text_bytes == sum(
            len(row["text"].encode()) for row in rows if row["stream"] == place
        )
    check_sites(index, rows)


def value_of(head: Any, row: dict[str, Any], name: str) -> Any:
    if name == schema.RANK:
        rank = head.streams[row["stream"]].stream.rank if row["rank"] is None else row["rank"]
        return None if rank == schema.NO_RANK else rank
    return row[name]


def check_bounds(bounds: Any, values: list[Any]) -> None:
    numbers = [v for v in values if v is not None and v == v]
    assert bounds.low == min(numbers, default=None)
    assert bounds.high == max(numbers, default=None)
    assert bounds.has_null == (None in values)
    assert bounds.has_nan == any(v is not None and v != v for v in values)


def check_row(index: SegmentIndex, group: int, row: dict[str, Any]) -> None:
    encoded = row["text"].encode()
    envelope, body = encoded[: row["body_at"]].decode(), encoded[row["body_at"] :].decode()
    if row["tid"]:
        assert index.templates[row["tid"]] == tokens_pure.template_of(body)
    else:
        assert "\0" in row["text"]
    if index.head.envelopes is not None:
        assert tokens_pure.template_of(envelope) in index.head.envelopes
    mixed = [*tokens_pure.mixed_tokens(envelope), *tokens_pure.mixed_tokens(body)]
    assert max(map(len, mixed), default=0) <= index.longest_mixed[row["tid"]]
    for token in mixed:
        if tokens_pure.is_indexed_token(token):
            assert index.bloom_may_contain(group, token)
            assert index.token_may_hold(group, token[1:]) and index.token_may_hold(group, token)
        runs, noise = tokens_pure.letter_runs(token)
        found = index.head.row_groups[group].runs
        assert found is None or runs <= found
        assert not noise or index.head.row_groups[group].hex_runs
    for name, value in row.items():
        if name.startswith("str:") and value is not None:
            assert index.bloom_may_contain_value(group, name[4:], value)


def test_without_grams_a_bloom_holds_long_tokens() -> None:
    store = MemoryStore()
    ingest(store, make_frame([Row("id 4fa1c07b92de0f", ts=T0)]))
    (index,) = indexes(store)
    assert index.bloom_may_contain(0, "4fa1c07b92de0f") and index.token_may_hold(0, "zzzzz")
    assert not index.bloom_may_contain(0, "4fa1c07b92de0e")


def check_sites(index: SegmentIndex, rows: list[dict[str, Any]]) -> None:
    for site in index.sites:
        names = (site.call_site, site.function, site.logger, site.level, site.tid)
        mine = [
            row
            for row in rows
            if names == tuple(row[k] for k in ("call_site", "function", "logger", "level", "tid"))
        ]
        assert (site.min_ts, site.max_ts) == (
            min(r["ts"] for r in mine),
            max(r["ts"] for r in mine),
        )
        assert site.text_bytes == sum(len(row["text"].encode()) for row in mine)
        ranks = [value_of(index.head, row, schema.RANK) for row in mine]
        counted = {-1 if rank is None else rank: ranks.count(rank) for rank in ranks}
        assert dict(site.ranks) == counted
        assert [rank for rank, _ in site.ranks] == sorted(counted)


@given(st.lists(st.lists(some_rows(), max_size=6), min_size=1, max_size=3), st.booleans())
@settings(deadline=None, max_examples=50)
def test_ingesting_twice_equals_once(batches: list[list[Row]], double: bool) -> None:
    frames = [make_frame(rows, number=i) for i, rows in enumerate(batches, 1)]
    # Frames of one agent go on where the last one ended.
    ends: dict[Any, int] = {}
    for i, rows in enumerate(batches):
        frames[i] = make_frame(rows, number=i + 1, first_seq=dict(ends))
        for row in rows:
            ends[row.stream] = ends.get(row.stream, 0) + 1
    store, once = MemoryStore(), MemoryStore()
    ingest(once, *frames, arrival_ns=T0 + HOUR_NS)
    report = ingest(store, *frames, *(frames if double else ()), arrival_ns=T0 + HOUR_NS)
    again = ingest(store, *frames, *(frames if double else ()), arrival_ns=T0 + HOUR_NS)
    assert again.committed == [] and again.already == report.committed
    mine, other = lines(store), lines(once)
    assert mine.keys() == other.keys()
    assert all(
        same(
            mine[k]["metadata"] | {"t": mine[k]["text"]},
            other[k]["metadata"] | {"t": other[k]["text"]},
        )
        for k in mine
    )


# --- cases --------------------------------------------------------------------------------------
def test_keys_of_a_batch_are_these() -> None:
    store = MemoryStore()
    report = ingest(store, make_frame([Row("a", ts=T0), Row("b", ts=T0 + 5)]))
    digest = indexes(store)[0].head.segment.hash  # type: ignore[union-attr]
    assert [info.key for info in store.list("")] == [
        f"acme/data/2026-03-01/00/s.1.1.{digest}.parquet",
        f"acme/index/2026-03-01/00/line.{T0:020d}.{T0 + 5:020d}.s.1.1.idx",
        "acme/runs/llama/17/hours/2026-03-01T00",
    ]
    assert report.committed == [f"acme/index/2026-03-01/00/line.{T0:020d}.{T0 + 5:020d}.s.1.1.idx"]


def test_what_is_committed_elsewhere_than_its_arrival_has_a_pointer_there() -> None:
    store = MemoryStore()
    rows = [Row("now", ts=T0), Row("now", ts=T0), Row("before", ts=T0 - 5 * HOUR_NS)]
    report = ingest(store, make_frame(rows))
    [late] = [key for key in report.committed if "/late/" in key]
    [pointer] = [info.key for info in store.list("acme/arrivals/")]
    assert pointer == late.replace("/index/", "/arrivals/2026-03-01/00/")
    assert (store.get(pointer), keys.index_of_arrival("acme", T0 // HOUR_NS, pointer)) == (
        b"",
        late,
    )
    ingest(store, make_frame(rows[2:]), first="2")
    old = [info.key for info in store.list("acme/arrivals/2026-03-01/00/2026-02-28/19/")]
    assert len(old) == 1
    ingest(store, make_frame(rows[2:]), first="2")
    assert len(list(store.list("acme/arrivals/"))) == 2


def test_notes_alone_need_no_pointer() -> None:
    store = MemoryStore()
    fenced = FrameStream(STREAM, 0, 0, fences=(Fence(T0 // HOUR_NS - 9, ()),))
    ingest(store, make_frame([], streams=[fenced]))
    assert list(store.list("acme/arrivals/")) == []


def test_a_bad_frame_goes_to_quarantine_and_the_others_are_stored() -> None:
    store, good = MemoryStore(), encode_frame(make_frame([Row("a")]))
    bad_text = encode_frame(make_frame([Row(b"\xff")], number=2))
    cut = encode_frame(make_frame([Row(b"\xc3"), Row(b"\xa9")], number=3))
    with_line_feed = encode_frame(make_frame([Row("a\nb")], number=4))
    foreign = encode_frame(make_frame([Row("a")], tenant="other", number=5))
    body = encode_frame(make_frame([Row("é", body_at=1)], number=6))
    found = [good, b"junk", good[:-1], bad_text, cut, with_line_feed, foreign, body]
    report = ingest_batch(
        [Record(data, T0, f"q{i}") for i, data in enumerate(found)],
        store=store,
        source="s",
        first="1",
        last="2",
    )
    assert report.lines == 1
    assert [bad.key for bad in report.bad] == [
        "_unknown/quarantine/2026-03-01/s.q1",
        "_unknown/quarantine/2026-03-01/s.q2",
        "acme/quarantine/2026-03-01/s.q3",
        "acme/quarantine/2026-03-01/s.q4",
        "acme/quarantine/2026-03-01/s.q5",
        "other/quarantine/2026-03-01/s.q6",
        "acme/quarantine/2026-03-01/s.q7",
    ]
    assert [store.get(bad.key) for bad in report.bad] == found[1:]
    assert [bad.reason for bad in report.bad[2:]] == [
        "text is no UTF-8 at byte 0",
        "text is cut inside a character",
        "a line holds a line feed",
        "frame of tenant 'other' has a stream of 'acme'",
        "text is cut inside a character",
    ]


def test_tenants_of_a_batch_share_nothing() -> None:
    store = MemoryStore()
    other = stream(tenant="b/c")
    ingest(store, make_frame([Row("a")]), make_frame([Row("b", stream=other)], tenant="b/c"))
    assert [row["text"] for row in lines(store).values()] == ["a"]
    assert [row["text"] for row in lines(store, "b%2Fc").values()] == ["b"]


def test_of_rows_that_come_again_in_a_batch_those_of_the_smaller_hash_stay() -> None:
    store = MemoryStore()
    one = make_frame([Row("a"), Row("b")], number=1)
    other = make_frame([Row("B"), Row("C")], number=2, first_seq={STREAM: 1})
    report = ingest(store, one, other, one)
    assert report.repeated == 1
    stays = "b" if header_hash(one) < header_hash(other) else "B"
    assert [row["text"] for _, row in sorted(lines(store).items())] == ["a", stays, "C"]
    assert [ref.header_hash for ref in indexes(store)[0].head.frames] == [
        header_hash(one),
        header_hash(other),
    ]


@pytest.mark.parametrize(
    ("claimed", "certified", "wild"),
    [
        (T0, "producer", False),
        (T0 + HOUR_NS, "producer", False),
        (T0 + HOUR_NS + 1, "producer", True),
        (T0 + HOUR_NS + 1, "import", True),
        (T0 - 400 * DAY_NS, "producer", False),
        (T0 - 400 * DAY_NS - 1, "producer", True),
        (T0 - 400 * DAY_NS - 1, "import", False),
        (0, "import", False),
        (-1, "import", True),
        (2**63 - 1, "agent", True),
    ],
)
def test_a_wild_time_is_kept_as_claimed_and_filed_by_arrival(
    claimed: int, certified: str, wild: bool
) -> None:
    store = MemoryStore()
    ingest(store, make_frame([Row("a", ts=claimed, stream=stream(certified=certified))]))
    (line,) = lines(store).values()
    assert line["ts"] == (T0 if wild else claimed)
    assert line["metadata"] == ({"int:ts_claimed": claimed} if wild else {})
    assert bool(line["flags"] & TS_CLAIMED) is wild


def test_hours_with_many_rows_get_segments_and_the_rest_shares_a_late_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ranklog.ingest.hours.HOUR_ROWS_MIN", 2)
    store = MemoryStore()
    counts = {0: 1, 1: 3, 2: 2, 5: 1}
    rows = [Row(f"{h}", ts=T0 + h * HOUR_NS) for h, count in counts.items() for _ in range(count)]
    ingest(store, make_frame(rows), arrival_ns=T0 + 5 * HOUR_NS)
    assert [(index.key.split("/line")[0], index.head.rows) for index in indexes(store)] == [
        ("acme/index/2026-03-01/01", 3),
        ("acme/index/2026-03-01/02", 2),
        ("acme/index/late/2026-03-01", 2),
    ]
    late = indexes(store)[2]
    assert late.head.segment is not None
    assert late.head.segment.key.startswith("acme/data/late/2026-03-01/")
    assert [info.key for info in store.list("acme/runs/")] == [
        "acme/runs/llama/17/hours/2026-03-01T01",
        "acme/runs/llama/17/hours/2026-03-01T02",
        "acme/runs/llama/17/hours/late-2026-03-01",
    ]


def test_at_most_32_hours_get_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranklog.ingest.hours.HOUR_ROWS_MIN", 1)
    store = MemoryStore()
    rows = [Row("x", ts=T0 + h * HOUR_NS) for h in range(40)]
    ingest(store, make_frame(rows), arrival_ns=T0 + 40 * HOUR_NS)
    assert [index.head.rows for index in indexes(store)] == [1] * 32 + [8]


def test_fences_drops_and_ends_are_each_in_one_index() -> None:
    hour = T0 // HOUR_NS
    notes = FrameStream(
        STREAM,
        0,
        0,
        fences=(Fence(hour, ((0, 1),)), Fence(hour + 9, ())),
        drops=(Drop(7, "quota"),),
        end=StreamEnd(1, 137),
    )
    idle = FrameStream(stream(5), 0, 0)  # an empty file: a stream of no lines
    store = MemoryStore()
    report = ingest(store, make_frame([Row("a")], streams=[notes, idle]))
    in_hour, late = (index.head for index in indexes(store))
    assert in_hour.streams[0].fences == (Fence(hour, ((0, 1),)),)
    assert in_hour.streams[0].drops == (Drop(7, "quota", ("0a", 1)),)
    assert in_hour.streams[0].end == StreamEnd(1, 137)
    assert (late.segment, late.rows, late.row_groups) == (None, 0, ())
    assert {entry.stream.rank: entry.fences for entry in late.streams} == {
        3: (Fence(hour + 9, ()),),
        5: (),
    }
    start = (hour + 9) * HOUR_NS
    assert f"line.{start:020d}.{start + HOUR_NS - 1:020d}." in report.committed[1]


def test_an_older_frame_behind_a_newer_one_takes_back_nothing_that_this_said() -> None:
    hour, rows = T0 // HOUR_NS, [Row("a")]
    older = FrameStream(STREAM, 2, 0, fences=(Fence(hour, ((0, 2),)),), drops=(Drop(3, "quota"),))
    newer = FrameStream(
        STREAM, 5, 0, fences=(Fence(hour, ((0, 5),)),), drops=(Drop(4, "quota"),), end=StreamEnd(5)
    )
    frames = {1: make_frame(rows, streams=[older], number=1)}
    frames[2] = make_frame([], streams=[newer], number=2)
    for numbers in ((1, 2), (2, 1), (2, 1, 2)):
        store = MemoryStore()
        ingest(store, *(frames[number] for number in numbers))
        [index] = indexes(store)
        [entry] = index.head.streams
        assert entry.fences == (Fence(hour, ((0, 5),)),)
        assert entry.drops == (Drop(3, "quota", ("0a", 1)), Drop(4, "quota", ("0a", 2)))
        assert entry.end == StreamEnd(5)


def test_the_last_heartbeat_of_a_batch_stands_beside_what_was_said_in_its_hour() -> None:
    beats = [
        FrameStream(stream(rank), 0, 0, alive_ns=T0 + at) for rank, at in ((5, 3), (5, 9), (5, 6))
    ]
    frames = [
        make_frame([Row("a")], number=number, streams=[beat]) for number, beat in enumerate(beats)
    ]
    store = MemoryStore()
    for frame in frames:
        assert frame.streams
    records = [Record(encode_frame(frame), T0, f"{n}") for n, frame in enumerate(frames)]
    ingest_batch(records, store=store, source="s", first="1", last="3")
    [head] = [index.head for index in indexes(store)]  # no object of its own

    assert {entry.stream.rank: entry.alive_ns for entry in head.streams} == {3: None, 5: T0 + 9}


def test_integers_under_step_fill_the_iteration() -> None:
    store = MemoryStore()
    ingest(
        store,
        make_frame(
            [
                Row("a", metadata={"step": 5}),
                Row("b", metadata={"iteration": 6}, iteration=7),
                Row("c", metadata={"step": 0.5}),
            ]
        ),
    )
    found = [(row["iteration"], row["metadata"]) for _, row in sorted(lines(store).items())]
    assert found == [(5, {}), (7, {"int:iteration": 6}), (None, {"float:step": 0.5})]


def test_metadata_beyond_the_column_limit_overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranklog.layout.metadata.METADATA_COLUMNS_MAX", 1)
    store = MemoryStore()
    ingest(
        store,
        make_frame(
            [Row("a", metadata={"x": 1, "y": math.nan, "z": "é"}), Row("b", metadata={"x": 2})]
        ),
    )
    (index,) = indexes(store)
    assert (index.head.columns, index.head.overflow) == (("int:x",), ("float:y", "str:z"))
    assert [row["metadata"] for _, row in sorted(lines(store).items())] == [
        {"int:x": 1, "float:y": "NaN", "str:z": "é"},
        {"int:x": 2},
    ]


def test_a_key_of_few_values_overflows_where_there_are_many_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ranklog.layout.metadata.METADATA_COLUMNS_ALWAYS", 1)
    store = MemoryStore()
    rows = [
        Row("a", metadata={"often": i, "sixteen": i / 4} if i < 16 else {"often": i})
        for i in range(20)
    ]
    ingest(store, make_frame([*rows, Row("b", metadata={"once": "x"})]))
    (index,) = indexes(store)
    assert index.head.columns == ("int:often", "float:sixteen")
    assert index.head.overflow == ("str:once",)
    found = [row["metadata"] for _, row in sorted(lines(store).items())]
    assert found[0] == {"int:often": 0, "float:sixteen": 0.0}
    assert found[20] == {"str:once": "x"}


def test_more_templates_than_fit_are_template_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranklog.layout.templates.TEMPLATES_PER_SEGMENT_MAX", 2)
    store = MemoryStore()
    texts = ["b", "b", "a", "a", "c", "x" * 1025]
    ingest(store, make_frame([Row(text) for text in texts]))
    (index,) = indexes(store)
    assert index.templates == ("", "a", "b")
    assert [row["tid"] for _, row in sorted(lines(store).items())] == [2, 2, 1, 1, 0, 0]


def test_a_line_too_long_to_take_apart_is_doubt_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (templates, tokens):
        monkeypatch.setattr(module, "LINE_ANALYSED_BYTES_MAX", 20)
    monkeypatch.setattr(tokens, "BATCH_BYTES", 20)
    monkeypatch.setattr(order, "ROW_GROUP_ROWS", 2)
    monkeypatch.setattr(order, "RARE_ROWS_MAX", 0)
    long = "nccl7 " * 4
    store = MemoryStore()
    ingest(store, make_frame([Row("b c2d"), Row("a1b"), Row(long), Row("3: " + long, body_at=3)]))
    (index,) = indexes(store)
    found = {row["text"]: row["tid"] for row in lines(store).values()}
    assert (found[long], found["3: " + long]) == (0, 0)
    first, second = index.head.row_groups
    assert (first.runs, second.runs) == (None, frozenset())
    assert index.bloom_may_contain(0, "zz9") and index.bloom_may_contain(0, "nccl7")
    assert index.bloom_may_contain(1, "a1b") and not index.bloom_may_contain(1, "nccl7")
    assert index.head.envelopes is None


def test_envelopes_that_touch_the_body_prove_nothing() -> None:
    store = MemoryStore()
    ingest(store, make_frame([Row("[rank3]: a", body_at=9), Row("b")]))
    assert indexes(store)[0].head.envelopes == ("", "[\0]: ")
    store = MemoryStore()
    ingest(store, make_frame([Row("3a", body_at=1)]))
    assert indexes(store)[0].head.envelopes is None


def test_odd_case_is_told() -> None:
    for text, odd in (("k s", False), ("é", False), ("\u212a", True), ("ſ", True)):
        store = MemoryStore()
        ingest(store, make_frame([Row(text)]))
        assert indexes(store)[0].head.odd_case is odd


def test_duckdb_reads_a_segment_by_itself(tmp_path: Any) -> None:
    store = MemoryStore()
    rows = [
        Row(f"step {i} a{i}", metadata={"loss": i / 2, "n": i}, flags=INVALID_UTF8)
        for i in range(70)
    ]
    ingest(store, make_frame(rows))
    (index,) = indexes(store)
    path = tmp_path / "segment.parquet"
    assert index.head.segment is not None
    path.write_bytes(store.get(index.head.segment.key))
    found = duckdb.sql(
        f'SELECT seq, text, "float:loss", "int:n", ts FROM \'{path}\' WHERE tid = 1 ORDER BY seq'
    ).fetchall()
    assert found == [(i, f"step {i} a{i}", i / 2, i, T0) for i in range(70)]
    footer = path.read_bytes()[-index.footer_bytes :]
    assert int.from_bytes(footer[-8:-4], "little") == len(footer) - 8
    names = duckdb.sql(f"SELECT key FROM parquet_kv_metadata('{path}')").fetchall()
    assert {bytes(name) for (name,) in names} >= {b"ranklog.streams", b"ranklog.version"}


def test_chunks_are_where_the_parquet_metadata_says() -> None:
    store = MemoryStore()
    ingest(store, make_frame([Row("abc", metadata={"x": 1})]))
    (index,) = indexes(store)
    (group,) = index.head.row_groups
    spans = sorted(group.chunks.values())
    assert spans[0][0] == 4
    assert all(a + n == b for (a, n), (b, _) in pairwise(spans))
    assert index.head.segment is not None
    assert spans[-1][0] + spans[-1][1] <= index.head.segment.length - index.footer_bytes
    assert list(group.chunks)[-1] == "text"


class FailingStore(MemoryStore):
    """Refuses the n-th PUT."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.left = fails_at

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        self.left -= 1
        if self.left == 0:
            raise Unavailable("no")
        return super().put(key, data, if_absent=if_absent)


@pytest.mark.parametrize("fails_at", range(1, 8))
def test_a_batch_that_failed_anywhere_is_whole_after_a_retry(fails_at: int) -> None:
    store = FailingStore(fails_at)
    rows = [Row("a"), Row("b", ts=T0 + HOUR_NS), Row("c", ts=T0 + HOUR_NS)]
    frame = make_frame(rows)
    with pytest.raises(Unavailable):
        ingest(store, frame, arrival_ns=T0 + HOUR_NS)
    for index in indexes(store):  # what is committed has its segment and its marker
        assert len(table(store, index)) == index.head.rows
        assert list(store.list("acme/runs/llama/17/hours/"))
    ingest(store, frame, arrival_ns=T0 + HOUR_NS)
    assert sorted(row["text"] for row in lines(store).values()) == ["a", "b", "c"]


def test_a_stalled_first_attempt_changes_nothing_that_a_second_committed() -> None:
    """Between its segment and its index the batch comes again, under other rules."""

    class Stalling(MemoryStore):
        stalled = False

        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
            if "/index/" in key and not self.stalled:
                self.stalled = True
                reports.append(_ingest_one(self, RULES))
            return super().put(key, data, if_absent=if_absent)

    reports: list[IngestReport] = []
    store = Stalling()
    first = _ingest_one(store, None)
    assert (len(reports[0].committed), first.committed) == (1, [])
    assert first.already == reports[0].committed
    [line] = lines(store).values()
    assert line["metadata"] == {"int:n": 1}
    assert len(list(store.list("acme/data/"))) == 2  # the first one's is an orphan


RULES = RuleSet([Rule(name="n", literals=(), pattern=r"a(?P<n>\d)", types={"n": "int"})])


def _ingest_one(store: MemoryStore, rules: RuleSet | None) -> IngestReport:
    record = Record(encode_frame(make_frame([Row("a1")])), T0, "1")
    return ingest_batch([record], store=store, rules=rules, source="s", first="1", last="1")


def test_of_concurrent_attempts_at_a_batch_one_commits(tmp_path: Path) -> None:
    frame = make_frame([Row(f"line {i}", ts=T0 + i % 2 * HOUR_NS) for i in range(50)])
    record = Record(encode_frame(frame), T0 + HOUR_NS, "1")
    store = DiskStore(tmp_path / "store", sync=False)

    def attempt(_: int) -> IngestReport:
        return ingest_batch([record], store=store, source="s", first="1", last="1")

    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(attempt, range(8)))
    committed = [key for report in reports for key in report.committed]
    assert sorted(committed) == [index.key for index in indexes(store)]
    assert len(lines(store)) == 50


def test_a_slow_writer_puts_its_segment_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranklog.ingest.commit.COMMIT_AGE_S_MAX", -1)
    puts = []

    class Recording(MemoryStore):
        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
            puts.append((key.split("/")[1], if_absent))
            return super().put(key, data, if_absent=if_absent)

    ingest(Recording(), make_frame([Row("a")]))
    assert puts == [("data", True), ("runs", True), ("data", False), ("index", True)]


def test_what_a_dead_attempt_left_is_put_again_before_it_is_committed() -> None:
    """It may be as old as orphans get, and be deleted between the look at it and the commit."""
    puts = []

    class Recording(MemoryStore):
        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
            if "/index/" in key and not puts:
                puts.append(("died", False))
                raise Unavailable("no")
            puts.append((key.split("/")[1], if_absent)) if puts else None
            return super().put(key, data, if_absent=if_absent)

    store = Recording()
    with pytest.raises(Unavailable):
        ingest(store, make_frame([Row("a")]))
    ingest(store, make_frame([Row("a")]))
    assert puts == [
        ("died", False),
        ("data", True),
        ("data", False),
        ("runs", True),
        ("index", True),
    ]


def test_an_empty_batch_commits_nothing() -> None:
    store = MemoryStore()
    assert ingest_batch([], store=store, source="s", first="1", last="1") == IngestReport()
    assert records_module.read_records([], store, "s") == records_module.Read()


def test_a_name_of_metadata_that_can_not_be_shown_refuses_no_line() -> None:
    """Agents that do not replace it are out there, and what they sent is in quarantine."""
    rows = [
        Row("one", metadata={"lr\u00a0": 1, "lr\t": 2.5, "lr\ufffd": 3}),
        Row("two", metadata={"loss": 2.5}),
    ]
    store = MemoryStore()
    report = ingest(store, make_frame(rows))
    assert list(report.bad) == []
    assert [row["metadata"] for _, row in sorted(lines(store).items())] == [
        {"int:lr\ufffd": 3, "int:lr\ufffd\ufffd": 1, "float:lr\ufffd\ufffd\ufffd": 2.5},
        {"float:loss": 2.5},
    ]
