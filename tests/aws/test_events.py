"""events/: what our own codecs make, and what each function does with it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ranklog.plan.tasks import decode_task
from ranklog.store import DiskStore
from ranklog.stream.frames import decode_frame
from tests.aws.conftest import Load
from tests.aws.events import ERROR, FOLDER, all_events
from tests.aws.stack import functions, read_template, routes
from tests.aws.test_roots import Read, Stack

EVENTS = all_events()


def meant(value: Any) -> Any:
    """An event without what a codec's next version may write otherwise: frames as what they hold."""
    if isinstance(value, dict):
        return {name: meant(item) for name, item in value.items()}
    if isinstance(value, list):
        return [meant(item) for item in value]
    if isinstance(value, str) and value.startswith(base64.b64encode(b"RLF").decode()):
        return repr(decode_frame(base64.b64decode(value)))
    if isinstance(value, str) and value.startswith("{"):
        return meant(json.loads(value))
    return value


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_an_event_is_what_its_module_makes(name: str, read_event: Read) -> None:
    """`python -m tests.aws.events` writes them anew."""
    if name != "scan":
        assert meant(read_event(name)) == meant(EVENTS[name])
        return
    # of a segment's bytes only their meaning stays from version to version
    kept, made = (decode_task(json.dumps(one).encode()) for one in (read_event(name), EVENTS[name]))
    assert (kept.expr, kept.shape) == (made.expr, made.shape)
    assert len(kept.segments) == len(made.segments)


def test_there_is_no_other_file() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(EVENTS)


def test_every_trigger_of_the_template_has_an_event() -> None:
    template = read_template()
    for name, properties in functions(template).items():
        own = [event for event in EVENTS if event.split("-")[0] == name.lower()]
        assert own, name
        for trigger, event in properties.get("Events", {}).items():
            if event["Type"] == "Schedule" and "Input" in event["Properties"]:
                said = json.loads(event["Properties"]["Input"])
                assert said in [EVENTS[one] for one in own], (name, trigger)
    asked = {event["routeKey"] for name, event in EVENTS.items() if name.startswith("api-")}
    assert asked == {route.key for route in routes(template)}


@pytest.fixture
def stack(
    load_function: Load, read_event: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stack:
    return Stack(load_function, read_event, tmp_path / "store", monkeypatch)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("api-search", 200),
        ("api-runs", 200),
        ("api-tail", 200),
        ("api-health", 200),
        ("api-openapi", 200),
        ("api-frames", 202),
    ],
)
def test_the_api_answers(stack: Stack, read_event: Read, name: str, status: int) -> None:
    assert stack.api(read_event(name))["statusCode"] == status


def test_the_query_and_the_authorizer_answer(
    stack: Stack, read_event: Read, load_function: Load
) -> None:
    answer = stack.query(read_event("query"))
    assert [line["text"] for line in answer["body"]["lines"]] == [ERROR]
    said = load_function("authorizer")(read_event("authorizer"))
    context = {"tenant": "acme", "scopes": "read write", "key": "0123456789ab"}
    assert said == {"isAuthorized": True, "context": context}


def test_a_batch_that_was_given_up_can_be_ingested_again(
    load_function: Load, read_event: Read, tmp_path: Path
) -> None:
    """What Lambda kept of it holds the event whole: docs/aws.md says how to invoke ingest with it."""
    record = read_event("ingest-given-up")
    first = load_function("ingest", RANKLOG_STORE=str(tmp_path / "a"))
    payload = json.loads(record["payload"])
    with pytest.raises(Exception, match="NotFound"):
        first(payload)  # the outage
    store = DiskStore(tmp_path / "b")
    ingest = load_function("ingest", RANKLOG_STORE=store.url)
    assert ingest(payload) == {"batchItemFailures": []}
    assert list(store.list("acme/index/"))


class Queue:
    """A client of SQS that keeps what is put."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:
        self.bodies += [entry["MessageBody"] for entry in Entries]
        return {}


@pytest.mark.parametrize(
    ("name", "put"),
    [("compact-recent", 3), ("compact-all", 1), ("retention-all", 1)],
)
def test_a_schedule_becomes_tasks(
    stack: Stack,
    read_event: Read,
    load_function: Load,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    put: int,
) -> None:
    function, queue = _tending(load_function, monkeypatch, name.split("-")[0])
    assert function(read_event(name)) == {"put": put}
    assert {json.loads(body)["tenant"] for body in queue.bodies} == {"acme"}


@pytest.mark.parametrize("name", ["compact-task", "retention-task"])
def test_a_task_is_done(
    stack: Stack,
    read_event: Read,
    load_function: Load,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    function, queue = _tending(load_function, monkeypatch, name.split("-")[0])
    assert function(read_event(name), 900_000) == {"done": 1}
    assert queue.bodies == []
    answer = stack.query(read_event("query"))
    assert [line["text"] for line in answer["body"]["lines"]] == [ERROR]


def test_a_compaction_whose_time_is_up_puts_its_rest_into_the_queue(
    stack: Stack, read_event: Read, load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.aws.test_permissions import frame_over_hours

    event = read_event("ingest")
    data = base64.b64encode(frame_over_hours(0, (-50, -50, -50))).decode()
    event["Records"][0]["kinesis"]["data"] = data
    load_function("ingest", RANKLOG_STORE=stack.store.url)(event)
    function, queue = _tending(load_function, monkeypatch, "compact")
    task = read_event("compact-task")
    task["Records"][0]["body"] = json.dumps({"tenant": "acme", "hour": None})
    assert function(task, 1_000) == {"done": 1}
    [rest] = queue.bodies
    assert json.loads(rest)["after"].startswith("acme/index/")
    task["Records"][0]["body"] = rest
    assert function(task, 900_000) == {"done": 1}
    assert queue.bodies == [rest]


def _tending(load: Load, patch: pytest.MonkeyPatch, name: str) -> tuple[Any, Queue]:
    """Compact or retention, and its queue."""
    function, queue = load(name, RANKLOG_TASKS="tasks"), Queue()
    patch.setattr(function.module, "aws_client", lambda *_: queue)  # type: ignore[attr-defined]
    return function, queue
