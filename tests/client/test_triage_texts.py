"""Failures that frameworks and machines tell in words of their own are told apart, and whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore
from tests.client.failures import accelerators, machines, programs, waiting
from tests.client.failures.case import ANYBODY, Failure, unique

NOW_NS = 4_102_444_800 * 10**9
CASES = unique((*accelerators.CASES, *programs.CASES, *machines.CASES, *waiting.CASES))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_of_a_failure_tells_its_class_and_whose_it_is(
    case: Failure, tmp_path: Path
) -> None:
    store = MemoryStore()
    (tmp_path / "job.out").write_text(case.text + "\n")
    import_paths(
        [str(tmp_path / "job.out")], store=store, tenant="default", run="job", now_ns=NOW_NS
    )
    with Client(store=store) as client:
        found = client.triage(run="job")
    first = found.suspects[0] if found.suspects else None
    named = None if first is None else first["ranks"] if first["rank"] is None else first["rank"]
    whom = named if case.whom == ANYBODY else case.whom
    assert (found.fault, named) == (case.fault, whom)
