"""Work tenant by tenant as tasks of a FIFO queue: a schedule puts them, the same function takes them.

A task is JSON and belongs to a group, of which the queue hands out one at a time: two invocations never work
on the same, whatever schedules overlap, and what fails is alone and comes again. A task whose time is up
puts its rest behind itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ranklog.errors import BadInput, Unavailable
from ranklog.store.aws import translate

# One SendMessageBatch call.
_CALL_TASKS_MAX = 10
RECENT, ALL = "recent", "all"


@dataclass(frozen=True, slots=True)
class Task:
    """A tenant's work: of one event hour, or (None) of all; `after`: where a task before it stopped."""

    tenant: str
    hour: int | None = None
    after: str = ""

    def behind(self, after: str) -> Task:
        """The rest of this task."""
        return replace(self, after=after)

    def render(self) -> str:
        """Text of the message."""
        return json.dumps({"tenant": self.tenant, "hour": self.hour, "after": self.after})

    @property
    def group(self) -> str:
        """Tasks of a group are done one after the other."""
        name = json.dumps([self.tenant, self.hour])
        return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def parse_task(text: str) -> Task:
    """Inverse of `Task.render`. Raises BadInput."""
    try:
        said = json.loads(text)
        tenant, hour, after = said["tenant"], said.get("hour"), said.get("after", "")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"no task: {text[:100]}", hint=_HINT) from error
    if not (isinstance(tenant, str) and tenant and isinstance(after, str)):
        raise BadInput(f"a task without a tenant: {text[:100]}", hint=_HINT)
    if not (hour is None or (isinstance(hour, int) and hour >= 0)):
        raise BadInput(f"a task of the hour {hour!r}", hint=_HINT)
    return Task(tenant, hour, after)


_HINT = '{"tenant": "default", "hour": null, "after": ""}'


def tasks_of_event(event: Mapping[str, Any]) -> Iterator[Task]:
    """The tasks in an event of the queue."""
    for record in event["Records"]:
        yield parse_task(record["body"])


def scheduled_work(event: Mapping[str, Any]) -> str | None:
    """What a schedule asks for, None for an event of the queue. Raises BadInput."""
    if "Records" in event:
        return None
    work = event.get("work")
    if work not in (RECENT, ALL):
        raise BadInput(f"no work {work!r}", hint='a schedule sends {"work": "recent"} or "all"')
    return str(work)


def put_tasks(client: Any, queue_url: str, tasks: Iterable[Task]) -> int:
    """Put tasks into the queue (`client` is boto3's of SQS); how many. Raises Unavailable where one is refused."""
    waiting = list(tasks)
    for at in range(0, len(waiting), _CALL_TASKS_MAX):
        entries = [
            {"Id": str(number), "MessageBody": task.render(), "MessageGroupId": task.group}
            for number, task in enumerate(waiting[at : at + _CALL_TASKS_MAX])
        ]
        try:
            answer = client.send_message_batch(QueueUrl=queue_url, Entries=entries)
        except Exception as error:
            raise translate(error, queue_url) from error
        refused = answer.get("Failed") or []
        if refused:
            raise Unavailable(
                f"{len(refused)} of {len(entries)} tasks were refused: {refused[0].get('Code')}",
                hint="the schedule puts them again",
            )
    return len(waiting)
