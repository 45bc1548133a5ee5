"""`python -m pytest tests/aws/test_template_checks.py`: linters find nothing in template.yaml but what is explained.

cfn-lint is in the tests' group; SAM and checkov are installed by `python -m tests.aws.tools`, and skipped else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.aws.stack import ROOT, TEMPLATE
from tests.aws.tools import program

CHECKOV = Path("tests/aws/checkov.yaml")


def found_by(*command: str | Path) -> str:
    """What a linter prints; it must end well."""
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed(tool: str) -> Path:
    path = program(tool)
    if path is None:
        pytest.skip(f"no {tool}: python -m tests.aws.tools")
    return path


def test_cfn_lint_finds_nothing() -> None:
    tool = Path(sys.executable).parent / "cfn-lint"
    if not tool.exists():
        pytest.skip("cfn-lint is not installed")
    assert found_by(tool, TEMPLATE) == ""


@pytest.mark.deploy
def test_sam_takes_the_template_and_its_linter_finds_nothing() -> None:
    words = ("validate", "--lint", "--region", "eu-central-1", "--template-file", str(TEMPLATE))
    assert "is a valid SAM Template" in found_by(installed("sam"), *words)


@pytest.mark.deploy
def test_checkov_finds_only_what_is_explained() -> None:
    said = found_by(installed("checkov"), "--config-file", CHECKOV)
    assert "Failed checks: 0" in said


def test_what_checkov_leaves_out_is_explained_where_it_is_left_out_and_to_readers() -> None:
    text = (ROOT / CHECKOV).read_text()
    docs = (ROOT / "docs" / "aws.md").read_text()
    skipped = yaml.safe_load(text)["skip-check"]
    lines = text.splitlines()
    for check in skipped:
        assert lines[lines.index(f"  - {check}") - 1].lstrip().startswith("#"), check
        assert check in docs, check
