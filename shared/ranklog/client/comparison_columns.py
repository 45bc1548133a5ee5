"""Fetches compared sides as columns: identity, place, key, text as Arrow, metadata; lines only to show.

A side of a million lines takes some 300 MB, most of it text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.client.line_scans import read_scans
from ranklog.client.line_table import numbers
from ranklog.client.neighbours import fetch
from ranklog.client.search import Search
from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.answer import Line
from ranklog.plan.tasks import Lines
from ranklog.spmd.columns import Column, Keyed
from ranklog.spmd.compare import WINDOW_NS
from ranklog.spmd.compare_columns import compare_columns
from ranklog.spmd.hunks import Comparison
from ranklog.spmd.table import ABSENT, I32, I64, Flags
from ranklog.spmd.variables import PLACEHOLDER, shape
from ranklog.spmd.walk import walk

_BASE = (schema.TID, schema.LEVEL, schema.CALL_SITE, schema.TEXT, schema.BODY_AT)
# Numbers whose parts the engine's template tells apart: `1.5`, `2.5e-05`.
_JOINED = re.compile(rf"{PLACEHOLDER}(?:[-+.:,/_]*{PLACEHOLDER})+")
# Times that say no more than when: spmd/variables knows more of them, and looks at what is left.
_TIMES = (
    r"\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\b"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
)


@dataclass(slots=True)
class Keys:
    """Numbers for call site and shape, over all sides."""

    keyed: list[Keyed] = field(default_factory=list)
    _numbers: dict[tuple[str | None, str], int] = field(default_factory=dict)

    def number(self, call_site: str | None, shaped: str, level: int | None) -> int:
        """The key's number; `level` of the first line of it."""
        found = self._numbers.setdefault((call_site, shaped), len(self.keyed))
        if found == len(self.keyed):
            self.keyed.append(Keyed(call_site, shaped, level))
        return found


@dataclass(slots=True)
class SideColumns:
    """A side's lines in order. `ids`: stream ids by `stream`; `metadata`: by key, where any has it."""

    run: Search
    column: Column
    stream: I32
    seq: I64
    ids: Sequence[str]
    text: Any
    metadata: dict[str, Any]


def fetch_side(run: Search, expr: q.Expr, keys: Keys) -> SideColumns:
    """All lines that match, ordered by time, stream and sequence number."""
    heads = [index.head for index in run.scope.indexes.values()]
    names = {name for head in heads for name in (*head.columns, *head.overflow)}
    values = tuple(sorted({n.partition(":")[2] for n in names if not n.startswith("str:")}))
    texts = tuple(sorted({n.removeprefix("str:") for n in names if n.startswith("str:")}))
    wanted = Lines(limit=None, whole=False, values=values, texts=texts, columns=_BASE)
    streams: dict[str, int] = {}
    attempts: dict[int, int] = {}
    parts: list[Any] = []
    for number, table in read_scans(run, expr, wanted):
        index = run.scope.indexes[number]
        places = [streams.setdefault(e.stream_id, len(streams)) for e in index.head.streams]
        attempts |= {streams[e.stream_id]: e.stream.attempt for e in index.head.streams}
        stream = np.array(places, np.int32)[numbers(table, schema.STREAM)]
        own = {
            "stream": pa.array(stream),
            "key": pa.array(_keys(index, table, keys)),
            "body": _bodies(table),
        }
        kept = [schema.TS, schema.SEQ, schema.ITERATION]
        kept += [name for name in table.column_names if name.startswith(("value:", "text:"))]
        for name, made in own.items():
            table = table.append_column(f"own:{name}", made)
        parts.append(table.select([*kept, *(f"own:{name}" for name in own)]))
    table = pa.concat_tables(parts, promote_options="permissive") if parts else None
    return order_side(run, run.scope.run_ids[0], table, tuple(streams), attempts)


