"""The environment of a function as values, checked at cold start and named in the error.

    RANKLOG_STORE            s3://bucket[/prefix]                       every function
    RANKLOG_SCAN_FUNCTION    name or ARN of the scan function           query, api
    RANKLOG_STREAM           name of the Kinesis stream of frames       api, canary
    RANKLOG_TASKS            URL of the function's queue of tasks       compact, retention
    RANKLOG_STREAM_RETENTION_HOURS  of that stream: so long, and a week,
                             a rotated ingest key still verifies        ingest; default 168
    RANKLOG_SCAN_CONCURRENCY tasks in flight at once, 1 to 64           query, api, retention; default 64

template.yaml sets them. A Lambda that can't work fails its first invocation with the variable's
name, and not the thousandth with something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ranklog.errors import BadInput
from ranklog.limits import HOUR_NS, SCATTER_CONCURRENCY_MAX, STREAM_RETENTION_NS

STORE = "RANKLOG_STORE"
SCAN_FUNCTION = "RANKLOG_SCAN_FUNCTION"
STREAM = "RANKLOG_STREAM"
TASKS = "RANKLOG_TASKS"
SCAN_CONCURRENCY = "RANKLOG_SCAN_CONCURRENCY"
STREAM_RETENTION = "RANKLOG_STREAM_RETENTION_HOURS"
# Kinesis keeps records for a year at most.
_RETENTION_HOURS_MAX = 8_760


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """What a function is told. A member it did not ask for may be empty."""

    store_url: str
    scan_function: str = ""
    kinesis_stream: str = ""
    tasks_url: str = ""
    scan_concurrency: int = SCATTER_CONCURRENCY_MAX
    stream_retention_ns: int = STREAM_RETENTION_NS


def read_settings(environment: Mapping[str, str], *needed: str) -> FunctionSettings:
    """The settings; `needed` names the variables that this function can't do without.

    Raises BadInput with the variable, what it holds and what it should (never a key or a hash).
    """
    for name in (STORE, *needed):
        if not environment.get(name, "").strip():
            raise BadInput(f"{name} is not set", hint="template.yaml sets it; redeploy the stack")
    return FunctionSettings(
        store_url=environment[STORE].strip(),
        scan_function=environment.get(SCAN_FUNCTION, "").strip(),
        kinesis_stream=environment.get(STREAM, "").strip(),
        tasks_url=environment.get(TASKS, "").strip(),
        scan_concurrency=_parse_concurrency(environment.get(SCAN_CONCURRENCY, "").strip()),
        stream_retention_ns=_parse_retention(environment.get(STREAM_RETENTION, "").strip()),
    )


def _parse_concurrency(text: str) -> int:
    if not text:
        return SCATTER_CONCURRENCY_MAX
    if not text.isdecimal() or not 1 <= int(text) <= SCATTER_CONCURRENCY_MAX:
        raise BadInput(
            f"{SCAN_CONCURRENCY} is {text!r}", hint=f"a number from 1 to {SCATTER_CONCURRENCY_MAX}"
        )
    return int(text)


def _parse_retention(text: str) -> int:
    if not text:
        return STREAM_RETENTION_NS
    if not text.isdecimal() or not 1 <= int(text) <= _RETENTION_HOURS_MAX:
        raise BadInput(
            f"{STREAM_RETENTION} is {text!r}", hint=f"hours, from 1 to {_RETENTION_HOURS_MAX}"
        )
    return int(text) * HOUR_NS
