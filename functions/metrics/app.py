"""Gauges of every tenant for alarms and the dashboard, and its measures tidied up.

Trigger: a schedule, every 5 minutes; the event is not looked at.
Reads: tenants, the indexes of the last two hours, keys of their segments, tombstones, measures of the last quarter
    of an hour, keys in quarantine (LIST, GET).
Writes: CloudWatch metrics by way of the log; measures of closed hours as one object each, and none that is older
    than 90 days (PUT, DELETE).
Retries: none. A tenant that can't be read is told in the log and counted by no gauge; what a run has no time for,
    the next one begins with. It can run beside itself.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Any

from ranklog.client.reader import local_reader
from ranklog.errors import RanklogError
from ranklog.limits import METRICS_RESERVE_S
from ranklog.objectives import names
from ranklog.objectives.keeping import roll_up
from ranklog.objectives.measures import Measures
from ranklog.scan.scatter import InProcess
from ranklog.serverless.gauges import Gauges, tenant_gauges, waiting_frames, worst_of
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.metrics import put_metrics
from ranklog.serverless.settings import read_settings
from ranklog.store import Store, open_store
from ranklog.upkeep.tenants import tenants

logger = function_logger("metrics")
_next = [0]  # of the tenants, in order: which one this process begins with


@cache
def _store() -> Store:
    return open_store(read_settings(os.environ).store_url)


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """How many tenants there are, were looked at, and could not be read."""
    store = _store()
    found = tenants(store)
    begin = _next[0] % len(found) if found else 0
    told: list[Gauges] = []
    failed = 0
    for tenant in found[begin:] + found[:begin]:
        if context.get_remaining_time_in_millis() < METRICS_RESERVE_S * 1000:
            break
        gauges = _of_tenant(store, tenant)
        failed += gauges is None
        told.append(gauges or {})
    _next[0] = begin + len(told)
    nobodys: Gauges = {names.QUARANTINE_WAITING: waiting_frames(store, None)}
    overall = {**worst_of([*told, nobodys]), names.TENANTS: len(told) - failed}
    put_metrics(logger.service, None, Measures(), overall)
    return {"tenants": len(found), "looked": len(told), "failed": failed}


def _of_tenant(store: Store, tenant: str) -> Gauges | None:
    """None where it can't be read."""
    logger.append_keys(tenant=tenant)
    now_ns = time.time_ns()
    try:
        # Gauges scan nothing: this function has no DuckDB.
        reader = local_reader(store, tenant, invoker=InProcess(store))
        gauges = tenant_gauges(reader, now_ns)
        rolled = roll_up(store, tenant, now_ns)
    except RanklogError as error:
        logger.exception("tenant not read", extra={"kind": error.kind})
        return None
    finally:
        logger.append_keys(tenant=None)
    logger.info("measured", extra={"tenant": tenant, "gauges": gauges, "rolled": rolled})
    _put_tenant(tenant, gauges)
    return gauges


def _put_tenant(tenant: str, gauges: Gauges) -> None:
    put_metrics(logger.service, tenant, Measures(), gauges, stack_wide=False)
