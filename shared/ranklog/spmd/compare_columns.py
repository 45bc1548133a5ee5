"""Verdicts over a walk through columns: what is equal is told from columns, the rest from its lines.

Two lines of one place whose texts are the same but for times are equal; all other places are fetched as
lines and compared as in spmd/compare, until as many hunks are shown as are wanted. Places behind these
are counted: as changed, where texts differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ranklog.model.answer import Line
from ranklog.spmd.changes import PeerValues, changes_of
from ranklog.spmd.columns import has_iteration, iteration_of
from ranklog.spmd.compare import extend_hunk, make_hunk
from ranklog.spmd.hunks import Comparison, Hunk, verdict
from ranklog.spmd.slots import Slot
from ranklog.spmd.table import ABSENT, I64, Flags
from ranklog.spmd.walk import Walk

# Places whose lines are fetched at once.
_PLACES_AT_ONCE = 4_096


class Texts(Protocol):
    """What the sides' lines say."""

    def same(self, rows: I64, other: int, other_rows: I64) -> Flags:
        """Whether side 0's and the other side's lines are equal but for times."""

    def lines(self, rows: I64) -> list[list[Line | None]]:
        """The lines of places: I64[k, S] to k rows of S lines, None where a side has none."""


def compare_columns(
    labels: Sequence[str],
    walk: Walk,
    texts: Texts,
    *,
    peers: Callable[[], Sequence[Line]],
    all_hunks: bool,
    limit: int | None,
    window_ns: int,
) -> Comparison:
    """The first `limit` hunks; `more` counts places that differ behind them."""
    present = walk.rows != ABSENT
    missing = ~present.all(axis=1)
    equal = ~missing
    there = np.flatnonzero(equal)
    for side in range(1, len(labels)):
        same = texts.same(walk.rows[there, 0], side, walk.rows[there, side])
        equal[there[~same]] = False
        there = there[same]
    wanted = np.arange(len(equal)) if all_hunks else np.flatnonzero(~equal)
    told = _Told(labels, walk, texts, PeerValues(peers() if len(wanted) else ()), window_ns)
    done = told.show(wanted, limit, all_hunks=all_hunks)
    left = wanted[done:]
    counts = dict(told.counts)
    if not all_hunks:
        counts["equal"] += int(equal.sum())
    for op, number in _counted(present[left], equal[left]).items():
        counts[op] += number
    more = int((~equal[left]).sum())
    return Comparison(list(labels), told.hunks, counts, more)


def _counted(present: Flags, equal: Flags) -> dict[str, int]:
    """Verdicts of places that are not looked at."""
    count, sides = present.sum(axis=1), present.shape[1]
    whole = count == sides
    delete = ~whole & ((2 * count > sides) | ((2 * count == sides) & present[:, 0]))
    found = {"equal": equal, "change": whole & ~equal, "delete": delete}
    found["insert"] = ~whole & ~delete
    return {op: int(flags.sum()) for op, flags in found.items()}


class _Told:
    """Hunks in the making."""

    def __init__(
        self,
        labels: Sequence[str],
        walk: Walk,
        texts: Texts,
        peers: PeerValues,
        window_ns: int,
    ) -> None:
        self._labels = labels
        self._walk = walk
        self._texts = texts
        self._peers = peers
        self._window_ns = window_ns
        self._previous: tuple[object, ...] = ()
        self.hunks: list[Hunk] = []
        self.counts = dict.fromkeys(("equal", "insert", "delete", "change"), 0)

    def show(self, wanted: I64, limit: int | None, *, all_hunks: bool) -> int:
        """Make hunks of places until there are `limit`; how many places were looked at."""
        size = _PLACES_AT_ONCE if limit is None else max(64, min(_PLACES_AT_ONCE, 2 * limit))
        for begin in range(0, len(wanted), size):
            part = wanted[begin : begin + size]
            for at, lines in enumerate(self._texts.lines(self._walk.rows[part])):
                place = int(part[at])
                known = len(self.hunks)
                self._place(place, lines, begin + at, wanted, all_hunks=all_hunks)
                if limit is not None and len(self.hunks) > limit:
                    self.counts[self.hunks.pop().op] -= 1
                    return begin + at
                assert len(self.hunks) - known <= 1
        return len(wanted)

    def _place(
        self, place: int, lines: list[Line | None], at: int, wanted: I64, *, all_hunks: bool
    ) -> None:
        walk, code = self._walk, int(self._walk.code[place])
        slot = Slot(0, lines, bool(walk.moved[place]), bool(walk.words[place]))
        if not any(lines):
            return  # what could not be read the answer says
        changes = changes_of(slot, self._labels, self._peers)
        op = verdict(slot, changes)
        self.counts[op] += 1
        if op == "equal" and not all_hunks:
            self._previous = ()
            return
        first = slot.first
        key = (first.call_site, first.template)
        present = tuple(line is not None for line in lines)
        neighbour = at > 0 and int(wanted[at - 1]) == place - 1
        group = (code, key, op, present, slot.moved)
        if neighbour and group == self._previous and not changes:
            extend_hunk(self.hunks[-1], slot, self._labels)
        else:
            block = (0, int(has_iteration(code)), iteration_of(code) or 0)
            hunk = make_hunk(op, block, slot, self._labels, self._window_ns)
            hunk.values.extend(changes)
            self.hunks.append(hunk)
        self._previous = () if changes else group
