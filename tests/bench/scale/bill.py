"""The bill of a scenario by line, for a TB of text that is ingested and kept for 30 days.

Every line is a quantity of the model times a list price. Four ways to carry frames are beside each other: an
on-demand stream (what template.yaml deploys), the on-demand advantage of an account, a stream of provisioned
shards that the load fills to a half, and no stream at all: agents that ingest and put segments themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ranklog.limits import (
    INGEST_KEYS_AGE_S_MAX,
    MEASURES_AGE_LAMBDA_S,
    METER_UNLIMITED_AGE_S,
    RULES_AGE_S_MAX,
)
from ranklog.objectives import prices
from tests.bench.scale.aws import limit
from tests.bench.scale.querying import QueryResult
from tests.bench.scale.rates import Rates
from tests.bench.scale.scenarios import Outcome
from tests.bench.scale.shards import load_of

TB = 1e12
KEPT_DAYS = 30
# Questions of a tenant a day, each over the hours that the model looks at.
QUESTIONS_A_DAY = 48
RETENTION_DAYS = 3
INGEST_MEMORY_GB, QUERY_MEMORY_GB, COMPACT_MEMORY_GB = 1.769, 1.769, 3.008
# What a function logs and measures of an invocation (a line of JSON each for its work and its metrics, and
# Lambda's own), in the functions' own log groups.
LOGGED_BYTES = 2_500
# template.yaml: alarms, the functions' metrics of EMF, a dashboard.
ALARMS, METRICS = 12, 40
MARK = 15.0
# Of provisioned shards.
PROVISIONED_FULL = 0.5


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a bill: `quantity` of `unit`s make `usd`."""

    name: str
    quantity: float
    unit: str
    usd: float


def tb_seconds(outcome: Outcome) -> float:
    """Seconds in which the scenario writes a TB."""
    return TB / outcome.scenario.bytes_per_s


def frames_items(outcome: Outcome, *, advantage: bool = False) -> list[Item]:
    """Kinesis: frames in, frames out, what it keeps beyond a day, the stream itself."""
    seconds = tb_seconds(outcome)
    frames = outcome.frames.per_s * outcome.scenario.hosts * seconds
    gb = frames * outcome.frames.billed_bytes / prices.GB
    kept = gb * (RETENTION_DAYS - 1) / KEPT_DAYS
    into = prices.KINESIS_ADVANTAGE_IN if advantage else prices.KINESIS_IN
    out = prices.KINESIS_ADVANTAGE_OUT if advantage else prices.KINESIS_OUT
    items = [
        Item("Kinesis, frames put", gb, "GB", into.of(gb)),
        Item("Kinesis, frames read", gb, "GB", out.of(gb)),
        Item("Kinesis, kept for 72 h", kept, "GB-month", prices.KINESIS_RETAINED.of(kept)),
    ]
    if not advantage:
        hours = seconds / 3_600 * streams(outcome)
        items.append(Item("Kinesis, stream", hours, "hour", prices.KINESIS_STREAM_HOUR.of(hours)))
        return items
    least = prices.KINESIS_ADVANTAGE_IN_BYTES_PER_S_MIN * seconds / prices.GB
    missing = max(0.0, least - gb)
    usd = (into.usd + out.usd) * missing
    return [*items, Item("Kinesis, advantage's minimum not used", missing, "GB", usd)]


def provisioned_items(outcome: Outcome) -> list[Item]:
    """Shards by the hour, half full, at least one; records by units of 25 KB; reading is free."""
    hours = tb_seconds(outcome) / 3_600
    shards = max(1.0, load_of(outcome.frames) * outcome.scenario.hosts / PROVISIONED_FULL)
    units = outcome.frames.per_s * outcome.scenario.hosts * tb_seconds(outcome)
    units *= max(1.0, math.ceil(outcome.frames.wire_bytes / 25_000))
    shard_hours = shards * hours
    kept = shard_hours * (RETENTION_DAYS > 1)
    return [
        Item(
            "Kinesis, shards", shard_hours, "shard hour", prices.KINESIS_SHARD_HOUR.of(shard_hours)
        ),
        Item("Kinesis, records", units, "unit of 25 KB", prices.KINESIS_PUT_UNIT.of(units)),
        Item(
            "Kinesis, kept for 72 h",
            kept,
            "shard hour",
            prices.KINESIS_SHARD_RETAINED_HOUR.of(kept),
        ),
    ]


