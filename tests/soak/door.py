"""What agents send to: `POST /v1/frames` before a stream on disk, with faults as a network has them."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from ranklog.stream.disk import DiskStream
from tests.servers import answering

# What happens to a frame, and how often of a hundred.
FAULTS = {
    "503": 6,  # not taken
    "429": 3,  # not taken, and when to come again
    "lost": 4,  # taken, and the answer never arrives
    "reset": 3,  # not taken, the connection breaks
    "twice": 4,  # delivered twice
    "slow": 3,
}


class Door:
    """`share`: 1 as above, 0 none. Counts what was done."""

    def __init__(self, seed: int) -> None:
        self.share = 1.0
        self.done: Counter[str] = Counter()
        self._draw = random.Random(seed)
        self._lock = threading.Lock()

    def fault(self) -> str:
        """What happens to the next frame."""
        with self._lock:
            drawn, found = self._draw.uniform(0, 100), "taken"
            for name, percent in FAULTS.items():
                drawn -= percent * self.share
                if drawn < 0:
                    found = name
                    break
            self.done[found] += 1
            return found


@contextmanager
def opened(door: Door, folder: Path) -> Iterator[str]:
    """The address of a server before the stream in the folder."""
    stream = DiskStream(folder, sync=False)

    class Frames(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data, fault = self.rfile.read(int(self.headers["Content-Length"])), door.fault()
            if fault == "slow":
                time.sleep(0.3)
            if fault not in ("503", "429", "reset"):
                for _ in range(2 if fault == "twice" else 1):
                    stream.put("", data)
            if fault in ("reset", "lost"):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(int(fault) if fault in ("503", "429") else 202)
            if fault == "429":
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with answering(Frames) as url:
        yield url
