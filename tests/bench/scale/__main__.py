"""`python -m tests.bench.scale`: shards, functions, freshness, latency and cost from 1 GB/h to 100 GB/s.

    python -m tests.bench.scale [--json FILE] [--no-check] [--page FILE]

A discrete-event model of the whole path, fed with CPU and bytes that this run measures and with AWS's limits
and list prices. Unless --no-check, the same model with local parameters is held against a stack that runs here:
ranklog over a real object store on loopback. --page writes docs/scale-and-cost.md from the figures, or with
--from from those of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.scale import bill, peers
from tests.bench.scale.approaches import approaches
from tests.bench.scale.aws import AS_OF, LIMITS
from tests.bench.scale.local import check
from tests.bench.scale.measuring import machine, measure
from tests.bench.scale.page import render
from tests.bench.scale.pressures import pressures
from tests.bench.scale.querying import MIX
from tests.bench.scale.rates import Rates
from tests.bench.scale.scenarios import SCENARIOS, Outcome, provisioned, run_scenario
from tests.bench.scale.thresholds import floors, thresholds


def figures_of(outcome: Outcome, rates: Rates) -> dict[str, Any]:
    """A scenario with its bills and its limits."""
    own = provisioned(outcome, rates)
    bills = {way: bill.bill(outcome, rates, way, own) for way in bill.WAYS}
    cloudwatch = bill.cloudwatch(outcome)
    return {
        **outcome.to_json(),
        "ramp_s": ramp(outcome),
        "bill": {way: bill.as_json(items) for way, items in bills.items()},
        "usd_per_tb": {way: bill.total(items) for way, items in bills.items()},
        "question_usd": bill.question_usd(outcome.queries[min(outcome.queries)]),
        "questions_per_tb": bill.questions_per_tb(outcome),
        "floors": floors(outcome, own, rates),
        "provisioned_shards": len(own.shards),
        "cloudwatch": bill.as_json(cloudwatch),
        "cloudwatch_usd": bill.total(cloudwatch),
        "pressures": [one.to_json() for one in pressures(outcome)],
    }


def ramp(outcome: Outcome) -> float:
    """Seconds until a new stream takes the load."""
    from tests.bench.scale.shards import ramp_s

    wire = outcome.frames.per_s * outcome.frames.wire_bytes * outcome.scenario.hosts
    return ramp_s(wire / bill.streams(outcome))


def run(*, checked: bool) -> dict[str, Any]:
    """All figures of a run."""
    started = time.perf_counter()
    rates = measure()
    outcomes = [run_scenario(scenario, rates) for scenario in SCENARIOS]
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "aws_as_of": AS_OF,
        "machine": machine(),
        "rates": rates.to_json(),
        "stored_ratio": rates.stored_ratio,
        "mix": dict(MIX),
        "limits": {
            name: {"value": one.value, "unit": one.unit, "source": one.source}
            for name, one in LIMITS.items()
        },
        "scenarios": [figures_of(outcome, rates) for outcome in outcomes],
        "thresholds": thresholds(rates),
        "approaches": approaches(),
        "peers": [peer.to_json() for peer in peers.all_peers()],
        "checks": _checks(rates) if checked else [],
        "took_s": time.perf_counter() - started,
    }


def _checks(rates: Rates) -> list[dict[str, Any]]:
    from tests.servers import running_seaweedfs

    with tempfile.TemporaryDirectory() as work, running_seaweedfs(Path(work)) as server:
        return [one.to_json() for one in check(rates, server)]


def main() -> int:
    """Measure, model, check, print; 1 where model and stack differ by more than the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--no-check", action="store_true", help="without the local stack")
    parser.add_argument("--page", type=Path, help="write the page of the docs there")
    parser.add_argument("--from", type=Path, dest="earlier", help="figures of an earlier run")
    options = parser.parse_args()
    if options.earlier:
        found = json.loads(options.earlier.read_text())
    else:
        found = run(checked=not options.no_check)
    page = render(found)
    print(page)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.page:
        options.page.write_text(page)
    return 0 if all(one["ok"] for one in found["checks"]) else 1


if __name__ == "__main__":
    sys.exit(main())
