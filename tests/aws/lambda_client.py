"""Lambda's Invoke call without Lambda: JSON bytes both ways, and Lambda's payload limit on both."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

# What Lambda takes and gives in a RequestResponse invocation: 6 MB, as its errors count them.
PAYLOAD_BYTES_MAX = 6_291_556


class LambdaClient:
    """Functions by name; a boto3 client of Lambda as far as ranklog uses one."""

    def __init__(self, **functions: Callable[[dict[str, Any]], Any]) -> None:
        self._functions = functions
        self.invocations: list[str] = []

    def invoke(self, FunctionName: str, InvocationType: str, Payload: bytes) -> dict[str, Any]:
        assert InvocationType == "RequestResponse"
        self.invocations.append(FunctionName)
        if len(Payload) > PAYLOAD_BYTES_MAX:
            raise _error("RequestEntityTooLargeException", 413)
        if FunctionName not in self._functions:
            raise _error("ResourceNotFoundException", 404)
        try:
            # The runtime's own rendering: blanks after commas and colons.
            answer = json.dumps(self._functions[FunctionName](json.loads(Payload))).encode()
        except Exception as error:
            return _failed(type(error).__name__, str(error))
        if len(answer) > PAYLOAD_BYTES_MAX:
            return _failed("Function.ResponseSizeTooLarge", f"{len(answer)} bytes")
        return {"StatusCode": 200, "Payload": io.BytesIO(answer)}


def _failed(kind: str, message: str) -> dict[str, Any]:
    payload = json.dumps({"errorType": kind, "errorMessage": message}).encode()
    return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": io.BytesIO(payload)}


def _error(code: str, status: int) -> ClientError:
    response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "Invoke")  # type: ignore[arg-type]
