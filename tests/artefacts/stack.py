"""The system of the built template on this machine: real sockets, real runtime client, real layers.

    producer ── PutRecords ─► moto ─ KinesisMapping ─► ingest ─► SeaweedFS (S3) ◄─ scan, query, api
    client ── HTTP ─► HttpApi ─► api ─ Invoke ─► LambdaService ─► scan workers

All listens on loopback only; what it starts is ended by process id.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from ranklog.access.grant import SCOPES
from ranklog.access.manage import create_api_key
from ranklog.store import S3Store
from tests.artefacts.front import HttpApi
from tests.artefacts.lambdas import LambdaFunction, LambdaService
from tests.artefacts.mapping import GivenUp, KinesisMapping, Terms
from tests.artefacts.queues import QueueMapping
from tests.artefacts.s3_proxy import S3Proxy
from tests.artefacts.template import REGION, Template
from tests.artefacts.worker import Invoked
from tests.servers import Server

KEY = "a-key-of-the-artefacts-tests-and-of-nobody-else"
TENANT = "acme"


@dataclass(frozen=True, slots=True)
class Options:
    """How a stack differs from its template. Times and concurrency are by the functions' names."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    concurrency: Mapping[str, int] = field(default_factory=dict)
    timeout_s: Mapping[str, float] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)  # over those of the template
    shards: int = 2
    tenant: str = TENANT
    bucket: str = ""  # one that is there already
    event_waits_s: tuple[float, ...] = (0.2, 0.4)


