"""What came after a line: whether the job lived on, so that it was no end.

Order in the line's own stream is surer than time: clocks differ, and lines without a time have that of the
line before them.
"""

from __future__ import annotations

import re

import numpy as np

from ranklog.limits import SECOND_NS
from ranklog.model.levels import ERROR, WARNING
from ranklog.spmd.exceptions import is_telemetry
from ranklog.spmd.outliers.evidence import Attempt
from ranklog.spmd.table import I64, Flags

# What is said at this share of all iterations is a job that a rank has, not an event.
_STEADY_SHARE = 0.5
_ITERATIONS_AFTER, _LINES_AFTER = 3, 3
# Clocks of hosts differ; and the last words of all ranks are said within some seconds.
_SKEW_NS, _AGAIN_NS = 5 * SECOND_NS, 20 * SECOND_NS
# Numbers that are no iterations span more.
_ITERATIONS_MAX = 20_000_000
_NEVER = 2**63 - 1
# Lines around one in which its record lies.
_RECORD_LINES = 16
_TRACEBACK = "Traceback (most recent call last)"
_FILLING = re.compile(r"[\s█-▏#=>.-]+")


class Survival:
    """Answers for lines of keys. Sorted once by key; the rest is worked out when it is asked for."""

    def __init__(self, attempt: Attempt) -> None:
        table = attempt.table
        self._attempt = attempt
        keys = table.key.astype(np.uint16) if len(table.keys) < 2**16 else table.key
        self._order = np.argsort(keys, kind="stable")
        lines = np.bincount(table.key, minlength=len(table.keys))
        self._starts = np.concatenate([[0], np.cumsum(lines)])
        self._last_ns = attempt.latest(table.ts_ns)
        known = table.iteration[table.iteration >= 0]
        self._lowest = int(known.min()) if len(known) else 0
        self._span = int(known.max()) - self._lowest + 1 if len(known) else 0
        # a progress bar that has grown is the same said again
        bodies = [_FILLING.sub("", key.template) for key in table.keys]
        numbers: dict[str, int] = {}
        self._alike = np.array([numbers.setdefault(b, len(numbers)) for b in bodies], np.int32)
        self._until: int | None = None
        self._times: I64 | None = None
        self._streams: dict[int, I64] = {}

    def rows(self, key: int, place: int | None = None) -> I64:
        """Lines of a key, of one rank."""
        rows = self._order[self._starts[key] : self._starts[key + 1]]
        return rows if place is None else rows[self._attempt.place[rows] == place]

    def is_steady(self, key: int, said: Flags) -> bool:
        """Whether it is said all along, at most iterations."""
        found = self._attempt.table.iteration[self.rows(key)]
        found = found[found >= 0]
        return self._span > 4 and len(np.unique(found)) >= _STEADY_SHARE * self._span

    def is_over(self, key: int, place: int) -> bool:
        """Whether the rank had said its last before others said it."""
        return int(self._attempt.table.ts_ns[self.rows(key)].min()) > int(self._last_ns[place])

    def is_handled(self, key: int, place: int) -> bool:
        """Whether the rank logged it with a traceback, which it had caught: what kills it begins with
        one. A traceback of who reports to a dashboard ends nothing either."""
        table = self._attempt.table
        row = int(self.rows(key, place)[-1])
        stream = self._stream(int(table.stream[row]))
        at = int(np.searchsorted(table.seq[stream], table.seq[row]))
        low = max(0, at - _RECORD_LINES)
        near = stream[low : at + _RECORD_LINES]
        alike = (table.ts_ns[near] == table.ts_ns[row]) & (table.level[near] >= ERROR)
        said = [table.keys[k].template for k in table.key[near[alike]].tolist()]
        begins = [_TRACEBACK in text for text in said]
        if any(begins) and not begins[0]:
            return True
        own = said[int(alike[: at - low].sum()) :]
        if own and _TRACEBACK in own[0]:
            own = own[1:]
        return bool(own) and is_telemetry(own[0])

    def went_on(self, key: int, place: int) -> bool:
        """Whether the job went on after the rank said so, by iterations or by what is said again."""
        if self._attempt.rank(place) in self._attempt.ended_well:
            return True
        table = self._attempt.table
        rows = self.rows(key, place)
        row = int(rows[np.argmax(table.ts_ns[rows])])
        stream = self._stream(int(table.stream[row]))
        at = int(np.searchsorted(table.seq[stream], table.seq[row]))
        if self._goes_on(stream[:at], stream[at + 1 :]):
            return True
        if self._is_untimed(stream, at):
            return False
        said_ns = int(table.ts_ns[row])
        if int((self._begun() > said_ns).sum()) >= _ITERATIONS_AFTER:
            return True
        return said_ns + _SKEW_NS < self._repeated_until()

    def _stream(self, number: int) -> I64:
        """Lines of a stream in order."""
        if number not in self._streams:
            rows = np.flatnonzero(self._attempt.table.stream == number)
            order = np.argsort(self._attempt.table.seq[rows], kind="stable")
            self._streams[number] = rows[order]
        return self._streams[number]

    def _goes_on(self, before: I64, after: I64) -> bool:
        """Whether later lines of a stream count iterations, or say again what was said before."""
        table = self._attempt.table
        steps = table.iteration[after]
        if len(np.unique(steps[steps >= 0])) >= _ITERATIONS_AFTER:
            return True
        calm = after[table.level[after] < WARNING]
        known = np.isin(self._alike[table.key[calm]], self._alike[table.key[before]])
        return int(known.sum()) >= _LINES_AFTER

    def _is_untimed(self, stream: I64, at: int) -> bool:
        """Whether a line has its time from one before it that is no part of the same error."""
        table = self._attempt.table
        first = at
        while first and table.ts_ns[stream[first - 1]] == table.ts_ns[stream[at]]:
            first -= 1
        return first < at and int(table.level[stream[first]]) < ERROR

    def _repeated_until(self) -> int:
        """Until when lines below WARNING were said that had been said well before: the last but two."""
        if self._until is None:
            table = self._attempt.table
            said = self._alike[table.key]
            first = np.full(len(table.keys), _NEVER)
            np.minimum.at(first, said, table.ts_ns)
            again = (table.level < WARNING) & (table.ts_ns - _AGAIN_NS > first[said])
            times = table.ts_ns[again]
            enough = len(times) >= _LINES_AFTER
            self._until = int(np.partition(times, -_LINES_AFTER)[-_LINES_AFTER]) if enough else 0
        return self._until

    def _begun(self) -> I64:
        """Times at which anybody began an iteration."""
        if self._times is None:
            table = self._attempt.table
            first = np.full(self._span if self._span <= _ITERATIONS_MAX else 0, _NEVER)
            if len(first):
                steps = table.iteration >= 0
                np.minimum.at(first, table.iteration[steps] - self._lowest, table.ts_ns[steps])
            self._times = first[first < _NEVER]
        return self._times
