"""What was deleted: rows of streams, and whole launches. Values only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ranklog.model.index import StreamEntry

# Beyond every seq: the ranges of what is hidden whole.
SEQ_END = 2**63 - 1
EVERY_ROW: tuple[tuple[int, int], ...] = ((0, SEQ_END),)
LINES, LAUNCH, RETENTION = "lines", "launch", "retention"


@dataclass(frozen=True, slots=True)
class Deleted:
    """Rows of one stream that were deleted at once. `hour` is that of their event times, None where it
    is not known. `ranges`: half-open seq ranges, sorted, coalesced; `lines`: rows that were there."""

    stream_id: str
    run: str
    launch: str
    attempt: int
    rank: int | None
    hour: int | None
    lines: int
    ranges: tuple[tuple[int, int], ...]
    kind: str = LINES  # its tombstone's

    @property
    def run_id(self) -> str:
        return f"{self.run}@{self.launch}"


@dataclass(frozen=True, slots=True)
class Tombstone:
    """One deletion. `launches`: (run, launch) that are hidden whole, whatever arrives of them later;
    `kind`: what it came from: lines (a query), launch, retention. `frames`: (agent, first, end) numbers of
    frames whose headers went with the indexes that retention removed."""

    kind: str
    when_ns: int
    who: str
    why: str
    query: str
    launches: tuple[tuple[str, str], ...] = ()
    rows: tuple[Deleted, ...] = ()
    frames: tuple[tuple[str, int, int], ...] = ()

    @property
    def lines(self) -> int:
        """Rows that were there when it was made."""
        return sum(item.lines for item in self.rows)


@dataclass(frozen=True, slots=True)
class Tombstones:
    """All deletions of a tenant, folded. `keys` names them: the same keys say the same."""

    keys: tuple[str, ...] = ()
    streams: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    launches: frozenset[tuple[str, str]] = frozenset()
    rows: tuple[Deleted, ...] = ()
    frames: tuple[tuple[str, int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.keys)

    def hides_launch(self, run: str, launch: str) -> bool:
        """Whether every row of it is hidden, those that come later too."""
        return (run, launch) in self.launches

    def hidden(self, entry: StreamEntry) -> list[tuple[int, int]]:
        """Half-open seq ranges of the stream that are hidden, sorted, coalesced; they may name more
        than the entry has, and of a launch that is hidden whole they name every seq."""
        stream = entry.stream
        if (stream.run, stream.launch) in self.launches:
            return list(EVERY_ROW)
        return list(self.streams.get(entry.stream_id, ()))

    def of_runs(self, run_ids: Iterable[str] | None) -> list[Deleted]:
        """What was deleted of these runs; None: of all."""
        if run_ids is None:
            return list(self.rows)
        wanted = frozenset(run_ids)
        return [item for item in self.rows if item.run_id in wanted]
