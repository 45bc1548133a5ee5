"""From which size on the mark is kept, and what a batch costs beside its segments."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.access.meter import Meter
from ranklog.access.seals import Seals
from ranklog.ingest.allowance import Allowance
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.floors import Policies
from ranklog.ingest.markers import Markers
from ranklog.ingest.shares import keep_measures
from ranklog.ingest.tenant_rules import TenantRules
from ranklog.limits import MEASURES_AGE_LAMBDA_S
from ranklog.model.record import Record
from ranklog.objectives import prices
from ranklog.objectives.recorder import Recorder
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.bench.scale import bill
from tests.bench.scale.approaches import approaches
from tests.bench.scale.counting import CountingStore
from tests.bench.scale.scenarios import (
    SCENARIOS,
    Outcome,
    Scenario,
    provisioned,
    run_scenario,
)
from tests.bench.scale.thresholds import LARGEST, SMALLEST, floors, hosts_at, smallest
from tests.bench.test_scale_model import RATES
from tests.ingest.frames import T0, Row, make_frame


@given(st.floats(SMALLEST, LARGEST))
def test_the_smallest_size_that_keeps_the_mark_is_found_to_seven_percent(limit: float) -> None:
    found = smallest(lambda size: size >= limit)
    assert found is not None and limit <= found <= limit * 1.07


def test_a_mark_that_is_kept_everywhere_or_nowhere_is_told_so() -> None:
    assert smallest(lambda _: True) == SMALLEST and smallest(lambda _: False) is None


def test_hosts_lie_between_those_of_the_scenarios() -> None:
    for scenario in SCENARIOS:
        if scenario.tenants == 1:
            assert hosts_at(scenario.bytes_per_s) == scenario.hosts
    hosts = [hosts_at(size) for size in (SMALLEST, 1e6, 1e7, 1e8, LARGEST)]
    assert all(low < high for low, high in pairwise(hosts))


@pytest.fixture(scope="module")
def small() -> Outcome:
    return run_scenario(Scenario("small", SMALLEST, 64), RATES, (1,))


def test_one_shard_makes_fewer_and_larger_batches_than_the_four_of_a_small_stream(
    small: Outcome,
) -> None:
    own = provisioned(small, RATES, (1,))
    assert (len(small.shards), len(own.shards)) == (4, 1)
    assert own.batches_per_s == pytest.approx(small.batches_per_s / 4, rel=0.1)
    assert own.segment_lines == pytest.approx(small.segment_lines * 4, rel=0.1)
    dear, cheap = (bill.total(bill.bill(small, RATES, "provisioned", one)) for one in (small, own))
    assert cheap < dear


def test_a_stream_that_is_larger_has_the_shards_that_its_load_fills_to_a_half(
    small: Outcome,
) -> None:
    large = run_scenario(Scenario("large", 2e7, 64), RATES, (1,))
    assert len(large.shards) > 4 and provisioned(large, RATES, (1,)) is large


def test_floors_are_parts_of_the_bill_and_the_shard_is_above_the_mark_at_one_gb_an_hour(
    small: Outcome,
) -> None:
    own = provisioned(small, RATES, (1,))
    for way, floor in floors(small, own, RATES).items():
        total = bill.total(bill.bill(small, RATES, way, own))
        assert 0 <= floor["stream"] <= total and 0 < floor["watching"] < total
    assert (
        floors(small, own, RATES)["provisioned"]["stream"]
        > bill.total(bill.cloudwatch(small)) / bill.MARK
    )


@pytest.mark.parametrize("batch_s", [1.5, 6.0, 61.0])
def test_what_ingest_reads_and_counts_is_billed_as_it_asks_for_it(
    small: Outcome, batch_s: float
) -> None:
    """By the resources of the function, one process, a batch each so many seconds."""
    requests, batches = _asked_beside(batch_s)
    usd = (
        prices.S3_LIST.of(requests["LIST"])
        + prices.S3_PUT.of(requests["PUT usage"] + requests["PUT measures"])
        + prices.S3_GET.of(requests["GET"])
    )
    seconds = small.ingest.seconds
    count = round(seconds / batch_s)
    ingest = replace(small.ingest, batches=count, parts=count, busy=0.1)
    one = replace(small, ingest=ingest, share=1.0)
    model = bill._beside(one).usd / bill.tb_seconds(one) * batch_s * batches
    assert model == pytest.approx(usd, rel=0.25)


def _asked_beside(batch_s: float) -> tuple[Any, int]:
    """(requests by kind, batches) of a process that has been at work for a while."""
    now = [0.0]
    store = CountingStore(MemoryStore())

    def clock_s() -> float:
        return now[0]

    def clock_ns() -> int:
        return T0 + int(now[0] * 1e9)

    rules, policies = TenantRules(store, clock_s=clock_s), Policies(store, clock_s=clock_s)
    seals = Seals(store, clock_s=clock_s)
    allowance = Allowance(Meter(store, clock_s=clock_s, clock_ns=clock_ns))
    markers = Markers(store, clock_s=clock_s, clock_ns=clock_ns)
    recorder = Recorder(store, every_s=MEASURES_AGE_LAMBDA_S, clock_s=clock_s, clock_ns=clock_ns)
    warm, batches = 5, max(40, int(240 / batch_s))
    for number in range(warm + batches):
        if number == warm:
            store.reset()
        frame = make_frame([Row(f"line {number}")], number=number)
        report = ingest_batch(
            [Record(encode_frame(frame), clock_ns(), "1")],
            store=store,
            rules=rules,
            seals=seals,
            policies=policies,
            allowance=allowance,
            markers=markers,
            source="s",
            first=str(number),
            last=str(number),
        )
        keep_measures(report, recorder, time.time_ns())
        now[0] += batch_s
    return store.requests, batches


def test_a_higher_level_and_fuller_frames_are_fewer_bytes() -> None:
    ratio = {(one["frame_lines"], one["level"]): one["ratio"] for one in approaches()}
    for lines in (64, 190, 2_048):
        assert ratio[lines, 19] < ratio[lines, 1]
    assert ratio[2_048, 1] < ratio[190, 1] < ratio[64, 1]
