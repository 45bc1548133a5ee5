"""Lambda's part: functions with workers that start on demand, and the Invoke call that boto3 makes.

    POST /2015-03-31/functions/<name or ARN>/invocations    X-Amz-Invocation-Type: RequestResponse, Event

Over the concurrency of a function it answers 429, over 6 MB either way what Lambda answers. An Event is
answered at once and tried three times, a wait between; what fails to the end goes to `on_failure`.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from tests.artefacts.http import HttpServer, Request, Response
from tests.artefacts.template import ACCOUNT, REGION, Function
from tests.artefacts.worker import Invoked, Worker
from tests.aws.lambda_client import PAYLOAD_BYTES_MAX

ASYNC_BYTES_MAX = 1_048_576
# What Lambda waits before the second and the third try of an Event; a test need not.
ASYNC_WAITS_S = (60.0, 120.0)
CONCURRENCY_DEFAULT = 10


class Throttled(Exception):
    """All workers of a function are busy."""


@dataclass(slots=True)
class Counts:
    """What one function did; `ms` of its invocations in order, `init_ms` and `first_ms` of cold starts."""

    invocations: int = 0
    cold_starts: int = 0
    errors: int = 0
    throttles: int = 0
    init_ms: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)


class LambdaFunction:
    """One function and its workers. Threads may share it.

    `python` has the runtime client, `environment` the function's variables. `folder` is for each worker's /tmp and its output.
    """

    def __init__(
        self,
        function: Function,
        python: Path,
        folder: Path,
        environment: dict[str, str],
        concurrency: int = CONCURRENCY_DEFAULT,
        timeout_s: float | None = None,
    ) -> None:
        self.function = function
        self.concurrency = concurrency
        self.timeout_s = timeout_s or function.timeout_s
        self.counts = Counts()
        self.log = folder / "log.txt"
        self._python = python
        self._folder = folder
        self._environment = environment
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._all: list[Worker] = []
        self._started = 0
        folder.mkdir(parents=True)
        self._opt = lay_out(function, folder / "opt")

    @property
    def pids(self) -> list[int]:
        """Of the workers that live."""
        with self._lock:
            return [worker.pid for worker in self._all if not worker.is_dead]

    @property
    def cpu_s(self) -> float:
        """Of the workers that live, so far."""
        with self._lock:
            return sum(worker.cpu_s for worker in self._all)

    def add_environment(self, variables: dict[str, str]) -> None:
        """For the workers that start from now on."""
        self._environment = {**self._environment, **variables}

    def invoke(self, payload: bytes) -> Invoked:
        """Run one event. Raises Throttled."""
        worker = self._take()
        try:
            done = worker.invoke(payload, self.timeout_s)
        finally:
            with self._lock:
                if worker.is_dead:
                    self._all.remove(worker)
                else:
                    self._idle.append(worker)
        if not done.error and len(done.payload) > PAYLOAD_BYTES_MAX:
            said = f"Response payload size exceeded maximum allowed payload size ({PAYLOAD_BYTES_MAX} bytes)."
            body = {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": said}
            done = Invoked(json.dumps(body).encode(), "Unhandled", done.started_cold, done.ms)
        with self._lock:
            self._count(done)
        return done

    def warm(self, count: int) -> None:
        """Have so many workers whose module is imported; their first event is still their first."""
        with self._lock:
            added = [self._start() for _ in range(count - len(self._all))]
            self._idle += added
        for worker in added:
            worker.wait_ready()

    def recycle(self) -> None:
        """End the workers that have nothing to do: the next event is a cold start."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._all = [worker for worker in self._all if worker not in idle]
        for worker in idle:
            worker.close()

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            workers, self._all, self._idle = self._all, [], []
        for worker in workers:
            worker.close()

    def _take(self) -> Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()  # the one used last is the warmest
                if not worker.is_dead:
                    return worker
                self._all.remove(worker)
            if len(self._all) >= self.concurrency:
                self.counts.throttles += 1
                raise Throttled(self.function.name)
            return self._start()

    def _start(self) -> Worker:
        """A worker with a /tmp of its own; the caller holds the lock."""
        self._started += 1
        home = self._folder / f"worker-{self._started}"
        home.mkdir()
        name, python = self.function.name, self._python
        environment = {
            **self._environment,
            "XDG_CACHE_HOME": str(
                home
            ),  # the template says /tmp, which is the environment's own there
            "TMPDIR": str(home),
            "LAMBDA_TASK_ROOT": str(self.function.folder),
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self.function.memory_mb),
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "_HANDLER": self.function.handler,
            "PYTHONPATH": f"{self.function.folder}:{self._opt / 'python'}",
            "LANG": "C.UTF-8",
            "PATH": "/usr/bin:/bin",
        }
        command: list[str | Path] = [python, "-s", "-m", "awslambdaric", self.function.handler]
        worker = Worker(command, self.function.folder, environment, self.function.arn, self.log)
        self._all.append(worker)
        return worker

    def _count(self, done: Invoked) -> None:
        self.counts.invocations += 1
        self.counts.errors += bool(done.error)
        self.counts.ms.append(done.ms)
        if done.started_cold:
            self.counts.cold_starts += 1
            self.counts.init_ms.append(done.init_ms)
            self.counts.first_ms.append(done.ms)


