"""What Arrow reads of few lines is what DuckDB reads of them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.layout import order
from ranklog.layout.decimals import as_decimals
from ranklog.model import query as q
from ranklog.plan.parse import parse_query
from ranklog.plan.tasks import Groups, Lines, Outcome, SegmentScan, Task
from ranklog.scan import direct
from ranklog.scan.engine import shared_engine
from ranklog.scan.evaluate import evaluate_task, opened
from ranklog.scan.fields import numbers_sql
from ranklog.scan.masks import Evaluator, Unsupported
from ranklog.scan.numeric import as_numbers, numbers_mask
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from tests.corpus_lines import random_corpus, random_query
from tests.duckdb_only import duckdb_only
from tests.ingest.frames import T0
from tests.scan.test_evaluate import planned


def rows_of(columns: dict[str, list[Any]]) -> list[str]:
    """Rows that can be compared: NaN equals itself, order does not count."""
    names = sorted(columns)
    return sorted(repr(row) for row in zip(*(columns[name] for name in names), strict=True))


def by_duckdb(task: Task, store: Store) -> list[str]:
    with duckdb_only():
        outcome = evaluate_task(task, store, shared_engine())
    assert not outcome.failed
    return rows_of(outcome.columns) if outcome.columns else []


@pytest.fixture(autouse=True, scope="module")
def small_row_groups() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "ROW_GROUP_ROWS", 9)
        patch.setattr(order, "RARE_ROWS_MAX", 4)
        yield


@pytest.mark.parametrize("seed", range(8))
def test_random_tasks_have_the_same_rows(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed >= 4:  # row groups are not read whole, and of more than a few lines a sample is
        monkeypatch.setattr(direct, "_WHOLE_ROWS_MAX", 0)
        monkeypatch.setattr(direct, "_LINES_MAX", 8)
        monkeypatch.setattr(direct, "_SAMPLE_ROWS", 2)
    store: Store = MemoryStore() if seed % 2 else DiskStore(tmp_path / "store")
    random_corpus(seed, batches=2, rows=40).ingest(store, twice=seed % 3 == 0)
    rng = random.Random(seed)
    for _ in range(40):
        text = random_query(rng)
        expr = parse_query(text, now_ns=T0).expr
        task = planned(store, Lines(limit=None), expr)
        few = evaluate_task(task, store, shared_engine())
        assert not few.failed
        assert (rows_of(few.columns) if few.columns else []) == by_duckdb(task, store), text
        counted = evaluate_task(planned(store, Groups(), expr), store, shared_engine())
        lines = len(next(iter(few.columns.values()), []))
        assert sum(counted.columns.get("count", [])) == lines, text


def test_ranges_cursors_and_duplicates_leave_the_same_rows() -> None:
    store = MemoryStore()
    random_corpus(3, batches=1, rows=60).ingest(store)
    task = planned(store, Lines(limit=None, newest=True))
    (scan, *_) = task.segments
    everything = evaluate_task(task, store, shared_engine()).columns
    stream, seq, ts = (everything[name][0] for name in ("stream", "seq", "ts"))
    changes: list[dict[str, Any]] = [
        {"rows": ((2, 5), (7, 21))},
        {"rows": ((0, 1),), "tids": (0, 1, 3)},
        {"tids": tuple(range(5))},
        {"skip": ((stream, seq, seq + 3),)},
        {"wanted": ((stream, 0, seq + 2, -1), (stream + 1, 0, 9, 1))},
        {"after": (ts, stream, True, seq)},
        {"after": (ts, stream, False, seq)},
    ]
    for change in changes:
        for newest in (True, False):
            changed = replace(
                task, segments=(replace(scan, **change),), shape=Lines(limit=None, newest=newest)
            )
            few = evaluate_task(changed, store, shared_engine())
            assert rows_of(few.columns) == by_duckdb(changed, store), change


def test_a_limit_keeps_all_that_share_the_last_time() -> None:
    store = MemoryStore()
    random_corpus(4, batches=1, rows=60).ingest(store)
    for newest in (True, False):
        whole = evaluate_task(planned(store, Lines(limit=None)), store, shared_engine()).columns
        first = sorted(whole["ts"], reverse=newest)[:5]
        cut = evaluate_task(
            planned(store, Lines(limit=5, newest=newest)), store, shared_engine()
        ).columns
        assert sorted(cut["ts"], reverse=newest)[:5] == first


def test_more_lines_than_a_few_are_left_to_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    random_corpus(5, batches=1, rows=60).ingest(store)
    task = planned(store, Lines(limit=None))
    (scan, *_) = task.segments
    with opened(scan, store, shared_engine(), Outcome()) as (_, item):
        assert item is not None
        assert direct.read_few(task, scan, item) is not None
        monkeypatch.setattr(direct, "_LINES_MAX", 3)
        assert direct.read_few(task, scan, item) is None


def test_a_sample_tells_that_many_lines_match(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    random_corpus(6, batches=1, rows=60).ingest(store)
    monkeypatch.setattr(direct, "_WHOLE_ROWS_MAX", 0)
    monkeypatch.setattr(direct, "_LINES_MAX", 8)
    monkeypatch.setattr(direct, "_SAMPLE_ROWS", 4)
    unpacked: list[int] = []
    texts = direct._Reading._texts

    def counted(self: Any, groups: Any, places: Any) -> Any:
        unpacked.append(len(places))
        return texts(self, groups, places)

    monkeypatch.setattr(direct._Reading, "_texts", counted)
    for pattern, many in ((".", True), ("no line has this", False)):
        task = Task(q.Matches(pattern), planned(store, Lines(limit=None)).segments, Lines())
        scan = replace(task.segments[0], certain=False)
        with opened(scan, store, shared_engine(), Outcome()) as (_, item):
            assert item is not None
            found = direct.read_few(task, scan, item)
        assert (found is None) is many
        assert unpacked[0] == 4 * direct._SAMPLES and (len(unpacked) == 1) is many
        unpacked.clear()


@pytest.mark.parametrize(
    ("pattern", "flags", "few"),
    [
        (r"\pL+", "", False),
        ("É", "i", False),
        ("(?i)É", "", False),
        ("e", "i", True),
        ("É", "", True),
    ],
)
def test_what_two_versions_of_re2_may_read_apart_is_left_to_duckdb(
    pattern: str, flags: str, few: bool
) -> None:
    texts = pa.array(["é", "É", "e"])
    scan = SegmentScan(0, "k", 1, "", 0, 0, 0)
    evaluator = Evaluator(scan, 3, lambda name: as_numbers(pa.array([0, 0, 0])), texts)
    if few:
        evaluator.masks(q.Matches(pattern, flags))
    else:
        with pytest.raises(Unsupported):
            evaluator.masks(q.Matches(pattern, flags))


VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0, 3, 3.5, -1.0, 2**53 + 1, math.nan, math.inf, -math.inf]),
)
TERMS = st.one_of(
    st.builds(lambda v: q.Number(v, str(v)), VALUES),
    st.builds(q.Range, st.one_of(st.none(), VALUES), st.one_of(st.none(), VALUES), st.booleans()),
    st.sampled_from([q.Null(), q.Present()]),
)
OPS = st.sampled_from([":", "!=", ">=", "<=", ">", "<"])


@given(
    st.one_of(
        st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=9),
        st.lists(st.one_of(st.none(), st.floats()), min_size=1, max_size=9),
    ),
    OPS,
    st.lists(TERMS, min_size=1, max_size=3),
)
@settings(deadline=None, max_examples=300)
def test_a_term_on_numbers_means_what_its_sql_means(
    column: list[Any], op: str, wanted: list[q.Value]
) -> None:
    is_float = any(isinstance(value, float) for value in column)
    array = pa.array(column, pa.float64() if is_float else pa.int64())
    sql = numbers_sql("x", op, wanted, is_float=is_float)
    kind = "DOUBLE" if is_float else "BIGINT"
    rows = duckdb.execute(
        f"SELECT coalesce({sql}, false) FROM (SELECT unnest($x::{kind}[]) AS x)", {"x": column}
    ).fetchall()
    mask = numbers_mask(as_numbers(array), op, wanted, is_float=is_float)
    assert mask.tolist() == [hit for (hit,) in rows]


def test_decimals_are_the_doubles_they_stand_for() -> None:
    values = [0.1, -2.5, None, 123456.789012, 0.000001, 8.25] * 10
    sink = pa.BufferOutputStream()
    column = as_decimals(pa.array(values, pa.float64()))
    assert pa.types.is_decimal(column.type)
    pq.write_table(pa.table({"x": column}), sink, store_decimal_as_integer=True)
    read = pq.read_table(pa.BufferReader(sink.getvalue())).column(0).combine_chunks().slice(1)
    found = as_numbers(read)
    assert found.present is not None
    shown = np.where(found.present, found.values, np.nan).tolist()
    assert [None if math.isnan(v) else v for v in shown] == values[1:]
