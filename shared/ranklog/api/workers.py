"""Several processes behind one listening socket, so that questions asked at once use all cores.

Planning and merging are Python: in one process they would wait for each other. The parent answers
nothing; it starts workers, starts one again that something killed, and ends them when it is ended.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from typing import Any

from ranklog.api.serve import Handler
from ranklog.client.reader import share_cores

# By default two workers per core, each with one question at a time: two questions in one process take
# turns of Python's lock and are done later. Each keeps indexes and results of its own, so no more
# than this.
WORKERS_PER_CORE = 2
WORKERS_DEFAULT_MAX = 8
WORKERS_MAX = 64
# Before a worker that was killed is started again.
RESTART_S = 1.0


def workers_default() -> int:
    """How many workers this machine gets unless told."""
    if not hasattr(os, "fork"):
        return 1
    return min(WORKERS_PER_CORE * (os.cpu_count() or 1), WORKERS_DEFAULT_MAX)


def built_when_asked(build: Callable[[], Handler]) -> Handler:
    """A handler that each process builds at its first request: clients and threads survive no fork."""
    lock = threading.Lock()
    built: list[Handler] = []

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        with lock:
            if not built:
                built.append(build())
        return built[0](event, context)

    return handler


def serve_in_processes(server: ThreadingHTTPServer, count: int) -> None:
    """Serve until SystemExit or KeyboardInterrupt is raised here; then every worker is ended.

    `server` is bound and was never asked: no thread runs, its handler is built in the workers.
    """
    server.socket.setblocking(False)  # all workers wake for a connection, and one gets it
    workers = {_start(server, count) for _ in range(count)}
    try:
        while True:
            pid, _ = os.wait()
            if pid in workers:
                workers.discard(pid)
                time.sleep(RESTART_S)
                workers.add(_start(server, count))
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGTERM)
        for pid in workers:
            os.waitpid(pid, 0)


def _start(server: ThreadingHTTPServer, count: int) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who ends us
        share_cores(count)
        server.service_actions = lambda: _end_with(parent)  # type: ignore[method-assign]
        server.serve_forever()
        code = 0
    finally:
        os._exit(code)


def _end_with(parent: int) -> None:
    """Looked at between requests: nobody is left behind by a parent that was killed."""
    if os.getppid() != parent:
        os._exit(0)
