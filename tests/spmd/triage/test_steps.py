"""What to do next is something that can be done."""

from __future__ import annotations

import shlex

import pytest

from ranklog.model.levels import ERROR
from ranklog.plan.parse import parse_query
from ranklog.spmd.triage.rules import CLASSES
from ranklog.spmd.triage.steps import QUERIES, Shown, next_steps, query_of
from ranklog.spmd.triage.suspects import Suspect
from tests.spmd.lines import line

RANK = [Suspect(0.9, "it said so", rank=3)]


def commands(*, fault: str = "unknown", **shown: object) -> list[list[str]]:
    """Words of the commands for rank 3, without the program's name."""
    steps = next_steps(fault, "a run@1", RANK, Shown(**shown))  # type: ignore[arg-type]
    return [shlex.split(step.command)[1:] for step in steps if step.command]


@pytest.mark.parametrize("fault", sorted(set(CLASSES) - {"none"}))
def test_each_class_has_a_query_that_can_be_asked(fault: str) -> None:
    assert parse_query(query_of(fault), now_ns=0).expr is not None


def test_a_query_has_the_terms_that_hold_for_the_evidence() -> None:
    said = [line("RuntimeError: CUDA error: an illegal memory access"), line("Node failure on a1")]
    [first] = commands(fault="hardware", lines=said)
    assert first == ["search", '"Node failure" OR "CUDA error"', "--run", "a run@1"]


@pytest.mark.parametrize("fault", sorted(set(CLASSES) - {"none"}))
def test_evidence_in_words_that_no_query_has_is_shown_by_its_time(fault: str) -> None:
    said = [line("ein Unglueck", ts_ns=90_000_000_000), line("und noch eins", ts_ns=95_500_000_000)]
    [first] = commands(fault=fault, lines=said)
    span = ["--since", "1970-01-01T00:01:30Z", "--until", "1970-01-01T00:01:36Z"]
    assert first == ["search", "", *span, "--run", "a run@1"]


def test_levels_count_in_terms_that_name_one() -> None:
    failed = line("FooError: bad")
    failed.level = ERROR
    [first] = commands(fault="import_or_config", lines=[failed])
    assert first[1] == "level>=ERROR /Error: /"
    [first] = commands(fault="import_or_config", lines=[line("FooError: bad")])
    assert first[1] == ""


@pytest.mark.parametrize(
    ("series", "asked"), [("train/loss", "train/loss"), ("lm loss", 'series:"lm loss"')]
)
def test_values_are_shown_as_a_series(series: str, asked: str) -> None:
    [first] = commands(fault="numeric", lines=[line("loss=nan")], series=series)
    assert first == ["series", asked, "--run", "a run@1"]


def test_a_rank_is_read_and_set_beside_one_that_speaks() -> None:
    assert commands(ranks=[2, 3, 5])[1:] == [
        ["search", "rank:3", "--run", "a run@1", "--limit", "50"],
        ["compare", "--run", "a run@1", "--ranks", "3,2"],
    ]
    assert [words[0] for words in commands(ranks=[3])[1:]] == ["search"]
    assert commands(ranks=[1, 2])[1:] == []


@pytest.mark.parametrize(
    ("shown", "asked"),
    [
        (Shown(hosts=["gpu-7"]), "host:gpu-7"),
        (Shown([line("gpu-7 kernel: NVRM: Xid")]), '"gpu-7"'),
        (Shown(hosts=["gpu-8"]), None),
    ],
)
def test_a_host_is_read_by_its_streams_or_where_lines_name_it(
    shown: Shown, asked: str | None
) -> None:
    suspects = [Suspect(0.9, "it said so", host="gpu-7", node=True)]
    step = next_steps("hardware", "job@1", suspects, shown)[-1]
    assert step.text == "read what host gpu-7 says"
    assert (step.command and shlex.split(step.command)[2]) == asked


def test_stacks_are_grouped_where_there_are_some() -> None:
    assert commands(fault="hang", stacks=True) == [["stacks", "--run", "a run@1"]]
    first = next_steps("hang", "job@1", [])[0]
    assert (first.command, first.text.split()[0]) == (None, "dump")


def test_commands_name_an_attempt_that_is_not_the_newest() -> None:
    assert commands(ranks=[3], attempt=1)[1][-6:] == [
        "--run", "a run@1", "--attempt", "1", "--limit", "50",
    ]  # fmt: skip


def test_a_healthy_run_needs_nothing() -> None:
    assert next_steps("none", "job@1", []) == []
    assert set(QUERIES) == set(CLASSES) - {"none"}
