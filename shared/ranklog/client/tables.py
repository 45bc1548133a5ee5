"""Lines and JSON rows as Arrow tables: one column per member, metadata typed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ranklog.answer.render import json_number
from ranklog.model.answer import Line

if TYPE_CHECKING:
    from ranklog.client.series_answer import SeriesAnswer

LINE_SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("ns", tz="UTC")),
        ("run_id", pa.string()),
        ("run", pa.string()),
        ("attempt", pa.int32()),
        ("rank", pa.int32()),
        ("local_rank", pa.int32()),
        ("host", pa.string()),
        ("stream", pa.string()),
        ("channel", pa.string()),
        ("seq", pa.int64()),
        ("group", pa.int64()),
        ("level", pa.int16()),
        ("call_site", pa.string()),
        ("function", pa.string()),
        ("logger", pa.string()),
        ("iteration", pa.int64()),
        ("text", pa.string()),
        ("metadata", pa.string()),
        ("raw", pa.binary()),
        ("copy", pa.bool_()),
        ("source", pa.string()),
        ("match", pa.bool_()),
    ]
)
_OTHER_NAMES = {"ts": "ts_ns", "stream": "stream_id"}


def lines_table(lines: Sequence[Line]) -> pa.Table:
    """One row per line. `metadata` is JSON; each key is also a column `meta.<key>` of its type."""
    columns: dict[str, Any] = {}
    for field in LINE_SCHEMA:
        if field.name == "metadata":
            values = [metadata_json(line.metadata) for line in lines]
        else:
            name = _OTHER_NAMES.get(field.name, field.name)
            values = [getattr(line, name) for line in lines]
        columns[field.name] = pa.array(values, field.type)
    for key in sorted({key for line in lines for key in line.metadata}):
        columns[f"meta.{key}"] = _typed([line.metadata.get(key) for line in lines])
    return pa.table(columns)


def points_table(answer: SeriesAnswer) -> pa.Table:
    """One row per point, series by series. `value` null: not measured; NaN and infinities stay."""
    from ranklog.client.series_answer import summary_of
    from ranklog.telemetry.table import ABSENT

    table, names = answer.points.table, answer.points.table.names
    columns = {
        name: _coded(getattr(table, code), texts)
        for name, code, texts in (
            ("run_id", "run", names.run),
            ("host", "host", names.host),
            ("stream", "stream", names.stream),
            ("series", "series", names.series),
            ("written", "written", names.written),
            ("dims", "dims", names.dims),
        )
    }
    columns |= {
        "ts": pa.array(table.ts_ns).cast(pa.timestamp("ns", tz="UTC")),
        "attempt": pa.array(table.attempt),
        "rank": pa.array(table.rank, mask=table.rank == ABSENT),
        "seq": pa.array(table.seq),
        "iteration": pa.array(table.iteration, mask=table.iteration == ABSENT),
        "value": pa.array(table.value, mask=table.missing),
    }
    dims = [json.loads(text) for text in names.dims]
    for key in sorted({key for item in dims for key in item}):
        columns[key if key not in columns else f"dims.{key}"] = _typed(
            [item.get(key) for item in dims]
        ).take(pa.array(table.dims))
    if table.summary is not None:
        found = (summary_of(table, row) for row in range(len(table)))
        texts = [None if item is None else json.dumps(item) for item in found]
        columns["summary"] = pa.array(texts, pa.string())
    columns |= {name: pa.array(counted) for name, counted in answer.counts.items()}
    return pa.table(columns)


def _coded(codes: Any, texts: Sequence[str]) -> Any:
    """Codes of texts, the empty one being none."""
    values = pa.array([text or None for text in texts], pa.string())
    return values.take(pa.array(codes)) if texts else pa.nulls(len(codes), pa.string())


def metadata_json(metadata: Mapping[str, Any]) -> str | None:
    """Metadata as JSON text, None where there is none."""
    if not metadata:
        return None
    return json.dumps({k: json_number(v) for k, v in metadata.items()}, ensure_ascii=False)


def _typed(values: Sequence[Any]) -> pa.Array:
    """int64, float64 or string; mixed types become text, so that nothing is lost."""
    types = {type(value) for value in values if value is not None}
    if types == {int}:
        return pa.array(values, pa.int64())
    if types <= {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else str(v) for v in values], pa.string())


def objects_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """One row per object; lists and objects inside are JSON text."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        values = [_flat(row.get(name)) for row in rows]
        columns[name] = pa.array(values, pa.bool_()) if _all_bool(values) else _typed(values)
    return pa.table(columns)


def _all_bool(values: Sequence[Any]) -> bool:
    kinds = {type(value) for value in values if value is not None}
    return kinds == {bool}


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
