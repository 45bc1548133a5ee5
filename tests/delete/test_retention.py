"""Retention: what is older than a tenant keeps is hidden, then removed, and is not taken any more."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.client.audit import audit
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import Reader, local_reader
from ranklog.client.retention import Applied, apply_retention
from ranklog.client.words import read_query
from ranklog.compact.compacting import Compactor, CompactReport
from ranklog.compact.contents import folders
from ranklog.delete.actions import read_actions
from ranklog.delete.retention import Policy, Rule, load_policy, save_policy
from ranklog.delete.tombstones import load
from ranklog.errors import BadInput, Corrupt
from ranklog.ingest.batch import IngestReport, ingest_batch
from ranklog.model.frame import FrameStream, StreamEnd
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.client.altering import live_indexes
from tests.compact.stores import GRACE_NS, SteppedStore, compact
from tests.ingest.frames import T0, Row, make_frame, stream
from tests.point_frames import STREAM as POINT_STREAM
from tests.point_frames import Record as PointRecord
from tests.point_frames import point_frame

HOUR, DAY = limits.HOUR_NS, limits.DAY_NS
NOW = T0 + 10 * DAY


def put(
    store: MemoryStore, name: str, rows: list[Row], *, at: int = NOW, **options: Any
) -> IngestReport:
    record = Record(encode_frame(make_frame(rows, **options)), at, name)
    return ingest_batch([record], store=store, source="k", first=name, last=name)


def reader_of(store: MemoryStore, now_ns: int = NOW) -> Reader:
    made = local_reader(store, "acme")
    made.now_ns = lambda: now_ns
    return made


def applied(store: MemoryStore, now_ns: int = NOW, **options: Any) -> Applied:
    return apply_retention(reader_of(store, now_ns), who="t", **options)


def lines(store: MemoryStore, run: str = "llama", **given: Any) -> list[str]:
    answer = Client(store=store, tenant="acme").search(
        "", run=run, limit=None, order="oldest", **given
    )
    return [line.text for line in answer.lines]


@pytest.fixture
def store() -> MemoryStore:
    """A line a day of run llama, frame 0 to 9; one of run other on the first day."""
    made = MemoryStore()
    for day in range(10):
        ends = [FrameStream(stream(0), 0, 0, end=StreamEnd(10, 0))] if day == 9 else []
        rows = [Row(f"day {day}", ts=T0 + day * DAY + DAY // 2, stream=stream(0))]
        put(made, str(day), rows, first_seq={stream(0): day}, streams=ends, number=day)
    other = stream(1, run="other")
    put(made, "x", [Row("kept", ts=T0, stream=other)], number=10)
    return made


def keep(store: MemoryStore, *rules: Rule) -> None:
    save_policy(store, "acme", Policy(rules))


def objects(store: MemoryStore) -> int:
    return sum(1 for folder in ("data", "index") for _ in store.list(f"acme/{folder}/"))


def test_lines_below_the_floor_are_hidden_at_once_and_completeness_says_so(
    store: MemoryStore,
) -> None:
    assert len(lines(store)) == 10
    keep(store, Rule("llama", 4 * DAY))
    found = applied(store)
    assert sum(item.lines for item in found.rows) == 6
    assert lines(store) == [f"day {day}" for day in range(6, 10)]
    assert lines(store, "other") == ["kept"]
    told = Client(store=store, tenant="acme").search("", run="llama").completeness
    assert (told.state, [(one["lines"], one["reason"]) for one in told.deleted]) == (
        "complete",
        [(6, "retention")],
    )
    assert [action.action for action in read_actions(store, "acme")] == ["retention.apply"]


def test_an_object_that_tells_how_another_stream_ended_waits_for_compaction() -> None:
    store, scratch = SteppedStore(), stream(0, run="scratch")
    store.clock_ns = NOW
    put(store, "1", [Row("first", ts=NOW - HOUR, stream=stream(0))])
    # the end of a stream lies beside old lines of another run
    rows = [Row(f"second {i}", ts=NOW - HOUR, stream=stream(1)) for i in range(2)]
    rows.append(Row("old", ts=NOW - 2 * DAY + HOUR, stream=scratch))
    ends = [FrameStream(stream(rank), 0, 0, end=StreamEnd(1 + rank, 0)) for rank in range(2)]
    put(store, "2", rows, streams=ends, number=2)
    keep(store, Rule("scratch", DAY))
    later = NOW
    for turn in range(6):
        later += 2 * limits.REMOVAL_GRACE_S * limits.SECOND_NS
        store.clock_ns = later
        applied(store, later)
        if turn > 2:
            compact(store, hidden=load(store, "acme").hidden)
        assert lines(store, "scratch") == []
        told = Client(store=store, tenant="acme").search("", run="llama").completeness
        assert told.state == "complete"
    assert not any(b"old" in store.get(key) for key in store.names("data/"))


def test_a_line_that_comes_into_an_hour_while_its_last_objects_go_is_found() -> None:
    class Meanwhile(MemoryStore):
        """Somebody commits into the hour right before the first object goes."""

        come = False

        def delete(self, key: str) -> None:
            if self.come and "/index/" in key:
                self.come = False
                row = Row("new", ts=NOW - HOUR + 1, stream=stream(0))
                put(self, "2", [row], first_seq={stream(0): 1}, number=2)
            super().delete(key)

    store = Meanwhile()
    put(store, "1", [Row("old", ts=NOW - HOUR, stream=stream(0))])
    reader = reader_of(store)
    query = read_query("old", {"run": "llama"}, now_ns=NOW)
    delete(reader, find_deletion(reader, query, who="t"))
    store.come = True
    assert applied(store, NOW + 2 * limits.REMOVAL_GRACE_S * limits.SECOND_NS).removed != []
    assert not store.come
    assert lines(store) == ["new"]


def test_objects_go_after_a_grace_and_the_answer_stays_the_same(store: MemoryStore) -> None:
    keep(store, Rule("llama", 4 * DAY))
    before = objects(store)
    assert applied(store).removed == []
    assert objects(store) == before
    later = NOW + 2 * limits.REMOVAL_GRACE_S * limits.SECOND_NS
    assert applied(store, later, dry_run=True).removed != []
    assert objects(store) == before
    applied(store, later)
    assert objects(store) == before - 2 * 6
    assert lines(store) == [f"day {day}" for day in range(6, 10)]
    told = Client(store=store, tenant="acme").search("", run="llama").completeness
    assert (told.state, [one["lines"] for one in told.deleted]) == ("complete", [6])
    assert applied(store, later + HOUR).rows == []
    fates = audit(reader_of(store))
    assert (fates.totals["deleted"], fates.totals["missing"], fates.state) == (6, 0, "verified")


def test_late_frames_below_the_floor_are_refused_and_counted(store: MemoryStore) -> None:
    keep(store, Rule("*", 4 * DAY))
    rows = [Row("old", ts=T0, stream=stream(7)), Row("new", ts=NOW - DAY, stream=stream(7))]
    report = put(store, "late", rows, number=11)
    assert (report.lines, report.refused) == (1, 1)
    assert "old" not in lines(store)
    told = Client(store=store, tenant="acme").search("rank:7", run="llama").completeness
    assert [(one["lines"], one["reason"]) for one in told.dropped] == [(1, "retention")]
    assert told.state != "complete"


def test_rows_of_late_segments_that_lie_astride_the_floor_are_hidden_alone() -> None:
    store = MemoryStore()
    rows = [Row(f"h{hour}", ts=T0 + hour * HOUR, stream=stream(0)) for hour in range(48)]
    put(store, "1", rows, at=T0 + 2 * DAY)
    keep(store, Rule("llama", 9 * DAY))
    applied(store)
    assert lines(store) == [f"h{hour}" for hour in range(24, 48)]


def test_what_a_pin_names_stays_for_the_pin(store: MemoryStore) -> None:
    client = Client(store=store, tenant="acme")
    pin = client.search("day", run="llama", pin=True).pin
    assert pin is not None
    keep(store, Rule("llama", 4 * DAY))
    applied(store)
    later = applied(store, NOW + 2 * limits.REMOVAL_GRACE_S * limits.SECOND_NS)
    assert (later.removed, later.pinned) == ([], 6)
    again = Client(store=store, tenant="acme").search(pin=pin["id"])
    assert len(again.lines) == 10
    assert len(lines(store)) == 4


def test_a_pinned_question_finds_what_a_merge_stood_for_that_is_gone() -> None:
    """The merge goes once its notes are old; the hour's marker leads to what the pin names still."""
    store = SteppedStore()
    store.clock_ns = T0 + 2 * DAY
    for name in ("1", "2"):
        rows = [Row(f"line {name}", ts=T0, stream=stream(int(name)))]
        put(store, name, rows, at=T0 + DAY, number=int(name))
    pin = Client(store=store, tenant="acme").search("line", run="llama", pin=True).pin
    assert pin is not None
    keep(store, Rule("llama", 2 * DAY))
    for now_ns in (T0 + 4 * DAY, NOW + DAY, NOW + 2 * DAY):
        store.clock_ns = now_ns
        applied(store, now_ns)
        compact(store, hidden=load(store, "acme").hidden)
    assert lines(store) == []
    assert len(Client(store=store, tenant="acme").search(pin=pin["id"]).lines) == 2


