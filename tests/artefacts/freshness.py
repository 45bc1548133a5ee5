"""How long it takes from PutRecords until a search over the HTTP API shows the line.

Producers put a frame of few lines each some times a second; beside them a reader asks again and again for the
lines since the oldest that it has not seen. A line's time is from the begin of its PutRecords to the end of the
first answer that has it: the reader's own turn and the answer's time are in it. Lines of the first seconds,
whose batch meets functions that were never called, are told apart.

The question is narrow, so that what it costs is not what the run has become: one for all of the run's lines,
whose time grows with its segments until they are compacted, is asked at the end, for a figure of its own.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field

from ranklog.answer.render import render_time
from ranklog.limits import SECOND_NS
from ranklog.model.frame import CallSite
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame, header_hash
from ranklog.stream.kinesis import put_frames
from ranklog.stream.partition import partition_key
from tests.artefacts.stack import Stack
from tests.artefacts.stages import Passage

RUN = "fresh"
PRODUCERS, LINES_A_FRAME, FRAME_EVERY_S, ASK_EVERY_S = 4, 2, 0.4, 0.1
# Until every function was called once.
COLD_S = 5.0
_SITE = CallSite("trainer.py:88", "train_step", "trainer")
# A line that was not seen so long after the last one was put is lost.
_PATIENCE_S = 20.0
# Lines of an answer: what is put in that time, and more.
_LIMIT = 1_000
# Questions for the whole run, each another one, so that none is answered from memory.
_WHOLE = 5
# Of a frame, in the order in which it passes them.
_FRAME_STAGES = _ACCEPTED, _READ, _OUT, _TAKEN = range(4)


@dataclass
class Freshness:
    """Times by line, in seconds; what the reader did meanwhile. `stage_s`: when each frame, by its bytes,
    was accepted by Kinesis, read, sent to the function and taken by it."""

    put_s: dict[str, float] = field(default_factory=dict)
    asked_s: dict[str, float] = field(default_factory=dict)
    seen_s: dict[str, float] = field(default_factory=dict)
    said_ns: dict[str, int] = field(default_factory=dict)  # of those not seen
    frame_of: dict[str, bytes] = field(default_factory=dict)
    stage_s: dict[tuple[int, bytes], float] = field(default_factory=dict)
    frame_bytes: int = 0
    asked: int = 0
    ask_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)

    @property
    def frames(self) -> int:
        """That were put."""
        return len(set(self.frame_of.values()))

    @property
    def lines(self) -> list[Passage]:
        """Those that were seen and put after the first seconds."""
        return [self._passage(text) for text in self.seen_s if not self._is_cold(text)]

    @property
    def cold_s(self) -> float:
        """The longest of the others."""
        cold = (text for text in self.seen_s if self._is_cold(text))
        return max(self._passage(text).lag_s for text in cold)

    @property
    def lost(self) -> int:
        """Lines that were put and not seen."""
        return len(self.put_s) - len(self.seen_s)

    def left_at(self) -> dict[str, int]:
        """Of each line that was not seen, how many stages its frame has passed."""
        return {
            text: sum((stage, self.frame_of[text]) in self.stage_s for stage in _FRAME_STAGES)
            for text in self.said_ns
        }

    def note(self, stage: int, records: list[Record]) -> None:
        """Frames have passed a stage now; what comes again has passed it before."""
        now_s = time.monotonic()
        for record in records:
            self.stage_s.setdefault((stage, record.data), now_s)

    def see(self, text: str, asked_s: float, now_s: float) -> None:
        """An answer has the line."""
        if text not in self.seen_s:
            self.asked_s[text], self.seen_s[text] = asked_s, now_s
            del self.said_ns[text]

    def _is_cold(self, text: str) -> bool:
        return self.put_s[text] < min(self.put_s.values()) + COLD_S

    def _passage(self, text: str) -> Passage:
        frame, seen_s = self.frame_of[text], self.seen_s[text]
        # a batch that an answer shows may be under way still
        passed = (self.stage_s.get((stage, frame), seen_s) for stage in _FRAME_STAGES)
        return Passage(self.put_s[text], (*passed, self.asked_s[text], seen_s))


def measure(stack: Stack, seconds: float) -> Freshness:
    """Put for so long, read until all is seen. The stack's mappings must run."""
    found, done = Freshness(), threading.Event()
    errors: list[BaseException] = []
    for mapping in stack.mappings:
        mapping.on_read = lambda records: found.note(_READ, records)
        mapping.on_out = lambda records: found.note(_OUT, records)
        mapping.on_done = lambda records: found.note(_TAKEN, records)

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
    for number in range(_WHOLE):
        found.whole_s.append(_ask(stack, {"order": "newest", "limit": 400 - number})[0])
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
        now_ns = time.time_ns()
        for i, text in enumerate(texts):
            builder.add(stream, number * LINES_A_FRAME + i, now_ns, 20, _SITE, text)
        frame = builder.build()
        previous = header_hash(frame)
        key, data = partition_key(tenant, RUN, host), encode_frame(frame)
        at_s = time.monotonic()
        for text in texts:
            found.said_ns[text], found.frame_of[text] = now_ns, data
            found.put_s[text] = at_s
        [outcome] = put_frames(client, stack.stream_name, [(key, data)])
        found.note(_ACCEPTED, [Record(data, now_ns, outcome.sequence)])
        found.frame_bytes += len(data)
        if not outcome.accepted:
            raise RuntimeError(f"not put: {outcome.reason}")
        time.sleep(max(0.0, at_s + FRAME_EVERY_S - time.monotonic()))


def _read(
    stack: Stack, found: Freshness, done: threading.Event, errors: list[BaseException]
) -> None:
    try:
        while not done.wait(ASK_EVERY_S):
            since_ns = min(list(found.said_ns.values()), default=time.time_ns() - SECOND_NS)
            asked_s = time.monotonic()
            asked = {"since": render_time(since_ns), "order": "oldest", "limit": _LIMIT}
            took_s, texts = _ask(stack, asked)
            found.asked += 1
            found.ask_s.append(took_s)
            for text in texts:
                found.see(text, asked_s, asked_s + took_s)
    except BaseException as error:
        errors.append(error)


def _ask(stack: Stack, asked: dict[str, object]) -> tuple[float, list[str]]:
    """Seconds, and texts of the run's lines. Raises RuntimeError: no answer."""
    started_s = time.monotonic()
    status, answer = stack.ask("/v1/search", {"query": "", "run": RUN, **asked})
    took_s = time.monotonic() - started_s
    if status == 404:  # the run has not begun
        return took_s, []
    if status != 200:
        raise RuntimeError(f"{status}: {answer}")
    return took_s, [line["text"] for line in answer["lines"]]
