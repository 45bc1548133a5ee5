"""Stack dumps in lines: where each rank's threads stand, and which ranks stand where others don't.

Read are dumps of Python's `faulthandler` (by a signal, a timer, a fatal error) and the text of `py-spy
dump`, with native frames and local variables or without. Frames stand most recent first, as both print
them. Two stacks are equal if every frame has the same file, function and line; of a file's path counts
what lies below `site-packages` or the standard library, so that hosts may keep Python in other places.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ranklog.model.answer import Line

# RE2 expression that every line of a dump matches, whatever label stands before it, but for blank lines
# and local variables.
DUMP_LINES = (
    r"\(most recent call first\)|Timeout \(\d+:\d\d:\d\d|Fatal Python error: "
    r"|Thread (?:\d+|0x[0-9a-fA-F]+) \([\w+]+\)(?:$|:)|Process \d+: "
    r'|File "[^"]*", line (?:\d+|\?\?\?) in | {4}\S.* \([^()]+\)$'
)

_HEAD = re.compile(
    r"(?P<current>Current t|T)hread 0x(?P<id>[0-9a-fA-F]+)(?: \[(?P<name>.*?)\])?"
    r" \(most recent call first\)"
)
_STACK = re.compile(r"^Stack \(most recent call first\)")
_SPY = re.compile(
    r'^Thread (?P<id>\d+) \((?P<state>[\w+]+)\)(?:: "(?P<name>.*)")?$|^Thread (?P<id2>0x[0-9a-fA-F]+)'
    r' \((?P<state2>[\w+]+)\)(?:: "(?P<name2>.*)")?$'
)
_REASON = re.compile(r"^(Timeout \([\d:.]+\)!?|Fatal Python error: .*|Process \d+: .*)")
_FRAME = re.compile(
    r'^ *File "(?P<file>[^"]*)", line (?P<line>\d+|\?\?\?) in (?P<function>.+?)\s*$'
)
_SPY_FRAME = re.compile(r"^ {4}(?P<function>\S.*?) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)$")
_SITE = re.compile(r"^.*/(?:(?:site|dist)-packages|lib/python\d[\d.]*)/")
# Lines between two threads of one dump: blank ones, local variables.
_APART_MAX = 400
# Inside a collective or waiting for one, by the functions of torch, MPI and their like.
_WAITS = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|broadcast|barrier|all_?to_?all|\b_?wait(?:_|\b)|synchronize"
    r"|\brecv\b|\bsend\b|Allreduce|Bcast|Barrier|Wait"
)
FRAMES_MAX = 256  # of one thread; faulthandler stops at 100


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One call. `line` None: unknown (native code)."""

    file: str
    function: str
    line: int | None

    @property
    def place(self) -> tuple[str, str, int | None]:
        """What equal frames have in common."""
        return _SITE.sub("", self.file), self.function, self.line


@dataclass(slots=True)
class Thread:
    """Frames most recent first. `main`: the process's main thread, as far as the dump shows."""

    id: str
    name: str | None = None
    current: bool = False
    frames: list[StackFrame] = field(default_factory=list)

    @property
    def place(self) -> tuple[tuple[str, str, int | None], ...]:
        return tuple(frame.place for frame in self.frames)


@dataclass(slots=True)
class Dump:
    """One dump of one process. `reason`: the line that introduces it, where there is one."""

    rank: int | None
    stream_id: str
    first: Line
    reason: str | None = None
    threads: list[Thread] = field(default_factory=list)

    @property
    def main(self) -> Thread | None:
        """The main thread: by its name; else whose outermost call is a module's code; else the one that
        faulthandler lists last."""
        named = [t for t in self.threads if t.name in ("MainThread", "MainProcess")]
        outer = [t for t in self.threads if t.frames and t.frames[-1].function == "<module>"]
        found = named or outer or self.threads[-1:]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks that stand at the same place. `threads`: of one of them, the main one or all. `odd`: fewer
    than half, and not the largest group; `waits`: inside a collective or a wait."""

    ranks: tuple[int, ...]
    threads: tuple[Thread, ...]
    odd: bool
    waits: bool
    dumps: tuple[Dump, ...] = ()


def read_dumps(lines: Iterable[Line]) -> list[Dump]:
    """Dumps in the order of their first lines. `lines`: of one attempt, those of dumps at least, in order
    of seq within each stream; a stream may hold several ranks' if its lines name them."""
    streams: dict[tuple[str, int | None], list[Line]] = defaultdict(list)
    for line in lines:
        streams[line.stream_id, line.rank].append(line)
    dumps = [dump for own in streams.values() for dump in _read_stream(own)]
    return sorted(dumps, key=lambda dump: (dump.first.ts_ns, dump.first.seq))


def _read_stream(lines: Sequence[Line]) -> list[Dump]:
    reader = _Reader()
    for line in lines:
        reader.take(line, _body(line))
    return [dump for dump in reader.dumps if any(thread.frames for thread in dump.threads)]


