"""Every name of what ranklog measures of itself: in measures, in CloudWatch, in alarms and the dashboard.

In CloudWatch the namespace is `ranklog`; each metric is there twice, by `service` and by `service` and
`tenant`. docs/objectives.md lists these, and a test holds it to that.
"""

from __future__ import annotations

from dataclasses import dataclass

NAMESPACE = "ranklog"

COUNTER, TIMES, GAUGE = "counter", "times", "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """`unit` as CloudWatch calls it; a gauge is of CloudWatch alone, the rest is kept in measures too."""

    name: str
    kind: str
    unit: str
    meaning: str


LINES = "lines"
POINTS = "points"
TEXT_BYTES = "text_bytes"
STORED_BYTES = "stored_bytes"
FRAMES = "frames"
QUARANTINED = "quarantined_frames"
REPEATED = "repeated_lines"
REFUSED = "refused_lines"
FRESHNESS = "freshness_ms"
DELAY = "delay_ms"
QUERIES = "queries"
QUERIES_FAILED = "queries_failed"
QUERY_MS = "query_ms"
ANSWERS = {state: f"answers_{state}" for state in ("complete", "behind", "gaps", "partial")}
BYTES_READ = "bytes_read"
ROW_GROUPS = "row_groups"
ROW_GROUPS_PRUNED = "row_groups_pruned"
PRUNED_PERCENT = "row_groups_pruned_percent"
COST = "cost_nanousd"
COST_USD = "cost_usd"
SCANS = "scans"
SCAN_MS = "scan_ms"
CANARY_LINES = "canary_lines"
CANARY_MISSING = "canary_missing"
CANARY_DOUBLED = "canary_doubled"
CANARY_MS = "canary_freshness_ms"
COMPLETENESS = "completeness_percent"
LOST_LINES = "lost_lines"
STREAMS_BEHIND = "streams_behind"
QUARANTINE_WAITING = "quarantine_waiting"
FRESHNESS_P50, FRESHNESS_P99 = "freshness_p50_ms", "freshness_p99_ms"
TENANTS = "tenants"

_MS, _N, _BYTES, _PERCENT = "Milliseconds", "Count", "Bytes", "Percent"

METRICS: tuple[Metric, ...] = (
    Metric(LINES, COUNTER, _N, "lines that ingest committed"),
    Metric(POINTS, COUNTER, _N, "records of telemetry that ingest committed"),
    Metric(TEXT_BYTES, COUNTER, _BYTES, "text of these lines, without line feeds"),
    Metric(STORED_BYTES, COUNTER, _BYTES, "segments and indexes that ingest wrote"),
    Metric(FRAMES, COUNTER, _N, "frames that ingest read"),
    Metric(QUARANTINED, COUNTER, _N, "frames that could not be stored and were set aside"),
    Metric(REPEATED, COUNTER, _N, "lines that came twice in one batch"),
    Metric(REFUSED, COUNTER, _N, "lines older than the tenant keeps"),
    Metric(FRESHNESS, TIMES, _MS, "of each line: from its arrival in the stream to searchable"),
    Metric(
        DELAY, TIMES, _MS, "of each line of a producer or agent: from its own time to searchable"
    ),
    Metric(QUERIES, COUNTER, _N, "questions that were answered or failed, all routes that read"),
    Metric(QUERIES_FAILED, COUNTER, _N, "of these, those that ended with a status of 500 or above"),
    Metric(QUERY_MS, TIMES, _MS, "from the request to its answer; a tail's waiting is left out"),
    Metric(ANSWERS["complete"], COUNTER, _N, "answers whose completeness is `complete`"),
    Metric(ANSWERS["behind"], COUNTER, _N, "answers that are `behind`: streams still run"),
    Metric(ANSWERS["gaps"], COUNTER, _N, "answers over streams with gaps"),
    Metric(ANSWERS["partial"], COUNTER, _N, "answers that did not read all they had to"),
    Metric(BYTES_READ, COUNTER, _BYTES, "bytes that answers read, of indexes and segments"),
    Metric(ROW_GROUPS, COUNTER, _N, "row groups in the scope of questions"),
    Metric(ROW_GROUPS_PRUNED, COUNTER, _N, "of these, those that were not read"),
    Metric(PRUNED_PERCENT, GAUGE, _PERCENT, "row groups that one question did not read"),
    Metric(
        COST,
        COUNTER,
        "None",
        "billionths of a dollar by list price, Lambda and S3 requests; in measures alone",
    ),
    Metric(
        COST_USD,
        GAUGE,
        "None",
        "the same of one question or batch, in dollars; in CloudWatch alone",
    ),
    Metric(SCANS, COUNTER, _N, "tasks that the scan function evaluated"),
    Metric(SCAN_MS, TIMES, _MS, "one task"),
    Metric(CANARY_LINES, COUNTER, _N, "lines that a canary wrote"),
    Metric(CANARY_MISSING, COUNTER, _N, "of these, those not found within its time"),
    Metric(CANARY_DOUBLED, COUNTER, _N, "of these, those found more than once, or with other text"),
    Metric(CANARY_MS, TIMES, _MS, "from a canary's write to the search that found its line"),
    Metric(COMPLETENESS, GAUGE, _PERCENT, "of the lines known of, those stored or deleted"),
    Metric(LOST_LINES, GAUGE, _N, "lines that were acknowledged and are not found"),
    Metric(STREAMS_BEHIND, GAUGE, _N, "streams whose newest lines may not have arrived"),
    Metric(QUARANTINE_WAITING, GAUGE, _N, "frames in quarantine that were not replayed"),
    Metric(FRESHNESS_P50, GAUGE, _MS, "median of freshness_ms over the last quarter of an hour"),
    Metric(FRESHNESS_P99, GAUGE, _MS, "its 99th percentile over the last quarter of an hour"),
    Metric(TENANTS, GAUGE, _N, "tenants that the metrics function looked at"),
)

BY_NAME = {metric.name: metric for metric in METRICS}
