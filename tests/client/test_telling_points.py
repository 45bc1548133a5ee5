"""Triage of runs whose loss is telemetry: points stand for lines that no one wrote."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.client.point_lines import lines_of
from ranklog.store.memory import MemoryStore
from tests.client.test_search import SECOND, put
from tests.client.test_series import metric, put_points, record
from tests.ingest.frames import T0
from tests.point_frames import Record

RANKS = range(4)


def client_of(records: list[Record]) -> Client:
    """Lines without values, as many as iterations, and these points."""
    store = MemoryStore()
    put(store, "a", [metric(rank, i) for rank in RANKS for i in range(20)])
    put_points(store, "p", records)
    return Client(store=store, tenant="acme")


def losses(broken: int, **dims: object) -> list[Record]:
    """Losses of four ranks: of `broken` NaN since iteration 12, of its peers one later."""
    found = []
    for rank in RANKS:
        for i in range(20):
            bad = i >= (12 if rank == broken else 13)
            values = {"train/loss": math.nan if bad else 3 - i / 10, "lr": 0.1}
            found.append(record(rank, i, values, **dims))
    return found


def test_a_loss_that_is_telemetry_names_who_had_it_first() -> None:
    client = client_of(losses(2))
    found = client.triage(run="llama")
    assert (found.fault, found["why"]) == ("numeric", "the loss is not finite since iteration 12")
    [suspect] = found.suspects
    [shown] = suspect["evidence"]
    assert (suspect["rank"], shown["text"], shown["iteration"]) == (2, "train/loss=nan", 12)
    command = found["next_steps"][0]["command"]
    assert command.startswith("ranklog series train/loss --run llama@")
    assert len(client.series("train/loss", run="llama")) == 4


def test_a_loss_of_a_part_is_no_ranks_loss() -> None:
    assert client_of(losses(2, layer=3)).triage(run="llama").fault != "numeric"


def test_the_first_iteration_is_found_behind_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRIAGE_STEPS_MAX", 6)
    found = client_of(losses(2)).triage(run="llama")
    assert found["why"] == "the loss is not finite since iteration 12"


def test_older_segments_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRIAGE_POINTS_MAX", 30)
    old = [record(rank, i, {"loss": math.nan}) for rank in RANKS for i in range(10)]
    store = MemoryStore()
    put(store, "a", [metric(rank, i) for rank in RANKS for i in range(20)])
    put_points(store, "p", old)
    put_points(store, "q", [_again(rank, i) for rank in RANKS for i in range(10, 14)])
    found = Client(store=store, tenant="acme").triage(run="llama")
    assert found.fault != "numeric"
    assert any("newest points" in note for note in found.report.notes)


def _again(rank: int, i: int) -> Record:
    made = record(rank, i, {"loss": 2.5})
    return replace(made, stream=replace(made.stream, incarnation="2"))


def test_a_question_about_text_is_answered_from_lines_alone() -> None:
    found = client_of(losses(2)).triage("it", run="llama")
    assert found.fault != "numeric"
    assert any("points were left out" in note for note in found.report.notes)


def test_values_of_one_record_are_one_line() -> None:
    said = {"run_id": "job@1", "attempt": 0, "rank": 3, "host": "a", "stream": "ab", "seq": 7}
    points = [
        {**said, "ts_ns": T0 + SECOND, "iteration": 4, "series": name, "value": value}
        for name, value in (("loss", "NaN"), ("grad_norm", 0.5), ("lr", None))
    ]
    [line] = lines_of(points)
    assert (line.id, line.text, line.rank) == ("ab:7", "loss=nan grad_norm=0.5", 3)
    assert math.isnan(float(line.metadata["loss"]))
    assert (line.run_id, line.channel) == ("job@1", "telemetry")
