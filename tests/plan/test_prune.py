"""Pruning keeps every row that matches, over generated lines and queries; and it does prune."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.errors import BadQuery
from ranklog.layout import build as build_module
from ranklog.layout import filters, order
from ranklog.model.frame import NO_ITERATION, NO_LEVEL, STREAM_RANK
from ranklog.model.query import Expr, NearSet
from ranklog.plan.parse import parse_query
from ranklog.plan.prune import Pruner, prune
from tests.plan.corpus import BASE_NS, Row, assert_keeps, build, matches

ROWS = 4


@pytest.fixture(autouse=True, scope="module")
def small_row_groups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "ROW_GROUP_ROWS", ROWS)
        patch.setattr(order, "RARE_ROWS_MAX", 0)
        for module in (build_module, filters):
            patch.setattr(module, "GRAMS_TEXT_BYTES_MIN", 0)
        yield


def expression(text: str) -> Expr:
    return parse_query(text, now_ns=BASE_NS).expr


def regexes(pattern: str, flags: str, texts: Sequence[str]) -> list[bool]:
    return [matches(pattern, flags, text) for text in texts]


WORDS = st.sampled_from(
    [
        "loss",
        "bus",
        "abus7",
        "bus7",
        "7bus",
        "cafe12",
        "12cafe",
        "feed",
        "gpu3",
        "3",
        "12",
        "1e5",
        "x1",
        "K9",
        "k9",
        "is",
        "Loss",
        "\u212aelvin7",
        "ba\u017fe64",
        "base64",
        "h.3",
        "é1",
        "日本",
        "deadbeef01",
        "a1bus2c",
        "NCCL",
        "nccl2",
        "_x",
        "4fa1c07b92de",
        "4FA1c0-7B92dE",
        "4fa1c07b92df0e",
        "xfa1c07y",
        "deadbeef4fa1c0",
        "1234567e890",
        "1234567890",
        "a1" * 70,
        "\x00",
        "9\x00b",
    ]
)
SEPARATORS = st.sampled_from([" ", " ", "", "-", ":", "=", "_", ".", "\t"])
PHRASES = st.lists(st.tuples(WORDS, SEPARATORS).map("".join), max_size=5).map("".join)
ENVELOPES = st.sampled_from(["", "", "", "[rank3]: ", "0: ", "node1 bus ", "x", "é "])
METADATA = st.dictionaries(
    st.sampled_from(["loss", "layer"]),
    st.sampled_from([1, 2, 5, 0.5, 2.0, float("nan"), float("inf"), "h.3", "loss", ""]),
    max_size=2,
)


@st.composite
def lines(draw: st.DrawFn) -> Row:
    envelope = draw(ENVELOPES)
    return Row(
        envelope + draw(PHRASES),
        body_at=len(envelope),
        stream=draw(st.integers(0, 2)),
        level=draw(st.sampled_from([NO_LEVEL, 20, 40])),
        iteration=draw(st.sampled_from([NO_ITERATION, 1, 7])),
        rank=draw(st.sampled_from([STREAM_RANK, STREAM_RANK, -1, 5])),
        site=draw(st.integers(0, 3)),
        metadata=draw(METADATA),
    )


def shape(rows: list[Row], plain: bool) -> list[Row]:
    """Half of the corpora have no envelopes, so that both ways to look up are met."""
    return (
        [Row(r.text, 0, r.stream, r.level, r.iteration, r.rank, r.site, r.metadata) for r in rows]
        if plain
        else rows
    )


CORPORA = st.builds(shape, st.lists(lines(), min_size=1, max_size=14), st.booleans())
IDS = st.sampled_from(
    ["4fa1c07b92de", "4fa1c07b92df0e", "deadbeef4fa1c0", "1234567e890", "a1a1a1a1"]
)
PARTS = st.tuples(IDS, st.integers(0, 9), st.integers(5, 12)).map(lambda p: p[0][p[1] :][: p[2]])
PIECES = st.one_of(
    PHRASES,
    PHRASES.flatmap(lambda t: st.integers(0, 4).map(lambda i: t[i:] or "s")),
    PARTS,
    st.tuples(PARTS, SEPARATORS, PARTS).map("".join),
)
LITERALS = PIECES.map(
    lambda t: '"' + t.replace("\\", "\\\\").replace('"', '\\"').replace("\x00", "\\x00") + '"'
)
ATOMS = st.sampled_from(
    [
        "loss",
        "bus",
        "b",
        "us",
        "k",
        "s",
        "gpu",
        "3",
        "12",
        "64",
        " ",
        "-",
        "is",
        "cafe",
        "beef",
        "base",
        r"\d",
        r"\d+",
        r"\s",
        r"\b",
        "^",
        "$",
        ".",
        ".*",
        "[ab]",
        r"\W",
        "(bus|loss)",
        "a?",
        "e+",
        "é",
        "[:=]",
        "dead",
        "4fa1c07b92de",
        "fa1c07",
        "A1C07B9",
        "beef4fa",
        "34567",
        "nccl",
        r"\B",
    ]
)
REGEXES = st.builds(
    lambda atoms, flags: f"/{''.join(atoms)}/{flags}",
    st.lists(ATOMS, min_size=1, max_size=5),
    st.sampled_from(["", "i", "ms"]),
)
FIELDS = st.sampled_from(
    [
        "level>=WARNING",
        "level:INFO",
        "level:null",
        "level!=INFO",
        "iteration:1",
        "iteration>1",
        "iteration:null",
        "iteration:0..7",
        "rank:0",
        "rank:5",
        "rank:null",
        "rank:0-1",
        "rank!=5",
        "run:a,b",
        "host:gpu-01",
        "host:gpu*",
        "host:null",
        "host:/GPU/i",
        "channel:stderr",
        "attempt:1",
        "call_site:trainer.py",
        "call_site:trainer.py:88",
        "call_site:*ta.py",
        "call_site:null",
        "call_site:/train/",
        "call_site!=data.py",
        "function:step",
        "logger:null",
        "loss:1",
        "loss>1",
        "loss<=2",
        "loss:NaN",
        "loss:Inf",
        "loss!=2",
        "loss:0..2",
        "loss:null",
        "loss:*",
        "loss:loss",
        'layer:"h.3"',
        "layer:h.*",
        "layer:/h/",
        "layer!=h.3",
        'layer:""',
        "layer>1",
        "layer:null",
        "none:1",
        "none:null",
        "layer!=null",
        "none!=3",
        "loss>=-Inf",
        "loss:1,loss",
        "*",
    ]
)
TERMS = st.one_of(LITERALS, LITERALS, REGEXES, REGEXES, FIELDS)
QUERIES = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        inner.map(lambda t: f"NOT ({t})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) ({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) OR ({p[1]})"),
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(CORPORA, st.lists(QUERIES, min_size=1, max_size=8))
def test_what_matches_is_never_pruned(rows: list[Row], queries: list[str]) -> None:
    built = build(rows)
    for text in queries:
        try:
            expr = expression(f"({text}) OR ({text})")
            compiled = prune(built.index, expr, regexes)
            assert_keeps(built, expr, compiled)
            assert_keeps(built, expr, Pruner(expr).prune(built.index))
        except (BadQuery, re2.error):  # the pieces of a regex may not fit each other
            continue


def left(texts: list[str], query: str, **row: Any) -> list[str]:
    """Texts that are left; each fills a row group of its own."""
    built = build([Row(text, **row) for text in texts for _ in range(ROWS)])
    expr = expression(query)
    pruned = prune(built.index, expr, regexes)
    assert_keeps(built, expr, pruned)
    rows = [built.rows[i].text for low, high in pruned.rows for i in range(low, high)]
    return sorted({*rows}, key=texts.index)


BUS = ["fell off the bus", "fell off the bus7", "x9fell off the bus", "fell off the busy", "fell"]


@pytest.mark.parametrize(
    ("texts", "query", "expected"),
    [
        (BUS, '"fell off the bus"', BUS[:4]),
        (BUS, r"/off the bus\b/", [BUS[0], BUS[2], BUS[3]]),
        (BUS, '"ell off the bus"', BUS[:4]),
        (BUS, '"ll off the busy"', [BUS[3]]),
        (["abus7", "7bus", "gpu3", "us"], "bus", ["abus7", "7bus"]),
        (["abus7", "7bus", "busy"], r"/\bbus/", ["7bus", "busy"]),
        (["bus7", "abus7"], r"/\bbus/", ["bus7"]),
        (["cafe1", "fade22", "gpu3"], "cafe", ["cafe1", "fade22"]),
        (["id=a1b2 x", "id=a1b3 x", "id=12 x"], '"id=a1b2 "', ["id=a1b2 x"]),
        (["id=a1b2c3", "no=a1"], '"b2c"', ["id=a1b2c3"]),
        (["step 12 of 3", "step x"], '"step 7 of"', ["step 12 of 3"]),
        (["step 12 of 3", "step x"], r"/step \d+ of/", ["step 12 of 3"]),
        (["Loss is", "loss is", "gain is"], "/LOSS/i", ["Loss is", "loss is"]),
        (["\u212aelvin", "kelvin", "calvin"], "/kelvin/i", ["\u212aelvin", "kelvin", "calvin"]),
        (["celvin", "kelvin"], "/kelvin/i", ["kelvin"]),
        (["ba\u017fe64 x", "base64 x"], "/base64/i", ["ba\u017fe64 x", "base64 x"]),
        (["gpu3", "a\x00b"], r'"\x00"', ["gpu3", "a\x00b"]),
        (["gpu3", "a\x00b"], r'NOT "\x00"', ["gpu3", "a\x00b"]),
        (["loss", "gain"], "-loss", ["gain"]),
        (["loss 3", "loss x"], "-3", ["loss 3", "loss x"]),
        (["loss", "gain", "both loss gain"], "loss gain", ["both loss gain"]),
        (["loss", "gain", "none"], "loss OR gain", ["loss", "gain"]),
        (["loss", "gain", "none"], "/loss|gain/", ["loss", "gain"]),
        (["loss", "lxss", "none"], "NOT /l.ss/", ["loss", "lxss", "none"]),
        (["loss", "gain"], "NOT /loss|x/", ["gain"]),
        (["loss", "gain"], "//", ["loss", "gain"]),
        (["loss", "gain"], "NOT *", []),
        (["日本 1", "日x"], "日本", ["日本 1"]),
        (["id 4fa1c07b92de", "id 5fa1c17b92de"], "fa1c07b", ["id 4fa1c07b92de"]),
        (["id 4fa1c07b92de", "id 5fa1c17b92de"], "/FA1C07B/i", ["id 4fa1c07b92de"]),
        (["id 4FA1C07B92DE", "id 5fa1c17b92de"], "/fa1c07b/i", ["id 4FA1C07B92DE"]),
        (["id 4FA1c07b92de", "id 5fa1c17b92de"], "FA1c07b", ["id 4FA1c07b92de"]),
        (["id 4fa1c07b92de", "id 5fa1c17b92de"], "fa1c07bx", []),
        (["id 4fa1c07b92de", "id 5fa1c17b92de"], r"/\b4fa1c07b92de\b/", ["id 4fa1c07b92de"]),
        (["id 4fa1c07b92de.", "id 5fa1c17b92de."], '" 5fa1c17b92de."', ["id 5fa1c17b92de."]),
        (["id aaaaaaaaa1a", "id aaaaaaaaa1b"], r"/\baaaaaaaaa1a\b/", ["id aaaaaaaaa1a"]),
        (["id 4fa1c07b92de", "id 5fa1c17b92de"], r"/fa1c07b\w+ /", []),
        (
            ["id 4fa1c07b92de", "id 5fa1c17b92de"],
            "/fa1c07|fa1c17/",
            ["id 4fa1c07b92de", "id 5fa1c17b92de"],
        ),
        (["9deadbeef4", "9feedcafe4", "deadbeef"], "eadbe", ["9deadbeef4", "deadbeef"]),
        (["no 1234567e890", "no 12345 x", "no x1"], "4567e8", ["no 1234567e890", "no x1"]),
        (["no 1234567890", "no x12345678", "x9"], "34567", ["no 1234567890", "no x12345678"]),
        (["no 1234567 x", "no 12345 y"], "234567", ["no 1234567 x"]),
        (["a1" * 65, "b2" * 65, "4fa1c07b92de"], "c07b92", ["a1" * 65, "b2" * 65, "4fa1c07b92de"]),
        (["4fa1c07b92de", "x\x00 5fa1c17b92de"], "a1c17b", ["x\x00 5fa1c17b92de"]),
        (["4fa1c07b92de é", "éfa1c07bé"], "fa1c07bé", ["éfa1c07bé"]),
    ],
)
def test_of_these_texts_these_are_left(texts: list[str], query: str, expected: list[str]) -> None:
    assert left(texts, query) == expected


@pytest.mark.parametrize(
    ("texts", "query", "expected"),
    [
        (["[rank3]: ab", "[rank3]: cd"], "rank3", ["[rank3]: ab", "[rank3]: cd"]),
        (["[rank3]: ab", "[rank3]: cd"], '"]: a"', ["[rank3]: ab"]),
        (["[rank3]: ab", "[rank3]: cd"], '"]: b"', []),
        (["[rank3]: ab", "[rank3]: cd"], "rankx", []),
        (["[rank3]: ab", "[rank3]: cd"], '-"]: a"', ["[rank3]: ab", "[rank3]: cd"]),
        (["[rank3]: ab", "[rank3]: cd"], "-ab", ["[rank3]: cd"]),
    ],
)
def test_a_literal_may_lie_in_the_envelope_or_across(
    texts: list[str], query: str, expected: list[str]
) -> None:
    assert left(texts, query, body_at=len("[rank3]: ")) == expected


def test_an_envelope_that_a_token_crosses_is_doubt() -> None:
    assert left(["nodeab1 c", "nodecd1 c"], '"eab1 "', body_at=4) == ["nodeab1 c", "nodecd1 c"]


@pytest.mark.parametrize(
    ("query", "kept", "by"),
    [
        ("level>=WARNING", (1,), "bound"),
        ("NOT level>=WARNING", (0,), "terms"),
        ("iteration:5..9", (1,), "bound"),
        ("loss:NaN", (1,), "bound"),
        ("-loss<3", (1,), "terms"),
        ('layer:"h.3"', (0,), "bound"),
        ("host:gpu-02", (1,), "stream"),
        ("rank:1", (1,), "bound"),
        ("call_site:data.py", (1,), "site"),
        ("NOT time:..2026-05-01T12:00:04", (1,), "terms"),
        ('template:"azz <*> end"', (1,), "template"),
        ("zzz", (), "token"),
        ('"azz: "', (), "template"),
        ('" q1w2e3 "', (), "bloom"),
        ("zzz9", (), "token"),
        ("azz level:ERROR", (1,), "token"),
    ],
)
def test_each_skipped_row_group_has_a_witness(query: str, kept: tuple[int, ...], by: str) -> None:
    low = Row(
        "aaa x1y2z3 end", level=20, site=1, iteration=1, metadata={"loss": 2.0, "layer": "h.3"}
    )
    high = Row(
        "azz x1y2z3 end", stream=1, level=40, site=2, iteration=7, metadata={"loss": float("nan")}
    )
    pruned = prune(build([low] * ROWS + [high] * ROWS).index, expression(query))
    assert pruned.row_groups == kept
    assert {witness.by for witness in pruned.skipped} == {by}


def test_a_row_group_whose_templates_each_fail_another_term_says_so() -> None:
    (witness,) = prune(build([Row("aaa c"), Row("bbb c")]).index, expression("aaa bbb")).skipped
    assert witness.by == "terms"
    assert witness.what == (
        "no template fits all terms: no template has 'aaa'; no template has 'bbb'"
    )


def test_certain_rows_need_no_scan() -> None:
    built = build([Row("loss x", level=20)] * ROWS + [Row("gain x", level=40)] * ROWS)
    pruned = prune(built.index, expression("loss level:INFO"))
    assert (pruned.rows, pruned.certain) == (((ROWS, 2 * ROWS),), True)
    assert not prune(built.index, expression("/l.ss/")).certain


def test_rank_and_level_of_one_line_are_looked_up_together() -> None:
    rows = [
        Row("same x", level=level, site=1, rank=rank) for level, rank in ((20, 7), (40, 3))
    ] * ROWS
    index = build(rows).index
    pruned = prune(index, expression("rank:7 level>=ERROR"))
    assert pruned.row_groups == ()
    assert {witness.by for witness in pruned.skipped} == {"site"}
    assert prune(index, expression("rank:3 level>=ERROR")).row_groups == (0, 1)


def test_site_tables_count_by_rank() -> None:
    rows = [Row("x", level=20, site=1, rank=7)] * 3 + [Row("y 1", level=40, site=2, rank=3)] * 2
    index = build(rows).index
    counted = Pruner(expression("rank:7 OR level:ERROR")).counts(index, by_rank=True)
    assert counted is not None
    assert [(item.rank, item.lines) for item in counted if item.lines] == [(7, 3), (3, 2)]
    assert Pruner(expression("1")).counts(index, by_rank=False) is None


def test_nan_fails_comparisons_so_its_row_group_is_not_certain() -> None:
    rows = [Row("x", metadata={"loss": 1.0}), Row("x", metadata={"loss": float("nan")})]
    pruned = prune(build(rows).index, expression("loss<2"))
    assert (pruned.row_groups, pruned.certain) == ((0,), False)
    assert prune(build(rows).index, expression("NOT loss<2")).row_groups == (0,)


def test_intervals_near_a_match_prune_by_time_and_iteration() -> None:
    index = build([Row("x", iteration=i) for i in range(2 * ROWS)]).index
    time = NearSet("time", "any", (("[]", ((BASE_NS - 5, BASE_NS + 1),)),))
    iteration = NearSet("iteration", "any", (("[]", ((6, 7), (90, 99))),))
    assert prune(index, time).row_groups == (0,)
    assert prune(index, iteration).row_groups == (1,)
    assert prune(index, NearSet("time", "any", ())).row_groups == ()


def test_reasons_are_grouped() -> None:
    pruned = prune(build([Row("aaa")] * ROWS + [Row("bbb")] * ROWS).index, expression("zzz"))
    assert pruned.witnesses() == [
        {"by": "template", "what": "no template has 'zzz'", "row_groups": [0, 1]}
    ]
