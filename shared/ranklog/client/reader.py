"""What one query needs around it: the store, the tenant, cached indexes, where tasks run, RE2."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ranklog import limits
from ranklog.client.catalog import Catalog
from ranklog.client.index_files import index_files_of
from ranklog.client.indexes import IndexCache
from ranklog.client.waiting import WaitingFrames
from ranklog.delete.tombstones import TombstoneCache
from ranklog.errors import Cancelled
from ranklog.layout import keys
from ranklog.plan.tasks import AnyTask, Outcome
from ranklog.plan.values import Regexes
from ranklog.scan import arrow_regex
from ranklog.scan.scatter import InProcess, Invoker, scatter
from ranklog.scan.stop import Stop
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from ranklog.client.flights import Flights
    from ranklog.client.results import Results


def _turns(processes: int) -> threading.Semaphore:
    most = limits.QUERIES_PER_CORE_MAX * (os.cpu_count() or 1)
    return threading.Semaphore(max(1, most // processes))


_turn = _turns(1)


def share_cores(processes: int) -> None:
    """This process is one of so many that answer; called before it is asked anything."""
    global _turn
    _turn = _turns(processes)


class Facts:
    """What was worked out of immutable indexes, for the scopes asked last: the next query of the
    same scope need not. Safe to use from many threads; values are not to be changed."""

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, place: Hashable) -> Any:
        with self._lock:
            if place in self._kept:
                self._kept.move_to_end(place)
            return self._kept.get(place)

    def put(self, place: Hashable, value: Any) -> None:
        with self._lock:
            self._kept[place] = value
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


@dataclass(slots=True)
class Reader:
    """One tenant of one store. `concurrency`: tasks in flight; `seconds_left`: until it must answer."""

    store: Store
    tenant: str
    invoker: Invoker
    regexes: Regexes
    indexes: IndexCache
    catalog: Catalog = field(init=False)
    tombstones: TombstoneCache = field(init=False)
    waiting: WaitingFrames = field(init=False)
    facts: Facts = field(default_factory=Facts)
    flights: Flights = field(init=False)
    concurrency: int = 2
    seconds_left: Callable[[], float] | None = None
    now_ns: Callable[[], int] = time.time_ns
    results: Results | None = None
    stops: set[Stop] = field(default_factory=set)
    closed: bool = False

    def __post_init__(self) -> None:
        # Answers hold scopes, and scopes are opened by readers.
        from ranklog.client.flights import Flights

        self.catalog = Catalog(self.store, self.tenant, self.indexes)
        self.tombstones = TombstoneCache(self.store, self.tenant)
        self.waiting = WaitingFrames(self.store, self.tenant)
        self.flights = Flights()

    @property
    def deadline_s(self) -> float:
        """Time of a task that begins now; what it does not reach is named in the answer."""
        if self.seconds_left is None:
            return limits.TASK_SECONDS_MAX
        return min(limits.TASK_SECONDS_MAX, self.seconds_left())

    def run(self, tasks: Sequence[AnyTask], ends_s: float | None = None) -> Iterator[Outcome]:
        """Outcomes in the order of the tasks; those not done at `ends_s` (by time.monotonic()) say
        so. Raises Cancelled where the reader is closed meanwhile."""
        stop = Stop()
        self.stops.add(stop)
        try:
            if self.closed:
                raise Cancelled("the client is closed", hint="open a new one")
            yield from scatter(
                tasks,
                self.invoker,
                self.store,
                concurrency=self.concurrency,
                spill_key=lambda name: keys.tmp_key(self.tenant, name),
                deadline_s=lambda: self.deadline_s,
                ends_s=ends_s,
                stop=stop,
            )
        finally:
            self.stops.discard(stop)

    @contextmanager
    def turn(self, ends_s: float | None = None) -> Iterator[None]:
        """A place among the questions that this process works on at once, where its scans run here, too;
        the others wait for theirs in order to be done sooner. At `ends_s` nobody waits any longer."""
        if not isinstance(self.invoker, InProcess):
            yield
            return
        left_s = None if ends_s is None else max(0.0, ends_s - time.monotonic())
        turn = _turn
        taken = turn.acquire(timeout=left_s)
        try:
            yield
        finally:
            if taken:
                turn.release()

    def close(self) -> None:
        """Cancel what runs, and run nothing more."""
        self.closed = True
        for stop in list(self.stops):
            stop.set()


def local_reader(
    store: Store,
    tenant: str,
    *,
    invoker: Invoker | None = None,
    concurrency: int | None = None,
    seconds_left: Callable[[], float] | None = None,
    results_bytes: int = 0,
) -> Reader:
    """A reader whose tasks run in this process, unless an invoker says otherwise: then it needs no
    DuckDB, which does not fit into one function with Arrow."""
    keys.tenant_prefix(tenant)  # a name that can't be one is refused before anything is read
    if invoker is None:
        from ranklog.scan.engine import shared_engine

        engine = shared_engine()
        invoker, regexes = InProcess(store, engine), engine.matches
    else:
        regexes = arrow_regex.matches
    return Reader(
        store=store,
        tenant=tenant,
        invoker=invoker,
        regexes=regexes,
        indexes=IndexCache(store, files=index_files_of(store)),
        concurrency=concurrency or min(16, 2 * (os.cpu_count() or 1)),
        seconds_left=seconds_left,
        results=_results(results_bytes),
    )


def _results(bytes_max: int) -> Results | None:
    # Answers hold scopes, and scopes are opened by readers.
    from ranklog.client.results import Results

    return Results(bytes_max) if bytes_max else None
