"""The short form of `python -m tests.fuzz`."""

from __future__ import annotations

from tests.fuzz import fuzz


def test_a_hundred_random_pairs_are_equal() -> None:
    assert fuzz(100, seed=7, seconds=600) == (100, None)
