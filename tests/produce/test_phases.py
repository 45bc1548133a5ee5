"""Phases and timers: on lines, and as points."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import ranklog
from ranklog.produce import context, phases

Point = tuple[dict[str, float], dict[str, Any], dict[str, Any]]


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Any:
    found: list[Point] = []
    clock = iter(range(0, 10**12, 2_500_000))
    monkeypatch.setattr(phases, "monotonic_ns", lambda: next(clock))
    monkeypatch.setattr(
        phases,
        "telemetry",
        lambda values, **dims: found.append((values, dims, dict(context.current().metadata))),
    )
    context.reset()
    yield found
    context.reset()


def test_a_phase_is_metadata_inside_and_a_point_at_its_end(points: list[Point]) -> None:
    with ranklog.phase("checkpoint"):
        assert context.current().metadata == {"phase": "checkpoint"}
    assert context.current().metadata == {}

    assert points == [({"phase_ms": 2.5}, {"phase": "checkpoint"}, {"phase": "checkpoint"})]


def test_phases_inside_each_other_end_inner_first(points: list[Point]) -> None:
    with ranklog.phase("step"), ranklog.phase("forward"):
        assert context.current().metadata == {"phase": "forward"}

    assert [(values["phase_ms"], dims["phase"]) for values, dims, _ in points] == [
        (2.5, "forward"),
        (7.5, "step"),
    ]


def test_a_phase_that_is_closed_twice_is_one_point(points: list[Point]) -> None:
    open_phase = ranklog.phase("eval")
    open_phase.close()
    open_phase.close()

    assert len(points) == 1


def test_a_phase_that_fails_has_its_point(points: list[Point]) -> None:
    with contextlib.suppress(ValueError), ranklog.phase("load"):
        raise ValueError

    assert len(points) == 1


def test_a_timer_is_a_point_and_leaves_lines_as_they_are(points: list[Point]) -> None:
    forward = ranklog.timer("forward", part="encoder")
    for _ in range(2):
        with forward:
            assert context.current().metadata == {}

    assert points == [({"timer_ms": 2.5}, {"timer": "forward", "part": "encoder"}, {})] * 2


def test_one_timer_inside_itself_times_both(points: list[Point]) -> None:
    timer = ranklog.timer("call")
    with timer, timer:
        pass

    assert [values["timer_ms"] for values, _, _ in points] == [2.5, 7.5]


def test_each_times_the_wait_for_every_item_and_not_what_is_done_with_it(
    points: list[Point],
) -> None:
    assert list(ranklog.timer("data").each(iter("abc"))) == ["a", "b", "c"]

    assert points == [({"timer_ms": 2.5}, {"timer": "data"}, {})] * 3
