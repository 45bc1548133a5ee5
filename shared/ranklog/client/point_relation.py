"""Points as one SQL relation: points of segments joined with their records, streams, series and contexts.

Tables of one statement: `segment_files` (segment, path), the streams and skips of client/relation, and
`point_series` and `point_contexts`, which say what a segment's numbers mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from ranklog.client.relation import SKIPS_TABLE, STREAMS_TABLE
from ranklog.layout import point_schema as ps
from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.plan.point_terms import values_of
from ranklog.scan.fields import text_literal
from ranklog.scan.point_sql import column_sql

SERIES_TABLE, CONTEXTS_TABLE = "point_series", "point_contexts"
_NUMBERS = ("count", "min", "max", "mean", "std", "norm", "nan", "inf")

EMPTY_POINTS = """
SELECT make_timestamp_ns(0) AS ts, 0::BIGINT AS ts_ns, ''::VARCHAR AS run, ''::VARCHAR AS run_id,
  0::INTEGER AS attempt, 0::INTEGER AS rank, ''::VARCHAR AS host, ''::VARCHAR AS stream,
  0::BIGINT AS seq, 0::BIGINT AS iteration, ''::VARCHAR AS series, MAP {'': ''} AS dims,
  0::DOUBLE AS value, {'count': 0::BIGINT, 'min': 0::DOUBLE, 'max': 0::DOUBLE, 'mean': 0::DOUBLE,
  'std': 0::DOUBLE, 'norm': 0::DOUBLE, 'nan': 0::BIGINT, 'inf': 0::BIGINT} AS summary,
  ''::VARCHAR AS metadata WHERE false
"""


def points_sql(paths: Iterable[str], columns: Iterable[str], where: str) -> str:
    """The relation over the files at `paths`, of which some have each of `columns`. `where`: SQL over
    records `f` and streams `t`."""
    there = tuple(columns)
    names = ", ".join(text_literal(path) for path in paths)
    source = (
        f"(SELECT s.segment, r.* EXCLUDE (filename) FROM read_parquet([{names}], filename=true, "
        f"union_by_name=true, file_row_number=true) AS r JOIN segment_files AS s "
        f"ON s.path = r.filename)"
    )
    rank = (
        f"CASE WHEN f.rank IS NULL THEN t.own_rank WHEN f.rank = {schema.NO_RANK} THEN NULL "
        f"ELSE f.rank END"
        if ps.RANK in there
        else "t.own_rank"
    )
    iteration = "f.iteration" if ps.ITERATION in there else "NULL::BIGINT"
    context = "f.context" if ps.CONTEXT in there else "NULL::INTEGER"
    parts = ", ".join(column_sql(name, there) for name in (ps.VALUE, *ps.COUNTS, *ps.NUMBERS))
    summary = ", ".join(f"'{name}': p.s_{name}" for name in _NUMBERS)
    return (
        f"SELECT make_timestamp_ns(f.ts) AS ts, f.ts AS ts_ns, t.run, t.run_id, t.attempt, "
        f"{rank} AS rank, t.host, t.stream_id AS stream, f.seq, {iteration} AS iteration, "
        f"n.series, n.dims, p.value, "
        f"CASE WHEN p.s_count IS NULL THEN NULL ELSE {{{summary}}} END AS summary, c.metadata "
        f"FROM (SELECT segment, sid, rec, {parts} FROM {source} WHERE sid IS NOT NULL) AS p "
        f"JOIN (SELECT * FROM {source} AS a ANTI JOIN {SKIPS_TABLE} AS k ON k.segment = a.segment "
        f"AND k.stream = a.stream AND a.seq >= k.first AND a.seq < k.stop "
        f"WHERE a.seq IS NOT NULL) AS f ON f.segment = p.segment AND f.file_row_number = p.rec "
        f"JOIN {STREAMS_TABLE} AS t ON t.segment = f.segment AND t.stream = f.stream "
        f"JOIN {SERIES_TABLE} AS n ON n.segment = p.segment AND n.sid = p.sid "
        f"LEFT JOIN {CONTEXTS_TABLE} AS c ON c.segment = f.segment AND c.context = {context} "
        f"WHERE {where}"
    )


def point_columns(indexes: Iterable[SegmentIndex]) -> set[str]:
    """Columns that some segment has."""
    return {name for i in indexes for group in i.head.row_groups[:1] for name in group.chunks}


def register_points(
    connection: duckdb.DuckDBPyConnection, indexes: Mapping[int, SegmentIndex]
) -> None:
    """What the numbers of the segments' series and contexts mean, as tables."""
    for name, table in (
        (SERIES_TABLE, _series_table(indexes)),
        (CONTEXTS_TABLE, _contexts_table(indexes)),
    ):
        connection.register(f"{name}_arrow", table)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM {name}_arrow")
        connection.unregister(f"{name}_arrow")


def _series_table(indexes: Mapping[int, SegmentIndex]) -> pa.Table:
    parts = []
    for number, index in indexes.items():
        table = index.series
        names = pa.array(table.names, pa.string()).take(pa.array(np.asarray(table.name)))
        dims = _maps(table.dims).take(pa.array(np.asarray(table.dim)))
        places = pa.array(range(len(table)), pa.int32())
        segment = pa.array([number] * len(table), pa.int32())
        columns = {"segment": segment, "sid": places, "series": names, "dims": dims}
        parts.append(pa.table(columns))
    if parts:
        return pa.concat_tables(parts)
    kinds = [("segment", pa.int32()), ("sid", pa.int32()), ("series", pa.string())]
    return pa.schema([*kinds, ("dims", pa.map_(pa.string(), pa.string()))]).empty_table()


def _maps(texts: Iterable[str]) -> Any:
    """Dimensions as maps of text to text."""
    whole = [values_of(text) for text in texts]
    offsets = [*accumulate((len(one) for one in whole), initial=0)]
    keys = pa.array([key for one in whole for key in one], pa.string())
    values = pa.array([str(value) for one in whole for value in one.values()], pa.string())
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values)


def _contexts_table(indexes: Mapping[int, SegmentIndex]) -> pa.Table:
    rows = [
        (number, place, text)
        for number, index in indexes.items()
        for place, text in enumerate(index.series.contexts)
    ]
    return pa.table(
        {
            "segment": pa.array([row[0] for row in rows], pa.int32()),
            "context": pa.array([row[1] for row in rows], pa.int32()),
            "metadata": pa.array([row[2] for row in rows], pa.string()),
        }
    )
