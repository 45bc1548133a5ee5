"""Few large objects from many small ones, tenant by tenant.

Trigger: schedules, `{"work": "recent"}` (the hours that run and ended last) and `{"work": "all"}` (every hour, late
    arrivals, pointers); and the queue of tasks that these fill, one task each.
Reads: tenants, indexes, segments, tombstones and pins in the store's bucket (LIST, GET); frames that wait for
    their tenant's quota, its rules and quotas, and what was counted for it (LIST, GET); quarantine.
Writes: merged segments, indexes and bundles, leases under `compaction/` (PUT); what is replaced and has had its
    grace, orphans and old pointers are removed (DELETE); frames that waited, as ingest does, and what they
    took of the quota (PUT, DELETE); old quarantine is removed (DELETE), and the log of actions says so (PUT);
    tasks into the queue.
Retries: a task whose time is up puts its rest into the queue. One that fails comes again, three times in all,
    then goes to the queue of failures. It can be stopped at any moment and run beside others: leases and the
    queue's groups only save work.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Any

from ranklog.limits import COMPACT_RECENT_HOURS, HOUR_NS, UPKEEP_RESERVE_S
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.settings import TASKS, FunctionSettings, read_settings
from ranklog.serverless.tasks import RECENT, Task, put_tasks, scheduled_work, tasks_of_event
from ranklog.store import Store, open_store
from ranklog.store.aws import aws_client
from ranklog.upkeep.frames import expire_quarantine, release_tenant
from ranklog.upkeep.passes import compact_tenant
from ranklog.upkeep.tenants import tenants

logger = function_logger("compact")
WHO = "compact function"


@cache
def _resources() -> tuple[FunctionSettings, Store, Any]:
    settings = read_settings(os.environ, TASKS)
    return settings, open_store(settings.store_url), aws_client("sqs")


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """A schedule's or the queue's event in, how many tasks were put or done out."""
    work = scheduled_work(event)
    if work is not None:
        return {"put": _fan_out(work)}
    done = [_compact(task, context) for task in tasks_of_event(event)]
    return {"done": len(done)}


def _fan_out(work: str) -> int:
    settings, store, queue = _resources()
    hour = time.time_ns() // HOUR_NS
    recent = range(hour, hour - COMPACT_RECENT_HOURS, -1)
    if work != RECENT:  # frames that name no tenant: no task's, so once for all
        expire_quarantine(store, [None], who=WHO)
    hours: list[int | None] = list(recent) if work == RECENT else [None]
    tasks = [Task(tenant, one) for tenant in tenants(store) for one in hours]
    logger.info("tasks put", extra={"work": work, "tasks": len(tasks)})
    return put_tasks(queue, settings.tasks_url, tasks)


def _compact(task: Task, context: Any) -> None:
    settings, store, queue = _resources()
    logger.append_keys(tenant=task.tenant, hour=task.hour)
    if task.hour in (None, time.time_ns() // HOUR_NS) and not task.after:
        released = release_tenant(store, task.tenant)
        logger.info("released", extra={"frames": released.frames, "left": released.left})
    if task.hour is None and not task.after:
        expire_quarantine(store, [task.tenant], who=WHO)
    report = compact_tenant(
        store,
        task.tenant,
        time.time_ns(),
        hours=None if task.hour is None else [task.hour],
        after=task.after,
        has_time=lambda: context.get_remaining_time_in_millis() > UPKEEP_RESERVE_S * 1000,
    )
    if report.stopped_after:
        put_tasks(queue, settings.tasks_url, [task.behind(report.stopped_after)])
    logger.info("compacted", extra=report.to_json())
