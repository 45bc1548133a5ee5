"""Ranks with many lines are compared as columns, and the answer is the same."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.client.comparison_columns import shape_of_template
from ranklog.importer import import_paths
from ranklog.layout.tokens_pure import template_of
from ranklog.model.frame import NO_ITERATION, CallSite
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000
SITE = CallSite("train.py:88", "train")


def rows_of(rng: random.Random, rank: int, launch: str = "17") -> list[Row]:
    """Iterations that differ a little: values, words, metadata, levels, lines that one rank lacks."""
    one = replace(stream(rank), launch=launch)
    ts, rows = T0 + rng.randrange(SECOND), [Row(f"rank {rank} of 3", ts=T0, stream=one)]
    for iteration in range(30):
        ts += SECOND
        said = [
            Row(f"iteration {iteration} loss: {2.5 if rng.random() < 0.8 else 97.5}", level=20),
            Row("saved to /ckpt" if rng.random() < 0.9 else "saved to /tmp"),
            Row(f"12:30:0{rank} step took 7 ms", site=SITE),
            Row("lr 0.5" if rng.random() < 0.9 else "lr 2.5e-05"),
            Row("[rank]: peer", body_at=8),
        ]
        if rng.random() < 0.2:
            said.append(Row("retry of fetch", level=30))
        if rng.random() < 0.2:
            del said[rng.randrange(len(said))]
        for row in said:
            metadata: dict[str, Any] = {"loss": float("nan"), "ds": "c4"}
            if rng.random() < 0.05:
                metadata["ds"] = "pile"
            at = iteration if rng.random() < 0.9 else NO_ITERATION
            rows.append(replace(row, ts=ts, stream=one, iteration=at, metadata=metadata))
    return rows


def both(monkeypatch: pytest.MonkeyPatch, client: Client, **shape: Any) -> list[list[Any]]:
    """The hunks by lines and by columns."""
    found = []
    for most in (10_000, 0):
        monkeypatch.setattr(limits, "COMPARE_LINES_MAX", most)
        found.append(client.compare(**shape).rows)
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("every", [False, True])
def test_columns_answer_as_lines_do(
    seed: int, every: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    store = MemoryStore()
    for rank in range(3):
        put(store, str(rank), rows_of(rng, rank))
    client = Client(store=store, tenant="acme")
    ranks = [[0, 1], [0, 1, 2]][seed % 2]
    lines, columns = both(
        monkeypatch, client, run="llama", ranks=ranks, all_hunks=every, limit=None
    )
    assert any(row["op"] != "equal" for row in lines)
    assert [(x["op"], x["iteration"], x["ranks"], x["values"]) for x in columns] == [
        (x["op"], x["iteration"], x["ranks"], x["values"]) for x in lines
    ]


def test_what_is_behind_the_limit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(4)
    store = MemoryStore()
    for rank in range(2):
        put(store, str(rank), rows_of(rng, rank))
    client = Client(store=store, tenant="acme")
    monkeypatch.setattr(limits, "COMPARE_LINES_MAX", 0)
    whole = client.compare(run="llama", ranks=[0, 1], limit=None)
    cut = client.compare(run="llama", ranks=[0, 1], limit=3)
    assert cut.rows == whole.rows[:3]
    assert [note for note in cut.report.notes if "first 3 differing" in note] != []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 1.5 of 3", "loss 2.5e-05 of 3"),
        ("loss 1.5", "loss nan"),
        ("at 12:30:01 ready", "at 12:30:02 ready"),
        ("host gpu-01 up", "host gpu-17 up"),
    ],
)
def test_values_of_one_variable_have_one_key(one: str, other: str) -> None:
    assert shape_of_template(template_of(one)) == shape_of_template(template_of(other))


def test_imported_ranks_are_compared_as_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(2):
        said = [
            f"2026-05-01 10:00:{i:02d} [rank{rank}]: step={i} loss={2.5 - i / 10}"
            for i in range(40)
        ]
        said[7 + rank] += " odd"
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(said) + "\n")
    store = MemoryStore()
    import_paths([str(tmp_path)], store=store, tenant="default", run="job", now_ns=T0)
    lines, columns = both(monkeypatch, Client(store=store), run="job", ranks=[0, 1])
    assert columns == lines and len(lines) >= 2
