"""Verdicts are counted as they should be, and rules of thumb are not enough."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.faults.job import Job
from tests.faults.rules import RULES
from tests.faults.score import (
    Score,
    jobs_of,
    main,
    names_class,
    names_culprit,
    score,
    score_in,
    score_seeds,
    seeds_of,
)
from tests.faults.truth import Culprit, Truth

RANK = Truth("oom_rank", 3, "oom_device", 1, 1, frozenset([3]))
HOSTED = Truth("xid_host", 3, "hardware", 1, 1, frozenset([3]), or_host="gpu1")
NODE = Truth("slow_node", "gpu1", "slow", 1, 1, frozenset([2, 3]))
SOME = Truth("nan_replica", frozenset([0, 2]), "numeric", 1, 1, frozenset([0, 2]))
EVERY = Truth("oom_all", "all", "oom_device", 1, 1)
OPEN = Truth("hang_silent", "undecidable", "hang", 1, 1)
OUTSIDE = Truth("time_limit", "none", "external_kill", 1, 1)


@pytest.mark.parametrize(
    ("truth", "suspects", "right"),
    [
        (RANK, [3, 1], True),
        (RANK, [1, 3], False),
        (RANK, [frozenset([3])], True),
        (RANK, [frozenset([2, 3])], False),
        (RANK, ["gpu1"], False),
        (RANK, [], False),
        (HOSTED, ["gpu1"], True),
        (HOSTED, [3], True),
        (NODE, ["gpu1"], True),
        (NODE, [frozenset([2, 3])], True),
        (NODE, [3, 2, 0], True),
        (NODE, [3], False),
        (SOME, [frozenset([0, 2])], True),
        (SOME, [2, 0], True),
        (SOME, [2, 1], False),
        (EVERY, ["all"], True),
        (EVERY, [0], False),
        (OPEN, ["undecidable"], True),
        (OPEN, [], False),
        (OUTSIDE, [], True),
        (OUTSIDE, ["none"], True),
        (OUTSIDE, ["all"], False),
    ],
)
def test_the_first_suspect_is_the_culprit_or_not(
    truth: Truth, suspects: Sequence[Culprit], right: bool
) -> None:
    assert names_culprit(truth, suspects) is right


def test_a_class_of_equal_right_counts() -> None:
    truth = Truth(
        "hang_timeout", 1, "collective_timeout", 1, 1, frozenset([1]), frozenset(["hang"])
    )
    assert names_class(truth, "hang") and names_class(truth, "collective_timeout")
    assert not names_class(truth, "slow")


def test_a_verdict_that_knows_is_right_everywhere() -> None:
    def knows(job: Job) -> tuple[str, list[Culprit]]:
        return job.truth.fault_class, [job.truth.culprit]

    result = score({"knows": knows}, jobs_of(64, 10))["knows"]
    assert (result.culprit_share, result.class_share, result.false_alarm_share) == (1, 1, 0)
    assert "culprit below 95 %: nowhere" in result.report()


def test_a_suspect_in_a_healthy_job_is_a_false_alarm() -> None:
    result = Score("nervous")
    for job in jobs_of(0, 4):
        result.add(job, "hang", [job.seed % 2], 0.0)
        result.add(job, "none", [], 0.0)
    assert (result.jobs, result.healthy, result.false_alarm_share) == (0, 8, 0.5)


def test_workers_count_what_one_process_counts(capsys: pytest.CaptureFixture[str]) -> None:
    name = "tests.faults.rules:first_error"
    seeds = seeds_of(12, 3)
    alone, together = score_seeds(name, seeds), score_in(2, name, seeds)
    for verdict, counted in alone.items():
        other = together[verdict]
        assert (other.confusion, other.of_fault) == (counted.confusion, counted.of_fault)
        assert (other.jobs, other.healthy, other.culprits) == (
            counted.jobs,
            counted.healthy,
            counted.culprits,
        )
        assert sorted(w[0] for w in other.wrong) == sorted(w[0] for w in counted.wrong)
    assert "15 of 15 jobs" in capsys.readouterr().err


def test_rules_of_thumb_stay_under_sixty_percent() -> None:
    scores = score(dict(RULES), jobs_of(90, 15))
    shares = {name: result.culprit_share for name, result in scores.items()}
    assert max(shares.values()) < 0.6, shares
    assert min(shares.values()) > 0.0, shares


def test_the_command_prints_a_table_for_each_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "--seeds",
                "31",
                "--healthy",
                "3",
                "--verdict",
                "tests.faults.rules:first_error",
                "--wrong",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    for words in (
        "== first error: 31 faults, 3 healthy",
        "== root cause",
        "culprit first",
        "seed ",
    ):
        assert words in printed
