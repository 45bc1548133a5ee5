"""Every example of the language's page, and what each sentence of it says about the edges."""

from __future__ import annotations

import math

import pytest

from ranklog.errors import BadQuery
from ranklog.model.query import (
    And,
    Contains,
    Everything,
    Exact,
    Expr,
    Field,
    Glob,
    Matches,
    Near,
    Not,
    Null,
    Number,
    Or,
    Present,
    Range,
    RegexValue,
    Spike,
)
from ranklog.plan.parse import parse_query
from ranklog.plan.render import render_expr

A, B, C = Contains("a"), Contains("b"), Contains("c")


def parsed(text: str) -> Expr:
    return parse_query(text, now_ns=0).expr


def field(key: str, *values: object, op: str = ":") -> Field:
    return Field(key, op, values)  # type: ignore[arg-type]


def number(value: float, source: str | None = None) -> Number:
    return Number(value, source if source is not None else str(value))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", Everything()),
        ("  ", Everything()),
        ("*", Everything()),
        ("()", Everything()),
        ("a", A),
        ("a b", And((A, B))),
        ("a AND b", And((A, B))),
        ("a OR b", Or((A, B))),
        ("a b OR c", Or((And((A, B)), C))),
        ("a OR b c", Or((A, And((B, C))))),
        ("a (b OR c)", And((A, Or((B, C))))),
        ("(a b) c", And((A, B, C))),
        ("(a OR b) OR c", Or((A, B, C))),
        ("NOT a b", And((Not(A), B))),
        ("NOT a OR b", Or((Not(A), B))),
        ("NOT (a b)", Not(And((A, B)))),
        ("NOT(a)", Not(A)),
        ("NOT NOT a", Not(Not(A))),
        ("-a", Not(A)),
        ("(-a)", Not(A)),
        ("b -(a OR c)", And((B, Not(Or((A, C)))))),
        ("a* *", Contains("a*")),
        ("a b-c", And((A, Contains("b-c")))),
        ("--a", Not(Contains("-a"))),
        ("a - b", And((A, Contains("-"), B))),
        ("-inf", Not(Contains("inf"))),
        ('"-inf"', Contains("-inf")),
        ("and or not", And((Contains("and"), Contains("or"), Contains("not")))),
        ("ANDROID NOTE ORB", And((Contains("ANDROID"), Contains("NOTE"), Contains("ORB")))),
        ('"AND"', Contains("AND")),
        ("step=5", Contains("step=5")),
        ("loss=2.5", Contains("loss=2.5")),
        ("[rank3]:", Contains("[rank3]:")),
        ("12:30:01", Contains("12:30:01")),
        ("_key:3", Contains("_key:3")),
        ("<module>", Contains("<module>")),
        ("forward(x)", And((Contains("forward"), Contains("x")))),
        ("near far", And((Contains("near"), Contains("far")))),
        ("it's", Contains("it's")),
        ('a"b c', And((Contains('a"b'), C))),
        (r'"a \"b\" \\ \t \x1b"', Contains('a "b" \\ \t \x1b')),
        ('"a AND (b)"', Contains("a AND (b)")),
        ('""', Contains("")),
    ],
)
def test_a_query_of_words_has_this_tree(text: str, tree: Expr) -> None:
    assert parsed(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("//", Matches("")),
        ("/a b/", Matches("a b")),
        ("/loss/i", Matches("loss", "i")),
        ("/a.b/smi", Matches("a.b", "ims")),
        (r"/a\/b/", Matches("a/b")),
        (r"/\d+\s\\/", Matches(r"\d+\s\\")),
        ("/(a|b) OR c/", Matches("(a|b) OR c")),
        ("-/a/ b", And((Not(Matches("a")), B))),
        ("(/a/)", Matches("a")),
        ("a/b/c", Contains("a/b/c")),
    ],
)
def test_a_regex_begins_at_a_term_and_ends_at_a_bare_slash(text: str, tree: Expr) -> None:
    assert parsed(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("rank:3", field("rank", number(3))),
        ("rank:0-7", field("rank", Range(0, 7, inclusive=True))),
        ("attempt:0-7", field("attempt", Range(0, 7, inclusive=True))),
        ("local_rank:0,2-3", field("local_rank", number(0), Range(2, 3, inclusive=True))),
        ("rank:3,5", field("rank", number(3), number(5))),
        ("rank:0..8", field("rank", Range(0, 8))),
        ("rank>=4", field("rank", number(4), op=">=")),
        ("rank:null", field("rank", Null())),
        ("iteration:100..200", field("iteration", Range(100, 200))),
        ("step:100..", field("iteration", Range(100, None))),
        ("step>=100", field("iteration", number(100), op=">=")),
        ("iteration:..200", field("iteration", Range(None, 200))),
        ("iteration:1e3", field("iteration", number(1000, "1e3"))),
        ("lm_loss<2", field("lm_loss", number(2), op="<")),
        (
            "lm_loss<2 iteration:100..200",
            And((field("lm_loss", number(2), op="<"), field("iteration", Range(100, 200)))),
        ),
        ("x:-1.5e-3", field("x", number(-0.0015, "-1.5e-3"))),
        ("x:-5..-1", field("x", Range(-5, -1))),
        ("x:..1e-2", field("x", Range(None, 0.01))),
        ("x:.5", field("x", number(0.5, ".5"))),
        ("x:NaN", field("x", Number(math.nan, "NaN"))),
        ("x:Inf,-Inf", field("x", number(math.inf, "Inf"), number(-math.inf, "-Inf"))),
        ("x:99999999999999999999", field("x", number(1e20, "99999999999999999999"))),
        ("grad_norm>5", field("grad_norm", number(5), op=">")),
        ("train/loss-x.y!=3", field("train/loss-x.y", number(3), op="!=")),
        ('x:"3"', field("x", Exact("3", quoted=True))),
        ('x>"abc"', field("x", Exact("abc", quoted=True), op=">")),
        ("layer:h.7", field("layer", Exact("h.7"))),
        ("day:2024-01-01", field("day", Exact("2024-01-01"))),
        ("key:null", field("key", Null())),
        ("key:*", field("key", Present())),
        ('key:"null"', field("key", Exact("null", quoted=True))),
        ("key!=null", field("key", Null(), op="!=")),
        ("key:/re/i", field("key", RegexValue("re", "i"))),
        ("key:/a,b/,c", field("key", RegexValue("a,b"), Exact("c"))),
        ("key:a*", field("key", Glob("a*", "(?s)^a.*$"))),
        ('key:"a b?"', field("key", Glob("a b?", r"(?s)^a\ b.$"))),
        (r"key:a\*", field("key", Exact("a*"))),
        (r'key:"a\*"', field("key", Exact("a*", quoted=True))),
        (r'key:"a\\*"', field("key", Glob(r"a\\*", r"(?s)^a\\.*$"))),
        (r"key:a\,b", field("key", Exact("a,b"))),
        (r"path:C:\new", field("path", Exact(r"C:\new"))),
        ("größe:3", field("größe", number(3))),
        ("host:gpu-01", field("host", Exact("gpu-01"))),
        ("host:123", field("host", Exact("123"))),
        ("channel:stderr,stdout", field("channel", Exact("stderr"), Exact("stdout"))),
        ("call_site:trainer.py:88", field("call_site", Exact("trainer.py:88"))),
        ("call_site:trainer.py", field("call_site", Exact("trainer.py"))),
        ("-call_site:trainer.py:88", Not(field("call_site", Exact("trainer.py:88")))),
        ("-call_site:x.py:3", Not(field("call_site", Exact("x.py:3")))),
        ("level>=WARNING", field("level", Number(30, "WARNING"), op=">=")),
        ("NOT level>=WARNING", Not(field("level", Number(30, "WARNING"), op=">="))),
        ("level:w,Error", field("level", Number(30, "WARNING"), Number(40, "ERROR"))),
        ("level:FATAL", field("level", Number(50, "CRITICAL"))),
        ("level:15", field("level", number(15))),
        ("level:INFO..ERROR", field("level", Range(20, 40))),
        (
            "level>=ERROR rank:3",
            And((field("level", Number(40, "ERROR"), op=">="), field("rank", number(3)))),
        ),
        ("copy:TRUE", field("copy", Exact("true"))),
        ("superseded:false", field("superseded", Exact("false"))),
        ("RuntimeError:x", field("RuntimeError", Exact("x"))),
    ],
)
def test_a_field_has_these_values(text: str, tree: Expr) -> None:
    assert parsed(text) == tree


