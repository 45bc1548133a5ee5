"""The scatter port over Lambda: payloads, their limit, and what a broken function becomes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from ranklog.errors import (
    BadInput,
    Corrupt,
    NotFound,
    RanklogError,
    Throttled,
    TooLarge,
    Unavailable,
)
from ranklog.limits import PAYLOAD_BYTES_MAX
from ranklog.scan.lambda_invoke import LambdaInvoker, pack_outcome, unpack_outcome


class FakeLambda:
    """Answers Invoke with what it was given."""

    def __init__(self, answer: bytes | Exception, error: str | None = None) -> None:
        self.answer = answer
        self.error = error
        self.calls: list[dict[str, Any]] = []

    def invoke(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        if isinstance(self.answer, Exception):
            raise self.answer
        extra = {"FunctionError": self.error} if self.error else {}
        return {"StatusCode": 200, "Payload": io.BytesIO(self.answer), **extra}


def as_lambda_renders(outcome: bytes) -> bytes:
    """Lambda's Python runtime renders what the handler returns with json.dumps' defaults."""
    return json.dumps(pack_outcome(outcome)).encode()


def test_a_task_goes_out_as_it_is_and_its_outcome_comes_back() -> None:
    client = FakeLambda(as_lambda_renders('{"tag":"ok","é":[1,2]}'.encode()))
    assert (
        LambdaInvoker("scan", client).invoke(b'{"version":1}') == '{"tag":"ok","é":[1,2]}'.encode()
    )
    assert client.calls == [
        {
            "FunctionName": "scan",
            "InvocationType": "RequestResponse",
            "Payload": b'{"version":1}',
        }
    ]


@given(st.binary())
def test_an_outcome_is_packed_and_unpacked(outcome: bytes) -> None:
    assert unpack_outcome(as_lambda_renders(outcome)) == outcome


def test_columns_of_small_numbers_fit_that_rendered_would_not() -> None:
    numbers = [number % 10 for number in range(2_400_000)]
    outcome = json.dumps(numbers, separators=(",", ":")).encode()
    assert len(outcome) < PAYLOAD_BYTES_MAX < len(json.dumps(numbers))
    assert len(as_lambda_renders(outcome)) < PAYLOAD_BYTES_MAX / 10


def test_a_task_over_the_payload_limit_is_not_sent() -> None:
    client = FakeLambda(b"")
    with pytest.raises(TooLarge, match=str(PAYLOAD_BYTES_MAX)):
        LambdaInvoker("scan", client).invoke(b"x" * (PAYLOAD_BYTES_MAX + 1))
    assert client.calls == []


def test_an_outcome_that_unpacks_over_the_limit_is_refused() -> None:
    packed = as_lambda_renders(b"0" * (PAYLOAD_BYTES_MAX + 1))
    with pytest.raises(TooLarge):
        LambdaInvoker("scan", FakeLambda(packed)).invoke(b"{}")


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"null", b"{}", b'{"zstd":"?"}', b'{"zstd":"AAAA"}']
)
def test_another_answer_is_corrupt(payload: bytes) -> None:
    with pytest.raises(Corrupt):
        LambdaInvoker("scan", FakeLambda(payload)).invoke(b"{}")


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b'{"errorMessage": "2026-01-01 Task timed out after 60.00 seconds"}', "timed out"),
        (b'{"errorType": "Runtime.ExitError", "errorMessage": "signal: killed"}', "ExitError"),
        (b"nonsense", "nonsense"),
    ],
)
def test_a_function_that_broke_is_unavailable_with_its_reason(payload: bytes, words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        LambdaInvoker("scan", FakeLambda(payload, "Unhandled")).invoke(b"{}")


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("TooManyRequestsException", 429, Throttled),
        ("ServiceException", 500, Unavailable),
        ("ResourceNotFoundException", 404, NotFound),
        ("AccessDeniedException", 403, BadInput),
        ("RequestTooLargeException", 413, TooLarge),
    ],
)
def test_a_call_that_failed_is_one_of_our_errors(
    code: str, status: int, error: type[RanklogError]
) -> None:
    response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    with pytest.raises(error):
        failure = ClientError(response, "Invoke")  # type: ignore[arg-type]
        LambdaInvoker("scan", FakeLambda(failure)).invoke(b"{}")


def test_no_answer_in_time_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        LambdaInvoker("scan", FakeLambda(ReadTimeoutError(endpoint_url="x"))).invoke(b"{}")
