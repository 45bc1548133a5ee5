"""The kernel of the scale model against what queueing theory says in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.scale.kernel import Clock, Environment, Pool, RateLimit
from tests.bench.scale.times import Curve, Fixed, Linear, Lognormal, Measured, Times, quantile

CUSTOMERS = 20_000


class Exponential:
    """Service as M/M/c has it."""

    mean = 1.0

    def draw(self, random: np.random.Generator) -> float:
        return float(random.exponential())

    def slowest(self, random: np.random.Generator, rounds: int, wide: int) -> float:
        raise NotImplementedError


def simulate(servers: int, load: float, service: Times) -> tuple[Pool, float, float]:
    """(pool, seconds, mean wait) of customers that come by chance and fill the servers to `load`."""
    clock, random = Clock(), np.random.default_rng(7)
    pool = Pool(clock, most=servers)
    moment = 0.0

    def arrive() -> None:
        def serve(environment: Environment) -> None:
            clock.after(service.draw(random), lambda: pool.give_back(environment))

        pool.take(serve)

    for _ in range(CUSTOMERS):
        moment += float(random.exponential(1 / (load * servers)))
        clock.at(moment, arrive)
    clock.run(moment + 1e4)
    pool.settle()
    return pool, moment, pool.waited_s / CUSTOMERS


def erlang_c(servers: int, load: float) -> float:
    """The mean wait in M/M/c, in service times."""
    offered = load * servers
    below = sum(offered**k / math.factorial(k) for k in range(servers))
    all_busy = offered**servers / math.factorial(servers) / (1 - load)
    return all_busy / (below + all_busy) / (servers * (1 - load))


def wait_mdc(servers: int, load: float, states: int = 400) -> float:
    """The mean wait in M/D/c: the number present a service time later is what came meanwhile and who
    was not being served (Crommelin 1932); its stationary distribution, and Little's law."""
    offered = load * servers
    came = np.array(
        [math.exp(-offered + k * math.log(offered) - math.lgamma(k + 1)) for k in range(states)]
    )
    step = np.zeros((states, states))
    for present in range(states):
        left = max(0, present - servers)
        step[present, left:] = came[: states - left]
    share = np.full(states, 1 / states)
    for _ in range(4_000):
        share = share @ step
        share /= share.sum()
    waiting = float(np.maximum(0, np.arange(states) - servers) @ share)
    return waiting / offered


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (1, 0.8), (4, 0.7)])
def test_waits_are_those_of_an_m_m_c_queue(servers: int, load: float) -> None:
    _, _, wait = simulate(servers, load, Exponential())
    assert wait == pytest.approx(erlang_c(servers, load), rel=0.15)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (1, 0.8), (3, 0.7)])
def test_waits_are_those_of_an_m_d_c_queue(servers: int, load: float) -> None:
    _, _, wait = simulate(servers, load, Fixed(1.0))
    assert wait == pytest.approx(wait_mdc(servers, load), rel=0.1)


def test_a_queue_of_one_server_waits_as_pollaczek_and_khinchine_say() -> None:
    """And so does the closed form that the case of several servers is held to."""
    assert wait_mdc(1, 0.8) == pytest.approx(0.8 / (2 * (1 - 0.8)), rel=1e-3)


def test_what_is_busy_is_what_comes_times_how_long_it_takes() -> None:
    """Little's law."""
    pool, seconds, _ = simulate(4, 0.6, Fixed(1.0))
    assert pool.busy_s / seconds == pytest.approx(CUSTOMERS / seconds * 1.0, rel=1e-6)
    assert pool.used == CUSTOMERS and pool.busy == 0 and pool.waiting == 0


def test_without_load_nobody_waits_and_nothing_is_made() -> None:
    clock = Clock()
    pool = Pool(clock)
    clock.run(100)
    pool.settle()
    assert (clock.now, pool.busy_s, pool.made, pool.waited_s) == (100, 0.0, 0, 0.0)


