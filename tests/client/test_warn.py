"""Copies are named where they count twice, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ranklog.client.warn import note_copies
from ranklog.model.answer import Report
from ranklog.model.query import Everything, Exact, Field, Not
from ranklog.model.stream import Stream

STREAM = Stream("t", "run", "import", 0, None, None, None, "console.txt", "0", certified="import")
COPY = Field("copy", ":", (Exact("true"),))


class Index(SimpleNamespace):
    """Tables of an index refer to it weakly, which a bare namespace can't be."""


def index(*streams: Stream, lines: int = 3) -> Any:
    entries = [SimpleNamespace(stream=s, stream_id=s.stream_id, lines=lines) for s in streams]
    return Index(head=SimpleNamespace(streams=entries), templates=("",), derived=None)


def notes(expr: Any, *indexes: Any) -> list[str]:
    report = Report()
    note_copies(expr, indexes, report)
    return report.notes


def test_a_console_copy_in_scope_is_named_once() -> None:
    console = replace(STREAM, copy=True)
    [note] = notes(Everything(), index(console, STREAM), index(console))
    assert note == "a console copy of per-rank files in scope: copy:false leaves them out"


@pytest.mark.parametrize("expr", [COPY, Not(COPY)])
def test_who_asks_about_copies_knows_of_them(expr: Any) -> None:
    assert notes(expr, index(replace(STREAM, copy=True))) == []


def test_no_copy_no_note() -> None:
    assert notes(Everything(), index(STREAM), index(replace(STREAM, copy=True), lines=0)) == []
