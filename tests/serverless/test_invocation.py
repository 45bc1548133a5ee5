"""Around a handler: every line says whose it is, and no line holds the text of an exception."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from ranklog.errors import BadInput, Corrupt
from ranklog.serverless.invocation import Failed, function_logger, invocation
from ranklog.serverless.tracing import is_traced
from tests.aws.conftest import Context

SECRET = "hunter2-in-a-line"
Handler = Callable[[dict[str, Any], Any], Any]


@pytest.fixture
def service() -> str:
    name = "a-test"
    logging.Logger.manager.loggerDict.pop(name, None)  # Powertools keeps its output by name
    return name


def entries(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    out = capsys.readouterr().out
    assert SECRET not in out
    return [json.loads(line) for line in out.splitlines()]


def test_each_line_names_tenant_run_and_query_of_its_own_invocation(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = function_logger(service)

    @invocation(logger)
    def handler(event: dict[str, Any], context: Any) -> None:
        logger.info("before")
        logger.append_keys(**event)
        logger.info("known")

    handler({"tenant": "acme", "run": "llama@1", "query_id": "q1"}, Context("f"))
    handler({}, Context("f"))
    found = [(e["tenant"], e["run"], e["query_id"]) for e in entries(capsys)]
    nobody = (None, None, None)
    assert found == [nobody, ("acme", "llama@1", "q1"), nobody, nobody]


def test_an_exception_is_told_by_its_type_and_place_and_raised_without_its_text(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @invocation(function_logger(service))
    def handler(event: dict[str, Any], context: Any) -> None:
        try:
            raise Corrupt(f"cause: {SECRET}")
        except Corrupt as error:
            error.add_note(SECRET)
            raise ValueError(SECRET) from error

    with pytest.raises(Failed, match="ValueError") as raised:
        handler({}, Context("f"))
    assert SECRET not in repr(raised.getrepr(style="short"))
    assert raised.value.__cause__ is raised.value.__context__ is None
    [entry] = entries(capsys)
    assert (entry["message"], entry["exception_name"]) == ("failed", "ValueError")
    assert "test_invocation.py" in entry["exception"] and "in handler" in entry["exception"]


def test_what_is_wrong_with_an_event_is_told_to_who_sent_it(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @invocation(function_logger(service))
    def handler(event: dict[str, Any], context: Any) -> None:
        raise BadInput("no event of ours", hint="send another")

    with pytest.raises(BadInput, match="no event of ours"):
        handler({}, Context("f"))
    assert [entry["message"] for entry in entries(capsys)] == ["refused"]


def test_what_ranklog_itself_logs_goes_the_same_way(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = function_logger(service)

    @invocation(logger)
    def handler(event: dict[str, Any], context: Any) -> None:
        logger.append_keys(tenant="acme")
        try:
            raise KeyError(SECRET)
        except KeyError:
            logging.getLogger("ranklog.api.resolver").exception("a request failed")

    handler({}, Context("f"))
    [entry] = entries(capsys)
    assert (entry["message"], entry["tenant"]) == ("a request failed", "acme")


SAMPLED = {
    "_X_AMZN_TRACE_ID": "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
    "AWS_XRAY_DAEMON_ADDRESS": "169.254.79.129:2000",
}


@pytest.mark.parametrize(
    ("changes", "traced"),
    [
        ({}, True),
        ({"_X_AMZN_TRACE_ID": "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0"}, False),
        ({"_X_AMZN_TRACE_ID": ""}, False),
        ({"AWS_XRAY_DAEMON_ADDRESS": ""}, False),
        ({"POWERTOOLS_TRACE_DISABLED": "true"}, False),
    ],
)
def test_only_an_invocation_that_is_sampled_is_traced(
    changes: dict[str, str], traced: bool
) -> None:
    pytest.importorskip("aws_xray_sdk")
    assert is_traced(SAMPLED | changes) is traced
