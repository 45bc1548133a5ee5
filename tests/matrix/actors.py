"""The actors, each as one function of where it works and of its boundary. None knows of the matrix beyond it.

They are what the functions, commands and agents call, with the arguments that these give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count as numbers
from pathlib import Path
from typing import Any

from ranklog.access.meter import Meter
from ranklog.access.seals import Seals
from ranklog.agent.collector import Collector
from ranklog.agent.sealing import KEY_FILE, sealed
from ranklog.agent.sinks import KinesisSink, Sink
from ranklog.client.answer import Answer, CountAnswer
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.local import Local
from ranklog.client.options import CountOptions, SearchOptions
from ranklog.client.reader import Reader, local_reader
from ranklog.client.retention import apply_retention
from ranklog.client.series_answer import SeriesAnswer
from ranklog.client.series_options import SeriesOptions
from ranklog.client.words import Restrictions, read_query
from ranklog.compact.compacting import Compactor
from ranklog.delete.tombstones import load
from ranklog.ingest import waiting
from ranklog.ingest.allowance import Allowance
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.floors import Policies
from ranklog.limits import SECOND_NS
from ranklog.model.record import Record
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer
from ranklog.rules.rule import Rule
from ranklog.rules.ruleset import RuleSet
from ranklog.store import S3Store
from tests.matrix.boundary import Ages, Boundary, WatchedStore, acting
from tests.matrix.machine import TENANT, Machine
from tests.matrix.truth import EVERY_RUN, SERIES, Asked, text_of

_COMPACTORS, _METERS = numbers(1), numbers(1)  # each a process of its own to the others
RUN, DOOMED, SCRATCH = "llama", "doomed", "scratch"
TWIN = "twin"  # of one rank, which says things on its console, too
OLD = "old"  # of one hour that no other run has, days before the others
LAUNCH = "1"
WORLD = 8
AGENT_HOST = "gpu-0"
# Rules change between two attempts at a batch: what they add is other bytes of the same lines.
RULES = (
    None,
    RuleSet.load(
        presets=(),
        custom=[Rule("loss", ("loss: ",), r"loss: (?P<loss>[0-9.]+)", {"loss": "float"})],
    ),
)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a schedule works: a prefix of the bucket, a stream, a spool."""

    machine: Machine
    prefix: str
    stream_name: str
    folder: Path
    ages: Ages

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    @property
    def key_file(self) -> Path:
        """The tenant's ingest key, where its frames need a MAC."""
        return self.folder / "ingest.key"

    def sink(self) -> Sink:
        """Where agents send."""
        kinesis = KinesisSink(self.stream_name, client=self.machine.kinesis)
        return sealed(kinesis, {KEY_FILE: str(self.key_file)} if self.key_file.exists() else {})

    def store(self, boundary: Boundary) -> WatchedStore:
        """Step by step, and through the proxy where it has something to do."""
        bucket = self.machine.where.bucket
        disturbed = S3Store(bucket, self.prefix, self.machine.s3)
        return WatchedStore(self.sure_store(), disturbed, boundary, self.ages)

    def sure_store(self) -> S3Store:
        """Beside the proxy."""
        return S3Store(self.machine.where.bucket, self.prefix, self.machine.sure_s3)

    def reader(self, boundary: Boundary) -> Reader:
        reader = local_reader(self.store(boundary), TENANT, concurrency=1)
        reader.now_ns = self.machine.clock
        return reader


# --- writing ---------------------------------------------------------------------------------------
def produce(site: Site, boundary: Boundary, rank: int, ts: Sequence[int]) -> int:
    """A rank's process: all its lines, then a good-bye."""
    with acting(boundary):
        who = Identity(TENANT, RUN, LAUNCH, 0, AGENT_HOST, rank, rank, WORLD)
        producer = Producer(site.spool, who, rings=site.folder / "rings")
        number = producer.site_number("train.py", 88, "step", "trainer")
        for seq, ts_ns in enumerate(ts):
            producer.emit(20, number, text_of(rank, seq), ts_ns=ts_ns)
        producer.close()
    return len(ts)


def collect(site: Site, boundary: Boundary) -> int:
    """The agent of the host, until all that is in its spool is sent or it gives up; frames left."""
    with acting(boundary):
        collector = Collector(site.spool, site.sink(), boot="one")
        try:
            for _ in range(3):
                while collector.poll(hurry=True):
                    pass
            return collector.ledger.frames_left
        finally:
            collector.close()  # a killed process lets go of its files, too


