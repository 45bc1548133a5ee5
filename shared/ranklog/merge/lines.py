"""Rows of outcomes into lines: ordered by (time, stream, seq), each once, cut at the limit."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.model.answer import Line
from ranklog.plan.tasks import Outcome

Key: TypeAlias = "tuple[int, str, int]"  # ts, stream id, seq
FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class LineMerge:
    """Collects rows; keeps the `limit` first in order. Identity is (stream_id, seq)."""

    def __init__(
        self, indexes: Mapping[int, SegmentIndex], *, limit: int | None, newest: bool
    ) -> None:
        self._indexes = indexes
        self._limit = limit
        self._newest = newest
        self._ids: dict[int, list[str]] = {}
        self._rows: list[tuple[Key, dict[str, list[Any]], int]] = []
        self.cut = False  # whether a row was left out

    def add(self, outcome: Outcome) -> None:
        """Take an outcome's rows."""
        columns = outcome.columns
        if not columns:
            return
        ids = [self._stream_ids(n) for n in columns["segment"]]
        keys = zip(columns[schema.TS], columns[schema.STREAM], columns[schema.SEQ], strict=True)
        for i, (ts, stream, seq) in enumerate(keys):
            self._rows.append(((ts, ids[i][stream], seq), columns, i))
        if self._limit is not None and len(self._rows) > 4 * self._limit + 1024:
            self._settle()

    def _stream_ids(self, number: int) -> list[str]:
        ids = self._ids.get(number)
        if ids is None:
            ids = [entry.stream_id for entry in self._indexes[number].head.streams]
            self._ids[number] = ids
        return ids

    def full_at(self) -> int | None:
        """Time of the last line that is kept when the limit is reached, else None."""
        if self._limit is None:
            return None
        self._settle()
        if len(self._rows) < self._limit or not self._rows:
            return None
        return self._rows[-1][0][0]

    def _settle(self) -> None:
        self._rows.sort(key=lambda row: row[0], reverse=self._newest)
        rows: list[tuple[Key, dict[str, list[Any]], int]] = []
        last: Key | None = None
        for row in self._rows:
            if row[0] != last:
                rows.append(row)
                last = row[0]
        if self._limit is not None and len(rows) > self._limit:
            self.cut = True
            del rows[self._limit :]
        self._rows = rows

    def keys(self) -> list[Key]:
        """Identity and time of the kept rows, in order."""
        self._settle()
        return [key for key, _, _ in self._rows]

    def lines(self, match: bool = True) -> list[Line]:
        """The kept lines, in order."""
        self._settle()
        return [build_line(self._indexes, columns, i, match) for _, columns, i in self._rows]

    def rows(self, *names: str) -> list[tuple[Any, ...]]:
        """(ts, stream_id, seq, entry's stream, own columns…) of the kept rows, in order."""
        self._settle()
        return [
            (*key, self._stream(columns, i), *(columns[name][i] for name in names))
            for key, columns, i in self._rows
        ]

    def _stream(self, columns: dict[str, list[Any]], i: int) -> Any:
        return self._indexes[columns["segment"][i]].head.streams[columns[schema.STREAM][i]].stream


def build_line(
    indexes: Mapping[int, SegmentIndex], columns: dict[str, list[Any]], i: int, match: bool
) -> Line:
    """Row `i` of an outcome as a line."""
    index = indexes[columns["segment"][i]]
    entry = index.head.streams[columns[schema.STREAM][i]]
    stream = entry.stream
    tid = columns[schema.TID][i]
    raw = columns[schema.RAW][i]
    return Line(
        stream_id=entry.stream_id,
        seq=columns[schema.SEQ][i],
        ts_ns=columns[schema.TS][i],
        run=stream.run,
        launch=stream.launch,
        attempt=stream.attempt,
        rank=line_rank(stream.rank, columns[schema.RANK][i]),
        local_rank=stream.local_rank,
        host=stream.host,
        channel=stream.channel,
        group=columns[schema.GROUP][i],
        level=columns[schema.LEVEL][i],
        call_site=columns[schema.CALL_SITE][i],
        function=columns[schema.FUNCTION][i],
        logger=columns[schema.LOGGER][i],
        text=columns[schema.TEXT][i],
        iteration=columns[schema.ITERATION][i],
        metadata=typed_metadata(columns["metadata"][i]),
        match=match,
        flags=columns[schema.FLAGS][i],
        raw=None if raw is None else base64.b64decode(raw),
        copy=stream.copy,
        source=stream.source,
        tid=tid,
        template=index.templates[tid] if tid else None,
    )


def line_rank(own: int | None, override: int | None) -> int | None:
    """A line's rank: its context's, else its stream's; -1 is none."""
    if override is None:
        return own
    return None if override == schema.NO_RANK else override


def typed_metadata(value: Mapping[str, Any] | None) -> dict[str, int | float | str]:
    """`{"float:loss": "NaN"}` as `{"loss": nan}`."""
    metadata: dict[str, int | float | str] = {}
    for name, item in (value or {}).items():
        type_, _, key = name.partition(":")
        if type_ == "float":
            metadata[key] = FLOATS[item] if isinstance(item, str) else float(item)
        else:
            metadata[key] = item
    return metadata


def order_lines(lines: Sequence[Line], *, newest: bool) -> list[Line]:
    """Lines in an answer's order, each once; a match wins over its own neighbour copy."""
    best: dict[tuple[str, int], Line] = {}
    for line in lines:
        known = best.get((line.stream_id, line.seq))
        if known is None or (line.match and not known.match):
            best[line.stream_id, line.seq] = line
    return sorted(
        best.values(), key=lambda line: (line.ts_ns, line.stream_id, line.seq), reverse=newest
    )