def test_holes_below_the_floor_are_not_missing_any_more() -> None:
    store = MemoryStore()
    for seq, day in ((0, 0), (3, 2), (4, 9)):
        ends = [FrameStream(stream(0), 0, 0, end=StreamEnd(5, 0))] if day == 9 else []
        row = Row(f"day {day}", ts=T0 + day * DAY, stream=stream(0))
        put(store, str(day), [row], first_seq={stream(0): seq}, streams=ends, number=day)
    client = Client(store=store, tenant="acme")
    assert client.search("", run="llama").completeness.state == "gaps"
    keep(store, Rule("llama", 4 * DAY))
    applied(store)
    assert (
        Client(store=store, tenant="acme").search("", run="llama").completeness.state == "complete"
    )


def test_the_rule_with_the_most_letters_decides() -> None:
    policy = Policy((Rule("*", 9 * DAY), Rule("llama-*", 2 * DAY), Rule("llama-8b", 30 * DAY)))
    kept = {run: policy.keep_ns(run) for run in ("x", "llama-1", "llama-8b")}
    assert kept == {"x": 9 * DAY, "llama-1": 2 * DAY, "llama-8b": 30 * DAY}
    assert Policy().floor_ns("x", NOW) == 0
    assert policy.floor_ns("x", NOW + 1) == NOW - 9 * DAY


