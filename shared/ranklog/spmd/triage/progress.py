"""When the run went on: iterations over time, restarts, and what came after a fault."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Sequence
from itertools import pairwise

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.triage.case import Case
from ranklog.spmd.triage.read import Sign
from ranklog.spmd.triage.timing import has_time

# Iterations that begin after a fault and say that it was none: a rank of a job that goes is waited
# for within one or two.
WENT_ON_ITERATIONS = 3
# Hosts' clocks differ; what is said within is taken for simultaneous.
CLOCKS_NS = 3 * SECOND_NS
# A kernel log tells whole seconds since its boot, by a clock that nobody sets afterwards.
KERNEL_CLOCKS_NS = 15 * SECOND_NS
_STEP_DEFAULT_NS = 10 * SECOND_NS


def iteration_of(line: Line) -> int | None:
    """The iteration that a line counts: its own, or where a progress bar stands beside a loss."""
    if line.iteration is not None:
        return line.iteration
    at = line.metadata.get("bar_at")
    return int(at) if isinstance(at, int | float) and "loss" in line.metadata else None


class Progress:
    """Iterations of the last attempt. `cut_ns`: when that attempt began, 0 where it is the only one;
    `steps`: its lines that count iterations."""

    def __init__(self, case: Case, signs: Sequence[Sign]) -> None:
        self.cut_ns = _last_start(case, signs)
        self.steps = [line for line in case.steps if line.ts_ns >= self.cut_ns]
        self.firsts = _firsts(self.steps)
        self._times = [ts for ts, _ in self.firsts]

    @property
    def began(self) -> bool:
        """Whether there was an iteration."""
        return bool(self.steps)

    @property
    def last_ns(self) -> int | None:
        """When the newest iteration was first spoken of."""
        return self._times[-1] if self._times else None

    @property
    def last_iteration(self) -> int | None:
        found = (iteration_of(line) for line in self.steps)
        return max((iteration for iteration in found if iteration is not None), default=None)

    @property
    def step_ns(self) -> int:
        """The usual time between iterations that are spoken of."""
        gaps = [b - a for a, b in pairwise(self._times)]
        return int(statistics.median(gaps)) if len(gaps) >= 2 else _STEP_DEFAULT_NS

    def went_on(self, ts_ns: int, margin_ns: int = CLOCKS_NS) -> bool:
        """Whether iterations began after this time, so that what happened then ended nothing."""
        at = bisect.bisect_right(self._times, ts_ns + margin_ns)
        return len(self._times) - at >= WENT_ON_ITERATIONS


def newest_attempt(case: Case) -> int:
    """As processes' own streams count; consoles and launchers go through all of them."""
    lines = (*case.steps, *case.evidence)
    own = (line.attempt for line in lines if line.stream_id in case.own_streams)
    return max(own, default=0)


def _firsts(steps: Sequence[Line]) -> list[tuple[int, int]]:
    """(when, iteration) for each iteration, by its first line that has a time."""
    seen: dict[int, int] = {}
    for line in steps:
        iteration = line.iteration
        if iteration is None or not has_time(line):
            continue
        if iteration not in seen or line.ts_ns < seen[iteration]:
            seen[iteration] = line.ts_ns
    highest, found = -1, []
    for ts, iteration in sorted((ts, iteration) for iteration, ts in seen.items()):
        if iteration > highest:
            highest = iteration
            found.append((ts, iteration))
    return found


def _last_start(case: Case, signs: Sequence[Sign]) -> int:
    """When iterations last began anew, or a launcher last started everybody again."""
    restarts = (s.ts_ns for s in signs if s.kind == "restart" and has_time(s.line))
    cut = max(restarts, default=0)
    attempt = newest_attempt(case)
    if attempt > 0:
        lines = (*case.steps, *case.evidence)
        own = (line.ts_ns for line in lines if line.attempt == attempt and has_time(line))
        cut = max(cut, min(own, default=0))
    reached: dict[tuple[str, int | None], tuple[int, int]] = {}
    for line in case.steps:
        iteration = line.iteration
        if iteration is None or not has_time(line) or "checkpoint" in line.text.lower():
            continue  # a checkpoint is written while the next iterations go on
        key = (line.stream_id, line.rank)
        known = reached.get(key)
        if known is not None and iteration < known[0] and line.ts_ns - known[1] > SECOND_NS:
            cut = max(cut, known[1] + 1)
            reached = {key: (iteration, line.ts_ns)}
        elif known is None or iteration >= known[0]:
            reached[key] = (iteration, line.ts_ns)
    return cut
