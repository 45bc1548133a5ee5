"""The short form of `python -m tests.fuzz_bytes`."""

from __future__ import annotations

from tests.fuzz_bytes import fuzz


def test_a_thousand_mutated_inputs_are_taken_or_refused() -> None:
    tried, failure, taken = fuzz(1_000, seed=7, seconds=600)
    assert (tried, failure) == (1_000, None)
    # It is no fuzz if nothing gets through: some of each still is what it was, or is well formed.
    assert taken["ingest"] and taken["http 2xx"] and taken["http 4xx"]