def test_rules_are_saved_replaced_and_refused_where_they_are_too_short() -> None:
    store = MemoryStore()
    assert load_policy(store, "acme") == Policy()
    policy = Policy().with_rule("a", DAY).with_rule("b", 2 * DAY).with_rule("a", 3 * DAY)
    save_policy(store, "acme", policy.with_rule("b", None))
    assert load_policy(store, "acme") == Policy((Rule("a", 3 * DAY),))
    with pytest.raises(BadInput, match="less than 24 h"):
        policy.with_rule("c", HOUR)
    store.put("acme/config/retention.json", b"{}")
    with pytest.raises(Corrupt):
        load_policy(store, "acme")
    report = put(store, "1", [Row("old", ts=T0)])
    assert (report.lines, report.refused) == (1, 0)


def test_canaries_are_kept_for_a_day_unless_a_rule_has_their_name() -> None:
    canary = limits.CANARY_RUN
    assert Policy().keep_ns(canary) == DAY
    assert Policy().keep_ns("llama") is None
    assert Policy((Rule("*", 90 * DAY), Rule("ranklog-*", 30 * DAY))).keep_ns(canary) == DAY
    assert Policy((Rule(canary, 2 * DAY),)).keep_ns(canary) == 2 * DAY


def test_canaries_of_yesterday_go_where_nobody_set_a_rule(store: MemoryStore) -> None:
    one = stream(0, run=limits.CANARY_RUN)
    for name, ts in (("c0", NOW - 3 * DAY), ("c1", NOW - HOUR)):
        put(store, name, [Row(f"canary {name}", ts=ts, stream=one)], first_seq={one: int(name[1])})
    assert applied(store).floors == {limits.CANARY_RUN: NOW - DAY}
    assert lines(store, limits.CANARY_RUN) == ["canary c1"]
    assert len(lines(store)) == 10


