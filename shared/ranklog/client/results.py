"""Answers that were given before, for questions that are asked again of the same indexes.

An answer is a function of the query with its bounds and of the indexes in its scope: both are the key,
so a new commit in an hour, or a deletion, is another key, and nothing has to be invalidated. What could not be read
whole is never kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from copy import copy
from dataclasses import replace
from typing import TypeAlias

from ranklog.client.answer import Answer, CountAnswer
from ranklog.client.scope import Scope
from ranklog.model.answer import Line, Report
from ranklog.model.query import Query

# What a line takes beside its text, and a group of a count.
_LINE_BYTES = 1_500
_GROUP_BYTES = 200

Kept: TypeAlias = "Answer | CountAnswer"
NOTE = "from the result cache"


class Results:
    """Answers of one tenant, least recently used dropped first. Safe to use from many threads."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[int, Kept]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, place: Hashable, report: Report) -> Kept | None:
        """A copy that is the caller's, with what this asking cost in its report."""
        with self._lock:
            found = self._kept.get(place)
            if found is None:
                return None
            self._kept.move_to_end(place)
        return copied(found[1], report_of(found[1].report, report, NOTE))

    def put(self, place: Hashable, answer: Kept) -> None:
        """Keep a copy, unless it is large or something is missing that may be read next time."""
        size = _size(answer)
        if answer.completeness.skipped_tasks or size > self._bytes_max // 8:
            return
        kept = copied(answer, answer.report)
        with self._lock:
            self._bytes += size - self._kept.get(place, (0, None))[0]
            self._kept[place] = (size, kept)
            self._kept.move_to_end(place)
            while self._bytes > self._bytes_max:
                _, (gone, _) = self._kept.popitem(last=False)
                self._bytes -= gone


def place_of(query: Query, scope: Scope, kind: Hashable) -> Hashable:
    """What an answer depends on."""
    listing = scope.listing
    words = replace(query, since_ns=None, until_ns=None, last_ns=None, timeout_s=None)
    names = None if scope.launches is None else tuple(scope.run_ids)
    return (kind, words, names, listing.from_ns, listing.to_ns, listing.defaulted, scope.place)


def report_of(then: Report, now: Report, note: str) -> Report:
    """What the answer looked at then, and what it cost now."""
    found = replace(then, ms=dict(now.ms), bytes_read=now.bytes_read, warnings=list(then.warnings))
    found.notes = [*then.notes, note]
    return found


def copied(answer: Kept, report: Report) -> Kept:
    """The same answer for another caller, who may change it."""
    completeness = copy(answer.completeness)
    if isinstance(answer, CountAnswer):
        rows = list(answer.rows)
        return replace(answer, rows=rows, completeness=completeness, report=report)
    lines = [_line(line) for line in answer.lines]
    return replace(answer, lines=lines, completeness=completeness, report=report)


def _line(line: Line) -> Line:
    return replace(line, metadata=dict(line.metadata))


def _size(answer: Kept) -> int:
    if isinstance(answer, CountAnswer):
        return _GROUP_BYTES * (1 + len(answer.rows))
    return _LINE_BYTES * (1 + len(answer.lines)) + sum(len(line.text) for line in answer.lines)
