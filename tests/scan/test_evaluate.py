"""A task that can't read says what and why; a plan decides speed and never the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ranklog import limits
from ranklog.client.reader import local_reader
from ranklog.client.scope import Scope, open_scope
from ranklog.model import query as q
from ranklog.model.answer import Report
from ranklog.plan.build import build_plan
from ranklog.plan.tasks import (
    FAILED,
    OK,
    Groups,
    Lines,
    SegmentScan,
    Task,
    decode_outcome,
    encode_task,
)
from ranklog.scan.engine import Engine, shared_engine
from ranklog.scan.evaluate import evaluate, evaluate_task
from ranklog.scan.files import RangedObject, coalesce_ranges
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from tests.corpus_lines import TENANT, random_corpus


def planned(store: Store, shape: Lines | Groups, expr: q.Expr | None = None) -> Task:
    """One task over everything in the store."""
    reader = local_reader(store, TENANT)
    scope: Scope = open_scope(reader, q.Query(q.Everything(), since_ns=0), None, Report())
    expr = expr or q.Everything()
    plan = build_plan(expr, shape, scope.indexes, scope.skips, reader.regexes)
    return Task(plan.expr, tuple(plan.scans), shape, plan.near)


@pytest.fixture
def store() -> MemoryStore:
    memory = MemoryStore()
    random_corpus(5, batches=3, rows=30).ingest(memory)
    return memory


def test_count_and_lines_agree(store: MemoryStore) -> None:
    lines = evaluate_task(planned(store, Lines()), store, shared_engine())
    counted = evaluate_task(planned(store, Groups()), store, shared_engine())
    assert lines.tag == counted.tag == OK
    assert len(lines.columns["text"]) == sum(counted.columns["count"]) == 90


def test_a_missing_segment_is_named_and_the_others_are_read(store: MemoryStore) -> None:
    task = planned(store, Lines())
    store.delete(task.segments[1].key)
    outcome = evaluate_task(task, store, shared_engine())
    assert outcome.tag == FAILED
    assert [failure.key for failure in outcome.failed] == [task.segments[1].key]
    assert outcome.scanned == len(task.segments) - 1


def test_a_segment_of_other_bytes_is_not_read_as_if_it_were_the_one(store: MemoryStore) -> None:
    task = planned(store, Lines())
    segment = task.segments[0]
    data = store.get(segment.key)
    store.put(segment.key, data[:-1] + b"X")
    outcome = evaluate_task(task, store, shared_engine())
    assert [failure.number for failure in outcome.failed] == [segment.number]


def test_the_same_bytes_under_another_etag_are_read(store: MemoryStore) -> None:
    task = planned(store, Lines())
    renamed = replace(task, segments=tuple(replace(s, etag='"other"') for s in task.segments))
    outcome = evaluate_task(renamed, store, shared_engine())
    assert outcome.tag == OK
    assert len(outcome.columns["text"]) == 90


@pytest.mark.parametrize("damage", ["short", "gone", "zeros"])
def test_a_damaged_file_is_an_outcome(tmp_path: Path, damage: str) -> None:
    disk = DiskStore(tmp_path / "store")
    random_corpus(5, batches=1, rows=30).ingest(disk)
    task = planned(disk, Lines())
    path = disk.local_path(task.segments[0].key)
    assert path is not None
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(data[:-9] if damage == "short" else bytes(len(data)))
    outcome = evaluate_task(task, disk, shared_engine())
    assert outcome.tag == FAILED
    assert outcome.failed[0].key == task.segments[0].key
    assert outcome.failed[0].reason


def test_time_that_is_up_is_reported_per_segment(store: MemoryStore) -> None:
    task = replace(planned(store, Lines()), deadline_s=0.0)
    outcome = evaluate_task(task, store, shared_engine())
    assert {failure.number for failure in outcome.failed} == {s.number for s in task.segments}


def test_ranges_outside_the_plan_are_fetched_when_they_are_read(store: MemoryStore) -> None:
    task = planned(store, Lines())
    poor = tuple(replace(s, small=((0, 4),), text=(), sums="") for s in task.segments)
    outcome = evaluate_task(replace(task, segments=poor), store, shared_engine())
    assert outcome.columns == evaluate_task(task, store, shared_engine()).columns


def test_a_limit_returns_at_least_the_newest_lines(store: MemoryStore) -> None:
    whole = evaluate_task(planned(store, Lines()), store, shared_engine())
    cut = evaluate_task(planned(store, Lines(limit=7, newest=True)), store, shared_engine())
    newest = sorted(whole.columns["ts"], reverse=True)[:7]
    assert sorted(cut.columns["ts"], reverse=True)[:7] == newest


def test_an_outcome_too_large_to_return_is_stored_and_named(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OUTCOME_INLINE_BYTES_MAX", 100)
    task = replace(planned(store, Lines()), spill="acme/tmp/x")
    outcome = decode_outcome(evaluate(encode_task(task), store))
    assert (outcome.stored, outcome.columns) == ("acme/tmp/x", {})
    assert len(decode_outcome(store.get("acme/tmp/x")).columns["text"]) == 90


def test_an_engine_of_its_own_answers_the_same(store: MemoryStore) -> None:
    task = planned(store, Lines())
    assert evaluate_task(task, store, Engine(threads=1)).columns == (
        evaluate_task(task, store, shared_engine()).columns
    )


def test_close_ranges_become_one_get() -> None:
    assert coalesce_ranges([(10, 20), (0, 5), (26, 30), (100, 100)], 5) == [(0, 20), (26, 30)]


def test_only_planned_bytes_are_read(store: MemoryStore) -> None:
    """The object is small, so that one GET reads through its gaps; a planned part is less."""
    segment: SegmentScan = planned(store, Lines()).segments[0]
    item = RangedObject(store, segment, shared_engine().files.pool)
    item.fetch([(0, 10), (segment.length - 4, segment.length)])
    assert item.read(segment.length - 4, segment.length + 9) == b"PAR1"
    assert item.bytes_read <= segment.length