ERRORS = field("level", Number(40, "ERROR"), op=">=")
SPIKE = Spike("grad_norm", field("layer", Exact("h.7")), 10.0, ratio=True)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("near(a, iteration, 2)", Near(A, "iteration", 2)),
        ("near(a, step, before 2)", Near(A, "iteration", 2, "before")),
        ("near(a b, iteration, after 2, any)", Near(And((A, B)), "iteration", 2, "after", "any")),
        ("near(a, time, 30s)", Near(A, "time", 30_000_000_000)),
        ("near(a, time, before 1.5m, host)", Near(A, "time", 90_000_000_000, "before", "host")),
        ("near(a,b, time, 1s)", Near(Contains("a,b"), "time", 1_000_000_000)),
        ("near(rank:3,5,iteration,2)", Near(field("rank", number(3), number(5)), "iteration", 2)),
        ("near((a OR b) , iteration, 2)", Near(Or((A, B)), "iteration", 2)),
        ("-near(a, iteration, 0)", Not(Near(A, "iteration", 0))),
        ("near(near(a, iteration, 1), time, 1s)", Near(Near(A, "iteration", 1), "time", 10**9)),
        ("spike(loss, 8)", Spike("loss", Everything(), 8.0)),
        ("spike(grad_norm layer:h.7, ratio:10)", SPIKE),
        ("spike(loss/x* rank:0,1,2.5)", Spike("loss/x*", field("rank", number(0), number(1)), 2.5)),
        (
            "level>=ERROR near(spike(grad_norm layer:h.7, ratio:10), iteration, before 2, any)",
            And((ERRORS, Near(SPIKE, "iteration", 2, "before", "any"))),
        ),
    ],
)
def test_a_function_takes_these_arguments(text: str, tree: Expr) -> None:
    assert parsed(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            "loss/* rank:0 layer:h.*",
            And(
                (
                    field("series", Glob("loss/*", r"(?s)^loss\/.*$")),
                    field("rank", number(0)),
                    field("layer", Glob("h.*", r"(?s)^h\..*$")),
                )
            ),
        ),
        ("grad_norm", field("series", Exact("grad_norm"))),
        ("*", field("series", Glob("*", "(?s)^.*$"))),
    ],
)
def test_in_series_a_word_names_a_series(text: str, tree: Expr) -> None:
    assert parse_query(text, now_ns=0, series=True).expr == tree