class Stack:
    """A deployed system, until it is closed. `folder` is its own and is removed with it."""

    def __init__(
        self, built: Path, python: Path, folder: Path, s3: Server, aws: Server, options: Options
    ) -> None:
        self.folder, self.options = folder, options
        self.name = options.bucket or f"ranklog-{uuid.uuid4().hex[:12]}"
        self.s3, self.kinesis = s3.client("s3"), aws.client("kinesis")
        self._sqs = aws.client("sqs")
        self._built = built
        self.lost: list[tuple[str, Invoked | None]] = []
        self._aws = aws
        # What a command of a user needs to reach the bucket.
        self.environment = s3.environment("s3")
        self._ending = ExitStack()
        self._ending.callback(shutil.rmtree, folder, ignore_errors=True)
        for client in (self.s3, self.kinesis, self._sqs):
            self._ending.callback(client.close)
        self._make_resources()
        self.proxy = S3Proxy(s3.url)
        self._ending.callback(self.proxy.close)
        self.template = self._template()
        self.key = self._make_key()
        self.lambdas = self._functions(python, s3, aws)
        self._ending.callback(self.lambdas.close)
        self.api = HttpApi(self.template, self.lambdas)
        self._ending.callback(self.api.close)
        self.mappings: list[KinesisMapping] = []
        self.queues: dict[str, QueueMapping] = {}

    @property
    def store(self) -> S3Store:
        """The bucket, read past the proxy."""
        return S3Store(self.name, "", self.s3)

    def __getitem__(self, name: str) -> LambdaFunction:
        """A function by the first part of its name: `stack["Scan"]`."""
        return self.lambdas.functions[f"{name}Function"]

    def _make_resources(self) -> None:
        """Buckets in the object store; stream and queues in the emulator."""
        where = {"LocationConstraint": REGION}
        self._physical = {
            name: f"{self.name}-{name.lower()}" for name in self._named("AWS::S3::Bucket")
        }
        self._physical["StoreBucket"] = self.name
        for bucket in self._physical.values():
            if bucket != self.options.bucket:
                self.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=where)
        self.stream_name = f"frames-{uuid.uuid4().hex[:12]}"
        self.kinesis.create_stream(StreamName=self.stream_name, ShardCount=self.options.shards)
        self._ending.callback(self.kinesis.delete_stream, StreamName=self.stream_name)
        for name in self._named("AWS::Kinesis::Stream"):
            self._physical[name] = self.stream_name
        self._queues = {}
        for name in self._named("AWS::SQS::Queue"):
            self._physical[name] = f"{name}-{uuid.uuid4().hex[:12]}"
            made = self._sqs.create_queue(QueueName=self._physical[name])
            self._queues[name] = str(made["QueueUrl"])

    def _named(self, kind: str) -> list[str]:
        return Template(self._built / "template.yaml").names(kind)

    def _template(self) -> Template:
        path = self._built / "template.yaml"
        known = Template(path).parameters
        access = {
            "ApiKeyHash": hashlib.sha256(KEY.encode()).hexdigest(),
            "ApiTenant": self.options.tenant,
        }
        parameters = {name: value for name, value in access.items() if name in known}
        parameters |= {n: v for n, v in self.options.parameters.items() if n in known}
        return Template(path, parameters, self._physical, self._queues)

    def _functions(self, python: Path, s3: Server, aws: Server) -> LambdaService:
        options = self.options
        environment = aws.environment("kinesis", "sqs", "sns", "cloudwatch", "sts")
        environment |= {"AWS_ENDPOINT_URL": aws.url, "AWS_ENDPOINT_URL_S3": self.proxy.url}
        functions = {}
        for name, function in self.template.functions().items():
            functions[name] = LambdaFunction(
                function,
                python,
                self.folder / name,
                {**environment, **function.environment, **options.variables},
                options.concurrency.get(name, 4),
                options.timeout_s.get(name),
            )
        service = LambdaService(
            functions,
            waits_s=options.event_waits_s,
            on_failure=lambda n, _, d: self.lost.append((n, d)),
        )
        for one in functions.values():
            one.add_environment({"AWS_ENDPOINT_URL_LAMBDA": service.url})
        return service

    def _make_key(self) -> str:
        """Of the tenant, for everything: in the store, where the API looks for keys there."""
        if "ApiKeyHash" in self.template.parameters:
            return KEY
        key, _ = create_api_key(self.store, self.options.tenant, SCOPES, now_ns=time.time_ns())
        return key

    def start_mappings(self, **changes: Any) -> None:
        """Poll stream and queues for the functions that they trigger; `changes` of the stream's terms."""
        arns = {
            self.template.value({"Fn::GetAtt": f"{n}.Arn"}): url for n, url in self._queues.items()
        }
        for name, function in self.template.functions().items():
            invoke = self.lambdas.functions[name].invoke
            for event in function.events.values():
                own = event.get("Properties", {})
                if event["Type"] == "Kinesis":
                    terms = replace(Terms.read(own), **changes)
                    client = self._aws.client("kinesis")
                    self._ending.callback(client.close)
                    self.mappings.append(
                        KinesisMapping(client, self.stream_name, invoke, terms, self._give_up)
                    )
                elif event["Type"] == "SQS":
                    url, size = arns[own["Queue"]], int(own.get("BatchSize", 10))
                    self.queues[name] = QueueMapping(self._sqs, url, own["Queue"], invoke, size)
        started: list[KinesisMapping | QueueMapping] = [*self.mappings, *self.queues.values()]
        for mapping in started:
            mapping.start()
            self._ending.callback(mapping.close)

    def schedule(self, name: str, event: str) -> Invoked:
        """What the schedule of a function's event would send it, once and waited for."""
        own = self[name].function.events[event]["Properties"]
        return self[name].invoke(own.get("Input", "{}").encode())

    def _give_up(self, lost: GivenUp) -> None:
        """To the bucket that the mapping names, as Lambda does."""
        bucket = next((m.terms.destination for m in self.mappings), "").rpartition(":")[2]
        if not bucket.startswith(self.name):
            return
        info = lost.record["KinesisBatchInfo"]
        day = lost.record["timestamp"][:10]
        key = (
            f"aws/lambda/{self.name}/{info['shardId']}/{day.replace('-', '/')}/{day}-{uuid.uuid4()}"
        )
        self.s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(lost.record).encode())

    def ask(self, path: str, body: dict[str, Any] | None = None, **headers: str) -> tuple[int, Any]:
        """Status and body of a request of the HTTP API: POST with a body, else GET."""
        asked = urllib.request.Request(
            self.api.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
                **headers,
            },
        )
        try:
            with urllib.request.urlopen(asked, timeout=90) as response:
                status, data = response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                status, data = error.code, error.read()
        return status, json.loads(data)

    def query(
        self, path: str, body: dict[str, Any] | None = None, **members: Any
    ) -> dict[str, Any]:
        """An answer of the query function, whatever its status."""
        event = {"tenant": self.options.tenant, "path": path, "body": body, **members}
        event = {name: value for name, value in event.items() if value is not None}
        done = self["Query"].invoke(json.dumps(event).encode())
        if done.error:
            raise RuntimeError(done.payload.decode())
        answer: dict[str, Any] = json.loads(done.payload)
        return answer

    def output(self) -> str:
        """What all workers wrote."""
        logs = (one.log for one in self.lambdas.functions.values())
        return "\n".join(log.read_text() for log in logs if log.is_file())

    def close(self) -> None:
        """End all of it."""
        self._ending.close()

    def __enter__(self) -> Stack:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()
