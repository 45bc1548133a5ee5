"""What a root function tells of each request: a line of its log, metrics, and measures in the store."""

from __future__ import annotations

import threading
from typing import Any

from aws_lambda_powertools import Logger

from ranklog.api.observed import Observed
from ranklog.limits import MEASURES_AGE_LAMBDA_S
from ranklog.objectives import names
from ranklog.objectives.measures import Measures
from ranklog.objectives.recorder import Recorder
from ranklog.serverless.asked import Asked, run_of, tell_asked
from ranklog.serverless.metrics import put_metrics
from ranklog.serverless.spending import CountedStore, Spending, Spent, is_arm
from ranklog.serverless.tracing import annotate
from ranklog.store.prompt import Prompt
from ranklog.store.protocol import Store


class RootWatch:
    """`begin` with the invocation, `begun` before its request is worked on, `observe` when it is
    answered; meanwhile `tell` and `told` for each scan, in many threads. Requests go to `store`."""

    def __init__(self, logger: Logger, store: Store) -> None:
        self._logger = logger
        self._spending = Spending()
        self.store = CountedStore(store, self._spending)
        # its own PUTs are in the next request's cost
        self._recorder = Recorder(Prompt(self.store), every_s=MEASURES_AGE_LAMBDA_S)
        self._observed = Observed("")
        self._scans = Measures()
        self._lock = threading.Lock()

    def begin(self) -> None:
        """An invocation begins."""
        self._spending.begin()
        self._scans = Measures()

    def begun(self, observed: Observed) -> None:
        """Whose lines of the log, traces and scans these are from here on."""
        self._observed = observed
        self._logger.append_keys(tenant=observed.tenant, query_id=observed.query_id)
        service = self._logger.service
        annotate(service, tenant=observed.tenant, query_id=observed.query_id)

    def tell(self, task: bytes) -> bytes:
        """The task with whose it is."""
        one = self._observed
        return tell_asked(task, Asked(one.query_id, one.tenant, run_of(one.runs)))

    def told(self, answer: dict[str, Any]) -> None:
        """What the scan function says beside an outcome; one of an older release says nothing."""
        said = answer.get("spent")
        if not isinstance(said, dict):
            return
        self._spending.add(Spent.from_json(said))
        ms = said.get("ms", 0)
        with self._lock:
            self._scans.count(names.SCANS)
            self._scans.took(names.SCAN_MS, ms if isinstance(ms, (int, float)) else 0)

    def observe(self, observed: Observed) -> None:
        """The request is answered."""
        spent = self._spending.so_far()
        self._log(observed, spent)
        measures = observed.measures()
        if not measures:
            return
        cost = spent.nanousd(arm=is_arm())
        measures.count(names.COST, cost)
        measures.merge(self._scans)
        gauges = {names.COST_USD: cost / 1e9, names.PRUNED_PERCENT: _pruned_percent(observed)}
        put_metrics(
            self._logger.service,
            observed.tenant,
            measures,
            gauges,
            run=run_of(observed.runs),
            query_id=observed.query_id,
        )
        if observed.tenant is not None:
            self._recorder.add(observed.tenant, measures)

    def _log(self, observed: Observed, spent: Spent) -> None:
        """Neither the question nor the answer: what it took."""
        method, route = observed.route or ("-", "-")
        self._logger.append_keys(run=run_of(observed.runs))
        self._logger.info(
            "answered",
            extra={
                "route": f"{method} {route}",
                "status": observed.status,
                "ms": round(observed.ms, 1),
                "runs": observed.runs,
                "state": observed.state,
                "bytes_read": observed.bytes_read,
                "row_groups": observed.row_groups,
                "row_groups_pruned": observed.row_groups_pruned,
                "spent": spent.to_json(),
            },
        )


def _pruned_percent(observed: Observed) -> float | None:
    if not observed.row_groups:
        return None
    return 100 * observed.row_groups_pruned / observed.row_groups
