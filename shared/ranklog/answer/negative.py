"""Who did not say it: yes, no, or unknown where what is missing might be it. Pure.

A line of rank 3 can stand in rank 3's streams, and in streams of no rank, or of another, whose lines name
ranks of their own: what such a stream lacks is in doubt for every rank. A host's stream of which lines
were seen, and none names a rank, speaks for the host alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.answer import Completeness
from ranklog.model.index import StreamEntry
from ranklog.model.stream import Stream

RANK, HOST, STREAM = BY = ("rank", "host", "stream")
YES, NO, UNKNOWN = "yes", "no", "unknown"
# Earlier states of a progress bar: what it said last is kept, and they are no lines.
PROGRESS = "progress"


@dataclass(slots=True)
class Speaker:
    """One stream of the scope. `ranks`: of lines that name another rank than the stream's."""

    stream: Stream
    stream_id: str
    said: bool = False
    ranks: set[int] = field(default_factory=set)
    doubts: set[str] = field(default_factory=set)

    def names_ranks(self) -> bool:
        """Whether a line that it lacks might be any rank's."""
        if self.ranks:
            return True
        return self.stream.rank is None and not (self.said and self.stream.host is not None)


@dataclass(frozen=True, slots=True)
class Asked:
    """`ranks`: those in question, by run_id; `absent` ones said nothing at all; `partial`: some of the
    scope could not be read."""

    by: str
    ranks: Mapping[str, frozenset[int]]
    absent: frozenset[int]
    partial: bool


def speakers(entries: Iterable[StreamEntry], judged: Completeness) -> list[Speaker]:
    """The streams, each with what is in doubt of it."""
    found: dict[str, Speaker] = {}
    for entry in entries:
        speaker = found.setdefault(entry.stream_id, Speaker(entry.stream, entry.stream_id))
        speaker.said = speaker.said or bool(entry.ranges)
        speaker.ranks.update(rank for rank, _ in entry.ranks if rank >= 0)
    doubts = {
        "gaps": judged.gaps,
        "behind": judged.behind,
        "dropped": [item for item in judged.dropped if item["reason"] != PROGRESS],
        "deleted": judged.deleted,
        "conflicts": judged.conflicts,
    }
    for word, items in doubts.items():
        for item in items:
            if item["stream"] in found:
                found[item["stream"]].doubts.add(word)
    return list(found.values())


def negative_rows(
    asked: Asked, heard: Sequence[Speaker], counts: Mapping[tuple[str, Any], int]
) -> list[dict[str, Any]]:
    """One object per rank, host or stream that was to say something. `counts`: matching lines by
    (run_id, value)."""
    doubts = _Doubts.of(asked, heard)
    names = {one.stream_id: one.stream for one in heard}
    rows = []
    for run_id, value in sorted(_values(asked, heard, counts), key=_order):
        count = counts.get((run_id, value), 0)
        why = [] if count else sorted(doubts.about(run_id, value))
        said = YES if count else UNKNOWN if why else NO
        row = {"run_id": run_id, asked.by: value, "said": said, "count": count, "why": why}
        rows.append(row | (_names(names[value]) if asked.by == STREAM else {}))
    return rows


def _order(key: tuple[str, Any]) -> tuple[str, bool, Any]:
    run_id, value = key
    return run_id, value is not None, -1 if value is None else value


def _values(
    asked: Asked, heard: Iterable[Speaker], counts: Mapping[tuple[str, Any], int]
) -> set[tuple[str, Any]]:
    """(run_id, rank, host or stream) of all that might have said it."""
    found = {key for key in counts if key[1] is not None}
    if asked.by == RANK:
        return found | {(run_id, rank) for run_id, ranks in asked.ranks.items() for rank in ranks}
    for one in heard:
        value = one.stream.host if asked.by == HOST else one.stream_id
        if value is not None:
            found.add((one.stream.run_id, value))
    return found


@dataclass(slots=True)
class _Doubts:
    """Why it is unknown: `everyone` of a run, and by (run_id, value). `spoke`: ranks of which anything is
    known; what others said may not have arrived."""

    asked: Asked
    everyone: dict[str, set[str]] = field(default_factory=dict)
    own: dict[tuple[str, Any], set[str]] = field(default_factory=dict)
    spoke: set[tuple[str, int]] = field(default_factory=set)

    @classmethod
    def of(cls, asked: Asked, heard: Iterable[Speaker]) -> _Doubts:
        found = cls(asked)
        for one in heard:
            found._add(one)
        return found

    def _add(self, one: Speaker) -> None:
        run_id, stream, by = one.stream.run_id, one.stream, self.asked.by
        own = {RANK: stream.rank, HOST: stream.host, STREAM: one.stream_id}[by]
        self.spoke |= {(run_id, rank) for rank in one.ranks}
        if stream.rank is not None:
            self.spoke.add((run_id, stream.rank))
        if not one.doubts:
            return
        if (by == RANK and one.names_ranks()) or (by == HOST and own is None):
            self.everyone.setdefault(run_id, set()).update(one.doubts)
        if own is not None:
            self.own.setdefault((run_id, own), set()).update(one.doubts)

    def about(self, run_id: str, value: Any) -> set[str]:
        """Reasons, none where it is certain."""
        found = self.everyone.get(run_id, set()) | self.own.get((run_id, value), set())
        if self.asked.partial:
            found.add("partial")
        if self.asked.by == RANK and (run_id, value) not in self.spoke:
            found.add("absent")
        if self.asked.by == HOST and self.asked.absent:
            found.add("absent")  # nobody knows on which host these ranks are
        return found


def _names(stream: Stream) -> dict[str, Any]:
    """What tells people which stream it is."""
    return {"rank": stream.rank, "host": stream.host, "channel": stream.channel}
