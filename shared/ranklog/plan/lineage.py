"""Which iterations of a launch were done again, so that what was said of them is superseded. Pure.

A launch is a chain of legs: its attempts, and within a stream what lies between two places where the
iterations go back because a checkpoint was loaded or everybody was started again. A leg that begins
at iteration c throws away what earlier legs did from c on, however far it then gets itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from ranklog.limits import SECOND_NS
from ranklog.model.index import Pass, StreamEntry
from ranklog.model.stream import Stream

# Lines that say why iterations go back. Without one they are counted anew: a next epoch, a validation.
RESTART_PATTERN = (
    r"(?:load|restor|resum|recover|rewind|roll(?:ed|ing)? ?back)\w*\b.{0,80}?"
    r"\b(?:checkpoint|ckpt|snapshot|state|iteration|step|training)"
    r"|\b(?:checkpoint|ckpt|snapshot)\w*\b.{0,80}?\b(?:load|restor|resum)"
    r"|restarting worker group|will restart|job requeue|requeued"
    r"|init_process_group|initializing (?:process group|(?:torch )?distributed)|nccl version"
)
RESTART_FLAGS = "i"
_SEQ_MAX = 2**62
# Clocks of hosts differ; a line of another stream is taken for simultaneous within.
_CLOCKS_NS = 2 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a line matches RESTART_PATTERN."""

    stream_id: str
    attempt: int
    seq: int
    ts_ns: int


@dataclass(frozen=True, slots=True)
class Redone:
    """Iterations from `cut` on are superseded: of an attempt's streams, or, with `stream_id`, of that
    stream's lines in [first, end). `leg` counts the legs of a stream."""

    cut: int
    attempt: int
    stream_id: str | None = None
    first: int = 0
    end: int = 0
    leg: int = 0


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is superseded in one launch. `apart`: streams that are not told of by attempt: console
    copies, launchers that go through all attempts, and those whose legs are told one by one."""

    run_id: str
    redone: tuple[Redone, ...] = ()
    apart: frozenset[str] = frozenset()


@dataclass(slots=True)
class Course:
    """A stream's passes over all indexes, in order."""

    stream: Stream
    stream_id: str
    passes: list[Pass] = field(default_factory=list)

    @property
    def high(self) -> int:
        """The highest iteration."""
        return max(one.high for one in self.passes)

    @property
    def turns(self) -> list[int]:
        """Passes that begin below the one before and go on from there."""
        found = []
        for at in range(1, len(self.passes)):
            one, before = self.passes[at], self.passes[at - 1]
            if one.first < before.high and self._goes_on(at, one.first, before.high):
                found.append(at)
        return found

    def _goes_on(self, at: int, first: int, high: int) -> bool:
        """Whether iterations between follow, and not at once those from before."""
        # the second may be a line that looks back
        following = [i for one in self.passes[at : at + 3] for i in (one.first, one.second)]
        return next((i <= high for i in following if i > first), False)


def courses(entries: Iterable[StreamEntry]) -> dict[str, list[Course]]:
    """Streams that name iterations, by run_id."""
    found: dict[str, Course] = {}
    for entry in entries:
        if entry.passes:
            known = found.get(entry.stream_id)
            if known is None:
                known = found[entry.stream_id] = Course(entry.stream, entry.stream_id)
            known.passes += entry.passes
    launches: dict[str, list[Course]] = {}
    for course in found.values():
        # a line stored twice is in two indexes, which then have passes that begin within each other
        course.passes = sorted(set(course.passes), key=lambda one: (one.first_seq, one.high_seq))
        launches.setdefault(course.stream.run_id, []).append(course)
    return launches


def may_be_redone(known: Sequence[Course]) -> bool:
    """Whether the launch has several attempts with iterations, or a stream in which they go back."""
    attempts = {course.stream.attempt for course in known}
    return len(attempts) > 1 or any(course.turns for course in known)


