"""A whole stack on this machine: `sam build`, then `sam deploy` into ministack, an emulator of CloudFormation and more.

What ministack can't do is done here, or left out, and named in LEFT_OUT and `add_routes`: docs/aws.md tells what a
deployment into it proves. It runs the functions from their built layers, as processes of Python 3.13.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.aws.stack import ROOT, read_template, routes
from tests.aws.tools import path_variable, program
from tests.servers import REGION, Server, _started, free_ports

STACK = "ranklog"
# Alarms over an expression of several metrics: ministack knows alarms over one.
LEFT_OUT = ("ApiAnswersPartial", "QueryAnswersPartial", "LinesAreLate")
_START_TIMEOUT_S = 60


@dataclass(frozen=True)
class Deployed:
    """A stack that is there, its services behind one address."""

    server: Server

    def client(self, service: str) -> Any:
        return self.server.client(service)

    @cached_property
    def outputs(self) -> dict[str, str]:
        [stack] = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {item["OutputKey"]: item["OutputValue"] for item in stack["Outputs"]}

    @cached_property
    def resources(self) -> dict[str, str]:
        """Logical name -> physical name."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        return {
            item["LogicalResourceId"]: item["PhysicalResourceId"]
            for page in pages.paginate(StackName=STACK)
            for item in page["StackResourceSummaries"]
        }

    def invoke(self, function: str, event: Any) -> Any:
        """A function's answer. Raises AssertionError with what it says where it breaks."""
        answer = self.client("lambda").invoke(
            FunctionName=self.resources[f"{function}Function"], Payload=json.dumps(event)
        )
        said = json.loads(answer["Payload"].read())
        assert not answer.get("FunctionError"), said
        return said

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        key: str | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, bytes]:
        """Status and body of the HTTP API."""
        host = f"{self.resources['HttpApi']}.execute-api.localhost"
        headers = {"Host": host, "Content-Type": content_type}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        asked = urllib.request.Request(self.server.url + path, body, headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(asked, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def add_routes(self) -> None:
        """ministack makes an HTTP API without what its OpenAPI document says: routes and authorizer."""
        gateway, api = self.client("apigatewayv2"), self.resources["HttpApi"]
        uri = f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions/{{}}/invocations"
        arn = {name: self._arn(name) for name in ("Api", "Authorizer")}
        authorizer = gateway.create_authorizer(
            ApiId=api,
            AuthorizerType="REQUEST",
            Name="Keys",
            IdentitySource=["$request.header.Authorization"],
            AuthorizerPayloadFormatVersion="2.0",
            EnableSimpleResponses=True,
            AuthorizerResultTtlInSeconds=15,
            AuthorizerUri=uri.format(arn["Authorizer"]),
        )["AuthorizerId"]
        integration = gateway.create_integration(
            ApiId=api,
            IntegrationType="AWS_PROXY",
            IntegrationUri=arn["Api"],
            PayloadFormatVersion="2.0",
        )["IntegrationId"]
        for route in routes(read_template()):
            guard = {} if route.public else {"AuthorizationType": "CUSTOM"}
            guard |= {} if route.public else {"AuthorizerId": authorizer}
            target = f"integrations/{integration}"
            gateway.create_route(ApiId=api, RouteKey=route.key, Target=target, **guard)

    def _arn(self, function: str) -> str:
        found = self.client("lambda").get_function(
            FunctionName=self.resources[f"{function}Function"]
        )
        return str(found["Configuration"]["FunctionArn"])


@contextmanager
def deployed(folder: Path) -> Iterator[Deployed]:
    """Build, deploy into a fresh ministack, and end it."""
    build = folder / "build"
    _sam("build", "--build-dir", str(build), "--base-dir", str(ROOT), cwd=folder)
    template = build / "emulated.yaml"
    template.write_text(_emulated((build / "template.yaml").read_text()))
    with running_ministack(folder) as server:
        words = ("--template-file", str(template), "--stack-name", STACK, "--region", REGION)
        flags = ("--resolve-s3", "--no-progressbar", "--no-confirm-changeset")
        environment = server.environment() | {"AWS_ENDPOINT_URL": server.url}
        capabilities = ("--capabilities", "CAPABILITY_IAM")
        _sam("deploy", *words, *flags, *capabilities, cwd=folder, environment=environment)
        stack = Deployed(server)
        stack.add_routes()
        yield stack


@contextmanager
def running_ministack(folder: Path) -> Iterator[Server]:
    """The emulator on a free port of loopback."""
    (port,) = free_ports(1)
    command = [str(program("ministack"))]
    settings = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "PATH": path_variable(),
        "AWS_SAM_TRANSLATOR_TELEMETRY": "0",
    }
    server = Server("ministack", f"http://127.0.0.1:{port}")
    (folder / "ministack").mkdir()
    with _started(command, folder / "ministack", settings):
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                server.client("s3", connect_timeout=1, read_timeout=5).list_buckets()
                break
            except Exception as error:
                if time.monotonic() > deadline:
                    raise TimeoutError("ministack did not start") from error
                time.sleep(0.2)
        yield server


def _emulated(template: str) -> str:
    """A built template without what LEFT_OUT names."""
    for name in LEFT_OUT:
        template, found = re.subn(rf"(?m)^  {name}:\n(?:    .*\n|\n)+", "", template)
        assert found == 1, name
    return template


def _sam(*words: str, cwd: Path, environment: dict[str, str] | None = None) -> None:
    settings = {
        "PATH": path_variable(),
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "1",  # seconds between two looks at a change set
        "HOME": str(cwd),  # no settings of whoever runs the tests
        "NO_PROXY": "127.0.0.1",
    }
    template = () if "--template-file" in words else ("--template-file", f"{ROOT}/template.yaml")
    done = subprocess.run(
        [str(program("sam")), *words, *template],
        cwd=cwd,
        env=os.environ | settings | (environment or {}),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
