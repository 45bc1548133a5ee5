"""What the ingest function tells of each batch: a line of its log and metrics for each tenant in it."""

from __future__ import annotations

import time
from typing import Any

from aws_lambda_powertools import Logger

from ranklog.ingest.parts import IngestReport
from ranklog.ingest.shares import measured
from ranklog.limits import MEASURES_AGE_LAMBDA_S
from ranklog.objectives import names
from ranklog.objectives.measures import Measures
from ranklog.objectives.recorder import Recorder
from ranklog.serverless.asked import run_of
from ranklog.serverless.metrics import put_metrics
from ranklog.serverless.spending import CountedStore, Spending, is_arm
from ranklog.store.protocol import Store

_RUNS_MAX = 20


class IngestWatch:
    """`begin`, ingest into `store`, then `stored`."""

    def __init__(self, logger: Logger, store: Store) -> None:
        self._logger = logger
        self._spending = Spending()
        self.store = CountedStore(store, self._spending)
        # its own PUTs are in the next batch's cost
        self._recorder = Recorder(self.store, every_s=MEASURES_AGE_LAMBDA_S)

    def begin(self) -> None:
        """A batch begins."""
        self._spending.begin()

    def stored(self, report: IngestReport, rules_refused: list[str]) -> None:
        """All of it is searchable or set aside, from now on."""
        found = measured(report, time.time_ns())
        self._logger.info(
            "batch stored",
            extra={
                "lines": report.lines,
                "text_bytes": report.text_bytes,
                "committed": len(report.committed),
                "already": len(report.already),
                "waiting": len(report.parked),
                "quarantined": [[bad.sequence, bad.code, bad.key] for bad in report.bad],
                "rules_failed": sorted(report.rules_failed),
                "rules_refused": rules_refused,
            },
        )
        _add_cost(found, self._spending.so_far().nanousd(arm=is_arm()))
        for tenant, measures in found.items():
            share = report.shares.get(tenant) if tenant is not None else None
            self._tell(tenant, [] if share is None else share.runs, measures)

    def _tell(self, tenant: str | None, runs: list[str], measures: Measures) -> None:
        run = run_of(runs)
        about: dict[str, Any] = {"tenant": tenant, "run": run, "runs": runs[:_RUNS_MAX]}
        self._logger.info("stored for tenant", extra=about | dict(measures.counts))
        gauges = {names.COST_USD: measures.counts[names.COST] / 1e9}
        put_metrics(self._logger.service, tenant, measures, gauges, run=run)
        if tenant is not None:
            self._recorder.add(tenant, measures)


def _add_cost(found: dict[str | None, Measures], cost: int) -> None:
    """To each tenant's its share of what the batch cost, by bytes of text; the rest to the last."""
    total = sum(part.counts[names.TEXT_BYTES] for part in found.values())
    left = cost
    for number, part in enumerate(found.values(), 1):
        share = cost * part.counts[names.TEXT_BYTES] // total if total else cost // len(found)
        share = left if number == len(found) else share
        part.count(names.COST, share)
        left -= share
