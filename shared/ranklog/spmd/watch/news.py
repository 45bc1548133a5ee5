"""What a watch is fed: news of streams, lines, and how long it waits before it says something."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.model.index import StreamEntry

_SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class StreamNews:
    """What one commit says of a stream, beside its lines. Times are int ns, None where unknown.

    `end`: behind the highest seq that was stored; `fenced`: behind the highest that is known to exist.
    """

    stream_id: str
    attempt: int
    rank: int | None
    host: str | None
    last_ns: int | None = None
    alive_ns: int | None = None  # last heartbeat of its process
    last_iteration: int | None = None
    end: int = 0
    fenced: int = 0
    ended: bool = False
    exit_code: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The members that say something."""
        said = asdict(self)
        names = ("stream_id", "attempt", "rank", "host")
        return {
            name: value
            for name, value in said.items()
            if name in names or (value is not None and value is not False)
        }


def news_of(entry: StreamEntry) -> StreamNews:
    """The news in a stream's entry of an index."""
    fenced = [end for fence in entry.fences for _, end in fence.ranges]
    if entry.end is not None:
        fenced.append(entry.end.end_seq)
    return StreamNews(
        entry.stream_id,
        entry.stream.attempt,
        entry.stream.rank,
        entry.stream.host,
        entry.max_ts,
        entry.alive_ns,
        entry.max_iteration,
        max((end for _, end in entry.ranges), default=0),
        max(fenced, default=0),
        entry.end is not None,
        None if entry.end is None else entry.end.exit_code,
    )


def number_of(line: Line, key: str) -> float | None:
    """A metadata value as a number; None where it is text. JSON spells what is not finite."""
    value = line.metadata.get(key)
    if isinstance(value, str):
        return _SPELLED.get(value)
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is too long.

    `times` usual times, and never less than `floor_ns`; before there is a usual time, `start_ns`
    (compilation, loading); while a checkpoint is written or an evaluation goes on, `busy` times as long.
    `settle`: rounds that a condition of single ranks waits for others of its kind, to be told with them.
    """

    times: float = 10.0
    floor_ns: int = 120 * SECOND_NS
    start_ns: int = 1_800 * SECOND_NS
    busy: float = 6.0
    settle: int = 1
