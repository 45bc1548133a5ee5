"""near() and spike() over lines and points, against brute force over small corpora."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.model import query as q
from ranklog.plan.parse import parse_query
from ranklog.plan.spikes import spikes
from ranklog.store.memory import MemoryStore
from tests.client.test_search import SECOND, put
from tests.client.test_series import RUN, points_stream, put_points
from tests.ingest.frames import NO_ITERATION, T0, Row, stream
from tests.point_frames import Record

NOW = T0 + 10**15
HOSTS = {0: "gpu-1", 1: "gpu-1", 2: "gpu-2"}


@dataclass(frozen=True)
class Seen:
    """A line (`text`) or a point (`series`)."""

    name: str  # text of a line; what tells a point
    rank: int | None
    host: str
    ts: int
    iteration: int | None
    series: str | None = None
    value: float = 0.0
    layer: str | None = None
    level: int = 0


def corpus(seed: int) -> list[Seen]:
    """Ranks of two hosts in step, lines without iteration among them, kernel lines of a host."""
    rng = random.Random(seed)
    rows: list[Seen] = []
    for i in range(24):
        for rank, host in HOSTS.items():
            at = T0 + (i * 10 + rank) * SECOND
            level = 40 if rng.random() < 0.15 else 20
            step = i if rng.random() < 0.6 else None
            rows.append(Seen(f"line {i} of {rank}", rank, host, at + SECOND, step, level=level))
            for layer in ("h.0", "h.1"):
                value = 50.0 if rng.random() < 0.06 else 1 + rng.random() / 50
                rows.append(
                    Seen(f"{i} {rank} {layer}", rank, host, at, i, "grad_norm", value, layer)
                )
        if rng.random() < 0.2:
            rows.append(
                Seen(f"kernel {i}", None, "gpu-1", T0 + (i * 10 + 5) * SECOND, None, level=40)
            )
    return rows


def stored(rows: Sequence[Seen], store: MemoryStore | None = None) -> Client:
    store = store or MemoryStore()
    put(
        store,
        "1",
        [
            Row(
                row.name,
                ts=row.ts,
                stream=stream(
                    row.rank, host=row.host, channel="kernel" if row.rank is None else "stdout"
                ),
                iteration=NO_ITERATION if row.iteration is None else row.iteration,
                level=row.level,
            )
            for row in rows
            if row.series is None
        ],
    )
    records = [
        Record({row.series: row.value}, {"layer": row.layer}, row.ts, row.iteration,
               points_stream(row.rank or 0, host=row.host))  # type: ignore[arg-type]
        for row in rows
        if row.series is not None
    ]  # fmt: skip
    put_points(store, "1", records)
    return Client(store=store, tenant="acme")


class Oracle:
    """What a query means, row by row."""

    def __init__(self, rows: Sequence[Seen]) -> None:
        self.rows = rows
        self.spiked: dict[q.Spike, set[Seen]] = {}

    def holds(self, expr: q.Expr, row: Seen) -> bool:
        if isinstance(expr, q.Everything):
            return True
        if isinstance(expr, q.Not):
            return not self.holds(expr.item, row)
        if isinstance(expr, q.And):
            return all(self.holds(item, row) for item in expr.items)
        if isinstance(expr, q.Or):
            return any(self.holds(item, row) for item in expr.items)
        if isinstance(expr, q.Contains):
            return row.series is None and expr.literal in row.name
        if isinstance(expr, q.Spike):
            return row in self.spikes(expr)
        if isinstance(expr, q.Near):
            return self.near(expr, row)
        assert isinstance(expr, q.Field)
        return self.field(expr, row)

    def field(self, term: q.Field, row: Seen) -> bool:
        (value,) = term.values
        if term.key == "series":
            return isinstance(value, q.Exact) and row.series == value.text
        if term.key == "rank":
            return isinstance(value, q.Number) and row.rank == value.value
        if term.key == "layer":
            return isinstance(value, q.Exact) and row.layer == value.text
        assert isinstance(value, (q.Number, q.Range)), term
        bound = value.low if isinstance(value, q.Range) else value.value
        assert bound is not None
        if term.key == "level":
            return row.series is None and row.level >= bound
        assert term.key == "grad_norm" and term.op == ">"
        return row.series == term.key and row.value > bound

    def spikes(self, expr: q.Spike) -> set[Seen]:
        if expr not in self.spiked:
            groups: dict[Any, list[Seen]] = {}
            for row in self.rows:
                if row.series == expr.series and self.holds(expr.where, row):
                    groups.setdefault((row.rank, row.layer), []).append(row)
            found = set()
            for rows in groups.values():
                rows.sort(key=lambda row: row.iteration or 0)
                places = spikes([row.value for row in rows], expr.factor, ratio=expr.ratio)
                found |= {rows[at] for at in places}
            self.spiked[expr] = found
        return self.spiked[expr]

    def iterations(self, row: Seen) -> set[tuple[int | None, int]]:
        """(rank, iteration) that a row is at: its own, or what its ranks carry."""
        if row.iteration is not None:
            return {(row.rank, row.iteration)}
        ranks = (
            [row.rank] if row.rank is not None else [r for r, h in HOSTS.items() if h == row.host]
        )
        found = set()
        for rank in ranks:
            known = [
                (other.ts, other.iteration)
                for other in self.rows
                if other.rank == rank and other.iteration is not None and other.ts <= row.ts
            ]
            if known:
                found.add((rank, max(known)[1]))
        return found  # type: ignore[return-value]

    def near(self, expr: q.Near, row: Seen) -> bool:
        before = 0 if expr.side == "after" else expr.distance
        after = 0 if expr.side == "before" else expr.distance
        for match in self.rows:
            if not self.holds(expr.query, match):
                continue
            for (mine, at), (theirs, other) in self.pairs(expr, row, match):
                together = expr.scope == "any" or (
                    row.host == match.host if expr.scope == "host" else mine == theirs
                )
                if together and other - before <= at <= other + after:
                    return True
        return False

    def pairs(self, expr: q.Near, row: Seen, match: Seen) -> Any:
        if expr.axis == "iteration":
            return [(a, b) for a in self.iterations(row) for b in self.iterations(match)]
        own = [row.rank] if row.rank is not None else [r for r, h in HOSTS.items() if h == row.host]
        other = (
            [match.rank]
            if match.rank is not None
            else [r for r, h in HOSTS.items() if h == match.host]
        )
        if row.rank is None and match.rank is None and row.host == match.host:
            own = other = [None]
        return [((a, row.ts), (b, match.ts)) for a in own for b in other]


LINES = [
    "level>=ERROR near(spike(grad_norm layer:h.1, ratio:10), iteration, before 2, any)",
    "near(spike(grad_norm, ratio:10), iteration, 1)",
    "near(spike(grad_norm layer:h.0, 20), iteration, after 1, host)",
    "near(grad_norm>10, iteration, 0)",
    "near(grad_norm>10, time, before 12s, any)",
    "near(grad_norm>10 layer:h.0, time, 3s)",
    "near(kernel, iteration, 0)",
    "near(kernel, time, 15s)",
    "line near(kernel, iteration, 1, host)",
    "NOT near(grad_norm>10, iteration, 1, any)",
    "near(NOT level>=ERROR rank:1 line, iteration, 0, any)",
    "near(level>=ERROR near(spike(grad_norm, ratio:10), iteration, 1, any), iteration, before 1)",
    "near(spike(grad_norm, ratio:10) OR kernel, iteration, 1, any)",
    "near(kernel, iteration, 0) OR near(grad_norm>10, iteration, 0)",
    "near(series:grad_norm layer:h.1 rank:2, iteration, 0)",
]
POINTS = [
    "grad_norm near(level>=ERROR, iteration, after 1)",
    "grad_norm near(kernel, iteration, 0)",
    "spike(grad_norm, ratio:10)",
    "grad_norm -spike(grad_norm, ratio:10) layer:h.0",
    "grad_norm near(spike(grad_norm layer:h.0, ratio:10), iteration, 1, host) layer:h.1",
    "grad_norm NOT near(level>=ERROR, time, 20s, any)",
    "grad_norm (near(kernel, time, 5s, host) OR rank:2)",
]


@pytest.mark.parametrize("seed", [1, 2])
def test_lines_near_lines_and_points_are_those_of_brute_force(seed: int) -> None:
    rows = corpus(seed)
    client, oracle = stored(rows), Oracle(rows)
    sizes = []
    for text in LINES:
        expr = parse_query(text, now_ns=NOW).expr
        expected = sorted(
            row.name for row in rows if row.series is None and oracle.holds(expr, row)
        )
        found = client.search(text, run=RUN, limit=0)
        assert sorted(line.text for line in found.lines) == expected, text
        sizes.append(len(expected))
    assert sum(size > 0 for size in sizes) > len(LINES) // 2


@pytest.mark.parametrize("seed", [1, 2])
def test_points_near_lines_and_points_are_those_of_brute_force(seed: int) -> None:
    rows = corpus(seed)
    client, oracle = stored(rows), Oracle(rows)
    sizes = []
    for text in POINTS:
        expr = parse_query(text, now_ns=NOW, series=True).expr
        expected = sorted(
            row.name for row in rows if row.series is not None and oracle.holds(expr, row)
        )
        found = client.series(text, run=RUN, max_points=0, superseded=True)
        names = [f"{p['iteration']} {p['rank']} {p['dims']['layer']}" for p in found.rows()]
        assert sorted(names) == expected, text
        sizes.append(len(expected))
    assert sum(size > 0 for size in sizes) > len(POINTS) // 2


def test_a_hardware_error_before_a_spike_is_one_question() -> None:
    """The example of the language: an answer with its completeness."""
    rows = [Seen(f"{i} 0 h.7", 0, "gpu-1", T0 + i * SECOND, i, "grad_norm",
                 80.0 if i == 30 else 1 + i % 3 / 100, "h.7") for i in range(40)]  # fmt: skip
    rows += [
        Seen(f"Xid 79 {i}", 3, "gpu-1", T0 + i * SECOND, i, level=40) for i in (10, 28, 29, 31)
    ]
    query = "level>=ERROR near(spike(grad_norm layer:h.7, ratio:10), iteration, before 2, any)"
    found = stored(rows).search(query, run=RUN)
    assert [line.text for line in found.lines] == ["Xid 79 28", "Xid 79 29"]
    assert found.completeness.state in ("complete", "behind") and found.report.segments_scanned


def test_names_of_series_are_known_inside_near(  # a line written as lm_loss is of the series loss
) -> None:
    store = MemoryStore()
    put(store, "1", [Row(f"it {i}", ts=T0 + i * SECOND, stream=stream(0), iteration=i,
                         metadata={"lm_loss": 3 - i / 10}) for i in range(10)])  # fmt: skip
    client = Client(store=store, tenant="acme")
    found = client.search("near(loss<2.25, iteration, 0)", run=RUN)
    assert [line.text for line in found.lines] == ["it 8", "it 9"]
    assert not math.isnan(client.series("loss near(loss<2.25, iteration, 1)", run=RUN)[0].values[0])


def test_a_pinned_question_keeps_the_points_that_it_looked_at() -> None:
    rows = [Seen(f"{i} 0 h.7", 0, "gpu-1", T0 + i * SECOND, i, "grad_norm",
                 80.0 if i == 30 else 1 + i % 3 / 100, "h.7") for i in range(40)]  # fmt: skip
    rows += [Seen(f"Xid 79 {i}", 0, "gpu-1", T0 + i * SECOND, i, level=40) for i in (10, 29)]
    store = MemoryStore()
    client = stored(rows, store)
    query = "near(spike(grad_norm, ratio:10), iteration, before 2)"
    first = client.search(query, run=RUN, pin=True)
    assert first.pin is not None and [line.text for line in first.lines] == ["Xid 79 29"]
    more = [Record({"grad_norm": 99.0 if i == 49 else 1.0}, {"layer": "h.7"}, T0 + i * SECOND, i,
                   points_stream(0, host="gpu-1")) for i in range(40, 60)]  # type: ignore[arg-type]  # fmt: skip
    put_points(store, "2", more)
    put(store, "2", [Row("late", ts=T0 + 48 * SECOND, stream=stream(0), iteration=48)])
    again = client.search(pin=first.pin["id"])
    assert [line.text for line in again.lines] == ["Xid 79 29"]


def test_a_search_for_points_knows_spikes() -> None:
    rows = [Seen(f"{i} 0 {layer}", 0, "gpu-1", T0 + i * SECOND, i, "grad_norm",
                 80.0 if (i, layer) == (30, "h.1") else 1 + i % 3 / 100, layer)
            for i in range(40) for layer in ("h.0", "h.1")]  # fmt: skip
    found = stored(rows).search("kind:point spike(grad_norm, ratio:10)", run=RUN)
    (row,) = found.points  # type: ignore[attr-defined]
    assert (row["iteration"], row["dims"], row["value"]) == (30, {"layer": "h.1"}, 80.0)
