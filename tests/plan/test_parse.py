"""Bounds, the run and the kind leave the tree; everything else survives text and JSON."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.errors import BadQuery
from ranklog.model.query import (
    Contains,
    Everything,
    Exact,
    Expr,
    Field,
    Matches,
    Near,
    Not,
    Null,
    Number,
    Or,
    Present,
    Query,
    Range,
    RegexValue,
    RunSelector,
    Spike,
)
from ranklog.plan.parse import (
    ParsedQuery,
    expr_from_json,
    expr_to_json,
    parse_query,
    parse_run_selector,
    render_expr,
    render_run_selector,
)
from ranklog.plan.tree import all_of, any_of
from ranklog.plan.typed import text_value

HOUR = 3_600 * 10**9


def at(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    return int(moment.timestamp()) * 10**9


NOW = at("2026-05-01T12:00")


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("since:1h", NOW - HOUR, None),
        ("until:30m", None, NOW - HOUR // 2),
        ("since:1h30m", NOW - 3 * HOUR // 2, None),
        ("since:1.5h", NOW - 3 * HOUR // 2, None),
        ("since:250ms until:1ns", NOW - 250_000_000, NOW - 1),
        ("since:2w", NOW - 14 * 24 * HOUR, None),
        ("since:2026-04-30", at("2026-04-30"), None),
        ("since:2h since:1h", NOW - HOUR, None),
        ("time:2026-05-01T10:00..10:30", at("2026-05-01T10:00"), at("2026-05-01T10:30")),
        ("time:2026-05-01T10:00..45", at("2026-05-01T10:00"), at("2026-05-01T10:45")),
        ("time:2026-05-01T10..12", at("2026-05-01T10:00"), at("2026-05-01T12:00")),
        ("time:2026-05-01..03", at("2026-05-01"), at("2026-05-03")),
        ("time:2026-05-01..06-01", at("2026-05-01"), at("2026-06-01")),
        ("time:2026-05-01T22:00..02T03:00", at("2026-05-01T22:00"), at("2026-05-02T03:00")),
        ("time:2026-05-01T22..05-03T04", at("2026-05-01T22:00"), at("2026-05-03T04:00")),
        ("time:2026-05-01T10:00:05..10:30", at("2026-05-01T10:00:05"), at("2026-05-01T10:30")),
        ("time:2026-05-01T10:20:05..20:30", at("2026-05-01T10:20:05"), at("2026-05-01T20:30")),
        (
            "time:2026-05-01T10:00:05.5..06.25",
            at("2026-05-01T10:00:05") + 5 * 10**8,
            at("2026-05-01T10:00:06") + 25 * 10**7,
        ),
        ("time:2026-05-01T10:00+02:00..10:30", at("2026-05-01T08:00"), at("2026-05-01T08:30")),
        ("time:2026-05-01T10:00Z..10:30", at("2026-05-01T10:00"), at("2026-05-01T10:30")),
        ("time:2026-05-01T10:00..", at("2026-05-01T10:00"), None),
        ("time:..2026-05-01T10:00", None, at("2026-05-01T10:00")),
        ("time:2h..1h", NOW - 2 * HOUR, NOW - HOUR),
        ("time:2026-05-01", at("2026-05-01"), at("2026-05-02")),
        ("time:2026-05-01T10", at("2026-05-01T10:00"), at("2026-05-01T11:00")),
        ("time>=2026-05-01", at("2026-05-01"), None),
        ("time>2026-05-01", at("2026-05-02"), None),
        ("time<2026-05-01", None, at("2026-05-01")),
        ("time<=2026-05-01", None, at("2026-05-02")),
        (
            'time:"2026-05-01 10:00..2026-05-01 11:00"',
            at("2026-05-01T10:00"),
            at("2026-05-01T11:00"),
        ),
        ("(since:1h)", NOW - HOUR, None),
    ],
)
def test_a_time_at_the_top_level_is_a_bound(
    text: str, since: int | None, until: int | None
) -> None:
    expected = ParsedQuery(Everything(), since_ns=since, until_ns=until)
    assert parse_query(text, now_ns=NOW) == expected


def test_a_time_without_a_zone_is_in_the_given_one() -> None:
    found = parse_query("time:2026-05-01T10:00..12:00Z", now_ns=NOW, tz="Europe/Berlin")
    assert (found.since_ns, found.until_ns) == (at("2026-05-01T08:00"), at("2026-05-01T12:00"))
    assert parse_query("since:2026-05-01", now_ns=0, tz="+05:30").since_ns == at("2026-04-30T18:30")


@pytest.mark.parametrize("zone", ["Mars/Base", "", "/etc/passwd", "+99:00"])
def test_an_unknown_zone_is_an_error(zone: str) -> None:
    with pytest.raises(BadQuery):
        parse_query("a", now_ns=0, tz=zone)


@pytest.mark.parametrize(
    "text",
    [
        "time:2026-02-30",
        "time:2026-05-01T25",
        "since:9999-01-01",
        "since:400000d1",
        "time:0001-01-01..",
    ],
)
def test_a_time_that_does_not_exist_is_an_error(text: str) -> None:
    with pytest.raises(BadQuery):
        parse_query(text, now_ns=NOW)


def test_bounds_beside_terms_leave_the_tree() -> None:
    found = parse_query("a last:10m kind:point run:llama since:1h b", now_ns=NOW)
    assert found == ParsedQuery(
        all_of([Contains("a"), Contains("b")]),
        run=RunSelector("llama"),
        since_ns=NOW - HOUR,
        last_ns=600 * 10**9,
        kind="point",
    )
    assert found.to_query(limit=5) == Query(
        found.expr,
        run=RunSelector("llama"),
        since_ns=NOW - HOUR,
        last_ns=600 * 10**9,
        kind="point",
        limit=5,
    )


def test_bounds_inside_or_and_not_stay_terms() -> None:
    found = parse_query("a OR since:1h run:x", now_ns=NOW)
    recent = Field("time", ":", (Range(NOW - HOUR, None),))
    run = Field("run", ":", (Exact("x"),))
    assert found == ParsedQuery(Or((Contains("a"), all_of([recent, run]))))
    assert parse_query("-until:1h", now_ns=NOW).expr == Not(
        Field("time", ":", (Range(None, NOW - HOUR),))
    )


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("llama-8b", RunSelector("llama-8b")),
        ("llama@job1", RunSelector("llama", launch="job1")),
        ("llama@*", RunSelector("llama", launch="*")),
        ("llama~1", RunSelector("llama", back=1)),
        ("llama~ok", RunSelector("llama", ok=True)),
        ("a@b@c", RunSelector("a@b", launch="c")),
        ("a b/c", RunSelector("a b/c")),
        ("a~b", RunSelector("a~b")),
    ],
)
def test_a_run_selector_reads_and_renders(text: str, selector: RunSelector) -> None:
    assert parse_run_selector(text) == selector
    assert render_run_selector(selector) == text
    assert parse_query(f'run:"{text}"', now_ns=0).run == selector


@pytest.mark.parametrize("text", ["", "@x", "x@"])
def test_half_a_run_selector_is_an_error(text: str) -> None:
    with pytest.raises(BadQuery):
        parse_run_selector(text)


def test_lists_and_globs_of_runs_stay_terms() -> None:
    assert parse_query("run:a,b", now_ns=0) == ParsedQuery(
        Field("run", ":", (Exact("a"), Exact("b")))
    )
    assert parse_query("run:a*", now_ns=0).run is None


TEXTS = st.text(st.sampled_from('ab*?\\"/,.() \t\x1b\n-:é'), max_size=6)
KEYS = st.sampled_from(["x", "train/loss", "layer", "channel", "call_site"])
REGEXES = st.sampled_from(["a/b", r"\/", r"a\\", "x|y", "", r"[/]\d"])
NUMBERS = st.integers(-5, 2**63 - 1).map(lambda n: Number(n, str(n))) | st.floats(
    allow_nan=False
).map(lambda x: Number(x, {"inf": "Inf", "-inf": "-Inf"}.get(repr(x), repr(x))))
ENDS = st.integers(-9, 9) | st.floats(allow_nan=False)
RANGES = st.one_of(
    st.tuples(ENDS, ENDS).map(lambda ends: Range(min(ends), max(ends))),
    ENDS.map(lambda low: Range(low, None)),
    ENDS.map(lambda high: Range(None, high)),
)
QUOTED = TEXTS.map(lambda text: Exact(text, quoted=True))
GLOBS = TEXTS.map(lambda t: text_value(t.replace("\\", "\\\\") + "*", quoted=True))
VALUES = st.one_of(QUOTED, GLOBS, st.just(Null()), st.just(Present()))
# `key://` reads as an address, so the empty expression can't be a field's first value.
REGEX_VALUES = st.builds(RegexValue, REGEXES.filter(bool).map(lambda p: p.replace(r"\/", "/")))
BARE = st.text(st.sampled_from('bc*\\,( "é:'), min_size=1, max_size=5)


def listed(values: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(values, min_size=1, max_size=3).map(tuple)


FIELDS = st.one_of(
    st.builds(Field, KEYS, st.just(":"), listed(VALUES | REGEX_VALUES)),
    st.builds(Field, st.just("x"), st.just(":"), listed(NUMBERS | RANGES)),
    st.builds(Field, st.just("x"), st.just(":"), listed(BARE.map(lambda t: Exact("b" + t)))),
    st.builds(Field, st.just("x"), st.sampled_from([">", "<=", "!="]), NUMBERS.map(lambda n: (n,))),
    st.builds(
        Field,
        st.just("rank"),
        st.just(":"),
        listed(st.integers(0, 9).map(lambda n: Range(n, n + 2, inclusive=True))),
    ),
    st.just(Field("level", ">=", (Number(30, "WARNING"),))),
    st.builds(
        lambda low, span: Field("time", ":", (Range(low, low + span), Range(low, None))),
        st.integers(0, 2**60),
        st.integers(0, 2**60),
    ),
)
TERMS = st.one_of(
    st.just(Everything()),
    TEXTS.map(Contains),
    st.builds(Matches, REGEX_VALUES.map(lambda v: v.pattern), st.sampled_from(["", "i", "ms"])),
    FIELDS,
    st.builds(
        Spike,
        st.sampled_from(["loss", "a b", "x,1"]),
        FIELDS,
        st.floats(0.001, 1e6),
        st.booleans(),
    ),
)
EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(all_of),
        st.lists(inner, min_size=2, max_size=3).map(any_of),
        st.builds(
            Near,
            inner,
            st.sampled_from(["iteration", "time"]),
            st.integers(0, 10**12),
            st.sampled_from(["both", "before", "after"]),
            st.sampled_from(["rank", "host", "any"]),
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(EXPRESSIONS.map(lambda expr: Not(expr)))
def test_rendering_then_parsing_gives_the_tree_again(expr: Expr) -> None:
    assert parse_query(render_expr(expr), now_ns=0).expr == expr


@settings(deadline=None)
@given(EXPRESSIONS)
def test_json_round_trips(expr: Expr) -> None:
    assert expr_from_json(json.loads(json.dumps(expr_to_json(expr), allow_nan=False))) == expr


def test_nan_survives_json_and_compares_equal() -> None:
    expr = parse_query("loss:NaN,Inf,-Inf", now_ns=0).expr
    assert expr_from_json(json.loads(json.dumps(expr_to_json(expr), allow_nan=False))) == expr


@settings(deadline=None)
@given(st.text(st.sampled_from('ab:"/\\-()*,.<>=!~@ 1ORNDT') | st.characters(), max_size=40))
def test_any_text_parses_or_is_a_bad_query(text: str) -> None:
    try:
        found = parse_query(text, now_ns=NOW)
    except BadQuery as error:
        assert error.position is None or 0 <= error.position <= len(text)
        return
    assert parse_query(render_expr(Not(found.expr)), now_ns=NOW).expr == Not(found.expr)
