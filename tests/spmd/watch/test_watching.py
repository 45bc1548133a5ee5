"""Each condition is told once, listed together where it is many's, and taken back when it ends."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ranklog.plan.parse import parse_query
from ranklog.spmd.watch.watching import Watching
from tests.spmd.watch.generated import T0, Story, line, news, step


@pytest.fixture(params=[False, True], ids=["one watch", "a watch that is started again each round"])
def story(request: pytest.FixtureRequest) -> Story:
    return Story(restart=request.param)


def test_a_run_that_stands_still_is_stalled_once_and_goes_on(story: Story) -> None:
    at = story.train(12, first=0)
    story.wait(600)
    assert story.told == ["fired stalled run"]
    [alert] = story.notices
    assert (alert.severity, alert.runbook) == ("critical", "docs/runbooks/hang.md")
    assert alert.message.startswith("no new iteration for 2 min")
    assert alert.query == f"iteration>={at - 1}"
    story.train(3, first=at)
    assert story.told == ["fired stalled run", "resolved stalled run"]
    assert story.notices[-1].message.startswith("the run goes on, after 10 min")


def test_a_slow_run_is_given_ten_times_its_usual_time(story: Story) -> None:
    for k in range(8):
        story.now_s = 60.0 * k
        story.round([step(0, story.now_s, k)])
    story.wait(580)
    assert story.told == []
    story.wait(60)
    assert story.told == ["fired stalled run"]


def test_a_checkpoint_an_evaluation_and_the_start_may_take_long(story: Story) -> None:
    story.round([line(0, 5, "building the model")])
    story.wait(900)
    at = story.train(12, first=0)
    for words in ("saving checkpoint to /ckpt", "evaluating on 4 shards"):
        story.round([line(0, story.now_s + 1, words)])
        story.wait(400)
        at = story.train(6, first=at)
    story.round([line(0, story.now_s + 1, "x", metadata={"phase": "checkpoint"})])
    story.wait(300)
    story.train(3, first=at)
    assert story.told == []


def test_a_checkpoint_that_never_ends_is_told_later(story: Story) -> None:
    story.train(12, first=0)
    story.round([line(0, story.now_s + 1, "saving checkpoint to /ckpt")])
    story.wait(1_700)
    assert story.told == []
    story.wait(300)
    assert story.told == ["fired stalled run"]


def test_a_rank_that_says_nothing_while_others_go_on_is_silent(story: Story) -> None:
    story.beats = set(range(8))
    at = story.train(12, first=0)
    at = story.train(20, first=at, ranks=[0, 1, 2, 4, 5, 6, 7])
    assert story.told == ["fired silent rank 3"]
    [alert] = story.notices
    assert (alert.verdict, alert.severity, alert.query) == ("silent", "warning", "rank:3")
    assert "on gpu-0" in alert.message
    story.train(3, first=at)
    assert story.told == ["fired silent rank 3", "resolved silent rank 3"]


def test_ranks_whose_heartbeats_stop_are_gone_and_told_together(story: Story) -> None:
    story.beats = set(range(8))
    at = story.train(12, first=0)
    story.beats = {0, 1, 2, 3}
    story.train(40, first=at, ranks=range(4))
    fired = [n for n in story.notices if n.state == "fired" and n.verdict == "gone"]
    assert [n.ranks for n in fired] == [(4, 5, 6, 7)]
    assert fired[0].severity == "critical"
    assert fired[0].query == "rank:4-7"
    assert "no heartbeat" in fired[0].message


def test_a_rank_whose_lines_are_on_their_way_is_late(story: Story) -> None:
    at = story.train(12, first=0)
    others = [0, 1, 2, 4, 5, 6, 7]
    story.round([], [news(3, story.now_s, alive_ns=None, end=60, fenced=90)])
    story.train(20, first=at, ranks=others)
    assert [(n.verdict, n.subjects) for n in story.notices] == [("late", ("rank 3",))]


def test_a_rank_that_only_speaks_now_and_then_is_not_silent(story: Story) -> None:
    story.round([line(5, 1, "hello")])
    story.train(60, first=0, ranks=[0])
    assert story.told == []


def test_in_a_stall_who_stopped_first_is_behind(story: Story) -> None:
    at = story.train(12, first=0)
    lines = [step(rank, story.now_s + 1, at) for rank in range(8) if rank != 6]
    story.round(lines)
    story.wait(300)
    assert story.told == ["fired stalled run", "fired lagging rank 6"]
    assert "1 iteration behind" in story.notices[-1].message


def test_a_rank_that_speaks_of_iterations_long_done_lags(story: Story) -> None:
    at = story.train(12, first=0)
    behind = at
    for k in range(60):
        now = story.now_s
        lines = [step(r, now + i * 2, at + i) for i in range(5) for r in range(7)]
        slow = [step(7, now + 3, behind)] if k % 2 else []
        behind += len(slow)
        at += 5
        story.round([*lines, *slow])
    assert story.told == ["fired lagging rank 7"]


def test_a_loss_that_is_not_finite_is_told_once_and_resolved(story: Story) -> None:
    at = story.train(12, first=0)
    at = story.train(4, first=at, value=lambda rank, k: {"loss": math.nan})
    assert story.told == ["fired nan loss"]
    [alert] = story.notices
    assert (alert.ranks, alert.severity) == (tuple(range(8)), "critical")
    assert alert.query == "loss:NaN,Inf,-Inf"
    story.train(3, first=at)
    assert story.told == ["fired nan loss", "resolved nan loss"]


def test_a_gradient_that_overflows_once_is_loss_scaling(story: Story) -> None:
    at = story.train(12, first=0, value=lambda rank, k: {"grad_norm": 1.0})
    odd = at + 2
    at = story.train(
        6, first=at, value=lambda rank, k: {"grad_norm": math.inf if k == odd else 1.0}
    )
    assert story.told == []
    story.train(4, first=at, value=lambda rank, k: {"grad_norm": math.inf})
    assert story.told == ["fired nan grad_norm"]
    assert story.notices[-1].severity == "warning"


def test_what_was_never_finite_is_how_it_is_printed(story: Story) -> None:
    story.train(20, first=0, value=lambda rank, k: {"loss": math.nan, "val_loss": math.nan})
    assert story.told == []


def test_values_of_an_api_are_read_as_they_are_spelled(story: Story) -> None:
    at = story.train(6, first=0)
    story.round([step(0, story.now_s, at) for _ in range(1)])
    story.round([line(0, story.now_s, "loss", iteration=at + 1, metadata={"loss": "NaN"})])
    assert story.told == ["fired nan loss"]


def test_iterations_that_take_longer_than_they_did_are_told(story: Story) -> None:
    at = story.train(30, first=0)
    at = story.train(20, first=at, each_s=5.0)
    assert story.told == ["fired slow run"]
    assert story.notices[0].message == "an iteration takes 5 s, and usually took 2 s"
    story.train(20, first=at)
    assert story.told == ["fired slow run", "resolved slow run"]


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"


def test_an_error_that_the_run_does_not_survive_is_told_with_its_class(story: Story) -> None:
    at = story.train(12, first=0)
    story.round([line(2, story.now_s, OOM, level=40)])
    story.wait(60)
    assert story.told == ["fired error oom_device"]
    [alert] = story.notices
    assert (alert.ranks, alert.runbook) == ((2,), "docs/runbooks/oom_device.md")
    assert "CUDA out of memory" in alert.message
    story.train(4, first=at)
    assert story.told[-1] == "resolved error oom_device"


def test_an_error_that_the_run_survives_is_no_news(story: Story) -> None:
    at = story.train(12, first=0)
    for _ in range(6):
        story.round([line(2, story.now_s - 9, OOM, level=40)])
        at = story.train(2, first=at)
    assert story.told == []


def test_errors_of_a_teardown_are_no_news(story: Story) -> None:
    story.train(12, first=0)
    story.round([line(0, story.now_s, "training is complete")])
    story.round([line(1, story.now_s, "ConnectionError: lost", level=40)])
    story.wait(200)
    assert story.told == []


def test_what_comes_after_an_end_from_outside_is_its_effect(story: Story) -> None:
    story.train(12, first=0)
    story.round(
        [line(None, story.now_s, "slurmstepd: error: *** JOB 7 ON gpu-0 CANCELLED AT now *")]
    )
    story.round([line(1, story.now_s, "RuntimeError: Broken pipe", level=40)])
    story.wait(600)
    assert story.told == []


def _ended(rank: int, at_s: float, code: int, **changes: object) -> object:
    return replace(news(rank, at_s), ended=True, exit_code=code, **changes)


def test_a_run_that_ends_well_is_finished_and_says_nothing(story: Story) -> None:
    story.beats = set(range(8))
    story.train(12, first=0)
    story.beats = set()
    for rank in range(8):
        assert story.watching.state == "running"
        story.round([], [_ended(rank, story.now_s, 0)])  # type: ignore[list-item]
    assert story.watching.state == "finished"
    story.wait(600)
    assert story.told == []


def test_ranks_that_end_with_an_error_are_told_and_another_attempt_resolves_it(
    story: Story,
) -> None:
    story.train(12, first=0)
    story.round([line(2, story.now_s, OOM, level=40)])
    codes = {rank: 1 if rank == 2 else -15 for rank in range(8)}
    story.round([], [_ended(rank, story.now_s, code) for rank, code in codes.items()])  # type: ignore[misc]
    assert story.watching.state == "failed"
    assert story.told[:1] == ["fired error oom_device"] or "fired error oom_device" in story.told
    exits = [n for n in story.notices if n.kind == "exit"]
    assert [n.ranks for n in exits] == [tuple(range(8))]
    assert exits[0].message.endswith("ended with code -15, 1")
    again = [
        replace(news(rank, story.now_s), attempt=1, stream_id=f"again{rank}") for rank in range(8)
    ]
    story.round([], again)
    assert story.watching.state == "running"
    assert {n.kind for n in story.notices if n.state == "resolved"} == {"exit", "error"}


def test_one_alert_lists_a_thousand_ranks_and_memory_is_bounded() -> None:
    story = Story(ranks=4096)
    for k in range(12):
        lines = [step(rank, story.now_s + rank / 1e4, k) for rank in range(4096)]
        story.round(lines)
    for k in range(12, 40):
        story.round([step(rank, story.now_s + rank / 1e4, k) for rank in range(1024, 4096)])
    [alert] = story.notices
    assert alert.ranks == tuple(range(1024))
    assert alert.query == "rank:0-1023"
    assert len(str(story.watching.to_json())) < 2_000_000


def test_every_query_of_an_alert_parses(story: Story) -> None:
    at = story.train(30, first=0, value=lambda rank, k: {"loss": 1.0, "lm loss": 1.0})
    at = story.train(20, first=at, each_s=5.0)
    bad = {"loss": math.nan, "lm loss": math.nan}
    story.train(3, first=at, value=lambda rank, k: bad)
    story.round([line(2, story.now_s, OOM, level=40)])
    story.wait(400)
    story.round([], [_ended(rank, story.now_s, 1) for rank in range(8)])  # type: ignore[misc]
    kinds = {notice.kind for notice in story.notices}
    assert {"slow", "nan", "error", "stalled", "exit"} <= kinds
    for notice in story.notices:
        parse_query(notice.query, now_ns=T0, tz="UTC")


def test_a_state_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 9"):
        Watching.from_json({"version": 9})
