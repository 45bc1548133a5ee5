"""The page of the query language says what is: its examples parse, its errors are errors, its table
of regex engines is what the engines do.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import re2

from ranklog.errors import BadQuery
from ranklog.model.query import Near
from ranklog.plan.parse import parse_query, render_expr

PAGE = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
NOW_NS = 1_777_636_800 * 10**9


def examples(kind: str) -> list[str]:
    """Lines of the page's blocks of that kind, without their remarks."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [re.split(r"\s+# ", line)[0] for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("text", examples("query"))
def test_an_example_parses_and_renders(text: str) -> None:
    expr = parse_query(text, now_ns=NOW_NS).expr
    assert parse_query(render_expr(expr), now_ns=NOW_NS).expr == expr


@pytest.mark.parametrize("text", examples("series"))
def test_an_example_of_series_parses(text: str) -> None:
    parse_query(text, now_ns=NOW_NS, series=True)


@pytest.mark.parametrize("text", examples("error"))
def test_an_example_of_an_error_has_a_hint(text: str) -> None:
    with pytest.raises(BadQuery) as caught:
        parse_query(text, now_ns=NOW_NS)
    assert caught.value.hint


def test_the_page_has_examples_of_everything() -> None:
    assert len(examples("query")) > 50
    assert len(examples("error")) > 10
    near = parse_query(examples("query")[-1], now_ns=NOW_NS).expr
    assert isinstance(near, Near)


def engine_rows() -> list[list[str]]:
    """Cells of the table of engines: pattern, line, what each says."""
    table = PAGE[PAGE.index("| pattern | line |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in row.strip("|").split(" | ")] for row in table]


@pytest.mark.parametrize(("pattern", "line", "ours", "ripgrep", "grep"), engine_rows())
def test_the_engines_differ_as_the_table_says(
    pattern: str, line: str, ours: str, ripgrep: str, grep: str
) -> None:
    text = ast.literal_eval(f"'{line}'")
    assert re2_says(pattern, text) == ours
    rg = Path(sys.executable).with_name("rg")
    if rg.exists():
        assert tool_says([str(rg), "--no-config", "-a"], pattern, text) == ripgrep
    if (
        shutil.which("grep")
        and b"GNU" in subprocess.run(["grep", "-V"], capture_output=True).stdout
    ):
        assert tool_says(["grep", "-aE"], pattern, text) == grep


def re2_says(pattern: str, text: str) -> str:
    options = re2.Options()
    options.log_errors = False
    try:
        return "yes" if re2.compile(pattern, options).search(text) else "no"
    except re2.error:
        return "error"


def tool_says(command: list[str], pattern: str, text: str) -> str:
    ended = subprocess.run(
        [*command, "-e", pattern],
        input=f"{text}\n".encode(),
        capture_output=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )
    return {0: "yes", 1: "no"}.get(ended.returncode, "error")