def lay_out(function: Function, opt: Path) -> Path:
    """The layers as Lambda lays them into /opt: one over the other, in their order; hard links."""

    def link(source: str, target: str) -> None:
        Path(target).unlink(missing_ok=True)
        try:
            Path(target).hardlink_to(source)
        except OSError:  # another file system
            shutil.copy2(source, target)

    for layer in function.layers:
        shutil.copytree(layer, opt, copy_function=link, dirs_exist_ok=True)
    return opt


class LambdaService:
    """All functions of a stack behind Lambda's endpoint."""

    def __init__(
        self,
        functions: dict[str, LambdaFunction],
        *,
        waits_s: tuple[float, ...] = ASYNC_WAITS_S,
        on_failure: Callable[[str, bytes, Invoked | None], None] | None = None,
    ) -> None:
        self.functions = functions
        self._waits_s = waits_s
        self._on_failure = on_failure
        self._later = ThreadPoolExecutor(16, thread_name_prefix="event")
        self._server = HttpServer(self._answer)

    @property
    def url(self) -> str:
        """For AWS_ENDPOINT_URL_LAMBDA."""
        return self._server.url

    def invoke(self, name: str, payload: bytes) -> Invoked:
        """RequestResponse. Raises Throttled, KeyError."""
        return self.functions[name].invoke(payload)

    def close(self) -> None:
        """Take no calls, end all workers."""
        self._server.close()
        self._later.shutdown(wait=False, cancel_futures=True)
        for function in self.functions.values():
            function.close()

    def _answer(self, request: Request) -> Response:
        _, _, _, named, what = (unquote(part) for part in (request.path + "/////").split("/")[:5])
        name = named.removeprefix(f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:")
        if name not in self.functions or what != "invocations":
            return _refused(404, "ResourceNotFoundException", f"Function not found: {named}")
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        most = ASYNC_BYTES_MAX if kind == "Event" else PAYLOAD_BYTES_MAX
        if len(request.body) > most:
            said = f"{len(request.body)} byte payload is too large, {most} bytes maximum"
            return _refused(413, "RequestEntityTooLargeException", said)
        if kind == "DryRun":
            return Response(204)
        if kind == "Event":
            self._later.submit(self._try, name, request.body)
            return Response(202)
        try:
            done = self.functions[name].invoke(request.body)
        except Throttled:
            return _refused(429, "TooManyRequestsException", "Rate Exceeded.")
        headers = {"Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
        if done.error:
            headers["X-Amz-Function-Error"] = done.error
        return Response(200, done.payload, headers)

    def _try(self, name: str, payload: bytes) -> None:
        """An Event: again after errors, and after throttles for as long as it takes."""
        done = None
        for wait_s in (*self._waits_s, None):
            done = self._unthrottled(name, payload)
            if not done.error:
                return
            if wait_s is not None:
                time.sleep(wait_s)
        if self._on_failure is not None:
            self._on_failure(name, payload, done)

    def _unthrottled(self, name: str, payload: bytes) -> Invoked:
        wait_s = 0.05
        while True:
            try:
                return self.functions[name].invoke(payload)
            except Throttled:
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, 5.0)


def _refused(status: int, kind: str, message: str) -> Response:
    reason = (
        {"Reason": "ReservedFunctionConcurrentInvocationLimitExceeded"} if status == 429 else {}
    )
    body = json.dumps({"Type": "User", "Message": message, "message": message, **reason}).encode()
    return Response(status, body, {"Content-Type": "application/json", "x-amzn-ErrorType": kind})
