"""Hosts without a spool: the agent's own framer and sender over lines that are made up, frame by frame.

What is not taken is sent again, so a stream has frames twice, and in another order than they were cut.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ranklog.agent.framer import Framer
from ranklog.agent.rows import Row, StreamState
from ranklog.model.frame import STREAM_RANK, CallSite
from ranklog.model.stream import Stream
from ranklog.stream.point_batch import PointBatch
from ranklog.stream.row_batch import RowBatch
from tests.matrix.actors import LAUNCH, Site
from tests.matrix.boundary import Boundary, acting
from tests.matrix.machine import TENANT
from tests.matrix.truth import (
    CHANNEL,
    CONSOLE,
    LOST,
    SERIES,
    TELEMETRY,
    Said,
    Truth,
    text_of,
)

_SITE = CallSite("train.py:88", "step", "trainer")
_ROUNDS = 12


class Shipper:
    """One host's. `say` takes lines in, `ship` sends frames that were cut."""

    def __init__(self, agent: str, truth: Truth) -> None:
        self._framer = Framer(agent)
        self._host = f"gpu-{agent[:4]}"
        self._states: dict[tuple[str, int, str], StreamState] = {}
        self._truth = truth
        self._waiting: list[tuple[str, bytes]] = []

    @property
    def waiting(self) -> int:
        """Frames that are not sent."""
        return len(self._waiting)

    def mutter(
        self, run: str, rank: int, ts: Sequence[int], text: bytes, incarnation: str = ""
    ) -> None:
        """Lines on the rank's console; of a process that was started again where it has another incarnation."""
        state, _ = self._stream(run, rank, 1, CONSOLE)
        if incarnation:
            again = replace(state.stream, incarnation=incarnation)
            state = self._states[run, rank, incarnation] = StreamState(again)
        for ts_ns in ts:
            self._framer.add(state, Row(ts_ns, (text,)))

    def stream_of(self, run: str, rank: int) -> Stream:
        """The stream of a rank's logger, which has spoken."""
        return self._states[run, rank, CHANNEL].stream

    def lose(self, run: str, rank: int, lines: int) -> None:
        """Lines that the rank will never say, as there is no room for them."""
        state, _ = self._stream(run, rank, 0)
        self._framer.drop(state, lines, LOST)
        self._truth.dropped[run] += lines

    def say(self, run: str, rank: int, ts: Sequence[int], *, world: int) -> None:
        """A rank's next lines, at these ascending times."""
        state, said = self._stream(run, rank, world)
        first, last_ts = len(said.ts), state.last_ts
        seqs = range(first, first + len(ts))
        batch = RowBatch(
            ts=array("q", ts),
            level=array("h", [20]) * len(ts),
            texts=[text_of(rank, seq).encode() for seq in seqs],
            site=[1] * len(ts),
            sites={1: _SITE},
            iteration=array("q", [seq // 10 for seq in seqs]),
        )
        self._framer.add_batch(state, batch)
        said.ts += [max(ts_ns, last_ts) for ts_ns in ts]  # time of a stream never runs back

    def _stream(
        self, run: str, rank: int, world: int, channel: str = CHANNEL
    ) -> tuple[StreamState, Said]:
        key = (run, rank, channel)
        if key not in self._states:
            name = f"{run}-{rank}"
            stream = Stream(
                TENANT, run, LAUNCH, 0, self._host, rank, rank, channel, name, world_size=world
            )
            self._states[key] = StreamState(stream, points=channel == TELEMETRY)
            if channel == CHANNEL:
                self._truth.add((run, rank)).ids.add(stream.stream_id)
        return self._states[key], self._truth.add((run, rank))

    def measure(self, run: str, rank: int, ts: Sequence[int], *, world: int) -> None:
        """Values of a series, one for each of these ascending times."""
        state, _ = self._stream(run, rank, world, TELEMETRY)
        first, count = state.next_seq, len(ts)
        batch = PointBatch(
            ts=array("q", ts),
            rank=array("i", [STREAM_RANK]) * count,
            iteration=array("q", range(first, first + count)),
            set=[0] * count,
            sets={0: ("{}", (SERIES,))},
            context=[0] * count,
            contexts={0: None},
            size=[1] * count,
            values=array("d", range(first, first + count)),
        )
        self._framer.add_points(state, batch)
        self._truth.points[run, rank] = state.next_seq

    def fence(self, now_ns: int) -> None:
        """Hours that are over are fenced, as an agent does at each look."""
        self._framer.fence_past_hours(list(self._states.values()), now_ns)

    def end(self, channel: str | None = None) -> None:
        """Every stream is over; or each of a channel."""
        for state in self._states.values():
            if channel in (None, state.stream.channel):
                self._framer.end(state, 0)

    def look(self, now_ns: int) -> None:
        """As an agent does again and again: fence what is over, cut what was said."""
        self.fence(now_ns)
        self.cut()

    def cut(self) -> None:
        """What was said goes into frames."""
        frames, _ = self._framer.cut()
        self._waiting += [(frame.key, frame.data) for frame in frames]

    def ship_one_by_one(self, site: Site, boundary: Boundary, rng: random.Random) -> Iterator[None]:
        """Send each frame alone: in the order in which they were cut, the last first, or in any."""
        frames = self._waiting[:: rng.choice([1, -1])]
        if rng.random() < 0.4:
            rng.shuffle(frames)
        for frame in frames:
            self._waiting = [frame]
            self.ship(site, boundary, rng)
            yield

    def ship(self, site: Site, boundary: Boundary, rng: random.Random) -> int:
        """Send what waits, in any order; frames that are left where the stream takes none."""
        sink = site.sink()
        rng.shuffle(self._waiting)
        with acting(boundary):
            for _ in range(_ROUNDS):
                if not self._waiting:
                    break
                outcomes = sink.put_all(self._waiting)
                self._waiting = [
                    frame
                    for frame, outcome in zip(self._waiting, outcomes, strict=True)
                    if outcome.error is not None
                ]
        return len(self._waiting)
