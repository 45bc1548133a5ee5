"""Measures as lines of the embedded metric format: both dimension sets, at most 100 values."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from ranklog.objectives import names
from ranklog.objectives.histogram import Histogram
from ranklog.objectives.measures import Measures
from ranklog.serverless.metrics import put_metrics, samples


def put(capsys: pytest.CaptureFixture[str], *given: Any, **about: Any) -> list[dict[str, Any]]:
    put_metrics(*given, **about)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_line_has_each_metric_by_service_and_by_service_and_tenant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measures = Measures()
    measures.count(names.LINES, 7)
    measures.took(names.FRESHNESS, 1.0, 2)
    [line] = put(capsys, "ingest", "acme", measures, {names.COST_USD: 0.5, "gone": None}, run="r")
    [described] = line["_aws"]["CloudWatchMetrics"]
    assert described["Namespace"] == "ranklog"
    assert described["Dimensions"] == [["service"], ["service", "tenant"]]
    assert {item["Name"]: item["Unit"] for item in described["Metrics"]} == {
        "lines": "Count",
        "freshness_ms": "Milliseconds",
        "cost_usd": "None",
    }
    assert (line["service"], line["tenant"], line["run"]) == ("ingest", "acme", "r")
    assert (line["lines"], line["freshness_ms"], line["cost_usd"]) == ([7.0], [1.0, 1.0], [0.5])


def test_who_names_nobody_is_counted_by_service_alone(capsys: pytest.CaptureFixture[str]) -> None:
    measures = Measures()
    measures.count(names.QUARANTINED, 1)
    [line] = put(capsys, "ingest", None, measures)
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]


def test_nothing_measured_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert put(capsys, "ingest", "acme", Measures(), {names.COST_USD: None}) == []


@pytest.mark.parametrize("count", [1, 99, 100, 5_000])
def test_few_samples_have_the_quantiles_of_all(count: int) -> None:
    times = Histogram()
    for number in range(count):
        times.add(10.0 * (number + 1))
    kept = Histogram()
    found = samples(times)
    assert len(found) == min(count, 99)
    for value in found:
        kept.add(value)
    for percent in (50, 90):
        whole = times.quantile(Fraction(percent, 100))
        assert whole is not None
        assert kept.quantile(Fraction(percent, 100)) == pytest.approx(whole, rel=0.1)


def test_every_metric_of_a_thousand_lines_stays_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measures = Measures()
    for number in range(1_000):
        measures.took(names.FRESHNESS, float(number))
    measures.count(names.LINES, 1_000)
    assert len(put(capsys, "ingest", "acme", measures)) == 1
