"""One execution environment of a function: a process of the real runtime client behind a Runtime API.

    GET  /2018-06-01/runtime/invocation/next            waits for the next event
    POST /2018-06-01/runtime/invocation/<id>/response   what the handler returned
    POST /2018-06-01/runtime/invocation/<id>/error      what it raised
    POST /2018-06-01/runtime/init/error                 its module could not be imported

As on Lambda, an environment has one event at a time, is killed when the event's time is over, and is gone
when its process ends.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from tests.artefacts.http import HttpServer, Request, Response

_RUNTIME = "/2018-06-01/runtime"
INIT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Invoked:
    """What one invocation came to. `error`: "" or what X-Amz-Function-Error says; the payload is JSON."""

    payload: bytes
    error: str = ""
    started_cold: bool = False
    ms: float = 0.0
    init_ms: float = 0.0


@dataclass(slots=True)
class _Event:
    request_id: str
    payload: bytes
    deadline_ms: int
    outcome: Future[tuple[bytes, str]]


class Worker:
    """Starts with its construction; `invoke` may be called once at a time, until `is_dead`."""

    def __init__(
        self,
        command: list[str | Path],
        cwd: Path,
        environment: Mapping[str, str],
        arn: str,
        log: Path,
    ) -> None:
        self._arn = arn
        self._events: queue.SimpleQueue[_Event | None] = queue.SimpleQueue()
        self._current: _Event | None = None
        self._lock = threading.Lock()
        self._ready: Future[float] = Future()
        self._started = time.perf_counter()
        self._used = False
        self._api = HttpServer(self._answer)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**environment, "AWS_LAMBDA_RUNTIME_API": self._api.address},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._watch = threading.Thread(target=self._wait_for_end, daemon=True)
        self._watch.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        """Whether its process has ended."""
        return self._process.poll() is not None

    @property
    def cpu_s(self) -> float:
        """User and system time of the process so far; 0 where it has ended or there is no /proc."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_ready(self) -> None:
        """Until its module is imported and it asks for its first event. Raises RuntimeError."""
        self._ready.result(INIT_TIMEOUT_S)

    def invoke(self, payload: bytes, timeout_s: float) -> Invoked:
        """One event. A worker whose time is over is killed, as Lambda does it."""
        cold, self._used = not self._used, True
        try:
            init_ms = self._ready.result(INIT_TIMEOUT_S) * 1000
        except Exception as error:
            self.close()
            return Invoked(_error("Runtime.ExitError", str(error)), "Unhandled", cold)
        deadline_ms = int((time.time() + timeout_s) * 1000)
        event = _Event(str(uuid.uuid4()), payload, deadline_ms, Future())
        with self._lock:
            self._current = event
        started = time.perf_counter()
        self._events.put(event)
        if self.is_dead:  # between two events
            self._fail(event, "Runtime.ExitError", "Runtime exited")
        try:
            answer, kind = event.outcome.result(timeout_s)
        except TimeoutError:
            said = f"{event.request_id} Error: Task timed out after {timeout_s:.2f} seconds"
            answer, kind = _error("Sandbox.Timedout", f"RequestId: {said}"), "Unhandled"
            self.close()
        with self._lock:
            self._current = None
        spent_ms = (time.perf_counter() - started) * 1000
        return Invoked(answer, kind, cold, spent_ms, init_ms if cold else 0.0)

    def close(self) -> None:
        """Kill it, if it lives, and wait for its end."""
        if not self.is_dead:
            self._process.kill()
        self._watch.join()

    def _answer(self, request: Request) -> Response | None:
        path = request.path.removeprefix(_RUNTIME)
        if path == "/invocation/next":
            return self._next()
        if path == "/init/error":
            self._resolve_ready(RuntimeError(request.body.decode(errors="replace")))
            return Response(202, b'{"status":"OK"}')
        _, _, request_id, what = (path + "///").split("/")[:4]
        with self._lock:
            event = self._current
        if event is None or event.request_id != request_id or what not in ("response", "error"):
            return Response(400, _error("InvalidRequestID", "no such invocation is under way"))
        if not event.outcome.done():
            event.outcome.set_result((request.body, "Unhandled" if what == "error" else ""))
        return Response(202, b'{"status":"OK"}')

    def _next(self) -> Response | None:
        self._resolve_ready(time.perf_counter() - self._started)
        event = self._events.get()
        if event is None:
            return None
        headers = {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": event.request_id,
            "Lambda-Runtime-Deadline-Ms": str(event.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": self._arn,
            "Lambda-Runtime-Trace-Id": f"Root=1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]};Sampled=0",
        }
        return Response(200, event.payload, headers)

    def _resolve_ready(self, outcome: float | Exception) -> None:
        with self._lock:
            if self._ready.done():
                return
            if isinstance(outcome, Exception):
                self._ready.set_exception(outcome)
            else:
                self._ready.set_result(outcome)

    def _wait_for_end(self) -> None:
        code = self._process.wait()
        why = f"signal: {-code}" if code < 0 else f"exit status {code}"
        self._resolve_ready(RuntimeError(f"Runtime exited with error: {why}"))
        with self._lock:
            event = self._current
        if event is not None:
            self._fail(event, "Runtime.ExitError", f"Runtime exited with error: {why}")
        self._events.put(None)
        self._api.close()

    def _fail(self, event: _Event, kind: str, message: str) -> None:
        with self._lock:
            if not event.outcome.done():
                said = f"RequestId: {event.request_id} Error: {message}"
                event.outcome.set_result((_error(kind, said), "Unhandled"))


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()
