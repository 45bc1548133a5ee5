"""What is deleted never shows and nothing else is lost: replayed, late, in pieces; against the oracle."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from ranklog.client import Client
from ranklog.client.audit import audit
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.compact.compacting import Compactor
from ranklog.delete.tombstones import load
from ranklog.ingest.batch import ingest_batch
from ranklog.model.answer import Completeness, Line
from ranklog.model.frame import FrameStream, StreamEnd
from ranklog.model.record import Record
from ranklog.plan.parse import parse_query
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.corpus_lines import BOUNDS, TENANT, TERMS, Corpus, random_corpus
from tests.ingest.frames import T0, make_frame
from tests.oracle import matching

DAY = 86_400_000_000_000


@dataclass
class World:
    """A store, what has arrived in it, and what was deleted of it."""

    corpus: Corpus
    store: MemoryStore = field(default_factory=MemoryStore)
    arrived: set[int] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    copies: int = 0
    days: int = 0

    def arrive(self, batch: int) -> None:
        """A batch, or the same frames again under another name."""
        rows, firsts = self.corpus.batches[batch], self.corpus.firsts[batch]
        ends = {row.stream for row in rows} if batch == len(self.corpus.batches) - 1 else set()
        notes = [FrameStream(one, 0, 0, end=StreamEnd(self.ends[one], 0)) for one in ends]
        frame = make_frame(rows, first_seq=firsts, number=batch + 1, streams=notes)
        name = f"{batch}-{self.copies}"
        self.copies += 1
        record = Record(encode_frame(frame), T0 + DAY, name)
        ingest_batch([record], store=self.store, source="k", first=name, last=name)
        self.arrived.add(batch)

    def compact(self) -> None:
        """Merge, bundle, and delete what has had its grace by then."""
        self.days += 1
        hidden = load(self.store, TENANT).hidden
        Compactor(self.store, TENANT, T0 + (1 + self.days) * DAY, hidden).run()

    @property
    def ends(self) -> dict[object, int]:
        found: dict[object, int] = {}
        for rows in self.corpus.batches:
            for row in rows:
                found[row.stream] = found.get(row.stream, 0) + 1
        return found

    @property
    def lines(self) -> list[Line]:
        """Every line that has arrived, deleted or not."""
        at, found = 0, []
        for number, rows in enumerate(self.corpus.batches):
            if number in self.arrived:
                found += self.corpus.lines[at : at + len(rows)]
            at += len(rows)
        return found

    @property
    def left(self) -> list[Line]:
        return [line for line in self.lines if line.id not in self.deleted]

    def delete(self, term: str) -> None:
        reader = local_reader(self.store, TENANT)
        query = read_query(term, BOUNDS, now_ns=T0)
        found = find_deletion(reader, query, who="t", groups=False)
        expr = parse_query(f"({term}) OR nothing-like-this", now_ns=T0).expr
        wanted = set(matching(self.left, expr))
        assert found.lines == len(wanted)
        delete(reader, found)
        self.deleted |= wanted


def is_sound(world: World, completeness: Completeness, run: str) -> bool:
    """Never complete while an undeleted line is missing."""
    missing = [
        line
        for line in world.corpus.lines
        if line.run == run and line.id not in world.deleted and line not in world.lines
    ]
    return completeness.state != "complete" or not missing


@pytest.mark.parametrize("seed", range(8))
def test_what_is_deleted_never_shows_and_nothing_else_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    world = World(random_corpus(seed, batches=4, rows=30))
    terms = [term for term in TERMS if term not in ("*", "superseded:true")]
    todo = list(range(4))
    rng.shuffle(todo)
    for _ in range(10):
        what = rng.random()
        if todo and what < 0.5:
            world.arrive(todo.pop())
        elif world.arrived and what < 0.7:
            world.arrive(rng.choice(sorted(world.arrived)))
        elif world.arrived and what < 0.8:
            world.compact()
        elif world.arrived:
            world.delete(rng.choice(terms))
        check(world, rng)
    for batch in todo:
        world.arrive(batch)
    world.compact()
    check(world, rng)
    world.compact()
    check(world, rng)
    fates = audit(local_reader(world.store, TENANT)).totals
    # frames have numbers from 1 on
    assert (fates["altered"], fates["missing"], fates["unverified"]) == (0, 1, 0)


def check(world: World, rng: random.Random) -> None:
    """Lines, counts, groups and call sites are those of what is left."""
    if not world.arrived:
        return
    client = Client(store=world.store, tenant=TENANT, results_bytes=1 << 20)
    term = rng.choice(TERMS)
    shown = f"({term}) OR nothing-like-this"
    wanted = sorted(matching(world.left, parse_query(shown, now_ns=T0).expr))
    for full_scan in (False, True):
        answer = client.search(shown, limit=None, groups=False, full_scan=full_scan, **BOUNDS)
        assert sorted(line.id for line in answer.lines) == wanted
        assert client.count(shown, full_scan=full_scan, **BOUNDS).count == len(wanted)
    everything = client.count("", by="rank", **BOUNDS)
    assert sum(count for _, count in everything.rows) == len(world.left)
    sites = client.callsites("copy:false", **BOUNDS).rows
    assert sum(row["count"] for row in sites) == sum(not line.copy for line in world.left)
    for run in {line.run for line in world.lines}:
        mine = [line for line in world.left if line.run == run]
        told = client.search("", run=f"{run}@*", limit=None, groups=False)
        assert sorted(line.id for line in told.lines) == sorted(line.id for line in mine)
        assert is_sound(world, told.completeness, run)
        gone = sum(item["lines"] for item in told.completeness.deleted)
        assert gone == sum(line.run == run and line.id in world.deleted for line in world.lines)
        [row] = client.runs(run=run).rows
        assert row["lines"] == len(mine)


def test_a_launch_that_is_deleted_stays_so_for_what_comes_later() -> None:
    world = World(random_corpus(5, batches=3, rows=30))
    world.arrive(1)
    reader = local_reader(world.store, TENANT)
    found = find_deletion(reader, read_query("", {"run": "llama"}, now_ns=T0), who="t")
    assert found.lines == sum(line.run == "llama" for line in world.lines)
    delete(reader, found)
    for batch in (0, 1, 2):
        world.arrive(batch)
    client = Client(store=world.store, tenant=TENANT)
    answer = client.search("", run="llama")
    assert (answer.lines, answer.completeness.state) == ([], "complete")
    counted = sum(item["lines"] for item in answer.completeness.deleted)
    assert counted == sum(line.run == "llama" for line in world.lines)
    others = sorted(line.id for line in world.lines if line.run != "llama")
    assert sorted(line.id for line in client.search("", limit=None, **BOUNDS).lines) == others


def test_a_line_that_left_the_store_after_its_deletion_is_not_missing() -> None:
    world = World(random_corpus(3, batches=2, rows=40))
    for batch in (0, 1):
        world.arrive(batch)
    world.delete("rank:0")
    before = Client(store=world.store, tenant=TENANT).search("", run="llama@*", limit=None)
    assert before.completeness.deleted
    # as compaction does: the objects of a batch whose rows are deleted all go
    other = World(world.corpus, MemoryStore(), {1}, set(world.deleted))
    for item in world.store.list(f"{TENANT}/tombstones/"):
        other.store.put(item.key, world.store.get(item.key))
    other.arrive(1)
    answer = Client(store=other.store, tenant=TENANT).search("", run="llama@*", limit=None)
    gone = {gap["stream"] for gap in answer.completeness.gaps}
    firsts = {line.stream_id for line in world.corpus.lines[:40] if line.id not in world.deleted}
    assert gone <= firsts
    assert answer.completeness.deleted == before.completeness.deleted


def test_the_same_deletion_twice_takes_nothing_more() -> None:
    world = World(random_corpus(3, batches=1, rows=40))
    world.arrive(0)
    world.delete("loss")
    world.delete("loss")  # asserts that it finds as many as are left: none
    keys = [item.key for item in world.store.list(f"{TENANT}/tombstones/")]
    assert len(keys) == 1
    log = [item.key for item in world.store.list(f"{TENANT}/actions/")]
    assert len(log) == 1


def test_a_copy_of_a_deleted_line_under_another_name_is_another_line() -> None:
    world = World(random_corpus(3, batches=1, rows=40))
    world.arrive(0)
    world.delete("*")
    assert Client(store=world.store, tenant=TENANT).count("", **BOUNDS).count == 0
    rows = [
        replace(row, stream=replace(row.stream, incarnation="9")) for row in world.corpus.batches[0]
    ]
    record = Record(encode_frame(make_frame(rows)), T0 + DAY, "x")
    ingest_batch([record], store=world.store, source="k", first="x", last="x")
    assert Client(store=world.store, tenant=TENANT).count("", **BOUNDS).count == 40
