"""What to do next is something that can be done."""

from __future__ import annotations

import shlex

import pytest

from ranklog.plan.parse import parse_query
from ranklog.spmd.triage.rules import CLASSES
from ranklog.spmd.triage.steps import QUERIES, next_steps
from ranklog.spmd.triage.suspects import Suspect


@pytest.mark.parametrize("fault", sorted(set(CLASSES) - {"none"}))
def test_each_class_has_a_query_that_can_be_asked(fault: str) -> None:
    [first, *others] = next_steps(fault, "a run@1", [Suspect(0.9, "it said so", rank=3)])
    words = shlex.split(first.command or "")
    assert words == ["ranklog", "search", QUERIES[fault], "--run", "a run@1"]
    assert parse_query(words[2], now_ns=0).expr is not None
    assert [shlex.split(step.command or "")[1] for step in others] == ["search", "compare"]
