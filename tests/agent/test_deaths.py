"""The matrix of `tests.faults.deaths`, in short."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.deaths import DEATHS, LINES, WAYS, Count, try_deaths


@pytest.mark.parametrize(("path", "kill_agent"), WAYS)
def test_nothing_said_before_a_death_is_lost_or_stored_twice(
    path: str, kill_agent: bool, tmp_path: Path
) -> None:
    counts = try_deaths(path, kill_agent, 1, tmp_path)

    assert counts == dict.fromkeys(DEATHS, Count(LINES, 0, 0, 0))