@pytest.mark.parametrize("text", ['"loss"', "/loss/", 'rank:0 "x"'])
def test_in_series_text_terms_are_errors(text: str) -> None:
    with pytest.raises(BadQuery, match="points"):
        parse_query(text, now_ns=0, series=True)


@pytest.mark.parametrize(
    ("text", "position", "spellings"),
    [
        ("a RuntimeError: oops", 2, ('"RuntimeError: oops"', "RuntimeError:*")),
        ("key:", 0, ('"key:"', "key:*")),
        ("(key:)", 1, ('"key:"', "key:*")),
        ("s3://bucket/x", 0, ('"s3://bucket/x"', 's3:"//bucket/x"')),
        (
            "see http://host:8080/p?q=1 now",
            4,
            ('"http://host:8080/p?q=1"', 'http:"//host:8080/p?q=1"'),
        ),
        ("rank=3", 0, ('"rank=3"', "rank:3")),
        ("-level==ERROR", 1, ('"level==ERROR"', "level:ERROR")),
        ("loss:>5", 0, ("loss>",)),
        ("a->b", 3, ('"a->b"',)),
        ("/usr/lib/x", 0, ('"/usr/lib/x"',)),
        ("source:/var/log/x", 7, ('"/var/log/x"',)),
        ("/usr", 0, ('"/usr"',)),
    ],
)
def test_an_ambiguous_term_is_an_error_that_shows_the_spellings(
    text: str, position: int, spellings: tuple[str, ...]
) -> None:
    with pytest.raises(BadQuery) as caught:
        parsed(text)
    assert caught.value.position == position
    for spelling in spellings:
        assert spelling in str(caught.value)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("OR a", 0),
        ("a OR", 4),
        ("a OR OR b", 5),
        ("AND a", 0),
        ("a AND", 5),
        ("a AND OR b", 6),
        ("NOT", 3),
        ("NOT OR a", 4),
        ("(a", 0),
        ("a)", 1),
        ("(a OR )", 6),
        ('"abc', 0),
        ('"abc"d', 5),
        (r'"\d"', 1),
        (r'"\n"', 1),
        (r'"\xZZ"', 1),
        ("x:1,", 3),
        ("x:1, y", 3),
        ("x:1,,2", 3),
        ('x:"a"b', 5),
        ("x!=1,2", 0),
        ("x!=*", 3),
        ("x>abc", 2),
        ("x>1..2", 2),
        ("x:1..NaN", 2),
        ("rank:abc", 5),
        ("rank:-1", 5),
        ("rank:7-0", 5),
        ("rank:7..0", 5),
        ("iteration:5..1", 10),
        ("loss:1..-1", 5),
        ("level:ERROR..INFO", 6),
        ("time:2026-05-02..2026-05-01", 5),
        ("time:2026-05-01T10:20:05..09:30", 5),
        ("time:1h..2h", 5),
        ("rank:1.5", 5),
        ("rank:/3/", 5),
        ('rank:"3"', 5),
        ("rank>0-7", 5),
        ("iteration:0-7", 10),
        ("iteration:1e30", 10),
        ("host>a", 5),
        ("level:loud", 6),
        ("level:*x", 6),
        ("copy:maybe", 5),
        ("kind:dot", 5),
        ("time:yesterday", 5),
        ("time:..", 5),
        ("time:1h", 5),
        ("time!=2026-05-01", 0),
        ("time>2026-05-01,2026-05-02", 0),
        ("since:60", 6),
        ("since>1h", 0),
        ("since:1h,2h", 0),
        ("last:5", 0),
        ("a OR last:10m", 5),
        ("NOT last:10m", 4),
        ("near(last:1h, time, 1s)", 5),
        ("near(a)", 0),
        ("near(a, iteration)", 0),
        ("near(a, rank, 2)", 6),
        ("near(a, iteration, during 2)", 6),
        ("near(a, iteration, 2, all)", 6),
        ("near(a, iteration, 2s)", 19),
        ("near(a, time, 2)", 14),
        ("near(a, time, 2s)b", 17),
        ("spike(loss)", 0),
        ("spike(, 3)", 6),
        ("spike(loss, 0)", 12),
        ("spike(loss text, 3)", 6),
        ("/(?=a)b/", 0),
        ("/(?<!a)b/", 0),
        (r"/(a)\1/", 0),
        ("/a/x", 0),
        ("run:a run:b", None),
        ("a OR run:x~1", None),
    ],
)
def test_a_query_that_means_nothing_is_an_error_with_its_position(
    text: str, position: int | None
) -> None:
    with pytest.raises(BadQuery) as caught:
        parsed(text)
    assert caught.value.position == position


