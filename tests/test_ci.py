"""CI runs what the README says, and ends as it ends."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARK = "<!-- the test command -->\n```\n"


@pytest.mark.parametrize(("command", "status"), [("echo all is well", 0), ("(exit 3)", 3)])
def test_ci_runs_the_readmes_test_command(command: str, status: int, tmp_path: Path) -> None:
    before, _, after = (ROOT / "README.md").read_text().partition(MARK)
    named, fence, rest = after.partition("\n```\n")
    assert named.startswith("python3 -m venv .venv && ") and named.endswith(" -m tests") and fence
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    (tmp_path / "README.md").write_text(f"{before}{MARK}{command}{fence}{rest}")
    run = subprocess.run([tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (status, "")
    assert run.stdout.splitlines()[0] == command
    assert ("all is well" in run.stdout.splitlines()) == (status == 0)


def test_the_pages_that_are_named_are_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    links = [(page, link) for page in pages for link in _links(page.read_text())]
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def _links(text: str) -> list[str]:
    """Relative targets of Markdown links."""
    found = [part.partition(")")[0].partition("#")[0] for part in text.split("](")[1:]]
    return [link for link in found if link and "://" not in link and " " not in link]
