"""The Runtime API and Invoke as Lambda has them, with a runtime of thirty lines in place of AWS's."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.artefacts.lambdas import LambdaFunction, LambdaService, Throttled
from tests.artefacts.template import Function
from tests.artefacts.worker import Invoked
from tests.aws.lambda_client import PAYLOAD_BYTES_MAX
from tests.servers import KEY_ID, REGION, SECRET

# What `python -m awslambdaric app.handler` does, as far as is needed here.
RUNTIME = """
import http.client, json, os, sys
sys.path.insert(0, os.getcwd())
api, path = os.environ["AWS_LAMBDA_RUNTIME_API"], "/2018-06-01/runtime"
def call(method, at, body=None):
    connection = http.client.HTTPConnection(api)
    connection.request(method, path + at, body)
    answer = connection.getresponse()
    return answer, answer.read()
try:
    from app import handler
except Exception as error:
    call("POST", "/init/error", json.dumps({"errorType": type(error).__name__}))
    sys.exit(1)
while True:
    answer, event = call("GET", "/invocation/next")
    at = "/invocation/" + answer.headers["Lambda-Runtime-Aws-Request-Id"]
    try:
        call("POST", at + "/response", json.dumps(handler(json.loads(event), answer.headers)))
    except Exception as error:
        said = {"errorType": type(error).__name__, "errorMessage": str(error)}
        call("POST", at + "/error", json.dumps(said))
