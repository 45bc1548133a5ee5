"""What a line without a time or level has from the lines before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranklog.importer.groups import Groups
from ranklog.importer.lines import I64
from ranklog.importer.times import NO_TIME
from ranklog.model.frame import LEVEL_INFERRED, LEVEL_INHERITED, NO_LEVEL
from ranklog.model.levels import ERROR

# Lines that no label gives to a process: the launcher's, or all lines where there are no labels.
NO_LANE = 0


class LaneTimes:
    """The last known time per lane (one writing process) and of the whole file."""

    def __init__(self, first_ns: int | None) -> None:
        self._file = NO_TIME if first_ns is None else first_ns
        self._lanes: dict[int, int] = {}

    def fill(self, own: I64, lane: I64, warm: int) -> I64:
        """Times of n lines: their own, else the lane's last, else the file's last, else NO_TIME.

        What the launcher writes between labelled lines has the file's last.

        The first `warm` lines were filled before; what is remembered is of them already.
        """
        count = len(own)
        if not count:
            return own.copy()
        order = np.argsort(lane, kind="stable")
        sorted_lane, sorted_own = lane[order], own[order]
        begins = np.flatnonzero(np.concatenate(([True], sorted_lane[1:] != sorted_lane[:-1])))
        known = np.maximum.accumulate(np.where(sorted_own != NO_TIME, np.arange(count), -1))
        begin_of = np.repeat(begins, np.diff(np.append(begins, count)))
        carried = np.array([self._lanes.get(int(v), NO_TIME) for v in sorted_lane[begins]])
        in_lane = np.where(
            known >= begin_of,
            sorted_own[np.maximum(known, 0)],
            np.repeat(carried, np.diff(np.append(begins, count))),
        )
        times = np.empty(count, np.int64)
        times[order] = np.where(sorted_lane == NO_LANE, NO_TIME, in_lane)
        times = np.where(own != NO_TIME, own, times)
        times = np.where(times == NO_TIME, last_known(own, self._file), times)
        self._remember(own, sorted_lane, sorted_own, begins)
        return times

    def _remember(self, own: I64, sorted_lane: I64, sorted_own: I64, begins: I64) -> None:
        ends = np.append(begins[1:], len(own)) - 1
        known = np.maximum.accumulate(np.where(sorted_own != NO_TIME, np.arange(len(own)), -1))
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if known[end] >= begin:
                self._lanes[int(sorted_lane[begin])] = int(sorted_own[known[end]])
        self._file = int(last_known(own, self._file)[-1])


def last_known(own: I64, before: int) -> I64:
    """Each line's own time or that of the last line that has one, in order of the file."""
    known = np.maximum.accumulate(np.where(own != NO_TIME, np.arange(len(own)), -1))
    times: I64 = np.where(known >= 0, own[np.maximum(known, 0)], before)
    return times


def fill_levels(
    level: npt.NDArray[np.int16], groups: Groups
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.uint16]]:
    """Levels with the group's for its continuations; a bare traceback is an ERROR. And flags."""
    flags = np.zeros(len(level), np.uint16)
    level = level.copy()
    inferred = groups.traceback & (level == NO_LEVEL) & (groups.root == np.arange(len(level)))
    level[inferred] = ERROR
    flags[inferred] |= LEVEL_INFERRED
    continued = (groups.root != np.arange(len(level))) & (level == NO_LEVEL)
    continued &= level[groups.root] != NO_LEVEL
    level[continued] = level[groups.root[continued]]
    flags[continued] |= LEVEL_INHERITED
    flags[continued & inferred[groups.root]] |= LEVEL_INFERRED
    return level, flags
