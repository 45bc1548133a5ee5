"""The processes behind the stream: ingest, compaction with retention, questions. Each until SIGTERM, through a
store that fails now and then, and each tells its memory every few seconds, after `gc`.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from ranklog.client import Client
from ranklog.client.indexes import IndexCache
from ranklog.client.local import Local
from ranklog.client.reader import Reader, local_reader
from ranklog.compact import choose
from ranklog.errors import RanklogError, Throttled, Unavailable
from ranklog.ingest.local import ingest_stream
from ranklog.limits import DAY_NS, HOUR_NS
from ranklog.scan import columns, decoded, verify
from ranklog.scan.engine import shared_engine
from ranklog.scan.scatter import InProcess
from ranklog.store.disk import DiskStore
from ranklog.store.protocol import ObjectInfo
from ranklog.stream.disk import DiskStream
from ranklog.upkeep.passes import compact_tenant, retain_tenant
from tests.soak.producers import RUN

TELL_S = 5.0
# Bounds that a process reaches within days, so low that minutes do: what grows from then on is a leak, and no
# cache that fills and no pass that has more to merge than the one before.
INDEX_CACHE_BYTES = 512 << 10
DECODED_BYTES = 2 << 20
FOOTERS = 64
CHECKED_RANGES = 1_024
MERGED_TEXT_BYTES = 256 << 10
KEEP_NS = DAY_NS  # by the rule of the brief run
TENANT = "default"
# Of a hundred calls of the store so many fail, half of them after they were done.
FAIL_PERCENT = 0.5
# A read that fails is asked again by S3's client, thrice in all, of which 5 % fail each. A pass over an hour reads
# hundreds of objects: were each to fail at once where it fails, passes would hardly ever end.
READ_FAIL_PERCENT = 100 * 0.05**3
QUESTIONS = (
    '"line 5"',
    "producer 3",
    "/line \\d+7 /",
    "level>=WARNING",
    "loss 0.0",
    "rank:0..3",
)


class Faulty(DiskStore):
    """A store whose calls fail now and then, before or after they did their work."""

    fails = True
    draw = random.Random(os.getpid())

    def _fault(self, percent: float = FAIL_PERCENT) -> None:
        if self.fails and self.draw.uniform(0, 100) < percent:
            raise self.draw.choice((Unavailable, Throttled))("soak: a fault")

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        self._fault()
        etag = super().put(key, data, if_absent=if_absent)
        self._fault()
        return etag

    def get(self, key: str) -> bytes:
        self._fault(READ_FAIL_PERCENT)
        return super().get(key)

    def delete(self, key: str) -> None:
        self._fault()
        super().delete(key)
        self._fault()

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        self._fault(READ_FAIL_PERCENT)
        return super().list(prefix, start_after=start_after)


def release_unused() -> None:
    """Give back what nobody holds: what is left is held."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # another libc
        ctypes.CDLL(None).malloc_trim(0)


def resident_bytes(pid: int | str = "self") -> int:
    """Memory of a process; 0 where it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024 if "VmRSS:" in status else 0


def retain(store: DiskStore) -> None:
    """Retention as of a day and an hour from now, since a day is the least that is kept, and the floor is an
    hour's: what came of the brief run goes."""
    reader = local_reader(store, TENANT)
    reader.now_ns = lambda: time.time_ns() + KEEP_NS + HOUR_NS
    retain_tenant(reader, who="soak")


# --- the work of each role: one round of it --------------------------------------------------------
def ingest(store: DiskStore, options: argparse.Namespace) -> Callable[[], None]:
    stream = DiskStream(options.stream, sync=False)

    def round_() -> None:
        for _ in ingest_stream(stream, store):
            pass
        stream.trim()
        time.sleep(1.0)

    return round_


def compact(store: DiskStore, options: argparse.Namespace) -> Callable[[], None]:
    vars(choose)["COMPACT_TEXT_BYTES_MAX"] = MERGED_TEXT_BYTES

    passes = options.tell / "passes"

    def round_() -> None:
        # hours end during a soak only by the clock of who compacts
        now_ns, begun, ended = time.time_ns() + options.ahead_s * 10**9, time.monotonic(), False
        try:
            failed = compact_tenant(store, TENANT, now_ns).failed
            retain(store)
            ended = not failed
        finally:
            with passes.open("a") as file:
                file.write(json.dumps([time.monotonic() - begun, ended]) + "\n")
        time.sleep(2.0)

    return round_


def query(store: DiskStore, options: argparse.Namespace) -> Callable[[], None]:
    """Ask; a line that is shown twice ends the soak."""
    client = Client(store=store, tenant=TENANT)
    decoded.DECODED._bytes_max = DECODED_BYTES
    verify._CHECKED._ranges_max = CHECKED_RANGES
    vars(columns)["FOOTERS_KEPT_MAX"] = FOOTERS
    engine = shared_engine()
    indexes = IndexCache(store, bytes_max=INDEX_CACHE_BYTES)
    reader = Reader(store, TENANT, InProcess(store, engine), engine.matches, indexes)
    client._backend = Local(store, TENANT, reader)
    asked = [0]

    def round_() -> None:
        question = QUESTIONS[asked[0] % len(QUESTIONS)]
        asked[0] += 1
        answer = client.search(question, run=f"{RUN}@*", limit=2_000)
        ids = [line.id for line in answer.lines]
        if len(ids) != len(set(ids)):
            (options.tell / "doubled").write_text(question)
        client.count(question, run=f"{RUN}@*")
        time.sleep(0.5)

    return round_


ROLES = {"ingest": ingest, "compact": compact, "query": query}


def main() -> int:
    """Do one role's work."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--store", required=True)
    parser.add_argument("--stream", type=Path)
    parser.add_argument("--tell", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--ahead-s", type=int, default=0)
    parser.add_argument("--trace", action="store_true", help="say what grew, by tracemalloc")
    options = parser.parse_args()
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    store = Faulty(options.store, create=True)
    work, told_s = ROLES[options.role](store, options), 0.0
    grown = _Grown() if options.trace else None
    with (options.tell / f"{options.name}.jsonl").open("a") as file:
        while not ending:
            try:
                work()
            except RanklogError as error:
                if not error.retryable:
                    print(f"{options.name}: {error!r}", file=sys.stderr, flush=True)
                time.sleep(0.2)
            if time.monotonic() - told_s >= TELL_S:
                told_s = time.monotonic()
                release_unused()
                file.write(json.dumps([time.time(), resident_bytes()]) + "\n")
                file.flush()
                if grown is not None:
                    grown.tell()
    return 0


class _Grown:
    """What Python allocated since the first third, by line; printed now and then."""

    def __init__(self) -> None:
        import tracemalloc

        tracemalloc.start(8)
        self._trace, self._looks = tracemalloc, 0
        self._first: tracemalloc.Snapshot | None = None

    def tell(self) -> None:
        self._looks += 1
        if self._looks == 12:
            self._first = self._trace.take_snapshot()
        if self._first is not None and self._looks % 12 == 0:
            found = self._trace.take_snapshot().compare_to(self._first, "traceback")[:6]
            for item in found:
                print(item.size_diff, *item.traceback.format()[-4:], sep="\n", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
