"""What one schedule is about: its servers' place, its clock, who is to be disturbed, and what is true."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from ranklog.access.policy import Quotas
from ranklog.client.reader import Reader
from ranklog.compact import merge
from ranklog.delete import merging
from ranklog.delete.tombstones import TombstoneCache
from ranklog.errors import RanklogError
from ranklog.ingest import hours
from ranklog.limits import DAY_NS, HOUR_NS, SECOND_NS
from ranklog.model.record import Record
from ranklog.model.tombstone import Tombstones
from ranklog.plan.overlap import union
from ranklog.produce import spool
from tests.matrix import children
from tests.matrix import faults as f
from tests.matrix.actors import Site
from tests.matrix.baton import Stage, Task
from tests.matrix.boundary import Ages, Boundary, Killed, WatchedStore
from tests.matrix.deliveries import Deliveries
from tests.matrix.faults import ActorPlan, Injection
from tests.matrix.held_back import QUOTA, HeldBack, is_limited
from tests.matrix.machine import T0, TENANT, Machine, seed_names
from tests.matrix.seals import Keys, injection_of, is_sealed
from tests.matrix.truth import Known, Truth


class Decided(Exception):
    """Something is wrong, and that was the question."""


class Play:
    """The state of a schedule. `where`: how far it is, for people. `until_wrong`: it ends soon after something
    was found wrong."""

    def __init__(
        self, machine: Machine, seed: int, folder: Path, *, until_wrong: bool = False
    ) -> None:
        self.until_wrong = until_wrong
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = machine.clock
        self.clock.now_ns = T0 + 20 * 60 * SECOND_NS
        seed_names(seed)
        name = f"matrix-{seed}-{folder.name.rpartition('-')[2]}"
        self.site = Site(machine, name, name, folder, Ages(self.clock))
        self.truth = Truth()
        self.plans = f.draw_plans(seed, self.rng)
        self.stage = Stage(self.rng)
        self.deliveries = Deliveries(self.site, self.truth, self.rng)
        self.where = "at the start"
        self.kept_a_day: list[str] = []  # runs that have a retention
        self.keys = Keys(self.site) if is_sealed(seed) else None
        self.held_back = HeldBack(self) if is_limited(seed) else None
        self._tombstones = TombstoneCache(self.site.sure_store(), TENANT)
        self._gone = Tombstones()
        self._kept: tuple[WatchedStore, Reader] | None = None
        spool.make_spool(self.site.spool)
        machine.sure_kinesis.create_stream(StreamName=name, ShardCount=2)
        # small batches meet the limits that large ones do
        vars(hours)["HOUR_ROWS_MIN"] = self.rng.choice([64, 4_096])
        vars(merging)["TOMBSTONES_MAX"] = self.rng.choice([1, 64])
        vars(merge)["COMPACT_SPLIT_BYTES_MIN"] = self.rng.choice([20_000, 16 << 20])
        if self.keys is not None:
            self.keys.begin(QUOTA if self.held_back else Quotas())
            self.plans[f.INGEST].waiting.append(injection_of(seed))

    def close(self) -> None:
        self.site.machine.sure_kinesis.delete_stream(StreamName=self.site.stream_name)

    # --- what is true now --------------------------------------------------------------------------
    def gone(self) -> Tombstones:
        """What was deleted: all that a tombstone ever named, whether it is still there or not."""
        now, known = self._tombstones.load(), self._gone
        if now.keys != known.keys:
            streams = {
                name: tuple(union([*known.streams.get(name, ()), *now.streams.get(name, ())]))
                for name in known.streams.keys() | now.streams.keys()
            }
            self._gone = Tombstones(now.keys, streams, known.launches | now.launches)
        return self._gone

    def gone_of_pins(self) -> Tombstones:
        """What people deleted, and retention did not."""
        return self._tombstones.for_pins()

    def known(self) -> Known:
        """This moment. What retention may have let go of grows with time."""
        for run in self.kept_a_day:
            self.truth.floors[run] = (self.clock() - DAY_NS) // HOUR_NS * HOUR_NS
        return self.truth.now(self.gone())

    def is_proven(self, record: Record) -> bool:
        """Whether ingest must store it."""
        return self.keys is None or self.keys.is_proven(record)

    # --- who works ---------------------------------------------------------------------------------
    def run_stage(self) -> None:
        """All that were added, until they are done or stand still. Raises Decided."""
        for task in self.stage.run():
            error = task.error
            if error is not None and not isinstance(error, (Killed, RanklogError)):
                raise error
        if self.until_wrong and self.truth.wrong:
            raise Decided

    def boundary(self, actor: str, task: Task, plan: ActorPlan | None = None) -> Boundary:
        return Boundary(plan or self.plans[actor], task)

    def quiet(self) -> Boundary:
        """Of somebody to whom nothing happens."""
        return Boundary(ActorPlan())

    def sigkill(self, actor: str) -> Injection | None:
        """The next kill of a real process that waits for the actor."""
        plan = self.plans[actor]
        for injection in plan.waiting:
            if injection.fault in f.SIGKILLS:
                plan.waiting.remove(injection)
                nth = min(injection.nth, 1)
                return Injection(actor, injection.step, injection.fault, nth)
        return None

    def in_child(self, injection: Injection, act: str, arguments: tuple[Any, ...]) -> bool:
        """Do it in a process of its own; whether it was killed there."""
        since = time.time_ns()
        code, result = children.run_child(self.site, self.seed, act, arguments, injection)
        self.site.ages.refresh(list(self.site.sure_store().list(f"{TENANT}/")), since)
        if code == -9:
            self.plans[injection.actor].fired.append(injection)
            return True
        assert code == 0, code
        if isinstance(result, Exception) and not isinstance(result, RanklogError):
            raise result
        return False

    # --- who reads ---------------------------------------------------------------------------------
    def take_reader(self, boundary: Boundary, *, kept: bool) -> Reader:
        """A new one, as a command has it; or the one that was kept, as a server does, with what it
        remembers."""
        if not kept:
            return self.site.reader(boundary)
        taken, self._kept = self._kept, None
        if taken is None:
            return self.site.reader(boundary)
        store, reader = taken
        store.boundary = boundary
        return reader

    def keep_reader(self, reader: Reader) -> None:
        """For the next who wants a kept one: its process lives on."""
        assert isinstance(reader.store, WatchedStore)
        self._kept = (reader.store, reader)
