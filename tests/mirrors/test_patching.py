"""What is told beside a tracker's call, and that the call stays what it was."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ranklog.mirrors.patching import also, when_imported


class Tracker:
    def __init__(self) -> None:
        self.logged: list[Any] = []

    def log(self, value: Any) -> str:
        if value == "bad":
            raise ValueError("tracker's own")
        self.logged.append(value)
        return f"logged {value}"

    def log_all(self, values: list[Any]) -> None:
        for value in values:
            self.log(value)


@pytest.fixture
def tracker() -> Any:
    kind = type("Fresh", (Tracker,), dict(Tracker.__dict__))
    return kind()


def test_result_and_errors_are_the_trackers(tracker: Any) -> None:
    told: list[Any] = []
    also(type(tracker), "log", lambda self, value: told.append(value))

    assert tracker.log(3) == "logged 3"
    with pytest.raises(ValueError, match="tracker's own"):
        tracker.log("bad")
    assert told == [3, "bad"]


def test_an_error_of_ours_does_not_reach_the_job(
    tracker: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Any, value: Any) -> None:
        raise RuntimeError("ours")

    also(type(tracker), "log", broken)

    assert tracker.log(1) == "logged 1"


def test_what_a_tracker_calls_inside_is_not_told_again(tracker: Any) -> None:
    told: list[str] = []
    also(type(tracker), "log", lambda self, value: told.append("log"))
    also(type(tracker), "log_all", lambda self, values: told.append("log_all"))

    tracker.log_all([1, 2])
    tracker.log(3)

    assert told == ["log_all", "log"]
    assert tracker.logged == [1, 2, 3]


def test_a_method_tells_once_however_often_it_is_asked_to(tracker: Any) -> None:
    told: list[Any] = []
    for _ in range(2):
        also(type(tracker), "log", lambda self, value: told.append(value))
    also(type(tracker), "no_such_method", lambda self: None)

    tracker.log(1)

    assert told == [1]


def _source_of(module: Any) -> Any:
    """As what reads a package's resources does."""
    return module.__spec__.loader.get_source(module.__name__)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)
    yield tmp_path
    sys.meta_path[:] = finders


def test_a_module_that_comes_later_is_told_of_when_it_has_run(on_path: Path) -> None:
    (on_path / "later_one.py").write_text("x = 1\n")
    seen: list[Any] = []

    when_imported("later_one", lambda module: seen.append(module.x))
    when_imported("later_one", lambda module: seen.append(_source_of(module)))
    assert seen == []
    module = importlib.import_module("later_one")

    assert seen == [1, "x = 1\n"]
    assert isinstance(module, ModuleType)
    assert importlib.reload(module).x == 1
    assert len(seen) == 2


def test_a_module_that_is_there_is_told_of_at_once_and_an_error_stays_inside(
    capfd: pytest.CaptureFixture[str],
) -> None:
    seen: list[str] = []
    when_imported("json", lambda module: seen.append(module.__name__))
    when_imported("json", lambda module: seen.append(module.no_such_name))

    assert seen == ["json"]


def test_a_module_that_is_not_installed_is_missing_as_ever(on_path: Path) -> None:
    when_imported("no_such_module_here", lambda module: None)

    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_here")
