"""How long it takes from PutRecords until a search over the HTTP API shows the line.

Producers put a frame of few lines each some times a second; beside them a reader asks for the newest lines
again and again. A line's time is from the begin of its PutRecords to the end of the first answer that has it:
the reader's own turn and the answer's time are in it. Lines of the first seconds, whose batch meets functions
that were never called, are told apart.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field

from ranklog.model.frame import CallSite
from ranklog.model.stream import Stream
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame, header_hash
from ranklog.stream.kinesis import put_frames
from ranklog.stream.partition import partition_key
from tests.artefacts.stack import Stack

RUN = "fresh"
PRODUCERS, LINES_A_FRAME, FRAME_EVERY_S, ASK_EVERY_S = 4, 2, 0.4, 0.1
# Until every function was called once.
COLD_S = 5.0
_SITE = CallSite("trainer.py:88", "train_step", "trainer")
# A line that was not seen so long after the last one was put is lost.
_PATIENCE_S = 20.0


@dataclass
class Freshness:
    """Times by line, in seconds; what the reader did meanwhile."""

    put_s: dict[str, float] = field(default_factory=dict)
    seen_s: dict[str, float] = field(default_factory=dict)
    frames: int = 0
    frame_bytes: int = 0
    asked: int = 0
    ask_s: list[float] = field(default_factory=list)

    @property
    def lags_s(self) -> list[float]:
        """Of each line that was seen and put after the first seconds, in order of size."""
        warm_s = min(self.put_s.values()) + COLD_S
        return sorted(self._lag(text) for text in self.seen_s if self.put_s[text] >= warm_s)

    @property
    def cold_s(self) -> float:
        """The longest of the others."""
        warm_s = min(self.put_s.values()) + COLD_S
        return max(self._lag(text) for text in self.seen_s if self.put_s[text] < warm_s)

    def _lag(self, text: str) -> float:
        return self.seen_s[text] - self.put_s[text]

    @property
    def lost(self) -> int:
        """Lines that were put and not seen."""
        return len(self.put_s) - len(self.seen_s)


def measure(stack: Stack, seconds: float) -> Freshness:
    """Put for so long, read until all is seen. The stack's mappings must run."""
    found, done = Freshness(), threading.Event()
    errors: list[BaseException] = []

    def produce(rank: int) -> None:
        try:
            _produce(stack, rank, time.monotonic() + seconds, found)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=produce, args=(rank,)) for rank in range(PRODUCERS)]
    reader = threading.Thread(target=_read, args=(stack, found, done, errors))
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join()
    until_s = time.monotonic() + _PATIENCE_S
    while found.lost and time.monotonic() < until_s and reader.is_alive():
        time.sleep(0.1)
    done.set()
    reader.join()
    if errors:
        raise errors[0]
    return found


def _produce(stack: Stack, rank: int, until_s: float, found: Freshness) -> None:
    host = f"gpu-{rank:02d}"
    tenant = stack.options.tenant
    stream = Stream(tenant, RUN, "1", 0, host, rank, 0, "logging", f"{rank:x}")
    client, previous = stack.kinesis, ""
    for number in itertools.count():
        if time.monotonic() >= until_s:
            return
        builder = FrameBuilder(tenant, f"{rank:016x}", number, previous)
        texts = [f"rank {rank} says {number * LINES_A_FRAME + i}" for i in range(LINES_A_FRAME)]
        for i, text in enumerate(texts):
            builder.add(stream, number * LINES_A_FRAME + i, time.time_ns(), 20, _SITE, text)
        frame = builder.build()
        previous = header_hash(frame)
        at_s = time.monotonic()
        found.put_s |= dict.fromkeys(texts, at_s)
        key, data = partition_key(tenant, RUN, host), encode_frame(frame)
        [outcome] = put_frames(client, stack.stream_name, [(key, data)])
        found.frames, found.frame_bytes = found.frames + 1, found.frame_bytes + len(data)
        if not outcome.accepted:
            raise RuntimeError(f"not put: {outcome.reason}")
        time.sleep(max(0.0, at_s + FRAME_EVERY_S - time.monotonic()))


def _read(
    stack: Stack, found: Freshness, done: threading.Event, errors: list[BaseException]
) -> None:
    body = {"query": "", "run": RUN, "order": "newest", "limit": 400}
    try:
        while not done.wait(ASK_EVERY_S):
            started_s = time.monotonic()
            status, answer = stack.ask("/v1/search", body)
            now_s = time.monotonic()
            found.asked += 1
            found.ask_s.append(now_s - started_s)
            if status == 404:  # the run has not begun
                continue
            if status != 200:
                raise RuntimeError(f"{status}: {answer}")
            for line in answer["lines"]:
                found.seen_s.setdefault(line["text"], now_s)
    except BaseException as error:
        errors.append(error)