def test_environments_come_no_faster_than_they_may_and_the_last_used_is_used_next() -> None:
    clock = Clock()
    pool = Pool(clock, per_s=2.0)
    began: list[tuple[float, int, bool]] = []

    def use(environment: Environment) -> None:
        began.append((clock.now, environment.number, environment.cold))
        clock.after(0.9, lambda: pool.give_back(environment))

    for _ in range(3):
        clock.at(0.0, lambda: pool.take(use))
    clock.run(10)
    assert began == [(0.0, 0, True), (0.5, 1, True), (0.9, 0, False)]
    assert pool.cold_starts == 2 and pool.peak == 2


def test_what_is_due_at_once_runs_in_the_order_it_was_asked_for() -> None:
    clock, seen = Clock(), []
    for name in "abc":
        clock.at(1.0, lambda name=name: seen.append(name))
    clock.run(0.5)
    assert seen == []
    clock.run(1.0)
    assert seen == ["a", "b", "c"]


def test_a_rate_is_kept_after_its_burst() -> None:
    limit = RateLimit(per_s=10.0, burst=5.0)
    waits = [limit.wait_s(100.0) for _ in range(10)]
    assert waits[:5] == [0.0] * 5
    assert waits[5:] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5], abs=1e-9)
    assert (limit.asked, limit.slowed) == (10, 5)
    assert limit.wait_s(200.0, 4) == 0.0


def test_times_have_the_quantiles_and_the_mean_they_are_told_by() -> None:
    random = np.random.default_rng(1)
    times = Lognormal(0.1, 0.25)
    drawn = [times.draw(random) for _ in range(20_000)]
    assert np.quantile(drawn, 0.5) == pytest.approx(0.1, rel=0.03)
    assert np.quantile(drawn, 0.99) == pytest.approx(0.25, rel=0.08)
    assert np.mean(drawn) == pytest.approx(times.mean, rel=0.03)


@pytest.mark.parametrize(
    "times", [Lognormal(0.1, 0.25), Measured(tuple(np.linspace(0.05, 0.3, 101).tolist()))]
)
def test_the_slowest_of_several_is_the_largest_of_as_many_draws(times: Times) -> None:
    random = np.random.default_rng(2)
    rounds = 4_000
    most = np.mean([max(times.draw(random) for _ in range(8)) for _ in range(rounds)])
    assert times.slowest(random, rounds, 8) / rounds == pytest.approx(most, rel=0.03)


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=30),
    st.floats(0.01, 0.99),
    st.floats(0.01, 0.99),
)
def test_quantiles_are_values_and_do_not_fall(
    values: list[float], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    weights = [1.0] * len(values)
    assert quantile(values, weights, low) in values
    assert quantile(values, weights, low) <= quantile(values, weights, high)


def test_a_value_counts_as_much_as_it_weighs() -> None:
    assert quantile([1.0, 2.0, 3.0], [1.0, 98.0, 1.0], 0.5) == 2.0
    assert math.isnan(quantile([], [], 0.5))


def test_a_curve_goes_through_what_was_measured_and_stays_flat_outside() -> None:
    curve = Curve((10.0, 1_000.0), (5.0, 1.0))
    found = [curve.at(size) for size in (1, 10, 100, 1_000, 10**6)]
    assert found == pytest.approx([5.0, 5.0, 3.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("sizes", "values", "fixed", "per"),
    [
        ((1, 10, 100), (3.0, 12.0, 102.0), 2.0, 1.0),
        ((1, 2), (5.0, 4.0), 4.5, 0.0),
        ((10, 100), (5.0, 80.0), 0.0, 0.65),
    ],
)
def test_a_line_has_no_part_below_zero(sizes: Any, values: Any, fixed: float, per: float) -> None:
    found = Linear.fit(sizes, values)
    assert (found.fixed, found.per) == pytest.approx((fixed, per))