# --- points -------------------------------------------------------------------------------------
POINTS = replace(POINT_STREAM, run="llama")


def put_points(
    store: MemoryStore, name: str, times: list[int], *, at: int = NOW, seq: int = 0
) -> None:
    records = [PointRecord({"loss": float(ts - T0)}, ts=ts, stream=POINTS) for ts in times]
    frame = point_frame(records, first_seq={POINTS: seq}, number=min(seq, 1))
    record = Record(encode_frame(frame), at, name)
    assert ingest_batch([record], store=store, source="p", first=name, last=name).bad == []


def hours_of_points(store: MemoryStore) -> list[int]:
    found = Client(store=store, tenant="acme").series("loss", run="llama", max_points=None)
    return sorted(round(value / HOUR) for value in found.to_arrow().column("value").to_pylist())


def test_points_of_late_segments_that_lie_astride_the_floor_are_hidden_alone_and_go() -> None:
    store = SteppedStore()
    store.clock_ns = T0 + 2 * DAY
    put_points(store, "1", [T0 + hour * HOUR for hour in range(48)], at=T0 + 2 * DAY)
    put_points(store, "2", [T0 + hour * HOUR for hour in range(48, 50)], at=T0 + 2 * DAY, seq=48)
    assert hours_of_points(store) == list(range(50))
    keep(store, Rule("llama", 9 * DAY))
    assert sum(item.lines for item in applied(store).rows) == 24
    assert hours_of_points(store) == list(range(24, 50))
    assert applied(store).rows == []
    store.clock_ns = NOW + HOUR
    for _ in range(2):
        assert compact(store, hidden=load(store, "acme").hidden).failed == {}
        store.clock_ns += GRACE_NS
    assert stored_seqs(store) == list(range(24, 50))
    assert hours_of_points(store) == list(range(24, 50))
    assert audit(reader_of(store)).state == "verified"


def stored_seqs(store: MemoryStore) -> list[int]:
    """Of all rows that lie in segments, whoever may see them."""
    found: list[int] = []
    for index in live_indexes(store):
        assert index.head.segment is not None
        table = pq.read_table(io.BytesIO(store.get(index.head.segment.key)), columns=["seq"])
        found += [seq for seq in table.column("seq").to_pylist() if seq is not None]
    return sorted(found)


def test_a_damaged_segment_of_points_is_named_and_the_rest_is_let_go_of() -> None:
    store = MemoryStore()
    put_points(store, "1", [T0 + hour * HOUR for hour in range(48)], at=T0 + 2 * DAY)
    put(store, "2", [Row("old", ts=T0, stream=stream(0))])
    [segment] = [info.key for info in store.list("acme/data/late/")]
    store.put(segment, store.get(segment)[:-1] + b"x")
    keep(store, Rule("llama", 9 * DAY))
    found = applied(store)
    assert [item["reason"][:15] for item in found.failed] == ["damaged segment"]
    assert (
        sum(item.lines for item in found.rows) == 2
    )  # the line, and a point in an hour's own segment


