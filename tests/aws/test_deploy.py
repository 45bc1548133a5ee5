"""`sam deploy` of what `sam build` made, into an emulator of AWS: the stack comes up, and a line is found."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ranklog.store import S3Store
from tests.aws.events import ERROR, KEY, LINES, frames, put_key, question
from tests.aws.ministack import LEFT_OUT, Deployed, deployed
from tests.aws.stack import functions, read_template
from tests.aws.tools import program

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.skipif(
        program("sam") is None or program("ministack") is None,
        reason="python -m tests.aws.tools installs what this needs",
    ),
]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("deploy")) as made:
        yield made


@pytest.fixture(scope="module")
def store(stack: Deployed) -> S3Store:
    """The deployed bucket, with a key, and with the lines of the events once they are ingested."""
    bucket = S3Store(stack.resources["StoreBucket"], "", stack.client("s3"))
    put_key(bucket)
    stack.client("kinesis").put_records(
        StreamName=stack.outputs["StreamName"],
        Records=[{"Data": data, "PartitionKey": "acme/llama-8b"} for data in frames()],
    )
    until(lambda: [info.key for info in bucket.list("acme/index/")])
    return bucket


def until(found: Callable[[], Any], seconds: float = 90) -> Any:
    """What is found in the end."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.5)
    return value


def is_empty(stack: Deployed, queue: str) -> bool:
    """Whether nothing waits in a queue, nor is being done."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    asked = stack.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=names)
    return set(asked["Attributes"].values()) == {"0"}


def test_every_resource_of_the_template_is_there(stack: Deployed) -> None:
    expected = {
        name
        for name, resource in read_template()["Resources"].items()
        if resource["Type"] != "AWS::Serverless::LayerVersion" and "Condition" not in resource
    }
    assert expected - set(stack.resources) == set(LEFT_OUT)
    assert set(read_template()["Outputs"]) == set(stack.outputs)


def test_a_frame_in_the_stream_is_ingested_and_found(stack: Deployed, store: S3Store) -> None:
    answer = stack.invoke("Query", question())
    assert [line["text"] for line in answer["body"]["lines"]] == [ERROR]
    everything = {"tenant": "acme", "path": "/v1/count", "body": {"run": "llama-8b"}}
    count = stack.invoke("Query", everything)["body"]["count"]
    assert count == sum(len(lines) for lines in LINES.values())


def test_the_http_api_answers_who_has_a_key(stack: Deployed, store: S3Store) -> None:
    body = json.dumps(question()["body"]).encode()
    status, answer = stack.request("POST", "/v1/search", body, key=KEY)
    assert status == 200
    assert [line["text"] for line in json.loads(answer)["lines"]] == [ERROR]
    assert stack.request("POST", "/v1/search", body)[0] == 401
    assert stack.request("POST", "/v1/search", body, key=f"{KEY}x")[0] == 403
    assert stack.request("GET", "/v1/health")[0] == 200


def test_a_frame_over_http_goes_into_the_stream(stack: Deployed, store: S3Store) -> None:
    kind = "application/octet-stream"
    status, answer = stack.request("POST", "/v1/frames", frames()[0], KEY, kind)
    assert (status, json.loads(answer)) == (202, {"accepted": 1})


def test_a_schedule_puts_tasks_and_the_queue_has_them_done(stack: Deployed, store: S3Store) -> None:
    for function in ("Compact", "Retention"):
        assert stack.invoke(function, {"work": "all"})["put"] >= 1
        until(lambda queue=stack.resources[f"{function}Tasks"]: is_empty(stack, queue))
    failures = stack.client("sqs").receive_message(QueueUrl=stack.resources["TaskFailures"])
    assert not failures.get("Messages")


def test_every_function_starts_from_its_layers(stack: Deployed) -> None:
    """An event that it can't use is refused by our code: everything that it imports is there."""
    for name in functions(read_template()):
        answer = stack.client("lambda").invoke(
            FunctionName=stack.resources[f"{name}Function"], Payload=b'{"work": "none"}'
        )
        said = answer["Payload"].read().decode()
        assert "No module named" not in said and "ImportModuleError" not in said, (name, said)
