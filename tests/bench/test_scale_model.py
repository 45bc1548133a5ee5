"""The laws of the scale model: what goes in comes out, more is never less, nothing costs nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranklog.store.memory import MemoryStore
from tests.bench.scale import bill, pressures
from tests.bench.scale.aws import LIMITS, S3_TIMES
from tests.bench.scale.compacting import Compaction, CompactSetting
from tests.bench.scale.counting import CountingStore
from tests.bench.scale.ingesting import Ingest, IngestResult, IngestSetting
from tests.bench.scale.querying import Queries, QueryResult, QuerySetting, Stored, tasks_of
from tests.bench.scale.rates import QueryRate, Rates
from tests.bench.scale.scenarios import Outcome, Scenario, run_scenario
from tests.bench.scale.shards import Frames, Producers, Shard, frames_of, load_of, ramp_s, spread
from tests.bench.scale.times import Curve, Fixed, Linear

RATES = Rates(
    machine="a table",
    line_bytes=100.0,
    wire=Curve((16.0, 4_096.0), (100.0, 30.0)),
    ingest_s=Linear(0.03, 3e-6),
    part_s=0.01,
    segment=Curve((1_024.0, 120_000.0), (37.0, 22.0)),
    index=Curve((1_024.0, 120_000.0), (17.0, 1.0)),
    puts=3.0,
    merge_s=Linear(0.2, 2e-6),
    merged_lines=300_000.0,
    merged_segment=20.0,
    merged_index=0.7,
    open_s=Linear(3e-4, 1e-8),
    lists=5.0,
    queries={
        name: QueryRate(
            name,
            name,
            1e-3,
            Linear(1e-4, 2e-5),
            hits,
            once,
            Linear(2e-3, 1e-10),
            1.0,
            Linear(8e4, 0.03),
        )
        for name, hits, once in (
            ("rare literal", 4e-6, False),
            ("absent literal", 0.0, False),
            ("one id", 0.0, True),
            ("count by call site", 0.0, False),
            ("dense regex", 0.1, False),
        )
    },
    import_s={"ingest": 0.8, "query": 0.6, "scan": 0.4},
)
FRAMES = Frames(lines=500.0, wire_bytes=20_000.0, per_s=2.0)
SETTING = IngestSetting(
    window_s=1.0,
    poll_s=1.0,
    propagation_s=0.2,
    records_max=1_000,
    payload_bytes=6e6,
    put=Fixed(0.1),
    overhead_s=Fixed(0.01),
    cold_s=0.0,
    most=math.inf,
    scaling_per_s=math.inf,
    put_per_s=1e9,
)
QUERY = QuerySetting(
    front_s=Fixed(0.03),
    invoke_s=Fixed(0.015),
    request=Fixed(0.1),
    bytes_per_s=85e6,
    cold_root_s=1.0,
    cold_scan_s=0.8,
    roots=math.inf,
    scans=math.inf,
    scaling_per_s=math.inf,
    get_per_s=5_500.0,
)
STORED = Stored(1e9, 40.0, 40.0, 4e6, 60.0, 0.1)


def ingested(seconds: float = 200.0, hosts: int = 4, **changed: Any) -> IngestResult:
    setting = replace(SETTING, **changed)
    return Ingest([Shard(hosts, 1)] * 5, FRAMES, RATES, setting).run(seconds, 20.0)


# --- writing --------------------------------------------------------------------------------------
def test_every_frame_that_was_put_is_stored_or_on_its_way() -> None:
    found = ingested()
    assert found.drawn == found.stored + found.waiting
    assert 0 <= found.waiting < 5 * 4 * FRAMES.per_s * 4


def test_as_many_lines_are_stored_as_come() -> None:
    found = ingested()
    assert found.lines == pytest.approx(found.offered_lines, rel=0.03)
    assert found.keeps_up


def test_functions_at_work_are_batches_times_their_time() -> None:
    found = ingested()
    assert found.busy == pytest.approx(found.function_s / found.seconds, rel=0.02)


def test_a_line_is_never_fresher_than_its_way_takes() -> None:
    found = ingested()
    least = SETTING.propagation_s + RATES.puts * 0.1
    assert min(found.fresh_s) > least
    rounds = 2 * SETTING.poll_s + SETTING.window_s
    assert max(found.fresh_s) < least + rounds + 0.5


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_a_longer_window_makes_lines_less_fresh_and_batches_fewer(share: float) -> None:
    runs = [ingested(window_s=window) for window in (1.0, 5.0, 20.0)]
    assert [run.batches for run in runs] == sorted((run.batches for run in runs), reverse=True)
    fresh = [run.freshness(share) for run in runs]
    assert fresh == sorted(fresh) and fresh[0] < fresh[-1]


def test_few_functions_are_told_not_to_keep_up() -> None:
    found = ingested(most=1, overhead_s=Fixed(2.0), payload_bytes=100_000.0)
    assert not found.keeps_up and found.busy == pytest.approx(1.0, rel=0.02)


def test_puts_over_the_limit_of_s3_wait() -> None:
    found = ingested(put_per_s=1.0)
    assert found.slowed and found.freshness(0.5) > 2 * ingested().freshness(0.5)


def test_a_payload_is_never_larger_than_lambda_takes() -> None:
    found = ingested(payload_bytes=100_000.0, hosts=40)
    assert found.lines / found.batches <= 100_000 / FRAMES.wire_bytes * FRAMES.lines


def test_each_tenant_in_a_batch_is_a_segment() -> None:
    found = Ingest([Shard(8, 4)] * 3, FRAMES, RATES, SETTING).run(60, 10)
    assert found.parts == 4 * found.batches


def test_nothing_is_stored_of_nothing() -> None:
    found = Ingest([Shard(0, 0)] * 4, FRAMES, RATES, SETTING).run(60, 10)
    assert (found.batches, found.drawn, found.busy) == (0, 0, 0.0)
    assert math.isnan(found.freshness(0.5))


# --- producers and shards ---------------------------------------------------------------------------
@pytest.mark.parametrize("hosts", [1, 7, 500])
def test_every_host_is_on_one_shard_and_none_of_several_is_over_full(hosts: int) -> None:
    producers = Producers(hosts, hosts * 2e6, 3)
    frames = frames_of(producers, RATES)
    shards = spread(producers, frames)
    assert sum(shard.hosts for shard in shards) == hosts
    assert all(shard.hosts <= 1 or shard.hosts * load_of(frames) <= 0.8 for shard in shards)
    assert all(shard.tenants <= shard.hosts for shard in shards)


def test_frames_hold_what_a_host_says_and_faster_hosts_send_fuller_ones() -> None:
    slow, fast = (frames_of(Producers(10, rate), RATES) for rate in (1e4, 1e7))
    for frames, rate in ((slow, 1e3), (fast, 1e6)):
        assert frames.per_s * frames.lines * RATES.line_bytes == pytest.approx(rate)
    assert fast.wire_bytes / fast.lines < slow.wire_bytes / slow.lines
    assert fast.billed_bytes > fast.wire_bytes


def test_a_stream_doubles_every_quarter_hour() -> None:
    assert [ramp_s(rate) for rate in (1e6, 4e6, 8e6, 9e6)] == [0, 0, 900, 1_800]


# --- compaction -------------------------------------------------------------------------------------
def compaction(text_per_s: float, **changed: Any) -> Any:
    setting = replace(CompactSetting(Fixed(0.1), 85e6), **changed)
    return Compaction(RATES, text_per_s, 60_000.0, setting).run()


def test_what_is_merged_is_what_comes() -> None:
    found = compaction(2e6)
    assert found.keeps_up
    assert found.merged_text == pytest.approx(found.offered_text, rel=0.1)


def test_more_text_is_more_work_until_the_one_compactor_is_full() -> None:
    runs = [compaction(rate) for rate in (0.0, 1e5, 2e6, 2e7)]
    busy = [run.busy for run in runs]
    assert busy == sorted(busy) and busy[-1] <= 1.01
    assert [run.keeps_up for run in runs] == [True, True, True, False]
    assert runs[0].merges == 0


def test_gets_side_by_side_leave_the_compactor_more_time() -> None:
    assert compaction(8e6, gets_at_once=32).busy < compaction(8e6).busy


# --- questions --------------------------------------------------------------------------------------
def asked(
    per_s: float = 1.0, count: int = 200, stored: Stored = STORED, **changed: Any
) -> QueryResult:
    setting = replace(QUERY, **changed)
    return Queries(RATES, stored, setting, per_s).run(count, warm_roots=50, warm_scans=500)


def test_every_question_is_answered_once() -> None:
    found = asked()
    assert found.count == len(found.latencies) == 200
    assert found.root_s == pytest.approx(sum(found.latencies))


def test_a_question_takes_at_least_its_lists_and_a_scan_its_get() -> None:
    found = asked()
    assert min(found.latencies) > 0.03 + 4 * 0.1
    assert max(found.latencies) < 2.0


def test_more_segments_and_fewer_functions_make_a_question_slower() -> None:
    larger = Stored(4e9, 160.0, 160.0, 16e6, 240.0, 0.1)
    assert np.mean(asked(stored=larger).latencies) > np.mean(asked().latencies)
    assert np.mean(asked(per_s=50.0, roots=2).latencies) > 5 * np.mean(asked().latencies)


def test_of_nothing_stored_nothing_is_got() -> None:
    found = asked(stored=Stored(0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert (found.gets, found.tasks, found.scan_s) == (0.0, 0, 0.0)


@pytest.mark.parametrize(
    ("scans", "bytes_each", "expected"),
    [(0, 1e5, (0, 0.0)), (1, 1e5, (1, 1)), (4, 1e5, (1, 4)), (1_000, 1e5, (67, 15.0))],
)
def test_scans_are_packed_into_tasks(scans: float, bytes_each: float, expected: Any) -> None:
    assert tasks_of(scans, bytes_each) == expected


# --- the whole --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return run_scenario(Scenario("small", 5e6, 128), RATES, (1,))


def test_a_bill_is_the_sum_of_its_lines_and_none_is_below_zero(outcome: Outcome) -> None:
    for way in bill.WAYS:
        items = bill.bill(outcome, RATES, way)
        assert all(item.usd >= 0 and item.quantity >= 0 for item in items)
        assert bill.total(items) == pytest.approx(sum(item.usd for item in items))
    lines = {item.name: item for item in bill.bill(outcome, RATES)}
    assert lines["Kinesis, frames put"].usd == pytest.approx(2 * lines["Kinesis, frames read"].usd)


def test_cloudwatch_costs_half_a_dollar_a_gb_and_its_storage_and_scans(outcome: Outcome) -> None:
    [put, kept, scanned] = bill.cloudwatch(outcome)
    assert (put.usd, kept.usd) == (500.0, pytest.approx(4.5))
    assert scanned.usd == pytest.approx(scanned.quantity * 0.005)


def test_twice_the_functions_cost_twice(outcome: Outcome) -> None:
    twice = replace(outcome, ingest=replace(outcome.ingest, busy=2 * outcome.ingest.busy))
    [one], [two] = (
        [item.usd for item in bill.write_items(each) if item.name == "Lambda, ingest"]
        for each in (outcome, twice)
    )
    assert two == pytest.approx(2 * one)


def test_the_fullest_limit_comes_first(outcome: Outcome) -> None:
    ratios = [one.ratio for one in pressures.pressures(outcome)]
    assert ratios == sorted(ratios, reverse=True) and len(ratios) == 10


def test_every_limit_says_where_it_is_from() -> None:
    assert all(
        one.source.startswith("https://") or one.source == "assumed" for one in LIMITS.values()
    )
    assert S3_TIMES.median < S3_TIMES.p99


def test_requests_are_counted_by_page_and_folder() -> None:
    store = CountingStore(MemoryStore())
    for number in range(1_001):
        store.put(f"t/index/{number:04d}", b"12")
    assert len(list(store.list("t/index/"))) == 1_001 and not list(store.list("t/data/"))
    assert store.get("t/index/0007") == b"12" and store.get_range("t/index/0007", 1, 1) == b"2"
    assert store.requests["PUT index"] == 1_001 and store.requests["LIST"] == 3
    assert (store.requests["GET"], store.bytes_got, store.bytes_put) == (2, 3, 2_002)
