"""What a frame tells of its processes' other streams: that they have lines, and in which hours.

A stream of which no frame has arrived is known to nobody: an answer over its process's others would
call itself complete. So each stream's frames name the hours in which its siblings have lines, once per
pair and hour: a frame that told and is missing leaves a hole in the stream that told.

An hour that the sibling has left is told by its fence. One that is open is told by a fence that goes
beyond the seqs of its entry (docs/frame-format.md): it proves nothing, and says that there is something.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from ranklog.agent.rows import SPOKEN_HOURS, StreamState
from ranklog.model.frame import Fence
from ranklog.model.stream import Stream
from ranklog.stream.frame_parts import FrameParts, OpenStream

# A stream that has no row in a frame is no witness, and tells again: of these hours at most.
_HOURS_AGAIN = 2

_Process = tuple[str, str, str, str | None, str]


@dataclass(slots=True)
class _Spoken:
    """A stream's hours that have lines, ascending, and the first seq of each."""

    state: StreamState
    hours: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)

    def seqs(self, at: int) -> tuple[int, int]:
        """Of the lines that it has in one of them so far."""
        closed = at + 1 < len(self.firsts)
        return self.firsts[at], self.firsts[at + 1] if closed else self.state.next_seq

    def reached(self, entry: OpenStream) -> int | None:
        """The last hour that has rows in a frame."""
        if entry.next_seq == entry.first_seq:
            return None
        at = bisect_left(self.firsts, entry.next_seq) - 1
        return self.hours[at] if at >= 0 else None


@dataclass(slots=True)
class _Family:
    """Streams of a process; of each pair, how many hours of the second the first has told."""

    spoken: dict[Stream, _Spoken] = field(default_factory=dict)
    told: dict[tuple[Stream, Stream], int] = field(default_factory=dict)


class Siblings:
    """`entered` when a stream's hour begins, `tell` when a frame is closed."""

    def __init__(self) -> None:
        self._families: dict[_Process, _Family] = {}
        self._ended: set[_Process] = set()

    def entered(self, state: StreamState, hour: int) -> None:
        """The stream's next line is of this hour."""
        spoken = self._spoken(state)
        if spoken.hours and spoken.firsts[-1] == state.next_seq:
            spoken.hours[-1] = hour  # the one before has no line
        else:
            spoken.hours.append(hour)
            spoken.firsts.append(state.next_seq)
        state.spoken = list(
            zip(spoken.hours[-SPOKEN_HOURS:], spoken.firsts[-SPOKEN_HOURS:], strict=True)
        )

    def restored(self, state: StreamState) -> None:
        """A stream that an agent before has framed, unless it is known."""
        if not state.next_seq:
            return
        family = self._families.get(_process(state.stream))
        if state.ended if family is None else state.stream in family.spoken:
            return  # of a process that is over, or known
        self._spoken(state)

    def ended(self, state: StreamState) -> None:
        """The stream says nothing any more."""
        self._ended.add(_process(state.stream))

    def forget(self) -> None:
        """Processes of which all streams are over, and their last frames are cut."""
        for process in self._ended:
            family = self._families.get(process)
            if family and all(one.state.ended for one in family.spoken.values()):
                del self._families[process]
        self._ended.clear()

    def tell(self, builder: FrameParts) -> None:
        """Add to a frame what is to be told of siblings of its streams."""
        told: set[tuple[Stream, int]] = set()
        entries = {entry.stream: entry for entry in builder.streams}
        for stream, entry in entries.items():
            family = self._families.get(_process(stream))
            if family is None:
                continue
            own = family.spoken.get(stream)
            reached = own.reached(entry) if own is not None else None
            for sibling, spoken in family.spoken.items():
                before = family.told.get((stream, sibling), 0)
                if sibling == stream or before == len(spoken.hours):
                    continue
                if reached is None:
                    before = max(before, len(spoken.hours) - _HOURS_AGAIN)
                else:
                    family.told[stream, sibling] = max(before, bisect_right(spoken.hours, reached))
                for at in range(before, len(spoken.hours)):
                    if (sibling, at) not in told:
                        told.add((sibling, at))
                        _tell(builder, spoken, at, entries.get(sibling))

    def _spoken(self, state: StreamState) -> _Spoken:
        family = self._families.setdefault(_process(state.stream), _Family())
        spoken = family.spoken.get(state.stream)
        if spoken is None:
            hours, firsts = [hour for hour, _ in state.spoken], [first for _, first in state.spoken]
            spoken = family.spoken[state.stream] = _Spoken(state, hours, firsts)
        return spoken


def _tell(builder: FrameParts, spoken: _Spoken, at: int, entry: OpenStream | None) -> None:
    """One hour, unless the frame has lines or the fence of it."""
    first, end = spoken.seqs(at)
    hour, state = spoken.hours[at], spoken.state
    if first == end:
        return
    if entry is not None:
        has_rows = entry.first_seq < entry.next_seq
        if has_rows and entry.first_seq < end and entry.next_seq > first:
            return
        if any(fence.hour == hour for fence in entry.fences):
            return
    builder.fence(state.stream, spoken.firsts[-1], Fence(hour, ((first, end),)))


def _process(stream: Stream) -> _Process:
    """Whose stream it is; what follows a point in an incarnation is the agent's."""
    incarnation = stream.incarnation.partition(".")[0]
    return stream.tenant, stream.run, stream.launch, stream.host, incarnation