def test_expired_lines_are_gone_from_the_store_after_compaction_other_runs_stay() -> None:
    store = SteppedStore()
    store.clock_ns = T0 + 2 * DAY
    rows = [
        Row(f"{run} h{hour}", ts=T0 + hour * HOUR, stream=stream(0, run=run))
        for hour in range(48)
        for run in ("llama", "other")
    ]
    put(store, "1", rows, at=T0 + 2 * DAY)
    keep(store, Rule("llama", 9 * DAY))
    applied(store)
    assert lines(store) == [f"llama h{hour}" for hour in range(24, 48)]
    store.clock_ns = NOW + HOUR
    for _ in range(2):
        assert compact(store, hidden=load(store, "acme").hidden).failed == {}
        store.clock_ns += GRACE_NS
    data = b"".join(store.get(info.key) for info in store.list("acme/data/"))
    assert len(stored_seqs(store)) == 24 + 48
    assert data and len(lines(store, "other")) == 48
    assert lines(store) == [f"llama h{hour}" for hour in range(24, 48)]


def test_a_pinned_run_is_kept_whole_until_the_pin_goes() -> None:
    store = SteppedStore()
    store.clock_ns = T0 + 2 * DAY
    put(
        store,
        "1",
        [Row(f"h{hour}", ts=T0 + hour * HOUR, stream=stream(0)) for hour in range(48)],
        at=T0 + 2 * DAY,
    )
    pin = Client(store=store, tenant="acme").search("", run="llama", limit=None, pin=True).pin
    assert pin is not None
    keep(store, Rule("llama", 9 * DAY))
    applied(store)
    store.clock_ns = NOW + HOUR
    for _ in range(3):
        compact(store, hidden=load(store, "acme").hidden)
        store.clock_ns += GRACE_NS
    assert len(Client(store=store, tenant="acme").search(pin=pin["id"]).lines) == 48
    assert lines(store) == [f"h{hour}" for hour in range(24, 48)]
    for info in list(store.list("acme/pins/")):
        store.delete(info.key)
    for _ in range(2):
        compact(store, hidden=load(store, "acme").hidden)
        store.clock_ns += GRACE_NS
    assert stored_seqs(store) == list(range(24, 48))


def bundled_store() -> tuple[SteppedStore, int]:
    """Late lines of two runs, each in a batch of its own, and a bundle with copies of both indexes."""
    store = SteppedStore()
    store.clock_ns = NOW
    for number, run in enumerate(("llama", "other")):
        put(store, run, [Row(run, ts=T0, stream=stream(number, run=run))], number=number)
    store.clock_ns = NOW + HOUR // 2
    [folder] = folders(store, "acme")
    report = CompactReport()
    Compactor(store, "acme", store.clock_ns).bundle(folder, report)
    assert report.bundles == 1
    keep(store, Rule("llama", 4 * DAY))
    assert sum(item.lines for item in applied(store, store.clock_ns).rows) == 1
    return store, store.clock_ns + 2 * limits.REMOVAL_GRACE_S * limits.SECOND_NS


def is_sound(store: SteppedStore) -> bool:
    """Whether compaction and audits can read all there is."""
    failed = compact(store, hidden=load(store, "acme").hidden).failed
    return not failed and audit(reader_of(store, store.clock_ns)).segments == []


def test_an_index_that_a_bundle_holds_as_well_stays_until_compaction_leaves_its_rows_out() -> None:
    store, later = bundled_store()
    assert applied(store, later).removed == []
    store.clock_ns = later
    assert is_sound(store)
    assert lines(store, "other") == ["other"]


def test_a_segment_that_went_while_its_index_was_bundled_is_not_missed() -> None:
    store, later = bundled_store()
    [gone] = [
        index.head.segment.key
        for index in live_indexes(store)
        if index.head.segment is not None and index.head.streams[0].stream.run == "llama"
    ]
    store.delete(gone)
    for _ in range(3):
        store.clock_ns = later = later + DAY
        assert is_sound(store)
    assert lines(store, "other") == ["other"]