"""
APP = """
import os, time, layered
calls = 0
def handler(event, headers):
    global calls
    calls += 1
    if event.get("sleep"):
        time.sleep(event["sleep"])
    if event.get("exit"):
        os._exit(event["exit"])
    if event.get("raise"):
        raise ValueError(event["raise"])
    return {"calls": calls, "pid": os.getpid(), "layer": layered.NAME, "text": "x" * event.get("size", 0),
            "tmp": os.environ["TMPDIR"], "ms": int(headers["Lambda-Runtime-Deadline-Ms"])}
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter whose `-s -m awslambdaric` is the runtime above."""
    (tmp_path / "runtime.py").write_text(RUNTIME)
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path / 'runtime.py'}\n")
    script.chmod(0o755)
    return script


@pytest.fixture
def function(tmp_path: Path, python: Path) -> Iterator[LambdaFunction]:
    """Two workers at most, a second each; its two layers have a module of the same name."""
    for layer in ("first", "second"):
        (tmp_path / layer / "python").mkdir(parents=True)
        (tmp_path / layer / "python" / "layered.py").write_text(f"NAME = {layer!r}")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "app.py").write_text(APP)
    layers = (tmp_path / "first", tmp_path / "second")
    described = Function("One", tmp_path / "code", layers, "app.handler", 1.0, 128, "x86_64", {})
    made = LambdaFunction(described, python, tmp_path / "work", {}, concurrency=2)
    yield made
    made.close()


def ask(function: LambdaFunction, **event: Any) -> dict[str, Any]:
    done = function.invoke(json.dumps(event).encode())
    found: dict[str, Any] = json.loads(done.payload)
    return found | {"error": done.error}


def test_a_worker_stays_warm_and_its_layers_lie_over_one_another(function: LambdaFunction) -> None:
    first, second = ask(function), ask(function)
    assert (first["pid"], first["calls"], second["calls"]) == (second["pid"], 1, 2)
    assert (first["layer"], first["error"]) == ("second", "")
    assert (function.counts.cold_starts, function.counts.invocations) == (1, 2)
    assert 0 < first["ms"] / 1000 - time.time() + 1 < 2  # the deadline is a second ahead


def test_what_a_handler_raises_is_a_function_error_and_the_worker_goes_on(
    function: LambdaFunction,
) -> None:
    failed = ask(function, **{"raise": "no"})
    assert (failed["error"], failed["errorType"], failed["errorMessage"]) == (
        "Unhandled",
        "ValueError",
        "no",
    )
    assert ask(function)["calls"] == 2


def test_a_worker_whose_time_is_over_is_killed(function: LambdaFunction) -> None:
    ask(function)
    [pid] = function.pids
    failed = ask(function, sleep=30)
    assert failed["errorType"] == "Sandbox.Timedout"
    assert "Task timed out after 1.00 seconds" in failed["errorMessage"]
    assert function.pids == [] and not Path(f"/proc/{pid}").exists()
    assert ask(function)["calls"] == 1


@pytest.mark.parametrize(
    ("event", "why"), [({"exit": 3}, "exit status 3"), ({"sleep": 30}, "signal: 9")]
)
def test_a_worker_that_ends_fails_its_event(
    function: LambdaFunction, event: dict[str, Any], why: str
) -> None:
    ask(function)
    if "sleep" in event:
        function.timeout_s = 20
        threading.Timer(0.3, lambda: os.kill(function.pids[0], signal.SIGKILL)).start()
    failed = ask(function, **event)
    assert (failed["errorType"], failed["error"]) == ("Runtime.ExitError", "Unhandled")
    assert why in failed["errorMessage"]


def test_a_function_that_can_not_be_imported_says_so(
    function: LambdaFunction, tmp_path: Path
) -> None:
    (tmp_path / "code" / "app.py").write_text("import nothing_by_this_name")
    failed = ask(function)
    assert (
        failed["errorType"] == "Runtime.ExitError"
        and "ModuleNotFoundError" in failed["errorMessage"]
    )


def test_over_its_concurrency_it_is_throttled(function: LambdaFunction) -> None:
    function.warm(2)
    with ThreadPoolExecutor(2) as pool:
        busy = [pool.submit(ask, function, sleep=0.6) for _ in range(2)]
        time.sleep(0.2)
        with pytest.raises(Throttled):
            ask(function)
        pids = {each.result()["pid"] for each in busy}
    assert (len(pids), function.counts.throttles, function.counts.cold_starts) == (2, 1, 2)


def test_an_answer_over_the_limit_is_an_error(function: LambdaFunction) -> None:
    assert ask(function, size=PAYLOAD_BYTES_MAX + 1)["errorType"] == "Function.ResponseSizeTooLarge"
    assert ask(function, size=PAYLOAD_BYTES_MAX // 2)["error"] == ""


@pytest.fixture
def service(function: LambdaFunction) -> Iterator[LambdaService]:
    lost: list[tuple[str, bytes]] = []

    def on_failure(name: str, payload: bytes, _: Invoked | None) -> None:
        lost.append((name, payload))

    made = LambdaService({"One": function}, waits_s=(0.05, 0.05), on_failure=on_failure)
    made.lost = lost  # type: ignore[attr-defined]
    yield made
    made.close()


@pytest.fixture
def client(service: LambdaService) -> Iterator[Any]:
    import boto3

    made = boto3.client(
        "lambda",
        endpoint_url=service.url,
        region_name=REGION,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
    )
    yield made
    made.close()


def test_boto3_invokes_by_name_and_by_arn(service: LambdaService, client: Any) -> None:
    arn = service.functions["One"].function.arn
    for name in ("One", arn):
        answer = client.invoke(FunctionName=name, Payload=b"{}")
        assert (answer["StatusCode"], "FunctionError" in answer) == (200, False)
        assert json.loads(answer["Payload"].read())["layer"] == "second"
    failed = client.invoke(FunctionName="One", Payload=b'{"raise": "no"}')
    assert failed["FunctionError"] == "Unhandled"
    failed["Payload"].read()


@pytest.mark.parametrize(
    ("name", "payload", "code"),
    [
        ("Other", b"{}", "ResourceNotFoundException"),
        ("One", b"1" * (PAYLOAD_BYTES_MAX + 1), "RequestEntityTooLargeException"),
    ],
)
def test_boto3_is_refused_as_by_lambda(client: Any, name: str, payload: bytes, code: str) -> None:
    with pytest.raises(ClientError) as refused:
        client.invoke(FunctionName=name, Payload=payload)
    assert refused.value.response["Error"]["Code"] == code


def test_an_event_is_tried_three_times_and_then_told(service: LambdaService, client: Any) -> None:
    sent = client.invoke(FunctionName="One", InvocationType="Event", Payload=b'{"raise": "no"}')
    assert sent["StatusCode"] == 202
    lost = service.lost  # type: ignore[attr-defined]
    until_s = time.monotonic() + 20
    while not lost and time.monotonic() < until_s:
        time.sleep(0.02)
    assert lost == [("One", b'{"raise": "no"}')]
    assert service.functions["One"].counts.errors == 3
