"""Lines of one attempt as columns, without their text: what analyses of all ranks work on.

Shapes: n lines, in no order; `rank` I32[n], -1 none; `ts_ns` I64[n]; `iteration` I64[n], -1 none;
`key` I32[n] into `keys`; `level` I16[n], -1 none; `seq` I64[n]; `stream` I32[n] into `streams`. A key
is what a program says at one place: call site and template.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.model.stream import Stream

I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ABSENT = -1


@dataclass(frozen=True, slots=True)
class Key:
    """Who says what. `template` "": the index does not say, so lines of it are not alike."""

    call_site: str | None
    template: str


@dataclass(frozen=True, slots=True)
class LineTable:
    """The columns, and what their numbers mean. `streams`: (stream id, stream)."""

    rank: I32
    ts_ns: I64
    iteration: I64
    key: I32
    level: I16
    seq: I64
    stream: I32
    keys: Sequence[Key]
    streams: Sequence[tuple[str, Stream]]

    def __len__(self) -> int:
        return len(self.rank)

    def where(self, chosen: Flags) -> LineTable:
        """The lines that are chosen."""
        return LineTable(
            self.rank[chosen],
            self.ts_ns[chosen],
            self.iteration[chosen],
            self.key[chosen],
            self.level[chosen],
            self.seq[chosen],
            self.stream[chosen],
            self.keys,
            self.streams,
        )

    def id_of(self, row: int) -> tuple[str, int]:
        """(stream id, seq) of a line."""
        return self.streams[int(self.stream[row])][0], int(self.seq[row])


def table_of(
    rows: Iterable[tuple[int, int, int, Key, int]],
    streams: Sequence[tuple[str, Stream]] = (),
) -> LineTable:
    """A small table of (rank, ns, iteration, key, level) in order; ABSENT where there is none."""
    given = list(rows)
    numbers: dict[Key, int] = {}
    key = [numbers.setdefault(row[3], len(numbers)) for row in given]
    count = len(given)
    return LineTable(
        rank=np.array([row[0] for row in given], np.int32),
        ts_ns=np.array([row[1] for row in given], np.int64),
        iteration=np.array([row[2] for row in given], np.int64),
        key=np.array(key, np.int32),
        level=np.array([row[4] for row in given], np.int16),
        seq=np.arange(count),
        stream=np.zeros(count, np.int32),
        keys=tuple(numbers),
        streams=streams,
    )
