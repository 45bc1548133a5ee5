"""The rows of one SQL statement, within its time and the size of an answer.

DuckDB works in a thread of its own, so that the time ends whatever it does: it is asked to stop again and
again, since it forgets a request that comes between two of its steps, and is left alone where it does not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import duckdb
import pyarrow as pa

from ranklog import limits
from ranklog.errors import TooLarge

# Rows that are taken from DuckDB at once.
_BATCH_ROWS = 65_536
# Between two requests to stop.
_ASK_EVERY_S = 0.05


class Database:
    """A database in memory for one statement. Closed only when nothing works in it any more."""

    def __init__(self, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self.connection = duckdb.connect(":memory:") if connection is None else connection
        self._work: _Work | None = None

    def fetch(self, statement: str, seconds: float) -> pa.Table:
        """The whole answer. Raises TooLarge for one that takes longer or is larger, duckdb.Error."""
        work = self._work = _Work(self.connection, statement)
        work.start()
        try:
            if not work.done.wait(seconds):
                self._stop(work)
                raise TooLarge(
                    f"the statement took over {seconds:g} s",
                    hint="narrow it with --run, --since or WHERE, or give it more: --timeout S",
                ) from work.error
        except KeyboardInterrupt:
            self._stop(work)
            raise
        if work.error is not None:
            raise work.error
        return work.table

    def _stop(self, work: _Work) -> None:
        work.stopped.set()
        ends = time.monotonic() + limits.SQL_STOP_S_MAX
        while not work.done.is_set() and time.monotonic() < ends:
            self.connection.interrupt()
            work.done.wait(_ASK_EVERY_S)

    def close(self) -> None:
        """At once, or when the statement that could not be stopped ends: closing would wait for it."""
        work = self._work
        if work is None or work.done.is_set():
            self.connection.close()
        else:
            threading.Thread(target=self._close_after, args=(work,), daemon=True).start()

    def _close_after(self, work: _Work) -> None:
        work.done.wait()
        self.connection.close()


class _Work(threading.Thread):
    """One statement being run: `table` or `error` is there once `done` is set."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, statement: str) -> None:
        super().__init__(name="ranklog-sql", daemon=True)
        self._connection = connection
        self._statement = statement
        self.stopped, self.done = threading.Event(), threading.Event()
        self.table: pa.Table | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.table = self._gather()
        except BaseException as error:  # raised by whoever waits for it
            self.error = error
        finally:
            self.done.set()

    def _gather(self) -> pa.Table:
        """The rows, as far as they fit. Raises TooLarge."""
        reader = self._connection.sql(self._statement).to_arrow_reader(_BATCH_ROWS)
        batches, held = [], 0
        for batch in _translated(reader):
            if self.stopped.is_set():
                raise duckdb.InterruptException("stopped")
            held += batch.nbytes
            if held > limits.SQL_RESULT_BYTES_MAX:
                raise TooLarge(
                    f"an answer of over {limits.SQL_RESULT_BYTES_MAX // limits.MIB} MiB",
                    hint="aggregate, select fewer columns, or LIMIT",
                )
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


def _translated(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Batches; what DuckDB raises after the first comes through Arrow, as text."""
    try:
        yield from reader
    except (OSError, pa.ArrowException) as error:
        if "INTERRUPT Error" in str(error):
            raise duckdb.InterruptException("Interrupted!") from error
        if "Out of Memory" in str(error):
            raise duckdb.OutOfMemoryException(str(error)) from error
        raise duckdb.ConversionException(str(error)) from error
