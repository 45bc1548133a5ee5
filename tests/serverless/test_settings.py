"""A function's environment: what it must hold, and how it says what is wrong."""

from __future__ import annotations

import pytest

from ranklog.errors import BadInput
from ranklog.serverless.settings import (
    SCAN_CONCURRENCY,
    SCAN_FUNCTION,
    STORE,
    STREAM,
    TASKS,
    FunctionSettings,
    read_settings,
)


def test_all_variables_become_values() -> None:
    environment = {
        STORE: " s3://logs/team ",
        SCAN_FUNCTION: "scan",
        STREAM: "frames",
        TASKS: "https://sqs/tasks",
        SCAN_CONCURRENCY: "8",
        "UNRELATED": "x",
    }
    assert read_settings(environment, SCAN_FUNCTION, STREAM, TASKS) == FunctionSettings(
        store_url="s3://logs/team",
        scan_function="scan",
        kinesis_stream="frames",
        tasks_url="https://sqs/tasks",
        scan_concurrency=8,
    )


def test_what_a_function_does_not_need_may_be_absent() -> None:
    assert read_settings({STORE: "s3://logs"}) == FunctionSettings("s3://logs")


@pytest.mark.parametrize("value", [None, "", "  "])
@pytest.mark.parametrize("name", [STORE, SCAN_FUNCTION, STREAM, TASKS])
def test_what_is_needed_and_absent_is_named(name: str, value: str | None) -> None:
    environment = dict.fromkeys((STORE, SCAN_FUNCTION, STREAM, TASKS), "x")
    if value is None:
        del environment[name]
    else:
        environment[name] = value
    with pytest.raises(BadInput, match=name):
        read_settings(environment, SCAN_FUNCTION, STREAM, TASKS)


@pytest.mark.parametrize("text", ["0", "65", "-1", "many", "1.5"])
def test_a_concurrency_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=SCAN_CONCURRENCY):
        read_settings({STORE: "s3://logs", SCAN_CONCURRENCY: text})
