"""Several processes behind one listening socket, so that questions asked at once use all cores.

Planning and merging are Python: in one process they would wait for each other.
"""

from __future__ import annotations

import os
import threading
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


def answer_requests(
    server: ThreadingHTTPServer, processes: int, stopping: Callable[[], bool]
) -> None:
    """Be one of so many processes that answer, until it is time to stop.

    `server` is bound and was never asked: no thread runs, its handler is built here.
    """
    server.socket.setblocking(False)  # all wake for a connection, and one gets it
    share_cores(processes)

    def stop() -> None:
        if stopping():
            os._exit(0)  # requests of a parent that is gone: nobody restarts us, and nobody waits

    server.service_actions = stop  # type: ignore[method-assign]
    server.serve_forever()
