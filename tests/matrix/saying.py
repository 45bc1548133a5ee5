"""Who says what in a schedule: two ranks that are processes, hosts of the others, and runs beside the job."""

from __future__ import annotations

from ranklog.limits import DAY_NS, HOUR_NS, SECOND_NS
from tests.matrix import children
from tests.matrix import faults as f
from tests.matrix.actors import DOOMED, OLD, RUN, SCRATCH, TWIN, WORLD
from tests.matrix.faults import Injection
from tests.matrix.play import Play
from tests.matrix.shippers import Shipper
from tests.matrix.truth import CHANNEL, CONSOLE

# Of a rank that is a process, of one that a shipper has, of each run beside; values of a series.
PROCESS_LINES, RANK_LINES, OTHER_LINES, POINTS = 900, 1_620, 240, 120
TWIN_LINES, CONSOLE_LINES, OLD_LINES = 60, 3, 120
# Frames that arrive one by one.
ALONE_FRAMES = 5
MINUTE_NS = 60 * SECOND_NS


class Speakers:
    """`shippers`: of two hosts; `alone`: whose frames are sent one by one."""

    def __init__(self, play: Play) -> None:
        self.shippers = [Shipper(f"{number:016x}", play.truth) for number in (0xB, 0xC)]
        self.alone = Shipper(f"{0xD:016x}", play.truth)
        self._play = play

    def say(self, turn: int, turns: int) -> None:
        """A part of the lines of each rank that a shipper has; a process of its own for one rank."""
        now = self._play.clock()
        for rank in range(2, WORLD):
            ts = self._times(RANK_LINES // turns, now - 20 * MINUTE_NS, now)
            self.shippers[rank % 2].say(RUN, rank, ts, world=WORLD)
            if rank % 3 == turn:
                self.shippers[rank % 2].lose(RUN, rank, 1 + rank)
                self.shippers[rank % 2].cut()
        for rank in (2, 5):
            ts = self._times(POINTS // turns, now - 20 * MINUTE_NS, now)
            self.shippers[rank % 2].measure(RUN, rank, ts, world=WORLD)
        old = self._times(OTHER_LINES // turns, now - DAY_NS, now - DAY_NS + HOUR_NS)
        self.shippers[0].say(SCRATCH, 0, old, world=1)
        ts = self._times(OTHER_LINES // turns, now - HOUR_NS, now)
        self.shippers[1].say(DOOMED, 0, ts, world=1)
        if turn == 0:
            self._say_old(now)
            self._say_twice(now)
        for shipper in self.shippers:
            if turn == turns - 1:
                shipper.fence(now)
                shipper.end()
            shipper.look(now)
        if turn < 2:
            self._speak(turn, now)

    def _say_old(self, now: int) -> None:
        """A run days ago, in a frame and a batch of its own: its hour is nobody else's."""
        ts = self._times(OLD_LINES, now - 3 * DAY_NS, now - 3 * DAY_NS + MINUTE_NS)
        self.alone.say(OLD, 0, ts, world=1)
        self.alone.look(now)

    def _say_twice(self, now: int) -> None:
        """A rank speaks in two hours, to its logger and on its console, in frames of their own, and is over:
        what of it arrives must tell of what does not."""
        shipper = self.alone
        for low, high in ((now - 70 * MINUTE_NS, now - 65 * MINUTE_NS), (now - MINUTE_NS, now)):
            shipper.say(TWIN, 0, self._times(TWIN_LINES // 2, low, high), world=1)
            shipper.look(now)
        shipper.end(CHANNEL)
        shipper.look(now)
        is_plain = self._play.keys is None
        text = b"on the console" if is_plain else b"on the \xff console\x00"
        for incarnation in ("",) if is_plain else ("", "again"):
            times = self._times(CONSOLE_LINES, now - MINUTE_NS, now)
            shipper.mutter(TWIN, 0, times, text, incarnation)
        shipper.end(CONSOLE)
        shipper.look(now)

    def _times(self, count: int, low: int, high: int) -> list[int]:
        """Ascending, and of whole microseconds."""
        return sorted(self._play.rng.randrange(low, high, 1_000) for _ in range(count))

    def _speak(self, rank: int, now: int) -> None:
        """A rank's process says its lines, and ends, or is killed at a step."""
        play, plan = self._play, self._play.plans[f.PRODUCER]
        ts = self._times(PROCESS_LINES, now - 10 * MINUTE_NS, now)
        injection = None
        if plan.waiting and (rank or play.rng.random() < 0.5):
            injection = plan.waiting.pop()
            nth = play.rng.randrange(PROCESS_LINES) if injection.step == "write" else 0
            injection = Injection(f.PRODUCER, injection.step, injection.fault, nth)
        names = play.seed * 16 + rank
        code, _ = children.run_child(play.site, names, "produce", (rank, ts), injection)
        if code == 0 or injection is None:
            assert code == 0, code
            play.truth.add((RUN, rank)).ts = ts
            return
        assert code == -9, code
        plan.fired.append(injection)
        is_after = injection.fault == f.SIGKILL_AFTER
        if injection.step == "announce" and not is_after:
            play.truth.silent.add((RUN, rank))
            return
        said = {"write": injection.nth + is_after, "close": len(ts)}.get(injection.step, 0)
        play.truth.add((RUN, rank)).ts = ts[:said]
