"""What a store needs done now and then, for each tenant in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ranklog import limits
from ranklog.client import Client
from ranklog.client.reader import local_reader
from ranklog.delete.actions import read_actions
from ranklog.delete.retention import Policy, Rule, save_policy
from ranklog.ingest.batch import ingest_batch
from ranklog.layout import keys
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from ranklog.upkeep.passes import compact_tenant, retain_tenant, sweep_tenant
from ranklog.upkeep.tenants import tenants
from tests.ingest.frames import T0, Row, make_frame, stream

HOUR, DAY = limits.HOUR_NS, limits.DAY_NS


def put(store: MemoryStore, number: int, text: str) -> None:
    rows = [Row(text, ts=T0 + number * limits.SECOND_NS, stream=stream(0))]
    frame = make_frame(rows, first_seq={stream(0): number}, number=number)
    record = Record(encode_frame(frame), T0 + DAY, f"{number:04d}")
    name = f"{number:04d}"
    ingest_batch([record], store=store, source="k", first=name, last=name)


@given(st.lists(st.text(min_size=1, max_size=12), max_size=5, unique=True))
def test_every_tenant_with_an_object_is_found_whatever_its_name(names: list[str]) -> None:
    store = MemoryStore()
    for name in names:
        store.put(keys.rule_key(name, "x"), b"")
    assert sorted(tenants(store)) == sorted(names)


def test_what_is_not_ours_in_a_bucket_is_no_tenant() -> None:
    store = MemoryStore()
    store.put("photos/2026/cat.jpg", b"")
    store.put("readme.txt", b"")
    store.put(f"{keys.UNKNOWN_TENANT}/quarantine/2026-03-01/a", b"")
    put(store, 0, "line")
    assert tenants(store) == ["acme"]


def test_a_pass_merges_and_answers_stay() -> None:
    store = MemoryStore()
    for number in range(8):
        put(store, number, f"line {number}")
    before = Client(store=store, tenant="acme").search("", run="llama", limit=None)
    report = compact_tenant(store, "acme", T0 + 2 * DAY)
    after = Client(store=store, tenant="acme").search("", run="llama", limit=None)
    assert report.merges == 1 and report.merged == 8
    assert [line.text for line in after.lines] == [line.text for line in before.lines]


def test_retention_runs_as_scheduled_and_says_so() -> None:
    store = MemoryStore()
    put(store, 0, "old")
    save_policy(store, "acme", Policy((Rule("*", DAY),)))
    reader = local_reader(store, "acme")
    reader.now_ns = lambda: T0 + 9 * DAY
    done = retain_tenant(reader, who="schedule")
    assert sum(item.lines for item in done.rows) == 1
    [action] = read_actions(store, "acme")
    assert (action.who, action.why) == ("schedule", "scheduled")
    assert not Client(store=store, tenant="acme").search("", run="llama", limit=None).lines


def test_only_old_leftovers_are_swept() -> None:
    store = MemoryStore()
    store.put(keys.tmp_key("acme", "a"), b"")
    store.put(keys.tmp_key("other", "b"), b"")
    [item] = store.list(keys.tmp_prefix("acme"))
    assert item.modified_ns is not None
    assert sweep_tenant(store, "acme", item.modified_ns + limits.TMP_KEPT_S * 10**9) == 0
    assert sweep_tenant(store, "acme", item.modified_ns + limits.TMP_KEPT_S * 10**9 + 1) == 1
    assert not list(store.list(keys.tmp_prefix("acme")))
    assert list(store.list(keys.tmp_prefix("other")))
