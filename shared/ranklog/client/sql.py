"""User SQL over the views `lines` and `points`: one statement that reads, and nothing outside them.

The database is made for one statement. It may open the segments in scope and no other file, no
network and no Python variable; settings are locked before the user's words run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from ranklog import limits
from ranklog.answer.render import render_time
from ranklog.client.answer import Tabular
from ranklog.client.point_relation import (
    EMPTY_POINTS,
    point_columns,
    points_sql,
    register_points,
)
from ranklog.client.reader import Reader
from ranklog.client.relation import (
    SKIPS_TABLE,
    lines_sql,
    overflow_columns,
    register_tables,
    segment_columns,
)
from ranklog.client.scope import Scope, open_scope
from ranklog.client.search import timed
from ranklog.client.sql_gate import check_statement
from ranklog.client.sql_rows import Database
from ranklog.errors import BadQuery, Corrupt, TooLarge, Unavailable
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.answer import Completeness, Report
from ranklog.plan.point_scan import whole_scan
from ranklog.plan.segments import Kept, plan_scan
from ranklog.plan.tasks import Lines, SegmentScan
from ranklog.scan.engine import reason
from ranklog.scan.fields import text_literal
from ranklog.scan.files import RangedObject
from ranklog.scan.filesystem import RangedFiles
from ranklog.scan.verify import check_file
from ranklog.store.protocol import Store

_EMPTY_LINES = """
SELECT make_timestamp_ns(0) AS ts, 0::BIGINT AS ts_ns, ''::VARCHAR AS run, ''::VARCHAR AS run_id,
  0::INTEGER AS attempt, 0::INTEGER AS rank, 0::INTEGER AS local_rank, ''::VARCHAR AS host,
  ''::VARCHAR AS stream, ''::VARCHAR AS channel, 0::BIGINT AS seq, 0::BIGINT AS "group",
  0::SMALLINT AS level, ''::VARCHAR AS call_site, ''::VARCHAR AS function, ''::VARCHAR AS logger,
  0::BIGINT AS iteration, ''::VARCHAR AS text, false AS copy, ''::VARCHAR AS source,
  0::SMALLINT AS flags WHERE false
"""


@dataclass(slots=True)
class SqlAnswer(Tabular):
    """A pyarrow table, and what the views covered."""

    table: Any
    report: Report = field(default_factory=Report)
    completeness: Completeness = field(default_factory=Completeness)

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Row by row, values as Python has them; nanoseconds, which its datetime has not, as text."""
        for batch in self.table.to_batches():
            try:
                columns = [_whole_times(column).to_pylist() for column in batch.columns]
            except (OverflowError, ValueError) as error:
                raise BadQuery(
                    f"a value that Python can't hold: {error}", hint="CAST it to VARCHAR"
                ) from error
            yield from zip(*columns, strict=True)

    def to_arrow(self) -> Any:
        return self.table


def _whole_times(column: pa.Array) -> pa.Array:
    if not pa.types.is_timestamp(column.type) or column.type.unit != "ns":
        return column
    times = column.cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()
    return pa.array([None if ns is None else render_time(ns) for ns in times], pa.string())


def run_sql(reader: Reader, statement: str, query: q.Query) -> SqlAnswer:
    """Run one SELECT over the lines and points in scope, for `query.timeout_s` at most.
    Raises BadQuery, TooLarge, Corrupt, Unavailable."""
    report = Report()
    with timed(report, "list"):
        scope = open_scope(reader, query, None, report, points=True)
    database = Database()
    connection = database.connection
    files = RangedFiles()
    try:
        check_statement(connection, statement)
        paths = _segment_paths(reader.store, scope.indexes, files, _whole)
        points = _segment_paths(reader.store, scope.points, files, whole_scan)
        connection.register_filesystem(files)
        register_tables(connection, {**scope.indexes, **scope.points}, scope.skips)
        _name_files(connection, {**paths, **points})
        _create_lines(connection, scope, paths)
        _create_points(connection, scope, points)
        _lock(connection, [*paths.values(), *points.values()])
        with timed(report, "scan"):
            table = database.fetch(statement, _seconds(reader, query))
        _refuse_damage(files)
    except duckdb.OutOfMemoryException as error:
        raise TooLarge(
            f"the statement needs over {limits.SQL_MEMORY_BYTES_MAX // limits.MIB} MiB of memory",
            hint="narrow it with --run, --since or WHERE, or aggregate before you sort",
        ) from error
    except (duckdb.IOException, duckdb.InternalException) as error:
        _refuse_damage(files)
        raise Corrupt(f"a segment can't be read: {reason(error)}") from error
    except duckdb.Error as error:
        _refuse_damage(files)
        raise BadQuery(
            reason(error), hint="DuckDB's SQL over the views lines and points"
        ) from error
    finally:
        database.close()
        files.pool.shutdown(wait=False)
    return SqlAnswer(table, report, scope.completeness([]))


