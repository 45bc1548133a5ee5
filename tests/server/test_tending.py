"""The role compact: a pass over all tenants, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator

from ranklog import limits
from ranklog.delete.retention import Policy, Rule, save_policy
from ranklog.errors import Unavailable
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.quarantine import keep
from ranklog.layout.keys import quarantine_prefix
from ranklog.model.record import Record
from ranklog.server.tending import tend_once, tend_until
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import ObjectInfo
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame, stream


def put(store: MemoryStore, tenant: str, number: int) -> None:
    ours = stream(0, tenant=tenant)
    rows = [Row("x", ts=T0 + number * limits.SECOND_NS, stream=ours)]
    frame = make_frame(rows, first_seq={ours: number}, number=number, tenant=tenant)
    name = f"{number:04d}"
    record = Record(encode_frame(frame), T0 + limits.DAY_NS, name)
    ingest_batch([record], store=store, source="k", first=name, last=name)


class NotOf(MemoryStore):
    """One tenant's indexes can't be listed."""

    def list_folders(self, prefix: str):  # type: ignore[no-untyped-def]
        if prefix.startswith("bad/index"):
            raise Unavailable("away")
        return super().list_folders(prefix)


def tend(store: MemoryStore, retain: bool = False) -> list[str]:
    told: list[str] = []
    tend_once(store, retain=retain, tell=told.append, stopping=lambda: False)
    return told


def test_every_tenant_has_its_turn_though_one_fails() -> None:
    store = NotOf()
    for tenant in ("acme", "bad", "zeta"):
        for number in range(3):
            put(store, tenant, number)
    assert tend(store) == [
        "tenant acme: merged 3 indexes into 1, bundled 0 into 0, deleted 0 objects",
        "tenant bad: away",
        "tenant zeta: merged 3 indexes into 1, bundled 0 into 0, deleted 0 objects",
    ]


def test_a_pass_with_nothing_to_do_says_nothing() -> None:
    store = MemoryStore()
    put(store, "acme", 0)
    assert tend(store) == []


def test_retention_is_applied_where_it_is_due() -> None:
    store = MemoryStore()
    put(store, "acme", 0)
    save_policy(store, "acme", Policy((Rule("*", limits.DAY_NS),)))
    assert tend(store) == []
    first, second = tend(store, retain=True)
    assert first == "tenant acme: hid 1 lines past retention, removed 0 objects"
    assert second.startswith("tenant acme: merged 1 indexes")  # what is hidden is left out of it


def test_it_stops_when_it_is_time_to() -> None:
    store, looks = MemoryStore(), iter([False, False, True, True, True])
    put(store, "acme", 0)
    tend_until(lambda: next(looks), store, every_s=60.0, tell=lambda text: None)


def test_quarantine_of_nobody_is_looked_through_once_a_pass() -> None:
    class Counting(MemoryStore):
        looks = 0

        def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
            self.looks += prefix == quarantine_prefix(None)
            return super().list(prefix, start_after=start_after)

    store = Counting()
    for tenant in ("acme", "beta", "zeta"):
        put(store, tenant, 0)
    old = Record(b"junk", T0, "1")
    key = keep(store, old, "malformed", "no frame", "k").key
    tend(store)
    assert store.looks == 0
    tend(store, retain=True)
    assert store.looks == 1
    assert not any(info.key.startswith(key) for info in store.list(""))
