"""Runs, tags and points of a board over a small store."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.errors import NotFound
from ranklog.tensorboard.board import FRESH_S, Board
from ranklog.tensorboard.provider import buckets
from tests.tensorboard.training import SUMMARY, stored

RANK_3, AGAIN, RANK_5 = "llama@17/0/rank 3", "llama@17/1/rank 3", "llama@17/0/rank 5"
HOST = "llama@17/0/host gpu-1"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _board(query: str = "", **restrictions: Any) -> Board:
    client = Client(store=stored(), tenant="acme")
    return Board(client, query, {"run": "llama", **restrictions})


def test_a_run_is_a_rank_of_an_attempt_or_a_host_and_a_tag_a_series_with_its_dimensions() -> None:
    listing = _board().listing()

    assert sorted(listing.began_ns) == sorted([RANK_3, AGAIN, RANK_5, HOST])
    scalars = {tag for run, tag in listing.tags["scalars"] if run == RANK_3}
    assert scalars == {"loss", "learning_rate", "grad_norm/layer=h.3"}
    assert (RANK_3, "activation/module=mlp") in listing.tags["histograms"]
    assert listing.tags["scalars"][RANK_3, "loss"].step_max == 19


def test_points_are_in_order_of_iterations_and_nan_is_a_value() -> None:
    courses = dict(_board().read("scalars", [RANK_5], ["loss"], 1000))

    ((place, course),) = courses.items()
    assert place == (RANK_5, "loss")
    assert course.steps == list(range(21))
    assert course.values[:2] == [5.0, 4.9]
    assert math.isnan(course.values[20])


def test_an_attempt_that_was_done_again_is_a_run_of_its_own() -> None:
    courses = dict(_board().read("scalars", None, ["loss"], 1000))

    assert courses[AGAIN, "loss"].steps == list(range(15, 25))
    assert courses[RANK_3, "loss"].steps == list(range(20))


def test_points_without_an_iteration_stand_at_seconds_since_their_run_began() -> None:
    courses = dict(_board().read("scalars", [HOST], None, 1000))

    assert [course.steps for course in courses.values()] == [[0, 10, 20]]


def test_summaries_are_read_whole() -> None:
    ((_, course),) = _board().read("histograms", [RANK_5], None, 1000)

    assert course.steps == [0, 10]
    assert course.values[0]["histogram"] == SUMMARY["histogram"]
    assert buckets(course.values[0]).tolist() == [[-1, 1, 3], [1, 3, 5]]


def test_without_a_histogram_quantiles_stand_for_it() -> None:
    summary = {**SUMMARY, "histogram": None, "quantiles": {"0.25": 0.0, "0.75": 2.0}}

    assert buckets(summary).tolist() == [[-1, 0, 2], [0, 2, 4], [2, 3, 2]]
    assert buckets({**summary, "quantiles": None}).tolist() == [[-1, 3, 8]]
    assert buckets({**summary, "count": 0, "min": None}).shape == (0, 3)


def test_a_board_may_show_less() -> None:
    board = _board("loss OR learning_rate", rank="5")

    assert set(board.listing().tags["scalars"]) == {(RANK_5, "loss"), (RANK_5, "learning_rate")}
    assert board.name == "llama loss OR learning_rate"
    assert [place for place, _ in board.read("scalars", None, None, 100)] == [
        (RANK_5, "learning_rate"),
        (RANK_5, "loss"),
    ]


def test_thinned_courses_keep_their_ends() -> None:
    ((_, course),) = _board().read("scalars", [RANK_5], ["grad_norm/layer=h.3"], 8)

    assert len(course.steps) <= 12
    assert course.steps[0] == 0
    assert course.steps[-1] == 19


def test_a_listing_is_asked_for_again_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    client = Client(store=stored(), tenant="acme")
    board = Board(client, restrictions={"run": "llama"}, clock=clock)
    first = board.listing()
    clock.now += FRESH_S / 2
    assert board.listing() is first
    clock.now += FRESH_S

    assert board.listing() is not first


def test_many_names_are_asked_for_in_several_queries() -> None:
    board = _board()
    asked: list[str] = []
    board._series = lambda query, attempt, most: asked.append(query) or _no_series()  # type: ignore[method-assign, func-returns-value]
    listing = board._listing
    board._listed_s = math.inf
    from ranklog.tensorboard.board import Listed

    for number in range(100):
        listing.tags["scalars"]["r", f"t{number}"] = Listed(f't"{number}', "scalars", 0, 0, 0.0)

    assert list(board.read("scalars", None, None, 10)) == []
    assert len(asked) == 3
    assert all(len(query) < 8192 for query in asked)


def _no_series() -> Any:
    from ranklog.client.series_answer import SeriesAnswer

    return SeriesAnswer()


def test_an_unknown_run_is_not_found() -> None:
    board = Board(Client(store=stored(), tenant="acme"), restrictions={"run": "nobody"})

    with pytest.raises(NotFound):
        board.listing()
