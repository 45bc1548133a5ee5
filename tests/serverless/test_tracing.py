"""Traces: a segment to the daemon where the invocation is sampled, and nothing imported where it is not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

CODE = """
import sys
from ranklog.serverless.tracing import annotate, traced
with traced("api"):
    annotate("api", tenant="acme", query_id=None)
print("aws_xray_sdk" in sys.modules)
"""
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled="


def invoke(sampled: int, daemon: str) -> str:
    """A function of its own, as the tracer reads its environment once."""
    environment = os.environ | {
        "AWS_XRAY_DAEMON_ADDRESS": daemon,
        "LAMBDA_TASK_ROOT": "/var/task",
        "_X_AMZN_TRACE_ID": f"{TRACE}{sampled}",
    }
    environment.pop("POWERTOOLS_TRACE_DISABLED", None)
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.sockets
def test_a_sampled_invocation_is_a_segment_with_its_tenant() -> None:
    pytest.importorskip("aws_xray_sdk")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as daemon:
        daemon.bind(("127.0.0.1", 0))
        daemon.settimeout(20)
        assert invoke(1, f"127.0.0.1:{daemon.getsockname()[1]}") == "True"
        sent = json.loads(daemon.recv(65_536).split(b"\n", 1)[1])
    assert (sent["name"], sent["annotations"]) == ("## api", {"tenant": "acme"})
    assert (sent["trace_id"], sent["parent_id"]) == (
        "1-5759e988-bd862e3fe1be46a994272793",
        "53995c3f42cd8ad8",
    )


def test_an_invocation_that_is_not_sampled_imports_no_tracer() -> None:
    assert invoke(0, "127.0.0.1:1") == "False"
