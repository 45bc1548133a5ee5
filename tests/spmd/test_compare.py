"""Ranks side by side."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.errors import BadInput
from ranklog.model.answer import Line
from ranklog.spmd.compare import Side, compare
from ranklog.spmd.hunks import Hunk
from tests.spmd.lines import column, line


def sides(*columns: list[Line]) -> list[Side]:
    return [Side(str(c[0].rank if c else at), c) for at, c in enumerate(columns)]


def brief(hunks: list[Hunk]) -> list[tuple[str, int | None, dict[str, list[str]]]]:
    return [
        (h.op, h.iteration, {side: [x.text for x in lines] for side, lines in h.lines.items()})
        for h in hunks
    ]


def test_what_one_rank_does_not_say_is_a_delete_and_what_only_it_says_an_insert() -> None:
    found = compare(
        sides(
            column(0, (1, "forward"), (1, "backward"), (2, "forward"), (2, "backward")),
            column(7, (1, "forward"), (1, "backward"), (2, "forward"), (2, "retry of fetch")),
        )
    )
    assert brief(found.hunks) == [
        ("delete", 2, {"0": ["backward"], "7": []}),
        ("insert", 2, {"0": [], "7": ["retry of fetch"]}),
    ]
    assert found.counts == {"equal": 3, "insert": 1, "delete": 1, "change": 0}
    assert found.differs


def test_a_changed_value_has_its_name_position_and_distance_from_the_peers() -> None:
    peers = [line(f"step 4 loss: {x}", rank=r, iteration=4) for r, x in enumerate([2.0, 2.5, 3.0])]
    found = compare(
        sides(column(0, (4, "step 4 loss: 2.5")), column(7, (4, "step 4 loss: 97.5"))),
        peers=peers,
    )
    [hunk] = found.hunks
    [change] = hunk.values
    assert (hunk.op, hunk.iteration) == ("change", 4)
    assert (change.name, change.position, change.values) == ("loss", 1, {"0": 2.5, "7": 97.5})
    assert (change.peers_median, change.distance) == (2.5, 95.0)


def test_not_a_number_is_a_value_of_the_same_variable() -> None:
    found = compare(sides(column(0, (1, "loss 2.5")), column(1, (1, "loss nan"))))
    [item] = [h.to_json(lambda x: {"text": x.text}, str) for h in found.hunks]
    assert item == {
        "op": "change",
        "attempt": 0,
        "iteration": 1,
        "window_ns": None,
        "window": None,
        "call_site": None,
        "template": "loss <*>",
        "ranks": {"0": [{"text": "loss 2.5"}], "1": [{"text": "loss nan"}]},
        "values": [
            {
                "name": "loss",
                "position": 0,
                "0": 2.5,
                "1": "NaN",
                "peers_median": None,
                "distance": None,
            }
        ],
    }


@pytest.mark.parametrize(
    "texts",
    [
        ("[rank0]: ready", "[rank7]: ready"),
        ("2024-01-02 12:30:01 ready", "2024-01-02 12:30:04 ready"),
        ("rank 0 of 8", "rank 7 of 8"),
        ("buffer at 0x7f00aa10", "buffer at 0x7f33bb20"),
        ("pid=4711 up", "pid=4712 up"),
        ("host gpu-00 up", "host gpu-07 up"),
        ("step   9/10", "step 9/10"),
    ],
)
def test_what_only_says_who_and_when_is_equal(texts: tuple[str, str]) -> None:
    assert not compare(sides(column(0, texts[0]), column(7, texts[1]))).differs


def test_envelopes_take_no_part() -> None:
    a = [line("0: hello", rank=0, body_at=3)]
    b = [line("12: hello", rank=5, body_at=4)]
    assert not compare(sides(a, b)).differs


def test_another_order_in_one_iteration_is_no_difference() -> None:
    found = compare(
        sides(column(0, (1, "x"), (1, "y"), (1, "z")), column(1, (1, "z"), (1, "x"), (1, "y"))),
        all_hunks=True,
    )
    assert found.counts == {"equal": 3, "insert": 0, "delete": 0, "change": 0}
    assert any(hunk.moved for hunk in found.hunks)


def test_words_that_differ_are_a_change_of_one_message() -> None:
    found = compare(
        sides(column(0, "checkpoint save went fine"), column(1, "checkpoint save went wrong"))
    )
    assert [(h.op, [v.values for v in h.values]) for h in found.hunks] == [
        ("change", [{"0": "fine", "1": "wrong"}])
    ]


def test_metadata_that_differs_is_a_change() -> None:
    a = [line("x", rank=0, iteration=1, metadata={"loss": 1.0, "kind": "a"})]
    b = [line("x", rank=1, iteration=1, metadata={"loss": 4.0, "kind": "a"})]
    [hunk] = compare(sides(a, b)).hunks
    assert [(v.name, v.position, v.values, v.distance) for v in hunk.values] == [
        ("loss", None, {"0": 1.0, "1": 4.0}, 3.0)
    ]


def test_lines_without_iteration_have_a_window_and_survive_a_late_start() -> None:
    a = [line(f"beat {k % 3}", rank=0, seq=k) for k in range(30)]
    b = [line(f"beat {k % 3}", rank=1, seq=k, ts_ns=k * 1_000_000 + 7_000_000) for k in range(30)]
    found = compare(sides(a, b), all_hunks=True)
    assert not found.differs
    assert {(h.iteration, h.window_ns) for h in found.hunks} == {(None, 0)}


def test_a_rank_that_names_no_iteration_is_placed_by_the_clock_of_one_that_does() -> None:
    a, b = [], []
    for step in range(4):
        at = step * 1_000_000_000
        a.append(line(f"iteration {step}", rank=0, seq=2 * step, ts_ns=at, iteration=step))
        a.append(line("fetch", rank=0, seq=2 * step + 1, ts_ns=at + 10))
        if step != 2:
            b.append(line("fetch", rank=1, seq=step, ts_ns=at + 12))
    found = compare(sides(a, b))
    fetches = [h for h in found.hunks if h.template == "fetch"]
    assert [(h.op, h.iteration) for h in fetches] == [("delete", 2)]


def test_the_majority_of_several_ranks_is_right() -> None:
    found = compare(
        sides(column(0, (1, "a")), column(1, (1, "a"), (1, "b")), column(2, (1, "a"), (1, "b")))
    )
    assert brief(found.hunks) == [("delete", 1, {"0": [], "1": ["b"], "2": ["b"]})]


def test_neighbours_of_one_key_and_verdict_are_one_hunk() -> None:
    found = compare(sides(column(0, (1, "a"), (1, "b"), (1, "b")), column(1, (1, "a"))))
    assert brief(found.hunks) == [("delete", 1, {"0": ["b", "b"], "1": []})]


def test_runs_are_set_against_each_other_by_attempt_and_time_since_their_start() -> None:
    a = [line(f"up {k}", run="a", attempt=0, seq=k) for k in range(3)]
    b = [line(f"up {k}", run="b", attempt=1, seq=k, ts_ns=10**15 + k) for k in range(3)]
    assert not compare([Side("a:0", a), Side("b:0", b)]).differs


@pytest.mark.parametrize("count", [0, 1, 9])
def test_too_few_or_too_many_ranks_are_refused(count: int) -> None:
    with pytest.raises(BadInput, match="side by side"):
        compare([Side(str(k), []) for k in range(count)])


TEXTS = st.lists(
    st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from(["a", "b", "loss 1", "loss 2"])),
    max_size=12,
)


@settings(max_examples=60)
@given(st.lists(TEXTS, min_size=2, max_size=4))
def test_every_line_stands_in_exactly_one_hunk(texts: list[list[tuple[int | None, str]]]) -> None:
    columns = [column(rank, *items) for rank, items in enumerate(texts)]
    found = compare([Side(str(k), c) for k, c in enumerate(columns)], all_hunks=True)
    for at, own in enumerate(columns):
        shown = [x.id for hunk in found.hunks for x in hunk.lines[str(at)]]
        assert sorted(shown) == sorted(x.id for x in own)


@given(TEXTS)
def test_a_rank_equals_itself(items: list[tuple[int | None, str]]) -> None:
    a = column(0, *items)
    assert not compare([Side("a", a), Side("b", a)]).differs
