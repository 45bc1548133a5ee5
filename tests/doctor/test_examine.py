"""The command: every message says what to do next, and lines that will be missing are exit code 2."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from ranklog.cli.main import main
from ranklog.doctor.examine import examine, has_problem


def test_every_check_says_something_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    words = [sys.executable, str(tmp_path / "train.py")]
    checks = examine(words, {}, destination=str(tmp_path / "out"), spool_dir=tmp_path / "spool")

    assert all(check.says and check.do for check in checks)
    assert {"identity", "launch", "launcher", "python", "logging", "libraries", "capture"} <= {
        check.name for check in checks
    }
    assert {"spool", "room", "rings", "limits", "agent", "destination", "clock"} <= {
        check.name for check in checks
    }
    assert sorted(os.listdir(tmp_path)) == ["train.py"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        sys.exit(main(["doctor", *words]))
    return int(ended.value.code or 0), capsys.readouterr().out


def test_a_destination_that_does_not_answer_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool = ["--spool", str(tmp_path / "spool")]
    assert run(capsys, *spool, "--destination", str(tmp_path / "out"))[0] == 0
    code, out = run(capsys, *spool, "--destination", "http://127.0.0.1:9")

    assert code == 2
    assert "does not answer" in out


def test_json_is_one_object_a_check_and_the_report_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--json", "--spool", str(tmp_path / "s"), "--", sys.executable, "none.py"]
    code, out = run(capsys, *words)
    *checks, report = [json.loads(line) for line in out.splitlines()]

    assert code == 2
    assert report == {"report": {"checks": len(checks), "problems": True}}
    assert {"check", "state", "says", "do"} <= set(checks[0])


def test_notes_are_no_problem(tmp_path: Path) -> None:
    checks = examine([], {}, destination=str(tmp_path / "out"), spool_dir=tmp_path / "spool")

    assert not has_problem(checks)