@pytest.mark.parametrize("text", [r"/[\1]/", r"/\Q(?=\E/", "/[(?=]/", r"/\(?=/", r"/\\1/"])
def test_what_only_looks_like_look_around_is_none(text: str) -> None:
    assert isinstance(parsed(text), Matches)


def test_limits_are_named() -> None:
    with pytest.raises(BadQuery, match="8192"):
        parsed("x" * 8193)
    with pytest.raises(BadQuery, match="8192"):
        parsed("é" * 4097)
    with pytest.raises(BadQuery, match="64 terms"):
        parsed("a " * 65)
    with pytest.raises(BadQuery, match="32 levels"):
        parsed("(" * 33 + "a" + ")" * 33)
    with pytest.raises(BadQuery, match="32 levels"):
        parsed("NOT " * 33 + "a")
    with pytest.raises(BadQuery, match="32 levels"):
        parsed("(a OR b " * 17 + ")" * 17)


@pytest.mark.parametrize("key", ["x:", "x<", "rank:", "level:", "since:", "iteration:1..", "x:1e"])
def test_a_number_of_thousands_of_digits_is_a_value_or_a_bad_query(key: str) -> None:
    try:
        parsed(key + "9" * 5000)
    except BadQuery:
        return
    assert key[0] == "x"


def test_at_the_limits_a_query_parses() -> None:
    assert parsed("(" * 32 + "a" + ")" * 32) == A
    assert parsed("a " * 64) == And((A,) * 64)
    assert parsed("x" * 8192) == Contains("x" * 8192)


def test_rendering_shows_all_parentheses() -> None:
    text = 'a b OR NOT (c OR rank:0-7,9) near(spike(loss layer:"x*", 3), time, before 90s, any)'
    assert render_expr(parsed(text)) == (
        '(("a" AND "b") OR (NOT ("c" OR rank:0-7,9) AND '
        'near(spike("loss" layer:"x*", 3.0), time, before 90s, any)))'
    )
