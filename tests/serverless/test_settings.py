"""A function's environment: what it must hold, and how it says what is wrong."""

from __future__ import annotations

import pytest

from ranklog.errors import BadInput
from ranklog.serverless.settings import (
    API_KEYS,
    SCAN_CONCURRENCY,
    SCAN_FUNCTION,
    STORE,
    STREAM,
    FunctionSettings,
    read_settings,
)

HASH = "a" * 64


def test_all_variables_become_values() -> None:
    environment = {
        STORE: " s3://logs/team ",
        SCAN_FUNCTION: "scan",
        STREAM: "frames",
        API_KEYS: f'{{"t": ["{HASH}"], "u": ["{"b" * 64}", "{"c" * 64}"]}}',
        SCAN_CONCURRENCY: "8",
        "UNRELATED": "x",
    }
    assert read_settings(environment, SCAN_FUNCTION, STREAM, API_KEYS) == FunctionSettings(
        store_url="s3://logs/team",
        scan_function="scan",
        kinesis_stream="frames",
        api_keys={"t": (HASH,), "u": ("b" * 64, "c" * 64)},
        scan_concurrency=8,
    )


def test_what_a_function_does_not_need_may_be_absent() -> None:
    assert read_settings({STORE: "s3://logs"}) == FunctionSettings("s3://logs")


@pytest.mark.parametrize("value", [None, "", "  "])
@pytest.mark.parametrize("name", [STORE, SCAN_FUNCTION, STREAM, API_KEYS])
def test_what_is_needed_and_absent_is_named(name: str, value: str | None) -> None:
    environment = dict.fromkeys((STORE, SCAN_FUNCTION, STREAM), "x") | {
        API_KEYS: f'{{"t": ["{HASH}"]}}'
    }
    if value is None:
        del environment[name]
    else:
        environment[name] = value
    with pytest.raises(BadInput, match=name):
        read_settings(environment, SCAN_FUNCTION, STREAM, API_KEYS)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "null",
        "secret-key",
        '{"t": []}',
        f'{{"": ["{HASH}"]}}',
        f'{{"t": "{HASH}"}}',
        '{"t": ["secret-key"]}',
        '{"t": [1]}',
        '{"t": null}',
        f'{{"t": ["{HASH.upper()}"]}}',
    ],
)
def test_keys_that_are_no_hashes_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(BadInput, match=API_KEYS) as raised:
        read_settings({STORE: "s3://logs", API_KEYS: text})
    assert raised.value.hint
    assert "secret-key" not in str(raised.value)


@pytest.mark.parametrize("text", ["0", "65", "-1", "many", "1.5"])
def test_a_concurrency_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=SCAN_CONCURRENCY):
        read_settings({STORE: "s3://logs", SCAN_CONCURRENCY: text})
