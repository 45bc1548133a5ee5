"""Options mean what the same words mean in a query."""

from __future__ import annotations

import pytest

from ranklog.errors import BadQuery
from ranklog.model.query import Query, RunSelector
from ranklog.plan.parse import ParsedQuery, parse_query
from ranklog.plan.restrict import restrict

NOW = 1_777_636_800 * 10**9


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ({}, "a"),
        ({"run": "llama~1"}, "a run:llama~1"),
        ({"attempt": "2"}, "a attempt:2"),
        ({"rank": "0-7,9"}, "a rank:0-7,9"),
        ({"rank": 3}, "a rank:3"),
        ({"host": "gpu-*"}, "a host:gpu-*"),
        ({"level": "WARNING"}, "a level>=WARNING"),
        ({"level": "info,error"}, "a level:INFO,ERROR"),
        ({"iteration": "100..200"}, "a iteration:100..200"),
        ({"since": "1h", "until": "2026-05-01T10:00"}, "a since:1h until:2026-05-01T10:00"),
        ({"since": "2026-05-01 10:00"}, "a since:2026-05-01T10:00"),
        ({"last": "10m"}, "a last:10m"),
        ({"rank": "1", "level": "E"}, "a rank:1 level>=ERROR"),
    ],
)
def test_an_option_is_the_term(options: dict[str, str], query: str) -> None:
    expected = parse_query(query, now_ns=NOW)
    assert restrict(parse_query("a", now_ns=NOW), now_ns=NOW, **options) == expected


def test_an_option_narrows_what_the_query_says() -> None:
    query = parse_query("(a OR b) since:2h last:1h", now_ns=NOW)
    expected = parse_query("(a OR b) since:1h last:1h", now_ns=NOW)
    assert restrict(query, now_ns=NOW, since="1h", last="3h") == expected


def test_a_query_with_its_shape_keeps_it() -> None:
    query = ParsedQuery(parse_query("a", now_ns=0).expr).to_query(limit=7)
    restricted = restrict(query, now_ns=NOW, run="x", tz="UTC")
    assert restricted == Query(query.expr, run=RunSelector("x"), limit=7)


@pytest.mark.parametrize(
    "options",
    [
        {"rank": "x"},
        {"rank": "0 7"},
        {"level": "loud"},
        {"since": "soon"},
        {"last": '1"'},
        {"rank": ""},
        {"rank": "7..0"},
        {"iteration": "5..1"},
    ],
)
def test_an_error_names_the_option(options: dict[str, str]) -> None:
    with pytest.raises(BadQuery, match=f"--{next(iter(options))}"):
        restrict(parse_query("", now_ns=NOW), now_ns=NOW, **options)


def test_two_different_runs_are_an_error() -> None:
    with pytest.raises(BadQuery, match="two runs"):
        restrict(parse_query("run:a", now_ns=NOW), now_ns=NOW, run="b")
    assert restrict(parse_query("run:a", now_ns=NOW), now_ns=NOW, run="a").run == RunSelector("a")
