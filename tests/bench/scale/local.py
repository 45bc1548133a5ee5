"""The model against a stack that runs here: the same shards, window and functions, over a real object store.

Shards are queues of this process, read as the event source mapping reads them; what a batch and a question do is
ranklog itself, over S3's protocol on loopback. The model gets the times of the machine and the store as this very
run measures them, before and after and in between, so that other work on the machine is in both.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ranklog.store.s3 import S3Store
from tests.bench.scale.checks import Check
from tests.bench.scale.counting import CountingStore
from tests.bench.scale.local_questions import check_questions
from tests.bench.scale.local_writes import SECONDS, check_ingest
from tests.bench.scale.rates import Rates


@contextmanager
def local_store(server: Any) -> Iterator[CountingStore]:
    """A bucket of its own in an object store on loopback, counted."""
    client = server.client("s3")
    name = f"scale-{random.getrandbits(48):012x}"
    client.create_bucket(Bucket=name)
    try:
        yield CountingStore(S3Store(name, "", client))
    finally:
        client.close()


def check(rates: Rates, server: Any, seconds: float = SECONDS) -> list[Check]:
    """Every figure that both sides have."""
    with local_store(server) as store:
        writing = check_ingest(rates, store, seconds)
        reading = check_questions(rates, store)
    return [*writing, *reading]