def order_side(
    run: Search, run_id: str, table: Any, ids: Sequence[str], attempts: Mapping[int, int]
) -> SideColumns:
    """The columns of scans in the order of an answer. `attempts`: by stream."""
    if table is None:
        none, small = np.empty(0, np.int64), np.empty(0, np.int32)
        column = Column(run_id, none, none, none, small)
        return SideColumns(run, column, small, none, ids, pa.array([], pa.large_string()), {})
    stream = numbers(table, "own:stream")
    ts, seq = numbers(table, schema.TS), numbers(table, schema.SEQ)
    by_id = np.empty(len(ids), np.int64)
    by_id[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    order = np.lexsort((seq, by_id[stream], ts))
    attempt = np.array([attempts[i] for i in range(len(ids))], np.int64)[stream]
    column = Column(
        run_id,
        attempt[order],
        numbers(table, schema.ITERATION)[order],
        ts[order],
        numbers(table, "own:key").astype(np.int32)[order],
    )
    metadata = {
        name: table.column(name).combine_chunks().take(pa.array(order))
        for name in table.column_names
        if name.startswith(("value:", "text:")) and table.column(name).null_count < len(table)
    }
    text = table.column("own:body").combine_chunks().take(pa.array(order))
    return SideColumns(run, column, stream.astype(np.int32)[order], seq[order], ids, text, metadata)


def _keys(index: SegmentIndex, table: Any, keys: Keys) -> I32:
    """Each line's key: its call site, and the shape of its template."""
    sites = table.column(schema.CALL_SITE).combine_chunks()
    coded = sites.dictionary_encode(null_encoding="encode")
    names = coded.dictionary.to_pylist()
    tid, level = numbers(table, schema.TID), numbers(table, schema.LEVEL)
    code = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs, first, back = np.unique(tid * len(names) + code, return_index=True, return_inverse=True)
    found = np.empty(len(pairs), np.int32)
    for at, (pair, row) in enumerate(zip(pairs.tolist(), first.tolist(), strict=True)):
        own, site = divmod(pair, len(names))
        said = int(level[row])
        shaped = shape_of_template(index.templates[own]) if own else ""
        found[at] = keys.number(names[site], shaped, None if said == ABSENT else said)
    result = found[back]
    bodies = table.column(schema.TEXT)
    for row in np.flatnonzero(tid == 0).tolist():  # no template: few, and long or odd
        shaped = shape(bodies[row].as_py())
        result[row] = keys.number(names[int(code[row])], shaped, None)
    return result


@lru_cache(maxsize=65_536)
def shape_of_template(template: str) -> str:
    """What all lines of a template say: values in it are one placeholder each, however written."""
    return _JOINED.sub(PLACEHOLDER, shape(template.replace(PLACEHOLDER, "0")))


def _bodies(table: Any) -> Any:
    """Texts without their envelopes."""
    text = table.column(schema.TEXT).combine_chunks().cast(pa.large_string())
    begins = numbers(table, schema.BODY_AT)
    if not (begins > 0).any():
        return text
    _, ends, content = text.buffers()
    offsets = np.frombuffer(ends, np.int64)[text.offset : text.offset + len(text) + 1]
    data = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
    edges = offsets - offsets[0]
    cut = np.minimum(np.maximum(begins, 0), np.diff(edges))
    rows = np.flatnonzero(cut)
    step = np.zeros(len(data) + 1, np.int8)
    np.add.at(step, edges[rows], 1)
    np.add.at(step, edges[rows] + cut[rows], -1)
    kept = data[np.cumsum(step[:-1], dtype=np.int8) == 0]
    shorter = np.concatenate([[0], np.cumsum(np.diff(edges) - cut)]).astype(np.int64)
    buffers = [None, pa.py_buffer(shorter), pa.py_buffer(kept)]
    return pa.Array.from_buffers(pa.large_string(), len(text), buffers)


def compare_sides(
    asked: Mapping[str, tuple[Search, q.Expr]],
    *,
    peers: Callable[[], Sequence[Line]],
    all_hunks: bool,
    limit: int | None,
) -> Comparison:
    """Sides by label: whose lines, and which."""
    keys = Keys()
    sides = [fetch_side(run, expr, keys) for run, expr in asked.values()]
    columns = [side.column for side in sides]
    found = walk(columns, keys.keyed, origins=_origins(columns), window_ns=WINDOW_NS)
    return compare_columns(
        list(asked),
        found,
        ColumnTexts(sides),
        peers=peers,
        all_hunks=all_hunks,
        limit=limit,
        window_ns=WINDOW_NS,
    )


def _origins(columns: Sequence[Column]) -> list[int]:
    """Ranks of a run share a clock; runs are held against each other from their first lines."""
    starts = [int(column.ts_ns.min()) if len(column) else 0 for column in columns]
    there = [start for start, column in zip(starts, columns, strict=True) if len(column)]
    if len({column.run for column in columns}) > 1:
        return starts
    return [min(there, default=0)] * len(columns)


class ColumnTexts:
    """What sides say, told from their columns; lines by another scan."""

    def __init__(self, sides: Sequence[SideColumns]) -> None:
        self._sides = sides

    def same(self, rows: I64, other: int, other_rows: I64) -> Flags:
        """See compare_columns.Texts."""
        one, two = self._sides[0], self._sides[other]
        a, b = one.text.take(pa.array(rows)), two.text.take(pa.array(other_rows))
        found: Flags = np.array(pc.equal(a, b).to_numpy(zero_copy_only=False), np.bool_)
        differing = np.flatnonzero(~found)
        if len(differing):
            at = pa.array(differing)
            without = [
                pc.replace_substring_regex(side.take(at), pattern=_TIMES, replacement="")
                for side in (a, b)
            ]
            found[differing] = pc.equal(*without).to_numpy(zero_copy_only=False)
        for name in sorted(one.metadata.keys() | two.metadata.keys()):
            values = [
                side.metadata[name].take(pa.array(chosen)) if name in side.metadata else None
                for side, chosen in ((one, rows), (two, other_rows))
            ]
            found &= _equal_values(*values)
        return found

    def lines(self, rows: I64) -> list[list[Line | None]]:
        """See compare_columns.Texts."""
        found: list[list[Line | None]] = [[None] * rows.shape[1] for _ in range(len(rows))]
        for at, side in enumerate(self._sides):
            wanted: dict[str, list[tuple[int, int, int]]] = {}
            there = np.flatnonzero(rows[:, at] != ABSENT)
            ids = [
                (side.ids[stream], seq)
                for stream, seq in zip(
                    side.stream[rows[there, at]].tolist(),
                    side.seq[rows[there, at]].tolist(),
                    strict=True,
                )
            ]
            for stream_id, seq in ids:
                wanted.setdefault(stream_id, []).append((seq, seq + 1, -1))
            lines = {(x.stream_id, x.seq): x for x in fetch(side.run, wanted)} if wanted else {}
            for place, own in zip(there.tolist(), ids, strict=True):
                line = lines.get(own)
                if line is not None:
                    line.match = True
                found[place][at] = line
        return found


def _equal_values(one: Any, two: Any) -> Any:
    """Whether values are the same; absent equals absent, NaN equals NaN."""
    if one is None or two is None:
        (there,) = [side for side in (one, two) if side is not None]
        return there.is_null().to_numpy(zero_copy_only=False)
    same = pc.fill_null(pc.equal(one, two), False)
    absent = pc.and_(one.is_null(), two.is_null())
    found = pc.or_(same, absent)
    if pa.types.is_floating(one.type) and pa.types.is_floating(two.type):
        nan = pc.and_(pc.is_nan(one), pc.is_nan(two))
        found = pc.or_(found, pc.fill_null(nan, False))
    return found.to_numpy(zero_copy_only=False)
