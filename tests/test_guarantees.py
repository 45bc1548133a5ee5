"""docs/guarantees.md names tests and commands that are there, one at least for each promise."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from ranklog.cli.commands import BY_NAME

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
PROMISES = [
    line
    for section in PAGE.split("\n## ")
    if "| promise | held by |" in section
    for line in section.splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_a_test_that_is_named_is_there(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("promise", PROMISES, ids=lambda line: line[2:50])
def test_a_promise_is_held_by_a_test(promise: str) -> None:
    _, says, held, _ = promise.split("|")
    assert says.strip() and re.findall(r"`tests/[\w/]+\.py::\w+`", held)


def test_a_command_that_is_named_is_there() -> None:
    modules = set(re.findall(r"`python -m ([\w.]+)", PAGE))
    assert {name for name in modules if importlib.util.find_spec(name) is None} == set()
    commands = set(re.findall(r"`ranklog (\w+)", PAGE))
    assert commands and commands <= BY_NAME.keys()


def test_the_page_is_long_enough_to_be_one() -> None:
    sections = {line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")}
    assert sections >= {
        "Durability", "Exactly once", "Completeness", "Deletion and retention", "Integrity", "Isolation",
        "Secrets", "What can be lost, and when", "What is out of scope",
    }  # fmt: skip
    assert len(PROMISES) >= 40
