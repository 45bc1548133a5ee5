"""What RE2 can run is asked once, what it can't every time."""

from __future__ import annotations

import pytest

from ranklog.errors import BadQuery
from ranklog.scan import engine as engine_module
from ranklog.scan.engine import Engine


def test_a_pattern_that_can_run_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(threads=1)
    assert engine.matches("a+", "i", []) == []

    def refuse(deadline_s: float | None = None) -> None:
        raise AssertionError("asked once more")

    monkeypatch.setattr(engine, "cursor", refuse)
    assert engine.matches("a+", "i", []) == []
    with pytest.raises(AssertionError, match="once more"):
        engine.matches("a+", "", [])


def test_texts_are_always_looked_at_and_what_is_wrong_stays_wrong() -> None:
    engine = Engine(threads=1)
    for _ in range(2):
        assert engine.matches("a+", "", []) == []
        assert engine.matches("a+", "", ["baa", "b"]) == [True, False]
        with pytest.raises(BadQuery, match="RE2 can't run"):
            engine.matches("a(", "", [])


def test_patterns_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_PATTERNS_KEPT_MAX", 3)
    engine = Engine(threads=1)
    for number in range(10):
        engine.matches(f"a{number}", "", [])
        assert 0 < len(engine._sound) <= 3