def lineage_of(run_id: str, known: Sequence[Course], marks: Sequence[Mark]) -> Lineage:
    """Legs of one launch, and from which iteration on each was done again."""
    ranked = any(course.stream.rank is not None for course in known)
    beside = {
        course.stream_id
        for course in known
        if course.stream.copy or (ranked and course.stream.rank is None)
    }
    said = {(mark.stream_id, mark.seq) for mark in marks}
    turns = {course.stream_id: _turned(course, marks) for course in known}
    own = [course for course in known if course.stream_id not in beside]
    starts: dict[int, list[int]] = {}
    for course in own:
        begins = [_start(course, at, said) for at in (0, *turns[course.stream_id])]
        starts.setdefault(course.stream.attempt, []).extend(x for x in begins if x is not None)
    cuts = {
        attempt: min(i for number, found in starts.items() if number > attempt for i in found)
        for attempt in starts
        if any(found for number, found in starts.items() if number > attempt)
    }
    straight = [course for course in own if not turns[course.stream_id]]
    redone = [
        Redone(cut, attempt)
        for attempt, cut in sorted(cuts.items())
        if any(x.stream.attempt == attempt and x.high >= cut for x in straight)
    ]
    redone += _redone_in_streams(own, turns, said, cuts)
    others = [course for course in known if course.stream_id in beside]
    redone += _redone_in_streams(others, turns, said, {})
    apart = beside | {stream_id for stream_id, found in turns.items() if found}
    return Lineage(run_id, tuple(redone), frozenset(apart))


def _start(course: Course, at: int, said: Set[tuple[str, int]]) -> int | None:
    """The iteration that a leg begins with. A line that says which checkpoint is loaded names the one
    before; None where nothing else is named."""
    one = course.passes[at]
    if (course.stream_id, one.first_seq) not in said:
        return one.first
    if one.second != one.first:
        return one.second
    return course.passes[at + 1].first if at + 1 < len(course.passes) else None


def _turned(course: Course, marks: Sequence[Mark]) -> list[int]:
    """The turns that a mark explains."""
    found = []
    for at in course.turns:
        one, before = course.passes[at], course.passes[at - 1]
        low_ns, high_ns = before.high_ns - _CLOCKS_NS, one.first_ns + _CLOCKS_NS
        for mark in marks:
            if mark.stream_id == course.stream_id:
                explains = before.high_seq <= mark.seq <= one.first_seq
            else:
                same = mark.attempt == course.stream.attempt
                explains = same and low_ns <= mark.ts_ns <= high_ns
            if explains:
                found.append(at)
                break
    return found


def _redone_in_streams(
    known: Sequence[Course],
    turns: Mapping[str, list[int]],
    said: Set[tuple[str, int]],
    cuts: Mapping[int, int],
) -> list[Redone]:
    """Legs of streams that turn. Streams of an attempt that turn equally often turn together: the
    lowest iteration that one of them begins again with counts for all. `cuts`: what later attempts
    begin with, by attempt."""
    begins: dict[tuple[int, int, int], list[int]] = {}
    for course in known:
        found = turns[course.stream_id]
        for leg, at in enumerate(found):
            start = _start(course, at, said)
            begun = begins.setdefault((course.stream.attempt, len(found), leg), [])
            begun += [] if start is None else [start]
    redone = []
    for course in known:
        found, attempt = turns[course.stream_id], course.stream.attempt
        edges = [*(course.passes[at].first_seq for at in found), _SEQ_MAX]
        legs = [0, *found, len(course.passes)]
        for leg, end in enumerate(edges if found else ()):
            later = [i for k in range(leg, len(found)) for i in begins[attempt, len(found), k]]
            later += [cuts[attempt]] if attempt in cuts else []
            high = max(one.high for one in course.passes[legs[leg] : legs[leg + 1]])
            if later and min(later) <= high:
                first = edges[leg - 1] if leg else 0
                redone.append(Redone(min(later), attempt, course.stream_id, first, end, leg))
    return redone
