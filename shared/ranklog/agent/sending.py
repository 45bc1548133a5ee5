"""Sends what the agent's log holds, in order; what fails waits there, what is refused is set aside.

Full-jitter backoff: after the n-th failure in a row a wait drawn evenly from 0 to twice the one
before, at most RETRY_MAX_S, but never shorter than what the other side asked for.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from ranklog.agent.refused import BYTES_MAX, RefusedFrames
from ranklog.agent.rows import KEPT
from ranklog.agent.sinks import Denied, EachSink, Frame, Outcome, SingleSink, Sink, is_refused
from ranklog.agent.wal import Pending, Place, State, Wal
from ranklog.errors import RanklogError, Unavailable

RETRY_FIRST_S, RETRY_MAX_S = 0.1, 30.0
# What is sent of streams that flood while others wait: as much as goes through in that time, at most.
FLOOD_TURN_S, FLOOD_BATCH_BYTES = 0.2, 512 << 10


class Sender:
    """`step` does one round; it is called by one thread. What it did is read by others."""

    def __init__(
        self,
        wal: Wal,
        sink: Sink | SingleSink,
        refused_folder: Path,
        *,
        refused_bytes_max: int = BYTES_MAX,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._wal = wal
        self._sink: Sink = sink if isinstance(sink, Sink) else EachSink(sink)
        self.kept = RefusedFrames(refused_folder, bytes_max=refused_bytes_max)
        self._clock = clock
        self._draw = draw
        self._failures = 0
        self._floods_turn = True
        self._bytes_per_s = 0.0  # of the last round
        self._waiting_since: float | None = None
        self._urged: Place = (0, 0)
        # State changes of blocks that are delivered; whoever reads them takes them out.
        self.delivered: deque[tuple[tuple[int, int], State]] = deque()
        self.urgent_first = False  # what is kept longest goes first: there is little time
        self.retry_at = 0.0
        self.failing_since: float | None = None
        self.last_error = ""
        self.denied = ""  # why nothing goes until somebody does something
        self.last_sent_at: float | None = None  # wall clock
        self.frames_sent = self.bytes_sent = self.refused = 0

    def step(self, *, hurry: bool = False) -> bool:
        """Send some frames if it is time to; whether any went. `hurry`: a batch is not filled."""
        now = self._clock()
        if now < self.retry_at:
            return False
        frames = self._wal.pending(KEPT) if self.urgent_first else []
        frames = frames or self._in_turn()
        if not frames or not (hurry or self._is_batch(frames, now)):
            return False
        self._waiting_since = None
        outcomes = self._put([(frame.entry.key, frame.data) for frame in frames])
        sent = sum(len(f.data) for f, o in zip(frames, outcomes, strict=True) if o.error is None)
        self._bytes_per_s = sent / max(self._clock() - now, 1e-3)
        done, error, wait_s = [], None, 0.0
        for frame, outcome in zip(frames, outcomes, strict=True):
            if outcome.error is None:
                done.append(frame)
                self.frames_sent += 1
                self.bytes_sent += len(frame.data)
            elif is_refused(outcome.error):
                self._set_aside(frame, outcome.error)
                done.append(frame)
            else:
                error, wait_s = outcome.error, max(wait_s, outcome.retry_after_s)
        if done:
            self.delivered.extend(self._wal.delivered(done))
            self.last_sent_at = time.time()
        self._note(error, wait_s, progress=bool(done))
        return bool(done)

    def _in_turn(self) -> list[Pending]:
        """The oldest that wait; where a stream floods, its frames and the others' take turns."""
        floods = self._wal.floods
        makes_objects = getattr(self._sink, "batch_age_s", 0.0)  # of whatever there is
        if not floods or floods == self._wal.unsent or makes_objects:
            return self._wal.pending()
        self._floods_turn = not self._floods_turn
        if not self._floods_turn:
            return self._wal.pending(floods=False)
        # others wait for it: no more than goes through meanwhile
        bytes_max = min(FLOOD_BATCH_BYTES, int(self._bytes_per_s * FLOOD_TURN_S))
        return self._wal.pending(floods=True, bytes_max=bytes_max)

    def urge(self, place: Place) -> None:
        """Somebody waits for what is in the log before that place: no batch is filled for it."""
        self._urged = max(self._urged, place)

    @property
    def is_urged(self) -> bool:
        """Whether somebody waits, and not in vain."""
        return self.failing_since is None and self._wal.front < self._urged

    def _put(self, frames: Sequence[Frame]) -> list[Outcome]:
        """A bug in a sink, or an error of a library that nobody translated, must not end sending."""
        try:
            return self._sink.put_all(frames)
        except Exception as error:
            return [Outcome(Unavailable(f"sending failed: {error!r:.300}"))] * len(frames)

    def _is_batch(self, frames: list[Pending], now: float) -> bool:
        """Whether a sink that makes objects of batches should make one now."""
        age_s: float = getattr(self._sink, "batch_age_s", 0.0)
        if not age_s or (len(frames) > 1 and sum(len(f.data) for f in frames) > 2_000_000):
            return True
        if (frames[0].number, frames[0].block.at) < self._urged:
            return True
        if self._waiting_since is None:
            self._waiting_since = now
        return now - self._waiting_since >= age_s

    def _note(self, error: RanklogError | None, wait_s: float, *, progress: bool) -> None:
        now = self._clock()
        self.denied = str(error) if isinstance(error, Denied) else ""
        if error is None:
            self._failures, self.failing_since, self.retry_at = 0, None, 0.0
            return
        self.last_error = str(error)
        self._failures = 1 if progress else self._failures + 1
        if self.failing_since is None or progress:
            self.failing_since = now
        # 2 ** 20 is far above the longest wait; a float has an end.
        longest = min(RETRY_MAX_S, RETRY_FIRST_S * 2 ** min(self._failures, 20))
        self.retry_at = now + max(wait_s, self._draw(0.0, longest))

    def _set_aside(self, frame: Pending, error: RanklogError) -> None:
        """A frame that is refused for good is kept, and the rest goes on."""
        self.refused += 1
        self.last_error = f"refused: {error}"
        self.kept.keep(frame.entry.key, frame.data, f"{frame.number}.{frame.entry.at}", str(error))