def streams(outcome: Outcome) -> int:
    """Streams (and stacks) that the frames need."""
    wire = outcome.frames.per_s * outcome.frames.wire_bytes * outcome.scenario.hosts
    return int(-(-wire // limit("stream on demand")))


def write_items(outcome: Outcome) -> list[Item]:
    """Functions and requests of ingest."""
    seconds = tb_seconds(outcome)
    gb_s = outcome.functions * INGEST_MEMORY_GB * seconds
    invocations = outcome.batches_per_s * seconds
    puts = outcome.ingest.puts / outcome.ingest.seconds / outcome.share * seconds
    return [
        Item("Lambda, ingest", gb_s, "GB-s", prices.LAMBDA_X86_GB_S.of(gb_s)),
        Item("Lambda, invocations", invocations, "", prices.LAMBDA_REQUEST.of(invocations)),
        Item("S3, PUT of segments and indexes", puts, "", prices.S3_PUT.of(puts)),
        _beside(outcome),
        _own_logs(invocations),
    ]


def _beside(outcome: Outcome) -> Item:
    """What a process of ingest reads again of each tenant when it is old, and what it counts and puts.

    Once for each batch where these come less often. LIST: keys, rules, usage; GET: who may send, how long
    lines are kept, the quota; PUT: usage, measures.
    """
    processes = max(1.0, outcome.functions)
    batch_s = processes / outcome.batches_per_s
    times = tb_seconds(outcome) * processes * outcome.ingest.parts / max(1, outcome.ingest.batches)

    def of(*ages_s: float) -> float:
        return times * sum(1 / max(age_s, batch_s) for age_s in ages_s)

    keys, rules, usage = INGEST_KEYS_AGE_S_MAX, RULES_AGE_S_MAX, METER_UNLIMITED_AGE_S
    lists, gets = of(keys, rules, usage), of(keys, rules, usage)
    puts = of(usage, MEASURES_AGE_LAMBDA_S)
    usd = prices.S3_LIST.of(lists) + prices.S3_GET.of(gets) + prices.S3_PUT.of(puts)
    return Item("S3, what ingest reads and counts", lists + gets + puts, "", usd)


def _own_logs(invocations: float) -> Item:
    gb = invocations * LOGGED_BYTES / prices.GB
    return Item("the functions' own logs", gb, "GB", prices.CLOUDWATCH_LOGS_IN.of(gb))


def compaction_items(outcome: Outcome) -> list[Item]:
    """Functions and requests of compaction, of all tenants."""
    found = outcome.compaction.to_json()
    times = tb_seconds(outcome) * outcome.scenario.tenants
    gb_s = found["compactors_busy"] * COMPACT_MEMORY_GB * times
    gets = found["gets_per_s"] * times
    puts = (found["puts_per_s"] + found["lists_per_s"]) * times
    return [
        Item("Lambda, compaction", gb_s, "GB-s", prices.LAMBDA_X86_GB_S.of(gb_s)),
        Item("S3, GET of compaction", gets, "", prices.S3_GET.of(gets)),
        Item("S3, PUT and LIST of compaction", puts, "", prices.S3_PUT.of(puts)),
    ]


def stored_items(outcome: Outcome, rates: Rates) -> list[Item]:
    """30 days of what is stored, and the hour or two in which small segments lie beside what they became."""
    gb = TB * rates.stored_ratio / prices.GB
    twice = gb * 0.5 / 24 / KEPT_DAYS
    months = gb + twice if outcome.compaction.keeps_up else gb * unmerged_ratio(outcome, rates)
    return [Item("S3, stored for 30 days", months, "GB-month", prices.S3_STORED.of(months))]


def unmerged_ratio(outcome: Outcome, rates: Rates) -> float:
    """Stored bytes without compaction by those with it."""
    lines = outcome.segment_lines
    stored = rates.segment.at(lines) + rates.index.at(lines)
    return stored / rates.line_bytes / rates.stored_ratio


def question_usd(found: QueryResult) -> float:
    """List price of one question of the mix."""
    count = max(1, found.count)
    gb_s = (found.root_s + found.scan_s) / count * QUERY_MEMORY_GB
    invocations = 1 + found.tasks / count
    return (
        prices.lambda_usd(gb_s)
        + prices.LAMBDA_REQUEST.of(invocations - 1)
        + prices.S3_LIST.of(found.lists / count)
        + prices.S3_GET.of(found.gets / count)
        + prices.API_REQUEST.of(1)
        + _own_logs(invocations).usd
    )


def questions_per_tb(outcome: Outcome) -> float:
    """Of all tenants, in the time in which they write a TB."""
    return QUESTIONS_A_DAY / 86_400 * outcome.scenario.tenants * tb_seconds(outcome)


def question_items(outcome: Outcome) -> list[Item]:
    """The mix."""
    asked = questions_per_tb(outcome)
    usd = question_usd(outcome.queries[min(outcome.queries)])
    return [Item("questions of the mix, all in", asked, "", usd * asked)]


def watching_items(outcome: Outcome) -> list[Item]:
    """Alarms and metrics of the stack, whatever it does."""
    months = tb_seconds(outcome) / prices.SECONDS_PER_MONTH * streams(outcome)
    usd = (0.10 * ALARMS + prices.CLOUDWATCH_METRIC.usd * METRICS + 3.0) * months
    return [Item("alarms, metrics, dashboard", months, "stack-month", usd)]


def bill(
    outcome: Outcome, rates: Rates, way: str = "on demand", own: Outcome | None = None
) -> list[Item]:
    """All lines; `way` is one of WAYS; `own`: what provisioned shards make of the scenario
    (`scenarios.provisioned`)."""
    if way == "provisioned" and own is not None:
        outcome = own
    rest = [
        *compaction_items(outcome),
        *stored_items(outcome, rates),
        *question_items(outcome),
        *watching_items(outcome),
    ]
    if way == "direct":
        return [*direct_items(outcome, rates), *rest]
    if way == "provisioned":
        return [*provisioned_items(outcome), *write_items(outcome), *rest]
    return [*frames_items(outcome, advantage=way == "advantage"), *write_items(outcome), *rest]


def direct_items(outcome: Outcome, rates: Rates) -> list[Item]:
    """Agents that ingest themselves: a batch every 10 s of each host, two PUTs each; CPU is the hosts'."""
    from ranklog.agent.store_sink import BATCH_AGE_S3_S

    batches = outcome.scenario.hosts / BATCH_AGE_S3_S * tb_seconds(outcome)
    puts = batches * max(2, round(rates.puts))
    return [Item("S3, PUT of segments and indexes", puts, "", prices.S3_PUT.of(puts))]


WAYS = ("on demand", "advantage", "provisioned", "direct")


def total(items: list[Item]) -> float:
    """Dollars."""
    return sum(item.usd for item in items)


def cloudwatch(outcome: Outcome) -> list[Item]:
    """The same TB, kept and asked about, in CloudWatch Logs: each question scans the text of its hours."""
    gb = TB / prices.GB
    kept = gb * prices.CLOUDWATCH_LOGS_COMPRESSED
    scanned = questions_per_tb(outcome) * outcome.stored.text / prices.GB
    return [
        Item("ingested", gb, "GB", prices.CLOUDWATCH_LOGS_IN.of(gb)),
        Item("stored for 30 days", kept, "GB-month", prices.CLOUDWATCH_LOGS_STORED.of(kept)),
        Item("Logs Insights", scanned, "GB", prices.CLOUDWATCH_LOGS_SCANNED.of(scanned)),
    ]


def as_json(items: list[Item]) -> list[dict[str, float | str]]:
    """For the file of figures."""
    return [{"name": i.name, "quantity": i.quantity, "unit": i.unit, "usd": i.usd} for i in items]
