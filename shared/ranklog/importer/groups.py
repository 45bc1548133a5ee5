"""Which lines are one record: tracebacks, indented continuations, C++ frames, failure summaries.

Shapes: n lines in file order. Everything is decided in order of lanes (lines of one writing process),
so that records of ranks that write into one file do not mix where lines are labelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.importer.classify import NO_HEAD, Heads
from ranklog.importer.lines import I64, U8, Flags
from ranklog.importer.windows import buffers, matches
from ranklog.model.frame import NO_GROUP
from ranklog.model.levels import ERROR

_OTHER, _HEADED, _BLOCK, _TRACE, _INDENT, _BLANK, _FRAME, _RAISED, _CHAIN, _RULE, _CHILD = range(11)
# (kind, bytes it can begin with, expression); what a later one matches, it takes.
_KINDS = (
    (_BLANK, b" \t\r", r"^\s*$"),
    # One blank is Megatron's ` iteration`; a bar of tqdm is padded.
    (_INDENT, b" \t", r"^(?:\t| {2}) *\t*(?:[^\s\d]|\d+[^\s\d%]|\d+%?[^|%\d]|\d+$)"),
    (_FRAME, b"f", r"^frame #\d+:"),
    (_RAISED, b"E", r"^Exception raised from .*\(most recent call first\)"),
    (_TRACE, b"TC", r"^(?:C\+\+ )?Traceback \(most recent call"),
    (_CHAIN, b"DT", r"^(?:During handling of the above|The above exception was the direct) "),
    (_RULE, b"=", r"^={20,}\s*$"),
    (_CHILD, b"torch", r"^[\w.]*ChildFailedError: ?\s*$"),
    # Composer: values of a step follow, indented.
    (_BLOCK, b"[", r"^\[(?:epoch=\d+\]\[)?(?:batch|token|sample|ba|tok)=\d+(?:/\d+)?\]:?\s*$"),
)
# Kinds of lines that the next may go on.
_GOES_ON = (_HEADED, _BLOCK, _TRACE, _INDENT, _FRAME, _RAISED, _CHAIN, _CHILD)
# A failure summary names every failed rank; past this it is no summary.
_SUMMARY_LINES_MAX = 65_536


@dataclass(frozen=True, slots=True)
class Groups:
    """`root[i]`: the first line of line i's record; `distance` as frames hold it."""

    root: I64
    distance: npt.NDArray[np.uint32]
    traceback: Flags  # the line begins a traceback


def find_groups(
    bodies: Any, heads: Heads, lane: I64, continues: int | None = None, more: bool = False
) -> Groups:
    """The records of n lines. Line `continues` is the rest of the line before it.

    `more`: lines follow, which may go on with the last record of a lane; it is a group then.
    """
    kind = _kinds(bodies, heads)
    count = len(kind)
    order = np.argsort(lane, kind="stable")
    sorted_lane = lane[order]
    starts = np.ones(count, np.bool_)
    starts[1:] = sorted_lane[1:] != sorted_lane[:-1]
    place = _roots(kind[order], heads.level[order], starts)
    root = np.empty(count, np.int64)
    root[order] = order[place]
    if continues is not None and continues < count:
        root[root == continues] = root[continues - 1]
    index = np.arange(count)
    is_head = np.zeros(count, np.bool_)
    is_head[root[root != index]] = True
    if more and count:
        last = order[np.append(starts[1:], True)]
        is_head[root[last[np.isin(kind[last], _GOES_ON)]]] = True
    distance = np.where(root != index, index - root, np.where(is_head, 0, NO_GROUP))
    return Groups(root, distance.astype(np.uint32), (kind == _TRACE) | (kind == _CHAIN))


def _kinds(bodies: Any, heads: Heads) -> npt.NDArray[np.int8]:
    offsets, buffer = buffers(bodies)
    content: U8 = np.frombuffer(buffer, np.uint8)
    kind = np.full(len(bodies), _OTHER, np.int8)
    filled = offsets[1:] > offsets[:-1]
    kind[~filled] = _BLANK
    first = np.full(len(bodies), 256, np.int16)
    first[filled] = content[offsets[:-1][filled]]
    for value, letters, pattern in _KINDS:
        allowed = np.zeros(257, np.bool_)
        allowed[list(letters)] = True
        rows = np.flatnonzero(allowed[first])
        if len(rows):
            kind[rows[matches(bodies.take(pa.array(rows)), pattern)]] = value
    kind[heads.head != NO_HEAD] = _HEADED
    return kind


def _roots(kind: npt.NDArray[np.int8], level: npt.NDArray[np.int16], starts: Flags) -> I64:
    """The place of each line's record's first line, in order of lanes."""
    if not len(kind):
        return np.empty(0, np.int64)
    before = np.roll(kind, 1)
    before[starts] = -1
    joins = (kind == _INDENT) & np.isin(before, (_HEADED, _BLOCK, _TRACE, _INDENT, _FRAME))
    joins |= np.isin(kind, (_FRAME,)) & (before >= 0)
    joins |= (kind == _RAISED) & np.isin(before, (_HEADED, _OTHER))
    # logger.exception: the message, then the traceback
    joins |= (kind == _TRACE) & (before == _HEADED) & (np.roll(level, 1) >= ERROR)
    joins &= kind[_first(joins)] != _INDENT
    _join_exceptions(kind, before, joins)
    _join_summaries(kind, starts, joins)
    return _first(joins)


def _first(joins: Flags) -> I64:
    first: I64 = np.maximum.accumulate(np.where(joins, 0, np.arange(len(joins))))
    return first


def _join_exceptions(
    kind: npt.NDArray[np.int8], before: npt.NDArray[np.int8], joins: Flags
) -> None:
    """The exception's own line ends a traceback; chained ones go on with the next."""
    traces = np.cumsum(kind == _TRACE)
    root = np.roll(_first(joins), 1)
    since_root = np.roll(traces, 1) - traces[root] + (kind[root] == _TRACE)
    ends = np.isin(kind, (_OTHER, _CHILD)) & (before == _INDENT) & (since_root > 0)
    joins |= ends
    for place in np.flatnonzero(kind == _CHAIN).tolist():
        _join_chain(kind, before, ends, joins, place)


def _join_chain(
    kind: npt.NDArray[np.int8],
    before: npt.NDArray[np.int8],
    ends: Flags,
    joins: Flags,
    place: int,
) -> None:
    """exception, blank, `During handling …`, blank, traceback: one record."""
    back = place - 1 if before[place] == _BLANK else place
    if back > 0 and ends[back - 1] and before[back] >= 0:
        joins[back : place + 1] = True
    on = place + 1
    if on < len(kind) and kind[on] == _BLANK and before[on] == _CHAIN:
        on += 1
    if on < len(kind) and kind[on] == _TRACE and before[on] in (_BLANK, _CHAIN):
        joins[place + 1 : on + 1] = True


def _join_summaries(kind: npt.NDArray[np.int8], starts: Flags, joins: Flags) -> None:
    """torchelastic's failure summary: from the exception to the second `====`."""
    rules = np.flatnonzero(kind == _RULE)
    for place in np.flatnonzero(kind == _CHILD).tolist():
        at = int(np.searchsorted(rules, place))
        if at + 1 >= len(rules) or rules[at] != place + 1:
            continue
        stop = int(rules[at + 1]) + 1
        if stop - place <= _SUMMARY_LINES_MAX and not starts[place + 1 : stop].any():
            joins[place + 1 : stop] = True
