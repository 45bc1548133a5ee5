"""Recording: little is written, nothing is written twice, and what is measured never fails for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from ranklog.errors import Unavailable
from ranklog.limits import HOUR_NS, MEASURED_TENANTS_MAX, SECOND_NS
from ranklog.objectives import names
from ranklog.objectives.keeping import read_measures
from ranklog.objectives.measures import Measures
from ranklog.objectives.recorder import Recorder
from ranklog.store import MemoryStore

BEGIN_NS = 500_000 * HOUR_NS


class Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.puts = 0
        self.is_away = False

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        if self.is_away:
            raise Unavailable("away")
        self.puts += 1
        return super().put(key, data, if_absent=if_absent)


@dataclass
class Bench:
    """A recorder with a clock that is set by hand, in seconds."""

    store: Counting = field(default_factory=Counting)
    at_s: float = 0.0

    def recorder(self, **others: object) -> Recorder:
        return Recorder(
            self.store,
            clock_ns=lambda: BEGIN_NS + int(self.at_s * SECOND_NS),
            clock_s=lambda: self.at_s,
            **others,  # type: ignore[arg-type]
        )

    def lines(self, tenant: str = "t") -> int:
        found, _ = read_measures(self.store, tenant, BEGIN_NS, BEGIN_NS + 9 * HOUR_NS)
        return found.counts[names.LINES]


def lines(count: int) -> Measures:
    made = Measures()
    made.count(names.LINES, count)
    return made


def test_the_first_measurement_is_written_at_once_and_later_ones_when_they_are_due() -> None:
    bench = Bench()
    recorder = bench.recorder(every_s=10)
    recorder.add("t", lines(1))
    assert (bench.lines(), bench.store.puts) == (1, 1)
    for _ in range(100):
        recorder.add("t", lines(1))
    assert (bench.lines(), bench.store.puts) == (1, 1)
    bench.at_s = 10
    recorder.add("t", lines(1))
    assert (bench.lines(), bench.store.puts) == (102, 2)


def test_an_hour_that_ends_is_written_with_the_next_measurement() -> None:
    bench = Bench()
    recorder = bench.recorder(every_s=10)
    recorder.add("t", lines(1))
    recorder.add("t", lines(2))
    bench.at_s = 3_600
    recorder.add("t", lines(4))
    assert bench.lines() == 7


def test_flush_writes_what_waits_and_nothing_that_is_written() -> None:
    bench = Bench()
    recorder = bench.recorder(every_s=10)
    recorder.add("t", lines(1))
    recorder.add("t", lines(2))
    recorder.flush()
    recorder.flush()
    assert (bench.lines(), bench.store.puts) == (3, 2)


def test_a_store_that_is_away_fails_nobody_and_loses_nothing() -> None:
    bench = Bench()
    recorder = bench.recorder(every_s=10)
    bench.store.is_away = True
    recorder.add("t", lines(1))
    bench.at_s = 3_600
    recorder.add("t", lines(2))
    bench.store.is_away = False
    recorder.flush()
    assert bench.lines() == 3


def test_nothing_measured_is_nothing_written() -> None:
    bench = Bench()
    bench.recorder().add("t", Measures())
    assert bench.store.puts == 0


def test_two_processes_do_not_overwrite_each_other() -> None:
    bench = Bench()
    bench.recorder().add("t", lines(1))
    bench.recorder().add("t", lines(2))
    assert bench.lines() == 3


def test_more_tenants_than_it_holds_are_written_and_begun_anew() -> None:
    bench = Bench()
    recorder = bench.recorder(every_s=1e9)
    for number in range(MEASURED_TENANTS_MAX):
        recorder.add(f"t{number}", lines(1))
        recorder.add(f"t{number}", lines(1))
    recorder.add("one more", lines(1))
    assert bench.lines("t0") == bench.lines(f"t{MEASURED_TENANTS_MAX - 1}") == 2


def test_threads_lose_no_count() -> None:
    bench = Bench()
    recorder = bench.recorder(every_s=0)
    threads = [
        threading.Thread(target=lambda: [recorder.add("t", lines(1)) for _ in range(200)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.flush()
    assert bench.lines() == 800


def test_in_the_background_what_waits_is_written_by_itself() -> None:
    bench = Bench()
    recorder = bench.recorder(every_s=0.05, background=True)
    recorder.add("t", lines(1))
    recorder.add("t", lines(2))
    timer = recorder._later._timer
    assert timer is not None and timer.daemon
    timer.join(10)
    assert bench.lines() == 3


def test_in_the_background_closed_hours_are_rolled_up() -> None:
    bench = Bench()
    recorder = bench.recorder(every_s=1e9, background=True)
    recorder.add("t", lines(1))
    bench.at_s = 3_600
    recorder.add("t", lines(2))
    bench.at_s = 3 * 3_600
    recorder.add("t", lines(4))
    assert bench.lines() == 7
    rolled = [info.key for info in bench.store.list("t/measures/") if "rolled" in info.key]
    assert len(rolled) == 2
