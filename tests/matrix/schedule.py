"""One schedule: a job of eight ranks from its first line to the last answer, with faults drawn by a seed.

In turns lines are said, sent and stored, while compaction, deletion, retention and questions work beside
that, step by step in drawn order. Then everything recovers: what is left is sent and stored without
faults, days pass, and the last answers must be whole.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ranklog.limits import REMOVAL_GRACE_S
from ranklog.produce import spool
from tests.matrix import actors
from tests.matrix import faults as f
from tests.matrix.actors import DOOMED, OLD, RUN, SCRATCH, TWIN
from tests.matrix.boundary import Boundary, Killed
from tests.matrix.deliveries import Delivery
from tests.matrix.faults import ActorPlan, Injection
from tests.matrix.machine import Machine
from tests.matrix.play import Decided, Play
from tests.matrix.questions import (
    Pins,
    add_query,
    ask_lines,
    ask_twin,
    check_console,
    check_deletion,
    last_answers,
    pause_question,
)
from tests.matrix.saying import ALONE_FRAMES, CONSOLE_LINES, Speakers
from tests.matrix.shippers import Shipper
from tests.matrix.truth import BUCKETS, Asked
from tests.matrix.works import (
    add_compaction,
    add_deletion,
    add_ingest,
    add_late,
    add_retention,
    keep_a_day,
    pause_one,
)

TURNS = 3


@dataclass(slots=True)
class Result:
    """`fired`: what happened to whom; `wrong`: what must be zero, by kind. Processor seconds of the worker
    alone."""

    seed: int
    lines: int
    fired: list[Injection]
    wrong: Counter[str]
    notes: list[str]
    answers: Counter[str]
    cpu_s: float = 0.0


def run_schedule(
    machine: Machine, seed: int, besides: Injection | None = None, *, until_wrong: bool = False
) -> Result:
    """Play it from the beginning to the end, or until something is wrong. `besides`: what happens beyond what
    is drawn."""
    started = time.process_time()
    folder = Path(tempfile.mkdtemp(prefix="ranklog-matrix-"))
    play = Play(machine, seed, folder, until_wrong=until_wrong)
    if besides is not None:
        play.plans[besides.actor].waiting.append(besides)
    try:
        with contextlib.suppress(Decided):
            Schedule(play).run()
    finally:
        play.close()
        shutil.rmtree(folder, ignore_errors=True)
    fired = [one for plan in play.plans.values() for one in plan.fired]
    truth = play.truth
    cpu_s = time.process_time() - started
    return Result(seed, truth.lines, fired, truth.wrong, truth.notes, truth.answers, cpu_s)


class Schedule:
    """The turns of a play, and its end."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.pins = Pins()
        self.speakers = Speakers(play)
        self.shippers = self.speakers.shippers
        self.held: list[Delivery] = []  # a batch of which the writer stands still for days

    def run(self) -> None:
        for turn in range(TURNS):
            self.speakers.say(turn, TURNS)
            self._send(turn)
            self._store_and_more(turn)
            if turn == 1:
                self._revoke()
            self.play.clock.advance(60 * self.play.rng.choice([45, 61, 75]))
        self._recover()

    # --- sending -----------------------------------------------------------------------------------
    def _send(self, turn: int) -> None:
        """Agent and shippers send what they have, with what happens to them."""
        for _ in self.speakers.alone.ship_one_by_one(
            self.play.site, self.play.quiet(), self.play.rng
        ):
            self.play.deliveries.poll()
        self._collect()
        plan = self.play.plans[f.AGENT]
        for shipper in self.shippers:
            if self._is_cut_off(shipper, turn):
                continue
            for _ in range(2):  # who is killed starts anew
                try:
                    shipper.ship(self.play.site, Boundary(plan), self.play.rng)
                    break
                except Killed:
                    continue
        self.play.deliveries.poll()

    def _is_cut_off(self, shipper: Shipper, turn: int) -> bool:
        """Where keys change, a host dies in its second turn as it sends: its frames go with another key."""
        keys = self.play.keys
        if keys is None:
            return False
        if shipper is self.shippers[0]:
            keys.poison(shipper.stream_of(RUN, 2), self.play.rng)
        is_cut_off = turn == 1 and shipper is self.shippers[1]
        if is_cut_off:
            death = ActorPlan([Injection(f.AGENT, "send", f.KILL_BEFORE)])
            with contextlib.suppress(Killed):
                shipper.ship(self.play.site, Boundary(death), self.play.rng)
            keys.rotate()
        return is_cut_off

    def _revoke(self) -> None:
        """The key that was rotated is revoked, when whatever it sealed is stored."""
        if self.play.keys is not None:
            self.play.stage.release()
            self.play.run_stage()
            self._drain()
            self.play.keys.revoke()

    def _collect(self) -> None:
        """The agent works, dies, and another one goes on."""
        plan = self.play.plans[f.AGENT]
        for injection in [one for one in plan.waiting if one.fault in f.SIGKILLS]:
            plan.waiting.remove(injection)
            if self.play.in_child(injection, "collect", ()):
                break
        for _ in range(4):
            try:
                if not actors.collect(self.play.site, Boundary(plan)):
                    return
            except Killed:
                continue

    # --- storing -----------------------------------------------------------------------------------
    def _store_and_more(self, turn: int) -> None:
        """Batches are stored while others are at work."""
        play = self.play
        if turn == 0:
            self._store_one_by_one()
        if turn == TURNS - 1 and play.seed % 8 == 5:
            self.held = play.deliveries.take(1, first=True)
        pause_at = play.rng.randrange(4)
        for number in count():
            if turn < 2 and number == pause_at:
                pause_one(play)
            if not play.deliveries.waiting:
                break
            play.where = f"turn {turn}, {len(play.deliveries.waiting)} batches wait"
            for delivery in play.deliveries.take(play.rng.randint(1, 3)):
                add_ingest(play, delivery)
            for add in play.rng.sample(self._others(turn), play.rng.randint(0, 2)):
                add(play)
            if play.held_back and number % 3 == 0:
                play.held_back.add_release(play.held_back.death(turn + number))
            play.run_stage()
            play.clock.advance(play.rng.choice([1, 20, 70]))
            if play.rng.random() < 0.1:
                play.stage.release(0.3)
        for add in (add_deletion, add_retention, add_compaction) if turn else ():
            add(play)
        add_query(play)
        play.run_stage()
        if turn == 0:
            self.pins.pin(play, Asked(SCRATCH))  # before retention takes any of it
        if turn == 1:
            self.pins.pin(play, Asked(RUN, play.rng.randrange(BUCKETS)))

    def _store_one_by_one(self) -> None:
        """Frames of the run of days ago and of the one that speaks twice, which were sent first, with a question
        after each; then all of them together."""
        play = self.play
        for delivery in play.deliveries.take(ALONE_FRAMES, first=True):
            add_ingest(play, delivery)
            play.run_stage()
            ask_twin(play)
        for delivery in play.deliveries.joined():
            add_ingest(play, delivery)
            play.run_stage()
            ask_twin(play)

    def _others(self, turn: int) -> list[Callable[[Play], None]]:
        works: list[Callable[[Play], None]] = [add_query, add_query, add_compaction]
        return [*works, add_deletion, add_retention] if turn else works

    # --- the end -----------------------------------------------------------------------------------
    def _recover(self) -> None:
        """Everything that waits is done, without faults; then days pass."""
        play = self.play
        for plan in play.plans.values():
            plan.waiting.clear()
        play.where = "recovery"
        self._send_rest()
        self._drain()
        if play.held_back:
            play.held_back.release_all()
        for minutes in (36, 24 * 60):
            play.clock.advance(60 * minutes)
            self._compact_and_ask()
        play.stage.release()
        play.run_stage()
        ask_lines(play, Asked(TWIN), play.quiet())
        play.deliveries.replay(2, oldest=play.keys is not None)
        self._drain()
        if play.held_back:
            play.held_back.release_all()
        if play.seed % 2:
            actors.delete_lines(play.site, play.quiet(), "", DOOMED, None)
        actors.delete_lines(play.site, play.quiet(), "u4711q", RUN, None)
        check_deletion(play, "u4711q")
        late = add_late(play, self.held)
        play.run_stage()
        play.clock.advance(8 * 86_400)
        self._let_go()
        play.clock.advance(20 * 60)
        self._compact_and_ask()
        if late is not None:
            late.stalled = False
            play.run_stage()
        if play.held_back:
            play.held_back.release_all()
        play.clock.advance(40 * 60)
        last_answers(play)
        self.pins.check(play)
        if play.keys is not None:
            play.keys.check(play.truth)
            check_console(play, 2 * CONSOLE_LINES)

    def _send_rest(self) -> None:
        play = self.play
        for _ in range(3):
            self._collect()
            for shipper in self.shippers:
                shipper.ship(play.site, play.quiet(), play.rng)
        left = [one.incarnation for one in spool.announced(play.site.spool)]
        play.truth.note("lost", len(left), f"processes stay in the spool: {left}")
        play.deliveries.poll()

    def _drain(self) -> None:
        """Store what waits."""
        while self.play.deliveries.waiting:
            for delivery in self.play.deliveries.take(4):
                add_ingest(self.play, delivery)
            self.play.run_stage()

    def _let_go(self) -> None:
        """What is old goes: pointers, and runs that retention takes. Who deletes them is disturbed."""
        play = self.play
        keep_a_day(play, OLD)
        add_retention(play)
        play.run_stage()
        play.clock.advance(REMOVAL_GRACE_S + 60)
        for actor in (f.COMPACTION, f.RETENTION):
            play.plans[actor].waiting.append(f.late_injection(actor, play.seed))
        add_retention(play)
        play.run_stage()
        self._compact_and_ask()
        for plan in play.plans.values():
            plan.waiting.clear()
        play.stage.release()
        play.run_stage()

    def _compact_and_ask(self) -> None:
        pause_question(self.play)
        if self.play.kept_a_day:
            add_retention(self.play)
        add_compaction(self.play)
        add_query(self.play)
        self.play.run_stage()
