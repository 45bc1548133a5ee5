"""Lets go of lines that are older than their tenant keeps, tenant by tenant.

Trigger: a schedule, `{"work": "all"}`, and the queue of tasks that it fills, one task each.
Reads: each tenant's rules, runs, indexes, tombstones and pins in the store's bucket (LIST, GET); lines around the
    floor by way of the scan function.
Writes: a tombstone and an entry of the log of actions (PUT); objects whose rows were hidden long enough ago are
    removed, the index before its segment (DELETE); tasks into the queue.
Retries: a task that fails comes again, three times in all, then goes to the queue of failures. What was hidden or
    removed before stays so; the next run goes on from there.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ranklog.client.reader import local_reader
from ranklog.scan.lambda_invoke import LambdaInvoker
from ranklog.serverless.invocation import function_logger, invocation
from ranklog.serverless.settings import SCAN_FUNCTION, TASKS, FunctionSettings, read_settings
from ranklog.serverless.tasks import Task, put_tasks, scheduled_work, tasks_of_event
from ranklog.store import Store, open_store
from ranklog.store.aws import aws_client
from ranklog.upkeep.passes import retain_tenant
from ranklog.upkeep.tenants import tenants

logger = function_logger("retention")


@cache
def _resources() -> tuple[FunctionSettings, Store, LambdaInvoker]:
    settings = read_settings(os.environ, SCAN_FUNCTION, TASKS)
    return settings, open_store(settings.store_url), LambdaInvoker(settings.scan_function)


@invocation(logger)
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """A schedule's or the queue's event in, how many tasks were put or done out."""
    if scheduled_work(event) is None:
        return {"done": len([_retain(task) for task in tasks_of_event(event)])}
    settings, store, _ = _resources()
    tasks = [Task(tenant) for tenant in tenants(store)]
    logger.info("tasks put", extra={"tasks": len(tasks)})
    return {"put": put_tasks(aws_client("sqs"), settings.tasks_url, tasks)}


def _retain(task: Task) -> None:
    settings, store, invoker = _resources()
    reader = local_reader(
        store, task.tenant, invoker=invoker, concurrency=settings.scan_concurrency
    )
    applied = retain_tenant(reader, who="retention function")
    told = applied.to_json()
    told["failed"] = len(applied.failed)
    logger.info("retained", extra={"tenant": task.tenant} | told)
