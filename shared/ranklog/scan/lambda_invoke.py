"""Tasks to the scan function and outcomes back, by Lambda's Invoke call.

An outcome travels as `{"zstd": "<base64>"}`: Lambda's Python runtime renders what a handler returns
with a blank after each comma, which makes a column of small numbers half as long again and would
carry an outcome that fits over Lambda's limit.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import zstandard

from ranklog.errors import Corrupt, TooLarge, Unavailable
from ranklog.limits import PAYLOAD_BYTES_MAX
from ranklog.store.aws import aws_client, translate

# A scan has a deadline of its own, far below; this is for an invocation that never answers.
_READ_TIMEOUT_S = 120.0


class LambdaInvoker:
    """The scatter port over a function that takes a task and returns an outcome, both JSON.

    Threads may share it. `client` is a boto3 client of Lambda. What scatters repeats a task whose
    failure may pass, so the client repeats only what never reached the function (throttling and
    connection errors).
    """

    def __init__(
        self,
        function_name: str,
        client: Any = None,
        *,
        tell: Callable[[bytes], bytes] = bytes,
        told: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`tell` may put something before a task, `told` sees what comes beside an outcome."""
        self._function_name = function_name
        self._tell, self._told = tell, told
        self._client = client or aws_client("lambda", read_timeout_s=_READ_TIMEOUT_S, attempts=2)

    def invoke(self, task: bytes) -> bytes:
        """The outcome of a task. Raises TooLarge, Throttled, Unavailable, NotFound, BadInput."""
        task = self._tell(task)
        _check_size("a task", len(task))
        try:
            answer = self._client.invoke(
                FunctionName=self._function_name, InvocationType="RequestResponse", Payload=task
            )
            payload = bytes(answer["Payload"].read())
        except Exception as error:
            raise translate(error, self._function_name) from error
        if answer.get("FunctionError"):
            raise Unavailable(
                f"{self._function_name}: {_reason(payload)}", hint="see the function's log"
            )
        found, outcome = _unpack(payload)
        if self._told is not None:
            self._told(found)
        return outcome


def pack_outcome(outcome: bytes) -> dict[str, str]:
    """What the scan function returns."""
    packed = zstandard.ZstdCompressor(level=1).compress(outcome)
    return {"zstd": base64.b64encode(packed).decode()}


def unpack_outcome(payload: bytes) -> bytes:
    """The outcome in what the scan function returned. Raises Corrupt, TooLarge."""
    return _unpack(payload)[1]


def _unpack(payload: bytes) -> tuple[dict[str, Any], bytes]:
    """What the scan function returned, and the outcome in it."""
    try:
        found: dict[str, Any] = json.loads(payload)
        packed = base64.b64decode(found["zstd"], validate=True)
        size = zstandard.frame_content_size(packed)
        _check_size("an outcome", size)
        outcome = zstandard.ZstdDecompressor().decompress(packed, max_output_size=max(1, size))
        return found, outcome
    except (ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise Corrupt(
            f"no outcome came back: {payload[:80]!r}", hint="deploy all functions of one release"
        ) from error


def _check_size(what: str, size: int) -> None:
    if size > PAYLOAD_BYTES_MAX:
        raise TooLarge(f"{what} of {size} bytes; Lambda takes {PAYLOAD_BYTES_MAX}")


def _reason(payload: bytes) -> str:
    """What Lambda says of a function that broke: a time-out, its memory, an exception."""
    try:
        found = json.loads(payload)
        return f"{found.get('errorType', 'error')}: {found.get('errorMessage', '')}"[:500]
    except (ValueError, AttributeError):
        return repr(payload[:200])
