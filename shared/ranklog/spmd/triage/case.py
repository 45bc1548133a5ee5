"""What triage is told of an attempt, and what it keeps of each rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ranklog.model.answer import Line


@dataclass(slots=True)
class RankState:
    """What a rank last said. Times are int ns of its host's clock; `exit_code` -N is signal N."""

    rank: int
    host: str | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    lines: int = 0
    last_iteration: int | None = None
    last_line: Line | None = None
    ended: bool = False  # its stream has an end, so nothing more comes
    exit_code: int | None = None
    alive_ns: int | None = None  # the last heartbeat of its process


@dataclass(slots=True)
class Case:
    """One attempt of a run.

    `evidence`: lines that hold words of the rules, or of level ERROR, in order of time. `steps`: the
    newest lines that name an iteration, in order. `dumps`: lines of stack dumps and flight recorders.
    `live`: the run may still go on, and `now_ns` is now; otherwise `now_ns` is its last line's time.
    """

    evidence: Sequence[Line]
    steps: Sequence[Line]
    ranks: Mapping[int, RankState]
    world_size: int | None = None
    last_ns: int = 0
    now_ns: int = 0
    live: bool = False
    dumps: Sequence[Line] = ()
    own_streams: frozenset[str] = frozenset()  # streams of one process each
    stream_lines: Mapping[str, int] = field(default_factory=dict)  # by stream id, how many
    stream_hosts: Mapping[str, str] = field(default_factory=dict)  # by stream id
