"""An MLflow tracking store as points: its SQLite database, or the metric files of its folder.

    mlruns/<experiment>/<run id>/metrics/<key>      lines of: milliseconds, value, step
    mlflow.db                                       the table `metrics`

Each run of MLflow is the dimension `mlflow_run`: its name, else its id.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from ranklog.errors import BadInput
from ranklog.importer.point_text import HEAD, point_line

SQLITE = b"SQLite format 3\0"
_METRIC_FILE = re.compile(r"(?P<run>.*/(?P<id>[0-9a-f]{32}))/metrics/(?P<key>.+)$")
_METRIC = re.compile(rb"(\d+) (\S+)(?: (-?\d+))?(?: .*)?$")
_PIECE_ROWS = 10_000


def metric_file(path: str) -> tuple[str, str] | None:
    """(name of the run, key) of a metric's file by its whole path; None where it is none."""
    found = _METRIC_FILE.match(path)
    if found is None or not (Path(found["run"]) / "meta.yaml").is_file():
        return None
    try:
        name = (Path(found["run"]) / "tags" / "mlflow.runName").read_text().strip()
    except (OSError, UnicodeDecodeError):
        name = ""
    return name or found["id"], found["key"]


def render_metric(name: str, run: str, key: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The text of a metric's file, in pieces. Raises BadInput."""
    yield HEAD
    pending = b""
    for block in blocks:
        *lines, pending = (pending + block).split(b"\n")
        yield from _together(_line(name, line, run, key) for line in lines if line.strip())
    if pending.strip():  # whoever writes it writes whole lines; the last may have no line feed
        yield _line(name, pending, run, key)


def _together(lines: Iterable[bytes]) -> Iterator[bytes]:
    """One piece of many lines, also of those before a damaged one."""
    good: list[bytes] = []
    try:
        for line in lines:
            good.append(line)
    except BadInput:
        yield b"".join(good)
        raise
    yield b"".join(good)


def _line(name: str, line: bytes, run: str, key: str) -> bytes:
    found = _METRIC.match(line.rstrip())
    try:
        if found is None:
            raise ValueError
        value = float(found[2])
    except ValueError as error:
        raise BadInput(f"{name}: no metric of MLflow: {line[:60]!r}") from error
    step = None if found[3] is None else int(found[3])
    return point_line(int(found[1]) * 10**6, step, {key: value}, {"mlflow_run": run})


def render_database(name: str) -> Iterator[bytes]:
    """The text of the metrics of a database, in pieces, oldest row first. Raises BadInput."""
    uri = f"{Path(name).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            tables = {n for (n,) in database.execute("SELECT name FROM sqlite_master")}
            if not {"metrics", "runs", "experiments"} <= tables:
                raise BadInput(f"{name}: a SQLite database, not a log (nor MLflow's)")
            yield HEAD
            rows = database.execute(
                "SELECT m.timestamp, m.step, m.key, m.value, m.is_nan, coalesce(r.name, ''), m.run_uuid "
                "FROM metrics m JOIN runs r USING (run_uuid) ORDER BY m.rowid"
            )
            while piece := rows.fetchmany(_PIECE_ROWS):
                yield b"".join(
                    point_line(
                        ts * 10**6,
                        step,
                        {key: float("nan") if is_nan else value},
                        {"mlflow_run": run or run_id},
                    )
                    for ts, step, key, value, is_nan, run, run_id in piece
                )
    except sqlite3.Error as error:
        raise BadInput(f"{name}: {error}") from error