class _Reader:
    """Lines of one process, one after the other."""

    def __init__(self) -> None:
        self.dumps: list[Dump] = []
        self._seq = 0
        self._reason: tuple[int, str, Line] | None = None

    def take(self, line: Line, body: str) -> None:
        reason = _REASON.match(body)
        if reason is not None:
            self._reason = (line.seq, reason[1], line)
            return
        thread = _thread_of(body)
        if thread is not None:
            self._begin_thread(line, thread)
        elif self.dumps and line.seq - self._seq <= _APART_MAX:
            frame = _frame_of(body)
            threads = self.dumps[-1].threads
            if frame is not None and threads and len(threads[-1].frames) < FRAMES_MAX:
                threads[-1].frames.append(frame)
                self._seq = line.seq

    def _begin_thread(self, line: Line, thread: Thread) -> None:
        known = self.dumps[-1] if self.dumps else None
        again = known is not None and any(thread.id == old.id for old in known.threads)
        far = line.seq - self._seq > _APART_MAX
        if known is None or again or far or self._reason is not None:
            seq, reason, first = self._reason or (line.seq, None, line)
            if line.seq - seq > _APART_MAX:
                reason, first = None, line
            self.dumps.append(Dump(line.rank, line.stream_id, first, reason))
            self._reason = None
        self.dumps[-1].threads.append(thread)
        self._seq = line.seq


def _body(line: Line) -> str:
    """The text without the labels around it; `body_at` counts bytes."""
    if not line.body_at:
        return line.text.rstrip("\r")
    return line.text.encode("utf-8", "surrogatepass")[line.body_at :].decode("utf-8", "replace")


def _thread_of(body: str) -> Thread | None:
    head = _HEAD.search(body)
    if head is not None:
        return Thread(head["id"], head["name"], head["current"] == "Current t")
    if _STACK.match(body):
        return Thread("stack")
    spy = _SPY.match(body)
    if spy is None:
        return None
    return Thread(spy["id"] or spy["id2"], spy["name"] or spy["name2"])


def _frame_of(body: str) -> StackFrame | None:
    found = _FRAME.match(body) or _SPY_FRAME.match(body)
    if found is None:
        return None
    line = found["line"]
    known = line is not None and line.isdecimal()
    return StackFrame(found["file"], found["function"], int(line) if known else None)


def newest_dumps(dumps: Iterable[Dump]) -> dict[int, Dump]:
    """The last dump of each rank."""
    return {dump.rank: dump for dump in dumps if dump.rank is not None}


def group_stacks(dumps: Mapping[int, Dump], *, every_thread: bool = False) -> list[StackGroup]:
    """Ranks by where they stand, the fewest first: who stands where others don't is odd.

    `every_thread`: all threads of the processes count, whatever their order; else the main ones.
    """
    found: dict[object, list[int]] = defaultdict(list)
    for rank in sorted(dumps):
        threads = _threads(dumps[rank], every_thread)
        places = sorted((t.place for t in threads), key=repr)
        found[tuple(places)].append(rank)
    most = max(map(len, found.values()), default=0)
    unique = sum(len(ranks) == most for ranks in found.values()) == 1
    groups = []
    for ranks in found.values():
        shown = tuple(_threads(dumps[ranks[0]], every_thread))
        odd = unique and len(ranks) < most and 2 * len(ranks) < len(dumps)
        waits = any(_waits(thread) for thread in shown)
        own = tuple(dumps[rank] for rank in ranks)
        groups.append(StackGroup(tuple(ranks), shown, odd, waits, own))
    return sorted(groups, key=lambda group: (len(group.ranks), group.waits, group.ranks))


def _threads(dump: Dump, every_thread: bool) -> list[Thread]:
    if every_thread:
        return dump.threads
    return [dump.main] if dump.main is not None else []


def _waits(thread: Thread) -> bool:
    return any(_WAITS.search(frame.function) for frame in thread.frames[:6])


@dataclass(frozen=True, slots=True)
class StackEvidence:
    """What stacks say of a hang. `odd`: who keeps the others, empty where stacks do not tell; `why` in
    words; `lines`: first lines of the dumps that show it."""

    odd: frozenset[int]
    why: str
    lines: tuple[Line, ...]


def stack_evidence(lines: Iterable[Line]) -> StackEvidence | None:
    """For triage: None without dumps of at least two ranks.

    Ranks in a collective wait for those that are not. So of more than half waiting at one place the rest
    is odd, those outside of collectives before those in another one.
    """
    dumps = newest_dumps(read_dumps(lines))
    if len(dumps) < 2:
        return None
    groups = group_stacks(_without_lines(dumps))
    largest = groups[-1]
    rest = [group for group in groups if group.odd]
    if not rest or 2 * len(largest.ranks) <= len(dumps):
        return StackEvidence(frozenset(), "stacks do not tell who keeps the others", ())
    busy = [group for group in rest if not group.waits] if largest.waits else []
    named = busy or rest
    odd = frozenset(rank for group in named for rank in group.ranks)
    frames = named[0].threads[0].frames if named[0].threads else []
    where = f" in {frames[0].function}" if frames else ""
    why = f"stands{where}, where its peers do not"
    shown = tuple(dump.first for group in named for dump in group.dumps)
    return StackEvidence(odd, why, shown[:4])


def _without_lines(dumps: Mapping[int, Dump]) -> dict[int, Dump]:
    """The same without the innermost frame's line: a loop that polls is seen at any of its lines."""
    return {
        rank: Dump(
            dump.rank,
            dump.stream_id,
            dump.first,
            dump.reason,
            [Thread(t.id, t.name, t.current, _polled(t.frames)) for t in dump.threads],
        )
        for rank, dump in dumps.items()
    }


def _polled(frames: Sequence[StackFrame]) -> list[StackFrame]:
    return [
        StackFrame(frame.file, frame.function, None if at == 0 else frame.line)
        for at, frame in enumerate(frames)
    ]
