"""Errors that lines speak of, by triage's rules: told when the run does not go on after them.

A healthy run prints errors, too: retries, lost telemetry, tracebacks of finalizers. One that it survives
(iterations begin after it), that the program itself reports and goes on from, or that comes when the run
is done, is no news.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.model.levels import ERROR
from ranklog.spmd.exceptions import TELEMETRY_MODULES, VICTIM_EXCEPTIONS
from ranklog.spmd.triage.read import Sign, read_signs
from ranklog.spmd.triage.rules import FAULT_OF
from ranklog.spmd.watch.pace import Pace

UNKNOWN = "unknown"
_SYMPTOMS = {
    "watchdog": "collective_timeout",
    "gloo_timeout": "collective_timeout",
    "elastic_failed": UNKNOWN,
    "srun_tasks": UNKNOWN,
}
# Somebody ends or restarts the job: what processes say from there on is no news.
_OUTSIDE = ("cancelled", "sigterm", "agent_killed", "restart")
# What kernels and links say counts at any level, and beside an end from outside: that may be its effect.
_FIRM = frozenset(
    ["xid", "gpu_fault", "machine", "node_failure", "link_down", "ib_error", "oom_host"]
)
_ENDED = re.compile(r"Exited with exit code [1-9]|Killed|Segmentation fault|Aborted|Bus error")
_HEADS_KEPT, _SHAPES_KEPT = 1_024, 4_096
_DIGITS = re.compile(r"[\d.e+-]+")
_KEPT = 256  # signs of one class that are kept
_TEXT = 200
# An error is told after so many usual gaps without a new iteration, and so long, at least. Before the
# first iterations much is tried that may fail.
GRACE_GAPS, GRACE_NS, GRACE_START_NS = 4, 15 * SECOND_NS, 600 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Said:
    """A sign, as much of it as is told."""

    ts_ns: int
    ranks: tuple[int, ...]
    host: str | None
    text: str
    firm: bool = False


@dataclass(slots=True)
class Fault:
    """What speaks of one class of failure and was not survived."""

    fault: str
    said: deque[Said] = field(default_factory=lambda: deque(maxlen=_KEPT))
    told: bool = False


class Faults:
    """Signs by class, those that are not settled yet."""

    def __init__(self) -> None:
        self._heads: OrderedDict[tuple[str, int], Line] = OrderedDict()
        self._faults: dict[str, Fault] = {}
        self._plain: dict[str, bool] = {}
        self.success_ns: int | None = None
        self.outside_ns: int | None = None

    def take(self, lines: Iterable[Line]) -> None:
        """Read signs from new lines; the heads of their records may have come earlier."""
        new = [line for line in lines if not self._is_plain(line)]
        fresh = {(line.stream_id, line.seq) for line in new}
        wanted = {(line.stream_id, line.group) for line in new if line.group is not None}
        heads = [head for place, head in self._heads.items() if place in wanted - fresh]
        for sign in read_signs([*heads, *new], {}, {}):
            if (sign.line.stream_id, sign.line.seq) in fresh:
                self._add(sign)
        for line in new:
            if line.group == line.seq:
                self._heads[line.stream_id, line.seq] = line
        while len(self._heads) > _HEADS_KEPT:
            self._heads.popitem(last=False)

    def _is_plain(self, line: Line) -> bool:
        """Whether it counts an iteration in words that hold no sign: most lines are so."""
        if line.iteration is None or (line.level or 0) >= ERROR:
            return False
        shape = _DIGITS.sub("", line.text)
        known = self._plain.get(shape)
        if known is None:
            known = not read_signs([line], {}, {})
            if len(self._plain) < _SHAPES_KEPT:
                self._plain[shape] = known
        return known

    def _add(self, sign: Sign) -> None:
        if sign.kind == "success":
            self.success_ns = max(sign.ts_ns, self.success_ns or 0)
            return
        if sign.kind in _OUTSIDE and "NODE" not in sign.data.get("why", ""):
            self.outside_ns = max(sign.ts_ns, self.outside_ns or 0)
            return
        fault = _fault_of(sign)
        if fault is None:
            return
        who = tuple(sorted(sign.ranks))
        firm = sign.kind in _FIRM
        said = Said(sign.ts_ns, who, sign.host, sign.line.text[:_TEXT], firm)
        self._faults.setdefault(fault, Fault(fault)).said.append(said)

    def begin_anew(self) -> None:
        """Another attempt started: what ended the one before is settled."""
        self._faults.clear()
        self.success_ns = self.outside_ns = None

    def went_on(self, pace: Pace) -> None:
        """A new iteration began: what looked like the end was none."""
        if self.success_ns is not None and pace.went_on(self.success_ns):
            self.success_ns = None
        if self.outside_ns is not None and pace.went_on(self.outside_ns):
            self.outside_ns = None

    def unsurvived(self, pace: Pace, now_ns: int, *, ended: bool) -> list[Fault]:
        """Classes that the run did not go on after, `unknown` only alone. `ended`: with a failure, so
        nothing else comes."""
        for name, fault in list(self._faults.items()):
            left = [said for said in fault.said if not self._is_settled(said, pace)]
            if not left:
                del self._faults[name]
                continue
            fault.said = deque(left, maxlen=_KEPT)
        usual = pace.gap_ns
        grace = GRACE_START_NS if usual is None else max(GRACE_GAPS * usual, GRACE_NS)
        for fault in self._faults.values():
            fault.told = fault.told or ended or now_ns - fault.said[0].ts_ns > grace
        told = [fault for fault in self._faults.values() if fault.told]
        return [fault for fault in told if fault.fault != UNKNOWN] or told

    def _is_settled(self, said: Said, pace: Pace) -> bool:
        outside = self.outside_ns is not None and said.ts_ns >= self.outside_ns - SECOND_NS
        outside = outside and not said.firm
        return pace.went_on(said.ts_ns) or self.success_ns is not None or outside

    def to_json(self) -> dict[str, Any]:
        """For a file of state."""
        return {
            "success_ns": self.success_ns,
            "outside_ns": self.outside_ns,
            "faults": [
                [f.fault, f.told, [list(astuple(s)) for s in f.said]] for f in self._faults.values()
            ],
        }

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Faults:
        """Inverse of to_json."""
        found = cls()
        found.success_ns, found.outside_ns = said["success_ns"], said["outside_ns"]
        for name, told, rows in said["faults"]:
            kept = (Said(ts, tuple(ranks), *rest) for ts, ranks, *rest in rows)
            found._faults[name] = Fault(name, deque(kept, maxlen=_KEPT), told)
        return found


def _fault_of(sign: Sign) -> str | None:
    """The class that a sign speaks of; None where it proves none."""
    level = sign.line.level
    if sign.handled and level is not None and level < ERROR and sign.kind not in _FIRM:
        return None
    if sign.kind == "exception":
        named = sign.data["name"]
        if named in VICTIM_EXCEPTIONS or sign.data["module"] in TELEMETRY_MODULES:
            return None
        return UNKNOWN
    if sign.kind == "srun_tasks" and _ENDED.search(sign.data["what"]) is None:
        return None
    return FAULT_OF.get(sign.kind) or _SYMPTOMS.get(sign.kind)
