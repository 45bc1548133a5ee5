"""The streams of a launch, as far as a watch needs them: what is owed, what has ended, and how."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import astuple, dataclass
from typing import Any

from ranklog.spmd.watch.news import StreamNews


@dataclass(slots=True)
class StreamState:
    """One stream of any attempt."""

    attempt: int
    rank: int | None
    end: int = 0
    fenced: int = 0
    ended: bool = False
    exit_code: int | None = None


class Streams:
    """By stream id, and by (attempt, rank)."""

    def __init__(self) -> None:
        self._known: dict[str, StreamState] = {}
        self._own: dict[tuple[int, int | None], list[StreamState]] = defaultdict(list)

    def take(self, news: StreamNews) -> None:
        """What a commit says of a stream."""
        state = self._known.get(news.stream_id)
        if state is None:
            state = self._known[news.stream_id] = StreamState(news.attempt, news.rank)
            self._own[news.attempt, news.rank].append(state)
        state.end, state.fenced = max(state.end, news.end), max(state.fenced, news.fenced)
        if news.ended:
            state.ended, state.exit_code = True, news.exit_code

    def own(self, attempt: int, rank: int | None) -> list[StreamState]:
        """The streams of a rank."""
        return self._own.get((attempt, rank), [])

    def state(self, attempt: int) -> str:
        """running, or how the attempt ended: finished, failed, unknown (nobody says how)."""
        own = [s for (of, _), states in self._own.items() if of == attempt for s in states]
        if not own or not all(stream.ended for stream in own):
            return "running"
        code = exit_code(own)
        return "unknown" if code is None else "failed" if code else "finished"

    def to_json(self) -> list[list[Any]]:
        """For a file of state."""
        return [[name, *astuple(state)] for name, state in self._known.items()]

    @classmethod
    def from_json(cls, said: list[list[Any]]) -> Streams:
        """Inverse of to_json."""
        found = cls()
        for name, *members in said:
            state = found._known[name] = StreamState(*members)
            found._own[state.attempt, state.rank].append(state)
        return found


def exit_code(streams: list[StreamState]) -> int | None:
    """The first that is not 0; 0 when all that are known are; None when none is."""
    codes = [stream.exit_code for stream in streams if stream.exit_code is not None]
    return next((code for code in codes if code), 0 if codes else None)
