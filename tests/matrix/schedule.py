"""One schedule: a job of eight ranks from its first line to the last answer, with faults drawn by a seed.

In turns lines are said, sent and stored, while compaction, deletion, retention and questions work beside
that, step by step in drawn order. Then everything recovers: what is left is sent and stored without
faults, days pass, and the last answers must be whole.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranklog.client.audit import audit
from ranklog.compact import merge
from ranklog.delete.retention import Policy, save_policy
from ranklog.delete.tombstones import TombstoneCache
from ranklog.errors import NotFound, RanklogError
from ranklog.ingest import hours
from ranklog.limits import COMPACT_GRACE_S, DAY_NS, HOUR_NS, SECOND_NS
from ranklog.model.tombstone import Tombstones
from ranklog.produce import spool
from tests.matrix import actors, children
from tests.matrix import faults as f
from tests.matrix.actors import DOOMED, RUN, SCRATCH, WORLD, Site
from tests.matrix.baton import Stage, Task
from tests.matrix.boundary import Ages, Boundary, Killed
from tests.matrix.deliveries import Deliveries, Delivery
from tests.matrix.faults import ActorPlan, Injection
from tests.matrix.machine import T0, TENANT, Machine, seed_names
from tests.matrix.shippers import Shipper
from tests.matrix.truth import BUCKETS, EVERY_BUCKET, Asked, Known, Truth

PROCESS_LINES, RANK_LINES, OTHER_LINES, POINTS = 900, 1_620, 240, 120
TURNS = 3


@dataclass(slots=True)
class Result:
    """`fired`: what happened to whom; `wrong`: what must be zero, by kind."""

    seed: int
    lines: int
    fired: list[Injection]
    wrong: Counter[str]
    notes: list[str]
    answers: Counter[str]
    cpu_s: float = 0.0
    requests: int = 0


def run_schedule(machine: Machine, seed: int, besides: Injection | None = None) -> Result:
    """Play it from the beginning to the end. `besides`: what happens beyond what is drawn."""
    started = time.process_time()
    folder = Path(tempfile.mkdtemp(prefix="ranklog-matrix-"))
    play = Schedule(machine, seed, folder)
    if besides is not None:
        play.plans[besides.actor].waiting.append(besides)
    try:
        play.run()
    finally:
        play.close()
        shutil.rmtree(folder, ignore_errors=True)
    fired = [one for plan in play.plans.values() for one in plan.fired]
    truth = play.truth
    cpu_s = time.process_time() - started
    return Result(seed, truth.lines, fired, truth.wrong, truth.notes, truth.answers, cpu_s)


class Schedule:
    """What one schedule is about, and its turns."""

    def __init__(self, machine: Machine, seed: int, folder: Path) -> None:
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
        self.shippers = [Shipper(f"{number:016x}", self.truth) for number in (0xB, 0xC)]
        self.where = "at the start"
        self.failed: dict[str, str] = {}
        self.pins: list[tuple[str, Asked, set[str]]] = []
        self.has_policy = False
        self.tombstones = TombstoneCache(self.site.sure_store(), TENANT)
        spool.make_spool(self.site.spool)
        machine.sure_kinesis.create_stream(StreamName=name, ShardCount=2)
        # small batches meet the limits that large ones do
        vars(hours)["HOUR_ROWS_MIN"] = self.rng.choice([64, 4_096])
        vars(merge)["COMPACT_SPLIT_BYTES_MIN"] = self.rng.choice([20_000, 16 << 20])

    def close(self) -> None:
        self.site.machine.sure_kinesis.delete_stream(StreamName=self.site.stream_name)

    # --- turns -------------------------------------------------------------------------------------
    def run(self) -> None:
        for turn in range(TURNS):
            self.where = f"turn {turn}"
            self._say(turn)
            self._send()
            self._store_and_more(turn)
            self.clock.advance(self.rng.choice([45 * 60, 61 * 60, 75 * 60]))
        self._recover()

    def _say(self, turn: int) -> None:
        """A third of the lines of each rank that a shipper has; a process of its own for one rank."""
        now = self.clock()
        for rank in range(2, WORLD):
            ts = self._times(RANK_LINES // TURNS, now - 20 * 60 * SECOND_NS, now)
            self.shippers[rank % 2].say(RUN, rank, ts, world=WORLD)
            if rank % 3 == turn:
                self.shippers[rank % 2].cut()
        for rank in (2, 5):
            ts = self._times(POINTS // TURNS, now - 20 * 60 * SECOND_NS, now)
            self.shippers[rank % 2].measure(RUN, rank, ts, world=WORLD)
        old = self._times(OTHER_LINES // TURNS, now - DAY_NS, now - DAY_NS + HOUR_NS)
        self.shippers[0].say(SCRATCH, 0, old, world=1)
        self.shippers[1].say(
            DOOMED, 0, self._times(OTHER_LINES // TURNS, now - HOUR_NS, now), world=1
        )
        for shipper in self.shippers:
            shipper.fence(now)
            if turn == TURNS - 1:
                shipper.end()
            shipper.cut()
        if turn < 2:
            self._speak(turn, now)

    def _times(self, count: int, low: int, high: int) -> list[int]:
        """Ascending, and of whole microseconds."""
        return sorted(self.rng.randrange(low, high, 1_000) for _ in range(count))

    def _speak(self, rank: int, now: int) -> None:
        """A rank's process says its lines, and ends, or is killed at a step."""
        plan = self.plans[f.PRODUCER]
        injection = (
            plan.waiting.pop() if plan.waiting and (rank or self.rng.random() < 0.5) else None
        )
        if injection is not None and injection.step == "write":
            nth = self.rng.randrange(PROCESS_LINES)
            injection = Injection(f.PRODUCER, "write", injection.fault, nth)
        ts = self._times(PROCESS_LINES, now - 10 * 60 * SECOND_NS, now)
        names = self.seed * 16 + rank
        code, _ = children.run_child(self.site, names, "produce", (rank, ts), injection)
        said, is_after = PROCESS_LINES, False
        if code == 0:
            injection = None
        if injection is not None:
            assert code == -9, code
            plan.fired.append(Injection(f.PRODUCER, injection.step, injection.fault))
            is_after = injection.fault == f.SIGKILL_AFTER
            said = {"write": injection.nth + is_after, "close": PROCESS_LINES}.get(
                injection.step, 0
            )
        if injection is not None and injection.step == "announce" and not is_after:
            self.truth.silent.add((RUN, rank))
        else:
            self.truth.add((RUN, rank)).ts = ts[:said]

    def _send(self) -> None:
        """Agent and shippers send what they have, with what happens to them."""
        self._collect()
        for shipper in self.shippers:
            boundary = Boundary(self.plans[f.AGENT])
            try:
                shipper.ship(self.site, boundary, self.rng)
            except Killed:
                shipper.ship(self.site, Boundary(self.plans[f.AGENT]), self.rng)
        self.deliveries.poll()

    def _collect(self) -> None:
        """The agent works, dies, and another one goes on."""
        plan = self.plans[f.AGENT]
        for injection in list(plan.waiting):
            if injection.fault in f.SIGKILLS:
                plan.waiting.remove(injection)
                if self._in_child(plan, injection, "collect", ()):
                    break
        for _ in range(4):
            try:
                if not actors.collect(self.site, Boundary(plan)):
                    return
            except Killed:
                continue

    # --- stages ------------------------------------------------------------------------------------
    def _store_and_more(self, turn: int) -> None:
        """Batches are stored while others are at work."""
        if turn < 2:
            self._pause_one()
        while self.deliveries.waiting:
            self.where = f"turn {turn}, {len(self.deliveries.waiting)} batches wait"
            for delivery in self.deliveries.take(self.rng.randint(1, 3)):
                self._add_ingest(delivery)
            for work in self.rng.sample(self._others(turn), self.rng.randint(0, 2)):
                work()
            self._run_stage()
            self.clock.advance(self.rng.choice([1, 20, 70]))
            if self.rng.random() < 0.1:
                self.stage.release(0.3)
        if turn:
            self._add_deletion()
            self._add_retention()
            self._add_compaction()
        self._add_query()
        self._run_stage()
        if turn == 1 and not self.pins:
            self._pin()

    def _others(self, turn: int) -> list[Callable[[], object]]:
        works: list[Callable[[], object]] = [self._add_query, self._add_query, self._add_compaction]
        if turn:
            works += [self._add_deletion, self._add_retention]
        return works

    def _pause_one(self) -> None:
        """A writer stands still between two of its steps for minutes, while compaction goes by."""
        if not self.deliveries.waiting:
            return
        step, fault = self.rng.choice(
            [
                ("segment.put", f.STALL_AFTER),
                ("marker.put", f.STALL_BEFORE),
                ("index.put", f.STALL_BEFORE),
            ]
        )
        paused = Injection(f.INGEST, step, fault)
        [delivery] = self.deliveries.take(1)
        task = self._add_ingest(delivery, ActorPlan([paused]), resent=self.rng.random() < 0.3)
        self._run_stage()
        self.clock.advance(self.rng.choice([100, 200, 290]))
        self._add_compaction()
        self._run_stage()
        if self.rng.random() < 0.6:
            task.stalled = False
            self._run_stage()

    def _run_stage(self) -> None:
        for task in self.stage.run():
            error = task.error
            if error is not None and not isinstance(error, (Killed, RanklogError)):
                raise error

    def _boundary(self, actor: str, task: Task, plan: ActorPlan | None = None) -> Boundary:
        return Boundary(plan or self.plans[actor], task)

    def _in_child(
        self, plan: ActorPlan, injection: Injection, act: str, arguments: tuple[Any, ...]
    ) -> bool:
        """Do it in a process of its own; whether it was killed there."""
        since = time.time_ns()
        code, result = children.run_child(self.site, self.seed, act, arguments, injection)
        self.site.ages.refresh(list(self.site.sure_store().list(f"{TENANT}/")), since)
        if code == -9:
            plan.fired.append(injection)
            return True
        assert code == 0, code
        if isinstance(result, Exception) and not isinstance(result, RanklogError):
            raise result
        return False

    def _sigkill(self, actor: str) -> Injection | None:
        """The next kill of a real process that waits for the actor."""
        plan = self.plans[actor]
        for injection in plan.waiting:
            if injection.fault in f.SIGKILLS:
                plan.waiting.remove(injection)
                nth = min(injection.nth, 1)
                return Injection(actor, injection.step, injection.fault, nth)
        return None

    # --- actors ------------------------------------------------------------------------------------
    def _add_ingest(
        self, delivery: Delivery, plan: ActorPlan | None = None, *, resent: bool = True
    ) -> Task:
        """A batch is tried; if it stands still it is given up, and comes again beside itself."""
        source = f"{self.site.stream_name}-{delivery.shard}"
        arguments = (delivery.records, source, self.rng.randrange(2))
        injection = None if plan else self._sigkill(f.INGEST)

        def work(task: Task) -> None:
            boundary = self._boundary(f.INGEST, task, plan)
            if injection is not None:
                self._in_child(self.plans[f.INGEST], injection, "ingest", arguments)
                self.deliveries.failed(delivery)
                return
            failed = False
            if resent:
                boundary.on_stall = lambda: self.deliveries.failed(delivery)
            try:
                actors.ingest(self.site, boundary, *arguments)
            except (Killed, RanklogError):
                failed = True
            if boundary.stalled and resent:
                return  # who is given up is not heard
            if failed:
                self.deliveries.failed(delivery)
            else:
                self.deliveries.done(delivery)

        return self.stage.add(f"ingest {delivery.records[0].sequence}", work)

    def _add_compaction(self) -> None:
        injection = self._sigkill(f.COMPACTION)

        def work(task: Task) -> None:
            if injection is not None:
                self._in_child(self.plans[f.COMPACTION], injection, "compact", ())
                return
            actors.compact(self.site, self._boundary(f.COMPACTION, task))

        self.stage.add("compaction", work)

    def _add_deletion(self) -> None:
        text = self.rng.choice(["u4711q", "u4712q", ""])
        run, rank = (DOOMED, None) if not text else (RUN, self.rng.choice([None, None, 2, 5]))
        injection = self._sigkill(f.DELETION)

        def work(task: Task) -> None:
            if injection is not None:
                self._in_child(self.plans[f.DELETION], injection, "delete_lines", (text, run, rank))
                return
            boundary = self._boundary(f.DELETION, task)
            actors.delete_lines(self.site, boundary, text, run, rank)

        self.stage.add(f"deletion of {text!r}", work)

    def _add_retention(self) -> None:
        injection = self._sigkill(f.RETENTION)
        if not self.has_policy:
            self.has_policy = True
            save_policy(self.site.sure_store(), TENANT, Policy().with_rule(f"{SCRATCH}*", DAY_NS))

        def work(task: Task) -> None:
            if injection is not None:
                self._in_child(self.plans[f.RETENTION], injection, "retain", ())
                return
            actors.retain(self.site, self._boundary(f.RETENTION, task))

        self.stage.add("retention", work)

    # --- questions ---------------------------------------------------------------------------------
    def _gone(self) -> Tombstones:
        return self.tombstones.load()

    def _known(self) -> Known:
        if self.has_policy:
            self.truth.floors[SCRATCH] = (self.clock() - DAY_NS) // HOUR_NS * HOUR_NS
        return self.truth.now(self._gone())

    def _draw_question(self) -> Asked:
        run = self.rng.choice([RUN, RUN, RUN, RUN, SCRATCH, DOOMED])
        bucket = self.rng.randrange(BUCKETS)
        window, rank = None, None
        if run == RUN and self.rng.random() < 0.5:
            first = T0 + self.rng.randrange(5) * HOUR_NS
            window = (first, first + self.rng.choice([HOUR_NS, 2 * HOUR_NS, HOUR_NS // 4]))
        if run == RUN and self.rng.random() < 0.2:
            rank = self.rng.randrange(WORLD)
        return Asked(run, bucket, window, rank)

    def _add_query(self) -> None:
        asked, counted = self._draw_question(), self.rng.random() < 0.4
        of_points = self.rng.random() < 0.2
        injection = self._sigkill(f.QUERY)

        def work(task: Task) -> None:
            if injection is not None:
                self._in_child(self.plans[f.QUERY], injection, "search", (asked,))
                return
            boundary = self._boundary(f.QUERY, task)
            if of_points:
                self._ask_points(boundary)
            else:
                self._ask(asked, boundary, counted=counted)

        self.stage.add("query", work)

    def _ask(self, asked: Asked, boundary: Boundary, *, counted: bool = False) -> None:
        before, began = self._known(), self.clock()
        reader = self.site.reader(boundary)
        try:
            ask = actors.count if counted else actors.search
            answer = ask(reader, asked)
        except NotFound as error:
            must = self.truth.wanted(asked, before.stored, self._gone())
            if not boundary.faulted:
                self.truth.note("lost", len(must), f"{self.where}: {error}")
            return
        except RanklogError as error:
            if not boundary.faulted:
                self.truth.note("broken", 1, f"{self.where}: {asked}: {error}")
            return
        if boundary.dead:
            raise Killed
        faulted = boundary.faulted or self.clock() - began > COMPACT_GRACE_S * SECOND_NS
        check = self.truth.check_count if counted else self.truth.check
        check(asked, answer, before, self._known(), faulted=faulted, where=self.where)

    def _ask_points(self, boundary: Boundary) -> None:
        before, began = self._known(), self.clock()
        try:
            answer = actors.count_points(self.site.reader(boundary), RUN)
        except NotFound:
            return
        except RanklogError as error:
            if not boundary.faulted:
                self.truth.note("broken", 1, f"{self.where}: points: {error}")
            return
        if boundary.dead:
            raise Killed
        faulted = boundary.faulted or self.clock() - began > COMPACT_GRACE_S * SECOND_NS
        state = answer.completeness.state
        self.truth.check_points(answer.count, state, before, faulted=faulted, where=self.where)

    def _pin(self) -> None:
        """A question that is kept has the same lines for good, but for those that are deleted."""
        asked = Asked(RUN, self.rng.randrange(BUCKETS))
        reader = self.site.reader(Boundary(ActorPlan()))
        answer = actors.search(reader, asked, pin=True)
        if answer.pin is not None:
            self.pins.append((str(answer.pin["id"]), asked, {line.id for line in answer.lines}))

    # --- the end -----------------------------------------------------------------------------------
    def _recover(self) -> None:
        """Everything that waits is done, without faults; then days pass."""
        for plan in self.plans.values():
            plan.waiting.clear()
        self.where = "recovery"
        self._send_rest()
        self._drain()
        for hours_ in (0.6, 24.0):
            self.clock.advance(hours_ * 3_600)
            self._compact_and_ask()
        self.stage.release()
        self._run_stage()
        self.deliveries.replay(2)
        self._drain()
        self._retain_and_delete()
        self.clock.advance(8 * 86_400)
        self._compact_and_ask()
        self.clock.advance(40 * 60)
        self._last_answers()

    def _send_rest(self) -> None:
        for _ in range(3):
            self._collect()
            for shipper in self.shippers:
                shipper.ship(self.site, Boundary(ActorPlan()), self.rng)
        left = [one.incarnation for one in spool.announced(self.site.spool)]
        self.truth.note("lost", len(left), f"processes stay in the spool: {left}")
        self.deliveries.poll()

    def _drain(self) -> None:
        """Store what waits."""
        while self.deliveries.waiting:
            for delivery in self.deliveries.take(4):
                self._add_ingest(delivery)
            self._run_stage()

    def _compact_and_ask(self) -> None:
        self._add_compaction()
        self._add_query()
        self._run_stage()

    def _retain_and_delete(self) -> None:
        """Once more and whole, what may have been cut short."""
        boundary = Boundary(ActorPlan())
        if self.seed % 2:
            actors.delete_lines(self.site, boundary, "", DOOMED, None)
        actors.delete_lines(self.site, boundary, "u4711q", RUN, None)
        self._check_deletion("u4711q")

    def _check_deletion(self, word: str) -> None:
        """What was stored and matches is gone."""
        reader = self.site.reader(Boundary(ActorPlan()))
        answer = actors.search(reader, Asked(RUN), text=word)
        left = [line.id for line in answer.lines]
        self.truth.note("undeleted", len(left), f"{word} is in {left[:3]}")

    def _last_answers(self) -> None:
        self.where = "at the end"
        boundary = Boundary(ActorPlan())
        failed = actors.compact(self.site, boundary)
        self.truth.note("broken", len(failed), f"compaction leaves {failed}")
        for run in (RUN, SCRATCH, DOOMED):
            self._ask(Asked(run, EVERY_BUCKET), boundary)
        for hour in range(-1, 5, 2):
            first = T0 + hour * HOUR_NS
            self._ask(Asked(RUN, 3, (first, first + HOUR_NS)), boundary)
        self._ask(Asked(RUN, EVERY_BUCKET), boundary, counted=True)
        self._check_complete()
        self._check_series()
        self._check_pins()
        self._check_audit()

    def _check_complete(self) -> None:
        """All is there now, and the answer knows."""
        reader = self.site.reader(Boundary(ActorPlan()))
        state = actors.search(reader, Asked(RUN, 0)).completeness.state
        wanted = "behind" if self.truth.silent else "complete"
        self.truth.note("broken", state != wanted, f"{wanted} is called {state}")

    def _check_series(self) -> None:
        """Every value once, of every rank that has some."""
        self._ask_points(Boundary(ActorPlan()))
        answer = actors.series(self.site.reader(Boundary(ActorPlan())), RUN)
        read = int(answer.read.sum())
        self.truth.note("lost", max(0, self.truth.points.total() - read), "of the series")
        self.truth.note("doubled", max(0, read - self.truth.points.total()), "of the series")

    def _check_pins(self) -> None:
        gone = self._gone()
        for pin, asked, ids in self.pins:
            reader = self.site.reader(Boundary(ActorPlan()))
            answer = actors.search(reader, asked, pin=pin)
            shown = {line.id for line in answer.lines}
            kept = {
                name
                for name in ids
                if not any(
                    low <= int(name.partition(":")[2]) < high
                    for low, high in gone.streams.get(name.partition(":")[0], ())
                )
            }
            self.truth.note("lost", len(kept - shown), f"of a pinned question: {pin}")
            self.truth.note("doubled", len(shown - ids), f"new in a pinned question: {pin}")

    def _check_audit(self) -> None:
        found = audit(self.site.reader(Boundary(ActorPlan())))
        bad = [one.to_json() for one in found.frames if one.state in ("missing", "altered")]
        self.truth.note("broken", len(bad) + len(found.segments), f"audit: {bad} {found.segments}")
