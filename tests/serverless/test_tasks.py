"""Tasks of the queue: as they were put, grouped, and refused aloud."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.errors import BadInput, Unavailable
from ranklog.serverless.tasks import Task, parse_task, put_tasks, scheduled_work, tasks_of_event

TENANTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


class Queue:
    """A boto3 client of SQS as far as tasks need one."""

    def __init__(self, refused: int = 0) -> None:
        self.calls: list[list[dict[str, str]]] = []
        self._refused = refused

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:
        assert QueueUrl == "queue" and 1 <= len(Entries) <= 10
        self.calls.append(Entries)
        failed = [{"Id": entry["Id"], "Code": "Busy"} for entry in Entries[: self._refused]]
        return {"Failed": failed} if failed else {}


@given(TENANTS, st.none() | st.integers(0, 10**6), st.text(max_size=40))
def test_a_task_is_read_as_it_was_put(tenant: str, hour: int | None, after: str) -> None:
    task = Task(tenant, hour, after)
    assert list(tasks_of_event({"Records": [{"body": task.render()}]})) == [task]


@given(st.lists(st.tuples(TENANTS, st.none() | st.integers(0, 99)), unique=True, max_size=20))
def test_each_tenant_and_hour_is_a_group_of_its_own(names: list[tuple[str, int | None]]) -> None:
    groups = {Task(*name).group for name in names}
    assert len(groups) == len(names)
    assert all(len(group) == 32 and group.isalnum() for group in groups)


def test_the_rest_of_a_task_stays_in_its_group_and_is_another_message() -> None:
    task = Task("acme", None)
    rest = task.behind("acme/index/2026-03-01/07/")
    assert (rest.group, rest.after) == (task.group, "acme/index/2026-03-01/07/")
    assert rest.render() != task.render()


@pytest.mark.parametrize("count", [0, 1, 10, 11, 25])
def test_tasks_are_put_ten_at_a_time(count: int) -> None:
    queue, tasks = Queue(), [Task("acme", hour) for hour in range(count)]
    assert put_tasks(queue, "queue", tasks) == count
    put = [parse_task(entry["MessageBody"]) for call in queue.calls for entry in call]
    assert put == tasks
    assert all(len({entry["Id"] for entry in call}) == len(call) for call in queue.calls)


def test_a_task_that_the_queue_refuses_is_an_error() -> None:
    with pytest.raises(Unavailable, match="2 of 3 tasks"):
        put_tasks(Queue(refused=2), "queue", [Task("acme", hour) for hour in range(3)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"tenant": ""}',
        '{"tenant": 3}',
        '{"tenant": "a", "hour": "7"}',
        '{"tenant": "a", "hour": -1}',
        '{"tenant": "a", "after": 3}',
    ],
)
def test_other_text_is_no_task(text: str) -> None:
    with pytest.raises(BadInput):
        parse_task(text)


def test_a_schedule_says_what_it_wants() -> None:
    assert scheduled_work({"work": "recent"}) == "recent"
    assert scheduled_work({"Records": []}) is None
    for event in ({}, {"work": "everything"}):
        with pytest.raises(BadInput, match="no work"):
            scheduled_work(event)
