"""The program as a whole: exit codes, errors, streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranklog.cli import main as module
from ranklog.cli.main import main
from ranklog.errors import BadQuery


@pytest.mark.parametrize(
    "words", [["--help"], ["help"], ["search", "--help"], ["help", "search"], ["--version"]]
)
def test_help_is_no_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out


def test_no_command_at_all_is_an_error_that_shows_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    assert "commands:" in capsys.readouterr().out


def test_an_error_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serach"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "ranklog: no command 'serach'; did you mean search?\n")


def test_with_json_an_error_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--json", "--nonsense"]) == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert set(error) == {"kind", "message", "hint", "position"}
    assert error["kind"] == "bad_input"


def broken(error: BaseException) -> object:
    class Module:
        @staticmethod
        def run(arguments: object, console: object) -> int:
            raise error

    return Module


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (
            BadQuery("no such thing", hint="try that", position=4),
            2,
            "no such thing (character 5); try that",
        ),
        (BadQuery("which run?", hint="--run NAME"), 2, "ranklog: which run? --run NAME"),
        (ZeroDivisionError("two\nlines"), 2, "internal error: ZeroDivisionError: two lines"),
        (PermissionError(13, "Permission denied", "/x"), 2, "ranklog: /x: permission denied"),
        (ModuleNotFoundError("no", name="duckdb"), 2, "this command needs duckdb"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_goes_wrong_has_a_code_and_at_most_one_line(
    error: BaseException,
    code: int,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module.importlib, "import_module", lambda name: broken(error))
    assert main(["version"]) == code
    err = capsys.readouterr().err
    assert shown in err
    assert err.count("\n") <= 1
    assert "Traceback" not in err


def test_debug_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKLOG_DEBUG", "1")
    monkeypatch.setattr(module.importlib, "import_module", lambda name: broken(ValueError("x")))
    assert main(["version"]) == 2
    assert "Traceback" in capsys.readouterr().err


def run_program(*words: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    command = f"{sys.executable} -m ranklog.cli.main {' '.join(words)} {shell}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        cwd=root / "shared",
        check=False,
    )


def test_a_reader_that_goes_away_is_no_error() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for words in (["--help"], ["search", "--help"], ["version"]):
        reader, writer = os.pipe()
        os.close(reader)
        found = subprocess.run(
            [sys.executable, "-m", "ranklog.cli.main", *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2] / "shared",
            env=buffered,
            check=False,
        )
        os.close(writer)
        assert (found.returncode, found.stderr) == (0, "")


def test_a_program_without_standard_streams_still_works() -> None:
    assert run_program("version", shell="<&- >&- 2>&-").returncode == 0


def test_starting_up_imports_nothing_heavy() -> None:
    code = "import sys; from ranklog.cli.main import main; main(['--help']); print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2] / "shared",
        check=True,
    )
    heavy = {"boto3", "pyarrow", "duckdb", "pydantic", "numpy", "aws_lambda_powertools"}
    assert not heavy & set(found.stdout.split())
