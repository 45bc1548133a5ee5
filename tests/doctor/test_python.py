"""What would be captured of a Python program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ranklog.doctor.check import NOTE, OK, PROBLEM, Check
from ranklog.doctor.python import check_python, interpreter_of, read_script


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def examined(tmp_path: Path, text: str) -> dict[str, Check]:
    (tmp_path / "train.py").write_text(text)
    return by_name(check_python([sys.executable, str(tmp_path / "train.py")]))


def test_a_script_that_calls_init_is_captured_with_levels(tmp_path: Path) -> None:
    found = examined(tmp_path, "import ranklog\nranklog.init(run='x')\n")

    assert found["capture"].state == OK
    assert "train.py:2" in found["capture"].says
    assert "capture='fd'" in found["capture"].do
    assert found["python"].state == OK
    assert found["logging"].says.startswith("the script configures none")


def test_init_that_captures_descriptors_needs_nothing_more(tmp_path: Path) -> None:
    found = examined(tmp_path, "import ranklog\nranklog.init(capture='fd')\n")

    assert found["capture"].do == "nothing to do"


def test_a_script_without_init_loses_levels(tmp_path: Path) -> None:
    found = examined(tmp_path, "print(1)\n")

    assert found["capture"].state == NOTE
    assert "ranklog.init()" in found["capture"].do


@pytest.mark.parametrize(
    ("text", "name", "state", "says"),
    [
        ("import logging\nlogging.basicConfig()\n", "logging", OK, "logging.basicConfig (line 2)"),
        ("from logging.config import dictConfig\ndictConfig({})\n", "logging", NOTE, "removes handlers"),
        ("import builtins\nbuiltins.print = None\n", "capture", NOTE, "replaces print"),
        ("def (", "script", PROBLEM, "can't be read"),
        ("import torch\n", "libraries", OK, "the script imports torch"),
    ],
)  # fmt: skip
def test_what_a_script_does_to_logging_is_told(
    tmp_path: Path, text: str, name: str, state: str, says: str
) -> None:
    if "torch" in text:
        pytest.importorskip("torch")
    check = examined(tmp_path, text)[name]

    assert check.state == state
    assert says in check.says


def test_an_interpreter_that_does_not_run_is_a_problem() -> None:
    [check] = check_python(["/no/python3", "x.py"])

    assert check.state == PROBLEM


def test_the_interpreter_is_the_named_one_or_torchruns(tmp_path: Path) -> None:
    assert interpreter_of(["/opt/python3.12", "x.py"]) == "/opt/python3.12"
    assert interpreter_of(["python3", "-m", "torch.distributed.run", "x.py"]) == "python3"
    assert interpreter_of(["srun", "-n2", "python", "x.py"]) == "python"
    assert interpreter_of([]) == sys.executable


def test_the_interpreter_of_torchrun_stands_in_its_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "torchrun"
    program.write_text("#!/opt/conda/bin/python3\nimport sys\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert interpreter_of(["torchrun", "x.py"]) == "/opt/conda/bin/python3"


def test_what_can_not_be_read_is_no_script(tmp_path: Path) -> None:
    assert read_script(tmp_path / "none.py") is None
