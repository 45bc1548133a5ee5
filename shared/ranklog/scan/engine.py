"""DuckDB of this process: one database in memory, one cursor per scan, RE2 for the planner.

User data is only read through `read_parquet`; nothing is installed or loaded from outside.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import duckdb

from ranklog.errors import BadQuery
from ranklog.scan.fields import regex
from ranklog.scan.stop import current_stop

if TYPE_CHECKING:
    from ranklog.scan.filesystem import RangedFiles

# Patterns that need not be looked at again; when there are more, all are forgotten.
_PATTERNS_KEPT_MAX = 256
_NO_PROGRESS_BAR = "SET enable_progress_bar = false"
_SETTINGS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET preserve_insertion_order = false",
    # keys end in a hash of the bytes: what a path holds never changes
    "SET parquet_metadata_cache = true",
    # names of ranged files are used once: nothing in that cache is met again
    "SET enable_external_file_cache = false",
)


class Engine:
    """The database and the file system it sees. Safe to use from many threads."""

    def __init__(self, threads: int | None = None) -> None:
        self._connection = duckdb.connect(":memory:")
        self._files: RangedFiles | None = None
        self._lock = threading.Lock()
        self._sound: dict[tuple[str, str], None] = {}  # patterns that RE2 can run
        with suppress(duckdb.InvalidInputException):  # a notebook without ipywidgets has no bar
            self._connection.execute(_NO_PROGRESS_BAR)
        for setting in _SETTINGS:
            self._connection.execute(setting)
        self._connection.execute(f"SET threads = {threads or os.cpu_count() or 1}")

    @property
    def files(self) -> RangedFiles:
        """What DuckDB sees of stores that have no local files."""
        with self._lock:
            if self._files is None:
                from ranklog.scan.filesystem import RangedFiles

                self._files = RangedFiles()
                self._connection.register_filesystem(self._files)
            return self._files

    @contextmanager
    def cursor(self, deadline_s: float | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own to the database; interrupted after `deadline_s`, or when what the
        thread runs under is stopped."""
        raise_if_stopped()
        stop = current_stop()
        cursor = self._connection.cursor()
        watching = nullcontext() if stop is None else stop.watching(cursor)
        try:
            with interrupted_after(cursor, deadline_s), watching:
                yield cursor
        except RuntimeError as error:
            # DuckDB took a ctrl-c for itself
            if type(error) is RuntimeError and "interrupted" in str(error):
                raise KeyboardInterrupt from error
            raise
        finally:
            cursor.close()

    def matches(self, pattern: str, flags: str, texts: Sequence[str]) -> list[bool]:
        """RE2 over many texts (plan/values.Regexes). Raises BadQuery with RE2's reason."""
        if not texts and (pattern, flags) in self._sound:
            return []
        with self.cursor() as cursor:
            try:
                rows = cursor.execute(
                    "SELECT regexp_matches(unnest($texts::VARCHAR[]), $pattern)",
                    {"texts": [*texts, ""], "pattern": regex(pattern, flags)},
                ).fetchall()
            except duckdb.Error as error:
                raise BadQuery(
                    f"RE2 can't run /{pattern}/: {reason(error)}",
                    hint=f'to find it as text write "{pattern}"',
                ) from error
        if len(self._sound) >= _PATTERNS_KEPT_MAX:
            self._sound = {}
        self._sound[pattern, flags] = None
        return [hit for (hit,) in rows[:-1]]


def raise_if_stopped() -> None:
    """As DuckDB does, where what this thread runs under is stopped."""
    stop = current_stop()
    if stop is not None and stop.is_set:
        raise duckdb.InterruptException("stopped")


@contextmanager
def interrupted_after(
    connection: duckdb.DuckDBPyConnection, seconds: float | None
) -> Iterator[None]:
    """What runs on the connection inside the block is interrupted after so long; None: never."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@functools.cache
def shared_engine() -> Engine:
    """This process's engine: a Lambda or a client needs one."""
    return Engine()


def reason(error: Exception) -> str:
    """The first line of DuckDB's message, without its kind."""
    line = str(error).partition("\n")[0]
    return line.partition("Error: ")[2] or line
