"""A statement ends with its time, also one that DuckDB does not stop."""

from __future__ import annotations

import threading

import duckdb
import pytest

from ranklog import limits
from ranklog.client.sql_rows import Database
from ranklog.errors import TooLarge

WAIT_S = 60.0


class Deaf:
    """A connection whose statement goes on whatever it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.go_on, self.closed = threading.Event(), threading.Event()

    def sql(self, statement: str) -> object:
        self.go_on.wait(WAIT_S)
        raise duckdb.InterruptException("at last")

    def interrupt(self) -> None:
        self.asked += 1

    def close(self) -> None:
        self.closed.set()


def test_a_statement_that_does_not_stop_is_left_and_closed_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SQL_STOP_S_MAX", 0.2)
    connection = Deaf()
    database = Database(connection)  # type: ignore[arg-type]
    with pytest.raises(TooLarge, match=r"took over 0\.1 s"):
        database.fetch("SELECT 1", 0.1)
    database.close()
    assert connection.asked > 1
    assert not connection.closed.is_set()
    connection.go_on.set()
    assert connection.closed.wait(WAIT_S)


def test_rows_that_never_end_are_stopped_while_they_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SQL_RESULT_BYTES_MAX", 1 << 50)
    database = Database()
    with pytest.raises(TooLarge, match=r"took over 0\.1 s"):
        database.fetch("SELECT * FROM range(1000000000000) WHERE range % 100000 = 0", 0.1)
    database.close()


def test_an_answer_in_time_is_whole_and_errors_are_its_own() -> None:
    database = Database()
    rows = database.fetch("SELECT n FROM range(100000) t(n)", WAIT_S).column("n").to_pylist()
    assert rows == list(range(100_000))
    with pytest.raises(duckdb.BinderException):
        database.fetch("SELECT nothing", WAIT_S)
    database.close()
