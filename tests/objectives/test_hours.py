"""Hours of tenants in one process: kept while they run, taken once when they are over."""

from __future__ import annotations

from dataclasses import dataclass

from ranklog.limits import HOUR_NS
from ranklog.objectives.hours import TenantHours


@dataclass
class Kept:
    hour: int
    changed: bool = True
    before: int | None = None


def hours_of(tenants_max: int = 3) -> TenantHours[Kept]:
    def begin(hour: int, before: Kept | None) -> Kept:
        return Kept(hour, before=None if before is None else before.hour)

    return TenantHours(begin, lambda running: list(running)[:2], tenants_max)


def test_an_hour_that_is_over_is_taken_once_and_the_next_knows_it() -> None:
    hours = hours_of()
    first = hours.of("a", 1)
    assert hours.of("a", HOUR_NS - 1) is first
    second = hours.of("a", HOUR_NS)
    assert (second.hour, second.before) == (1, 0)
    assert hours.take_over() == [("a", first)]
    assert hours.take_over() == []
    assert hours.changed() == [("a", second)]


def test_what_was_not_written_comes_again_once_also_after_its_hour() -> None:
    hours = hours_of()
    first = hours.of("a", 0)
    first.changed = False
    hours.not_written("a", first)
    assert (first.changed, hours.take_over()) == (True, [])  # it runs: with the next
    hours.of("a", HOUR_NS)
    hours.take_over()
    hours.not_written("a", first)
    assert hours.take_over() == [("a", first)]


def test_over_the_most_tenants_the_idle_ones_go_and_are_written() -> None:
    hours = hours_of()
    kept = {name: hours.of(name, 0) for name in "abcd"}
    assert list(hours.running) == ["c", "d"]
    assert hours.take_over() == [("a", kept["a"]), ("b", kept["b"])]
