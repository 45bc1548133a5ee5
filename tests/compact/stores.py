"""Stores and corpora for tests of compaction: one that fails at a step, one whose objects have an age."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from ranklog.client import Client
from ranklog.compact.compacting import Compactor, CompactReport
from ranklog.compact.streams import Hidden, nothing_hidden
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import COMPACT_GRACE_S, SECOND_NS
from ranklog.model.record import Record
from ranklog.plan.parse import parse_query
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import ObjectInfo
from ranklog.stream.frames import encode_frame
from tests.corpus_lines import BOUNDS, TENANT, Corpus
from tests.ingest.frames import T0, make_frame
from tests.oracle import matching

DAY_NS = 86_400 * SECOND_NS
GRACE_NS = (COMPACT_GRACE_S + 1) * SECOND_NS
# Every hour of a corpus is over.
LATER = T0 + 3 * DAY_NS


class Stopped(Exception):
    """The process was killed here."""


class SteppedStore(MemoryStore):
    """Stops at the PUT or DELETE number `stop_at`, before or after it has done its work.

    `clock`: objects are as old as it says.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.stop_at: int | None = None
        self.after = False
        self.clock_ns = LATER
        self.aged: dict[str, int] = {}

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        self._step(done=False)
        etag = super().put(key, data, if_absent=if_absent)
        self.aged[key] = self.clock_ns
        self._step(done=True)
        return etag

    def delete(self, key: str) -> None:
        self._step(done=False)
        super().delete(key)
        self._step(done=True)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        for info in super().list(prefix, start_after=start_after):
            aged = self.aged.get(info.key)
            yield ObjectInfo(info.key, info.length, info.etag, aged)

    def _step(self, *, done: bool) -> None:
        if done == self.after:
            self.steps += 1
            if self.steps - 1 == self.stop_at:
                raise Stopped(f"at step {self.stop_at}")

    def names(self, prefix: str) -> list[str]:
        return [info.key for info in MemoryStore.list(self, f"{TENANT}/{prefix}")]


def ingest_one(store: MemoryStore, corpus: Corpus, number: int, copy: int = 0) -> None:
    """A batch of a corpus; `copy`: as if it came again, from elsewhere."""
    rows, first = corpus.batches[number], corpus.firsts[number]
    data = encode_frame(make_frame(rows, first_seq=first, number=number + 1))
    name = f"{number}-{copy}"
    record = Record(data, T0 + DAY_NS, name)
    report = ingest_batch([record], store=store, source="k", first=name, last=name)
    assert report.bad == []


def compact(store: SteppedStore, *, hidden: Hidden = nothing_hidden) -> CompactReport:
    """A pass, by the store's clock."""
    return Compactor(store, TENANT, store.clock_ns, hidden).run()


def answered(store: MemoryStore, query: str, span: tuple[int, int] | None = None) -> list[str]:
    """Ids of the lines that match, every one as often as it is shown, for a reader without a cache;
    `span`: of [from, to) ns."""
    since, until = BOUNDS["since"], BOUNDS["until"]
    if span is not None:
        since, until = (shown_time(ns) for ns in span)
    answer = Client(store=store, tenant=TENANT).search(
        f"({query}) OR nothing-like-this",
        limit=None,
        order="oldest",
        groups=False,
        since=since,
        until=until,
    )
    assert answer.completeness.skipped_tasks == []
    return sorted(line.id for line in answer.lines)


def shown_time(ns: int) -> str:
    """Of whole seconds."""
    return datetime.fromtimestamp(ns // SECOND_NS, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def expected(
    corpus: Corpus,
    query: str,
    batches: set[int] | None = None,
    span: tuple[int, int] | None = None,
) -> list[str]:
    """By the oracle, of what was ingested."""
    lines = corpus.lines
    if batches is not None:
        size = len(corpus.batches[0])
        lines = [line for at, line in enumerate(lines) if at // size in batches]
    if span is not None:
        lines = [line for line in lines if span[0] <= line.ts_ns < span[1]]
    parsed = parse_query(f"({query}) OR nothing-like-this", now_ns=T0)
    return sorted(matching(lines, parsed.expr))
