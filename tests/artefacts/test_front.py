"""Routes, throttling and authorizer of the HTTP API, over functions of the test."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.artefacts.front import HttpApi
from tests.artefacts.template import Template
from tests.artefacts.worker import Invoked

TEXT = """
Resources:
  Api:
    Type: AWS::Serverless::HttpApi
    Properties:
      Auth:
        DefaultAuthorizer: Keys
        Authorizers:
          Keys:
            FunctionArn: !GetAtt KeysFunction.Arn
            Identity: { Headers: [Authorization], ReauthorizeEvery: 60 }
      RouteSettings:
        "GET /limited": { ThrottlingRateLimit: 0.001, ThrottlingBurstLimit: 2 }
  KeysFunction:
    Type: AWS::Serverless::Function
    Properties: { CodeUri: a, Handler: app.handler }
  OneFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: b
      Handler: app.handler
      Events:
        Any: { Type: HttpApi, Properties: { Method: ANY, Path: "/v1/{proxy+}" } }
        Frames: { Type: HttpApi, Properties: { Method: POST, Path: /v1/frames } }
        Open: { Type: HttpApi, Properties: { Method: GET, Path: /open, Auth: { Authorizer: NONE } } }
        Limited: { Type: HttpApi, Properties: { Method: GET, Path: /limited, Auth: { Authorizer: NONE } } }
"""


class Functions:
    """Both functions: keys that begin with `good` are let in; the other says what it was given."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.answer: dict[str, Any] | None = None

    def invoke(self, name: str, payload: bytes) -> Invoked:
        event = json.loads(payload)
        if name == "KeysFunction":
            key = event["headers"]["authorization"]
            self.asked.append(key)
            good = {"isAuthorized": key.startswith("good"), "context": {"tenant": key[4:]}}
            return Invoked(json.dumps(good).encode())
        self.events.append(event)
        if self.answer is None:
            return Invoked(b'{"errorType": "Boom"}', "Unhandled")
        return Invoked(json.dumps(self.answer).encode())


@pytest.fixture
def functions() -> Functions:
    return Functions()


@pytest.fixture
def api(tmp_path: Path, functions: Functions) -> Iterator[HttpApi]:
    (tmp_path / "template.yaml").write_text(TEXT)
    made = HttpApi(Template(tmp_path / "template.yaml"), functions)  # type: ignore[arg-type]
    functions.answer = {"statusCode": 201, "headers": {"X-Is": "ours"}, "body": "größer"}
    yield made
    made.close()


def call(api: HttpApi, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    asked = urllib.request.Request(api.url + path, body, {"Authorization": "good1", **headers})
    try:
        with urllib.request.urlopen(asked, timeout=10) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_a_request_becomes_an_event_and_its_answer_a_response(
    api: HttpApi, functions: Functions
) -> None:
    answer = call(
        api, "/v1/runs/a%20b?x=1&x=2&y=", b'{"q": 1}', **{"Content-Type": "application/json"}
    )
    assert answer == (201, "größer".encode())
    [event] = functions.events
    assert (event["routeKey"], event["rawPath"], event["body"]) == (
        "ANY /v1/{proxy+}",
        "/v1/runs/a b",
        '{"q": 1}',
    )
    assert event["queryStringParameters"] == {"x": "1,2", "y": ""}
    assert event["pathParameters"] == {"proxy": "runs/a b"}
    assert event["requestContext"]["authorizer"] == {"lambda": {"tenant": "1"}}
    assert event["requestContext"]["http"]["method"] == "POST"


def test_bytes_go_in_base64_and_come_back_from_it(api: HttpApi, functions: Functions) -> None:
    functions.answer = {"body": base64.b64encode(b"\xff\0").decode(), "isBase64Encoded": True}
    answer = call(api, "/v1/frames", b"\0\xff", **{"Content-Type": "application/octet-stream"})
    assert answer == (200, b"\xff\0")
    [event] = functions.events
    assert (event["routeKey"], event["isBase64Encoded"]) == ("POST /v1/frames", True)
    assert base64.b64decode(event["body"]) == b"\0\xff"


def test_the_authorizer_is_asked_once_for_a_key_and_never_for_an_open_route(
    api: HttpApi, functions: Functions
) -> None:
    for _ in range(3):
        assert call(api, "/v1/a")[0] == call(api, "/open", Authorization="bad")[0] == 201
    assert functions.asked == ["good1"]
    assert call(api, "/v1/a", Authorization="bad")[0] == 403
    assert call(api, "/v1/a", Authorization="")[0] == 401
    assert "authorizer" not in functions.events[1]["requestContext"]


@pytest.mark.parametrize(("path", "status"), [("/v2", 404), ("/v1/", 404)])
def test_what_no_route_takes_is_not_found(api: HttpApi, path: str, status: int) -> None:
    assert call(api, path)[0] == status


def test_a_route_over_its_rate_answers_429(api: HttpApi) -> None:
    assert [call(api, "/limited")[0] for _ in range(4)] == [201, 201, 429, 429]
    assert call(api, "/open")[0] == 201


def test_a_function_that_fails_is_a_500_without_its_words(
    api: HttpApi, functions: Functions
) -> None:
    functions.answer = None
    assert call(api, "/open") == (500, b'{"message": "Internal Server Error"}')
