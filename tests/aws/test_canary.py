"""The canary and metrics functions: rounds through the stream and ingest, gauges of every tenant."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from ranklog.errors import BadInput
from ranklog.layout import keys
from ranklog.limits import HOUR_NS
from ranklog.objectives import names
from ranklog.objectives.keeping import Part, put_part, read_measures
from ranklog.objectives.measures import Measures
from ranklog.serverless.canary import read_canary
from ranklog.serverless.gauges import worst_of
from ranklog.store import DiskStore
from tests.aws.conftest import Load
from tests.aws.lambda_client import LambdaClient


class Stream:
    """A Kinesis stream whose records ingest has at once, or that loses them."""

    def __init__(self, ingest: Any) -> None:
        self._ingest = ingest
        self.loses = False

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:
        assert StreamName == "frames"
        if not self.loses:
            self._ingest({"Records": [_record(at, one) for at, one in enumerate(Records)]})
        return {"Records": [{"SequenceNumber": "1"} for _ in Records]}


_sequence = iter(range(10**6))


def _record(at: int, one: dict[str, Any]) -> dict[str, Any]:
    return {
        "eventSource": "aws:kinesis",
        "eventSourceARN": "arn:aws:kinesis:eu-central-1:123456789012:stream/frames",
        "eventID": f"shardId-000000000000:{next(_sequence)}",
        "kinesis": {
            "sequenceNumber": str(49_000 + next(_sequence)),
            "partitionKey": one["PartitionKey"],
            "data": base64.b64encode(one["Data"]).decode(),
            "approximateArrivalTimestamp": time.time(),
        },
    }


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "store")


def make_canary(load: Load, store: DiskStore, patch: pytest.MonkeyPatch) -> tuple[Any, Stream]:
    stream = Stream(load("ingest", RANKLOG_STORE=store.url))
    clients = {"lambda": LambdaClient(scan=load("scan")), "kinesis": stream}
    for module in ("ranklog.scan.lambda_invoke", "ranklog.serverless.canary"):
        patch.setattr(f"{module}.aws_client", lambda service, **_: clients[service])
    canary = load(
        "canary",
        RANKLOG_STREAM="frames",
        RANKLOG_SCAN_FUNCTION="scan",
        RANKLOG_CANARY_TENANT="acme",
        RANKLOG_CANARY_LINES="7",
        RANKLOG_CANARY_SECONDS="1",
    )
    return canary, stream


def metrics_of(out: str, service: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in out.splitlines()]
    return [line for line in lines if "_aws" in line and line["service"] == service]


def test_a_round_goes_through_stream_ingest_and_scan_and_is_measured(
    load_function: Load,
    store: DiskStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    canary, stream = make_canary(load_function, store, monkeypatch)
    outcome = canary({})
    assert (outcome["lines"], outcome["missing"], outcome["doubled"]) == (7, 0, 0)
    [line] = metrics_of(capsys.readouterr().out, "canary")
    assert (line["canary_lines"], len(line["canary_freshness_ms"])) == ([7.0], 7)
    stream.loses = True
    assert canary({})["missing"] == 7
    [line] = metrics_of(capsys.readouterr().out, "canary")
    assert line["canary_missing"] == [7.0]
    kept, _ = read_measures(store, "acme", 0, 2**62)
    assert (kept.counts[names.CANARY_LINES], kept.counts[names.CANARY_MISSING]) == (14, 7)


def test_a_canary_that_is_well_says_so_to_its_alarm(
    load_function: Load,
    store: DiskStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # an alarm on what is missing needs a zero, or silence would look as well as health
    canary, _ = make_canary(load_function, store, monkeypatch)
    canary({})
    [line] = metrics_of(capsys.readouterr().out, "canary")
    assert (line["canary_missing"], line["canary_doubled"]) == ([0.0], [0.0])


@pytest.mark.parametrize(
    ("name", "value"), [("RANKLOG_CANARY_LINES", "0"), ("RANKLOG_CANARY_SECONDS", "soon")]
)
def test_settings_that_can_not_be_are_named(name: str, value: str) -> None:
    given = {
        "RANKLOG_STORE": "s3://b",
        "RANKLOG_STREAM": "frames",
        "RANKLOG_SCAN_FUNCTION": "scan",
        name: value,
    }
    with pytest.raises(BadInput, match=name):
        read_canary(given)


def test_gauges_of_each_tenant_and_the_worst_of_all(
    load_function: Load,
    store: DiskStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    canary, _ = make_canary(load_function, store, monkeypatch)
    canary({})
    store.put(keys.quarantine_key("acme", "2026-03-01", "s", "1"), b"x")
    store.put(keys.quarantine_key("acme", "2026-03-01", "s", "1") + ".json", b"{}")
    store.put(keys.quarantine_key(None, "2026-03-01", "s", "1"), b"x")
    store.put("other/config/rules/r.json", b"{}")
    capsys.readouterr()
    answer = load_function("metrics", RANKLOG_STORE=store.url)({}, 60_000)
    assert answer == {"tenants": 2, "looked": 2, "failed": 0}
    found = metrics_of(capsys.readouterr().out, "metrics")
    by_tenant = {line.get("tenant"): line for line in found}
    assert by_tenant.keys() == {"acme", "other", None}
    acme, overall = by_tenant["acme"], by_tenant[None]
    assert (acme["completeness_percent"], acme["lost_lines"]) == ([100.0], [0.0])
    assert acme["quarantine_waiting"] == overall["quarantine_waiting"] == [1.0]
    assert overall["completeness_percent"] == [100.0] and overall["tenants"] == [2.0]
    assert acme["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["tenant", "service"]]
    assert overall["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]


def test_a_tenant_that_can_not_be_read_keeps_no_other_from_its_gauges(
    load_function: Load, store: DiskStore, capsys: pytest.CaptureFixture[str]
) -> None:
    for tenant in ("a", "b"):
        store.put(f"{tenant}/config/rules/r.json", b"{}")
    store.put(keys.measures_key("a", time.time_ns() // HOUR_NS - 5, "p"), b"damaged")
    assert load_function("metrics", RANKLOG_STORE=store.url)({}, 60_000)["failed"] == 1
    found = metrics_of(capsys.readouterr().out, "metrics")
    assert [line.get("tenant") for line in found] == ["b", None]


def test_what_there_was_no_time_for_comes_first_the_next_time(
    load_function: Load, store: DiskStore
) -> None:
    for tenant in ("a", "b", "c"):
        store.put(f"{tenant}/config/rules/r.json", b"{}")
    metrics = load_function("metrics", RANKLOG_STORE=store.url)
    assert metrics({}, 10_000) == {"tenants": 3, "looked": 0, "failed": 0}
    assert metrics({}, 60_000)["looked"] == 3


def test_measures_of_closed_hours_are_rolled_up(load_function: Load, store: DiskStore) -> None:
    store.put("t/config/rules/r.json", b"{}")
    measures = Measures()
    measures.count(names.LINES, 3)
    hour = time.time_ns() // HOUR_NS - 5
    for process in ("p", "q"):
        put_part(store, "t", hour, process, Part({1: measures}))
    load_function("metrics", RANKLOG_STORE=store.url)({}, 60_000)
    assert [info.key for info in store.list("t/measures/")] == [
        keys.measures_key("t", hour, "rolled")
    ]


def test_the_worst_of_tenants_is_the_least_complete_and_the_most_of_the_rest() -> None:
    found = worst_of(
        [
            {names.COMPLETENESS: 99.0, names.LOST_LINES: 1},
            {names.COMPLETENESS: None, names.LOST_LINES: 5},
            {names.COMPLETENESS: 100.0, names.LOST_LINES: None},
        ]
    )
    assert found == {names.COMPLETENESS: 99.0, names.LOST_LINES: 5}