def ingest(
    site: Site, boundary: Boundary, records: Sequence[Record], source: str, rules: int
) -> set[tuple[str, str]]:
    """The ingest function's work at a batch; source and sequence of what was set aside."""
    store = site.store(boundary)
    report = ingest_batch(
        records,
        store=store,
        rules=RULES[rules],
        seals=Seals(store) if site.key_file.exists() else None,
        allowance=_allowance(site, store) if site.key_file.exists() else None,
        policies=Policies(store),
        source=source,
        first=records[0].sequence,
        last=records[-1].sequence,
    )
    return {(source, one.sequence) for one in report.bad}


def release(site: Site, boundary: Boundary) -> None:
    """What a pass of upkeep does with frames that wait for the quota."""
    store = site.store(boundary)
    allowance = _allowance(site, store)
    waiting.release(store, TENANT, allowance=allowance, rules=RULES[0])
    allowance.meter.flush()


def _allowance(site: Site, store: WatchedStore) -> Allowance:
    """Of a process that is new."""
    clock = site.machine.clock
    name = f"process {next(_METERS)}"
    return Allowance(
        Meter(store, clock_ns=clock, clock_s=lambda: clock() / SECOND_NS, process=name)
    )


def compact(site: Site, boundary: Boundary) -> dict[str, str]:
    """A pass; what it could not read."""
    store = site.store(boundary)
    hidden = load(store, TENANT).hidden
    owner = f"compactor {next(_COMPACTORS)}"
    return Compactor(store, TENANT, site.machine.clock(), hidden, owner=owner).run().failed


def delete_lines(
    site: Site, boundary: Boundary, text: str, run: str, rank: int | None
) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    """`ranklog delete TEXT --run RUN`; the rows that it took."""
    reader = site.reader(boundary)
    given = _given(run, rank, None)
    query = read_query(text, given, now_ns=reader.now_ns())
    found = delete(reader, find_deletion(reader, query, who="matrix"))
    return [(item.stream_id, item.ranges) for item in found.tombstone.rows]


def retain(site: Site, boundary: Boundary) -> dict[str, int]:
    """`ranklog retention apply`; floors by run."""
    return apply_retention(site.reader(boundary), who="matrix").floors


# --- reading ---------------------------------------------------------------------------------------
def search(
    reader: Reader, asked: Asked, pin: bool | str = False, text: str | None = None
) -> Answer:
    """Every line that the question is about; `pin`: keep it, or ask a kept one again. `text`: other
    words than its own."""
    backend = Local(reader.store, TENANT, reader)
    if isinstance(pin, str):
        return backend.search("", {}, SearchOptions(pin=pin))
    given = _given(asked.run, asked.rank, asked.window)
    options = SearchOptions(order="oldest", groups=False, pin=pin)
    return backend.search(asked.text if text is None else text, given, options)


def count(reader: Reader, asked: Asked) -> CountAnswer:
    backend = Local(reader.store, TENANT, reader)
    return backend.count(asked.text, _given(asked.run, asked.rank, asked.window), CountOptions())


def count_points(reader: Reader, run: str) -> CountAnswer:
    """Values of the series that the matrix has."""
    backend = Local(reader.store, TENANT, reader)
    return backend.count(f"kind:point series:{SERIES}", _given(run, None, None), CountOptions())


def series(reader: Reader, run: str) -> SeriesAnswer:
    """All of them."""
    backend = Local(reader.store, TENANT, reader)
    return backend.series(SERIES, _given(run, None, None), SeriesOptions(max_points=None))


def _given(run: str, rank: int | None, window: tuple[int, int] | None) -> Restrictions:
    given: Restrictions = {} if run == EVERY_RUN else {"run": run}
    if rank is not None:
        given["rank"] = rank
    if window is not None:
        given["since"], given["until"] = (_iso(ns) for ns in window)
    return given


def _iso(ns: int) -> str:
    from ranklog.answer.render import render_time

    return render_time(ns)


ACTS: dict[str, Callable[..., Any]] = {
    "produce": produce,
    "collect": collect,
    "ingest": ingest,
    "compact": compact,
    "delete_lines": delete_lines,
    "retain": retain,
    "search": lambda site, boundary, asked: len(search(site.reader(boundary), asked).lines),
}
