"""`python -m tests.fuzz`: random corpora and queries; pruned = full scan = oracle, pair by pair.

    python -m tests.fuzz [--pairs 100000] [--seed 1] [--seconds 3600]

A pair is one query over one corpus (lines with the pitfalls of real logs, in several segments of several row groups,
some stored twice). In two of three corpora most lines hold ids, and queries ask for parts of them; three of four
have filters of grams, which otherwise only large segments have.
Stops at the first difference and prints the seed that shows it again; prints the number of pairs that were tried,
now and then and in the end.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ranklog import limits
from ranklog.client import Client
from ranklog.layout import build, filters, order
from ranklog.plan.parse import parse_query
from ranklog.store.memory import MemoryStore
from tests.corpus_lines import (
    BOUNDS,
    TENANT,
    TERMS,
    Corpus,
    id_terms,
    random_corpus,
    random_query,
)
from tests.duckdb_only import duckdb_only
from tests.ingest.frames import T0
from tests.oracle import matching

QUERIES_PER_CORPUS = 50
_TOLD_PAIRS = 1_000
_PATIENCE_S = 86_400.0


def tell_difference(client: Client, corpus: Corpus, query: str) -> str | None:
    """What differs for one pair, or None."""
    shown = f"({query}) OR nothing-like-this"
    wanted = sorted(matching(corpus.lines, parse_query(shown, now_ns=T0).expr))
    for full_scan in (False, True):
        with duckdb_only(full_scan):
            answer = client.search(
                shown, limit=None, order="oldest", groups=False, full_scan=full_scan, **BOUNDS
            )
        found = sorted(line.id for line in answer.lines)
        skipped = answer.completeness.skipped_tasks
        if found != wanted or skipped:
            sizes = f"{len(found)} lines, the oracle {len(wanted)}; skipped {skipped}"
            return f"{query!r}, full_scan={full_scan}: {sizes}"
    return None


@contextmanager
def patience() -> Iterator[None]:
    """A scan that waits for a busy machine is no difference: time for it that no load uses up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "TASK_SECONDS_MAX", _PATIENCE_S)
        yield


@contextmanager
def small_groups(rng: random.Random) -> Iterator[None]:
    """Segments in row groups of a few lines, now and then as they are."""
    with pytest.MonkeyPatch.context() as patch:
        if rng.random() < 0.8:
            patch.setattr(order, "ROW_GROUP_ROWS", rng.choice([3, 5, 10]))
            patch.setattr(order, "RARE_ROWS_MAX", rng.choice([0, 1, 4]))
        if rng.random() < 0.75:
            for module in (build, filters):
                patch.setattr(module, "GRAMS_TEXT_BYTES_MIN", 0)
        yield


def fuzz(
    pairs: int,
    seed: int,
    seconds: float,
    tell: Callable[[int, int], None] = lambda tried, seed: None,
) -> tuple[int, str | None]:
    """(pairs that were tried, the first difference). `tell` hears after each corpus how many pairs
    there were, and its seed."""
    tried, ends_s = 0, time.monotonic() + seconds
    while tried < pairs and time.monotonic() < ends_s:
        ids, store, rng = seed % 3 > 0, MemoryStore(), random.Random(seed)
        corpus = random_corpus(seed, batches=1 + seed % 2, rows=25, ids=ids)
        with small_groups(rng):
            corpus.ingest(store, twice=seed % 4 == 1)
        terms = [*TERMS, *id_terms(rng, corpus, 2 * len(TERMS))] if ids else TERMS
        with patience(), Client(store=store, tenant=TENANT) as client:
            for _ in range(min(QUERIES_PER_CORPUS, pairs - tried)):
                difference = tell_difference(client, corpus, random_query(rng, terms=terms))
                tried += 1
                if difference is not None:
                    return tried, f"seed {seed}: {difference}"
        tell(tried, seed)
        seed += 1
    return tried, None


def _tell(tried: int, seed: int) -> None:
    if tried % _TOLD_PAIRS == 0:
        print(f"{tried:,} pairs to seed {seed}, all equal", flush=True)


def main() -> int:
    """Exit 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3_600)
    options = parser.parse_args()
    start = time.monotonic()
    tried, difference = fuzz(options.pairs, options.seed, options.seconds, _tell)
    print(f"{tried:,} pairs in {time.monotonic() - start:,.0f} s: {difference or 'all equal'}")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