def _seconds(reader: Reader, query: q.Query) -> float:
    """Time of the statement: what was asked for, as far as the process that answers has it."""
    if query.timeout_s is None:
        return reader.deadline_s
    left_s = reader.seconds_left
    return query.timeout_s if left_s is None else min(query.timeout_s, left_s())


def _segment_paths(
    store: Store,
    indexes: Mapping[int, SegmentIndex],
    files: RangedFiles,
    whole: Callable[[int, SegmentIndex], SegmentScan],
) -> dict[int, str]:
    """Where DuckDB finds each segment. Raises Corrupt for one that is missing or damaged."""
    paths: dict[int, str] = {}
    for number, index in indexes.items():
        segment = index.head.segment
        if segment is None:
            continue
        local = store.local_path(segment.key)
        if local is None:
            paths[number] = files.add(RangedObject(store, whole(number, index), files.pool))
        elif local.exists():
            # all of it: what a statement reads is DuckDB's to know
            with _naming(segment.key):
                check_file(local, local.stat(), whole(number, index))
            paths[number] = str(local)
        else:
            raise Corrupt(f"segment {segment.key} is missing")
    return paths


@contextlib.contextmanager
def _naming(key: str) -> Iterator[None]:
    try:
        yield
    except Corrupt as error:
        raise Corrupt(f"segment {key} can't be read: {error.message}") from error
    except OSError as error:
        raise Unavailable(f"segment {key} can't be read: {error}") from error


def _refuse_damage(files: RangedFiles) -> None:
    """Raises Corrupt where a part that was fetched has another checksum, whatever came of it."""
    for key, damage in files.damage():
        with _naming(key):
            raise damage


def _whole(number: int, index: SegmentIndex) -> SegmentScan:
    kept = Kept(range(len(index.head.row_groups)))
    return plan_scan(number, index, kept, q.Everything(), Lines())


def _name_files(connection: duckdb.DuckDBPyConnection, paths: Mapping[int, str]) -> None:
    connection.execute("CREATE TEMP TABLE segment_files (segment INTEGER, path VARCHAR)")
    cases = " ".join(f"({number}, {text_literal(path)})," for number, path in paths.items())
    if cases:
        connection.execute(f"INSERT INTO segment_files VALUES {cases.rstrip(',')}")


def _create_lines(
    connection: duckdb.DuckDBPyConnection, scope: Scope, paths: Mapping[int, str]
) -> None:
    if not paths:
        connection.execute(f"CREATE VIEW lines AS {_EMPTY_LINES}")
        return
    columns = segment_columns(scope.indexes.values())
    overflow = overflow_columns(scope.indexes.values())
    names = ", ".join(text_literal(path) for path in paths.values())
    source = (
        f"(SELECT s.segment, r.* EXCLUDE (filename) "
        f"FROM read_parquet([{names}], filename=true, union_by_name=true) AS r "
        f"JOIN segment_files AS s ON s.path = r.filename "
        f"ANTI JOIN {SKIPS_TABLE} AS k ON k.segment = s.segment AND k.stream = r.stream "
        f"AND r.seq >= k.first AND r.seq < k.stop)"
    )
    where = _scope_sql(scope)
    lines = lines_sql(source, columns, overflow=overflow)
    connection.execute(f"CREATE TEMP VIEW lines AS {lines} WHERE {where}")


def _create_points(
    connection: duckdb.DuckDBPyConnection, scope: Scope, paths: Mapping[int, str]
) -> None:
    if not paths:
        connection.execute(f"CREATE VIEW points AS {EMPTY_POINTS}")
        return
    indexes = {number: scope.points[number] for number in paths}
    register_points(connection, indexes)
    columns = point_columns(indexes.values())
    points = points_sql(paths.values(), columns, _scope_sql(scope))
    connection.execute(f"CREATE TEMP VIEW points AS {points}")


def _scope_sql(scope: Scope) -> str:
    parts = ["true"]
    if scope.launches is not None:
        names = ", ".join(text_literal(run_id) for run_id in scope.run_ids)
        parts.append(f"t.run_id IN ({names})" if names else "false")
    if scope.listing.from_ns is not None:
        parts.append(f"f.ts >= {scope.listing.from_ns}")
    if scope.listing.to_ns is not None:
        parts.append(f"f.ts < {scope.listing.to_ns}")
    return " AND ".join(parts)


def _lock(connection: duckdb.DuckDBPyConnection, paths: list[str]) -> None:
    """From here on the statement reaches the named files and nothing else."""
    names = ", ".join(text_literal(path) for path in paths)
    for setting in (
        f"SET allowed_paths = [{names}]",
        "SET python_enable_replacements = false",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET temp_directory = ''",  # what does not fit into memory is refused, not spilled
        "SET enable_external_access = false",
        f"SET memory_limit = '{limits.SQL_MEMORY_BYTES_MAX // limits.MIB}MiB'",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)
