"""Where a stream's iterations go back: each stretch in which they only go on is a pass.

Shapes: n rows in (stream, seq) order; `stream` I32[n], `seq`, `ts`, `iteration` I64[n], NO_ITERATION
where a row has none; `rank` I32[n], STREAM_RANK where it is the stream's.
"""

from __future__ import annotations

import numpy as np

from ranklog.layout.rows import I32, I64
from ranklog.model.frame import NO_ITERATION
from ranklog.model.index import Pass

# Passes of a stream in one segment; of more, those that go back farthest. A job that crashes so often
# within one batch of lines is not told apart finer.
PASSES_MAX = 32


def passes_by_stream(
    stream: I32, seq: I64, ts: I64, iteration: I64, rank: I32
) -> dict[int, tuple[Pass, ...]]:
    """Passes of each stream that names iterations.

    A single line that names an earlier iteration (a checkpoint is written while others go on) is a
    pass of its own, and the next begins behind it. Where several ranks speak in one stream, which are not
    always at the same iteration, the one that names most iterations is looked at.
    """
    named = np.flatnonzero(iteration != NO_ITERATION)
    if not len(named):
        return {}
    stream, seq, ts = stream[named], seq[named], ts[named]
    iteration, rank = iteration[named], rank[named]
    starts = np.flatnonzero(np.diff(stream, prepend=-1))
    ends = np.append(starts[1:], len(stream))
    found = {}
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        rows = np.arange(start, end)
        if (rank[start:end] != rank[start]).any():
            ranks, counts = np.unique(rank[start:end], return_counts=True)
            rows = rows[rank[start:end] == ranks[counts.argmax()]]
        found[int(stream[start])] = _passes(seq[rows], ts[rows], iteration[rows])
    return found


def _passes(seq: I64, ts: I64, iteration: I64) -> tuple[Pass, ...]:
    begins = [0, *_turns(iteration)]
    ends = [*begins[1:], len(iteration)]
    passes = []
    for begin, end in zip(begins, ends, strict=True):
        high = begin + int(iteration[begin:end].argmax())
        second = begin + int((iteration[begin:end] != iteration[begin]).argmax())
        passes.append(
            Pass(
                first_seq=int(seq[begin]),
                first_ns=int(ts[begin]),
                first=int(iteration[begin]),
                second=int(iteration[second]),
                high_seq=int(seq[high]),
                high_ns=int(ts[high]),
                high=int(iteration[high]),
            )
        )
    return tuple(passes)


def _turns(iteration: I64) -> list[int]:
    """Positions, ascending, at which iterations go back, and behind lines that only look back."""
    if (iteration[1:] >= iteration[:-1]).all():
        return []
    turns: list[tuple[int, int]] = []  # (how far back, position)
    waiting = [(0, len(iteration))]
    while waiting:
        begin, end = waiting.pop()
        values = iteration[begin:end]
        reached = np.maximum.accumulate(values)
        below = np.flatnonzero(np.diff((values < reached).astype(np.int8), prepend=0, append=0))
        for first, last in below.reshape(-1, 2).tolist():
            depth = int(reached[first] - values[first])
            turns.append((depth, begin + first))
            if values[first:last].max() == values[first] and begin + last < len(iteration):
                turns.append((depth, begin + last))  # nothing went on from there
            if last - first > 1:
                waiting.append((begin + first, begin + last))
    turns.sort(key=lambda turn: (-turn[0], turn[1]))
    return sorted({at for _, at in turns[: PASSES_MAX - 1]})
