"""What is said about an answer beside it."""

from __future__ import annotations

from datetime import UTC

import pytest

from ranklog.cli.console import Console
from ranklog.cli.scope import say_completeness
from ranklog.model.answer import Completeness


def test_lines_that_were_dropped_are_told_and_states_of_a_progress_bar_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    dropped = [
        {"rank": 3, "lines": 32_000, "reason": "ring full: info"},
        {"rank": 4, "lines": 999, "reason": "disk full"},
        {"rank": 5, "lines": 7, "reason": "progress"},
    ]

    say_completeness(Console(json=False), Completeness(dropped=dropped), UTC)
    told = capsys.readouterr().err
    say_completeness(Console(json=False), Completeness(dropped=dropped[2:]), UTC)

    assert told == (
        "32,999 lines of rank 3-4 were dropped before they were sent: disk full, ring full: info\n"
    )
    assert capsys.readouterr().err == ""
