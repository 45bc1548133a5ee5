"""Which ranks are odd, case by case, and which are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.spmd.outliers.evidence import Attempt
from ranklog.spmd.outliers.verdict import find_outliers
from ranklog.spmd.table import ABSENT, Key
from tests.spmd.outliers.jobs import (
    ERROR,
    INFO,
    ITERATIONS,
    SECOND,
    START,
    STEP,
    WARNING,
    Row,
    attempt_of,
    healthy,
    key,
    odd,
    outliers,
    samples,
)

LAST = (ITERATIONS + 1) * 10 * SECOND
COLUMNS = ("rank", "ts_ns", "iteration", "key", "level", "seq", "stream")
BROKEN = key("CUDA error: an illegal memory access was encountered")


@given(
    ranks=st.integers(1, 12),
    words=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(-1, 5), st.sampled_from([-1, INFO, ERROR])),
        max_size=12,
    ),
)
def test_ranks_that_say_the_same_are_never_odd(
    ranks: int, words: list[tuple[str, int, int]]
) -> None:
    rows = [
        (rank, at * SECOND, iteration, key(word), level)
        for rank in range(ranks)
        for at, (word, iteration, level) in enumerate(words)
    ]
    assert outliers(rows, ranks).ranks == []


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_the_order_of_the_rows_is_nothing_to_it(seed: int) -> None:
    rows = [row for row in healthy() if row[:1] != (3,) or row[2] not in (4, 5, 6, 7)]
    rows.append((5, LAST, ABSENT, BROKEN, ERROR))
    attempt = attempt_of(rows)
    order = np.random.default_rng(seed).permutation(len(rows))
    columns = {name: getattr(attempt.table, name)[order] for name in COLUMNS}
    again = find_outliers(Attempt(replace(attempt.table, **columns), attempt.topology))
    found = find_outliers(attempt)
    assert [(x.rank, x.score) for x in found.ranks] == [(x.rank, x.score) for x in again.ranks]


def test_an_error_that_no_peer_says_makes_its_rank_odd() -> None:
    found = outliers([*healthy(), (5, LAST, ABSENT, BROKEN, ERROR)])
    assert odd(found) == [5]
    [evidence] = found.odd[0].evidence
    assert (evidence.kind, evidence.rank) == ("insert", 5)


def test_an_error_that_the_job_lived_on_after_does_not() -> None:
    assert odd(outliers([*healthy(), (5, 35 * SECOND, ABSENT, BROKEN, ERROR)])) == []
    ended = outliers([*healthy(), (5, LAST, ABSENT, BROKEN, ERROR)], ended_well=frozenset({5}))
    assert odd(ended) == []


def test_an_error_on_every_rank_is_no_rank_s() -> None:
    rows: list[Row] = [*healthy(), *((r, LAST, ABSENT, BROKEN, ERROR) for r in range(8))]
    assert outliers(rows).ranks == []


def test_a_rank_that_lacks_what_its_peers_say_at_iterations_is_odd() -> None:
    rows = [row for row in healthy() if row[0] != 3 or row[2] not in range(2, 9)]
    found = outliers(rows)
    assert odd(found) == [3]
    first = found.odd[0].evidence[0]
    assert (first.kind, first.iteration, first.expected, first.got) == ("delete", 2, 1, 0)


def test_a_rank_missing_from_the_others_errors_is_odd() -> None:
    said = [key(f"watchdog {word}") for word in ("caught a timeout", "ended", "aborts")]
    rows: list[Row] = [
        (r, LAST + r, ABSENT, word, ERROR) for r in range(8) if r != 6 for word in said
    ]
    # it says something, too: it is not silent
    rows.append((6, LAST + 9, ABSENT, START, INFO))
    found = outliers([*healthy(), *rows])
    assert odd(found) == [6]
    assert {item.kind for item in found.odd[0].evidence} == {"delete"}


def test_sites_of_rank_0_and_of_the_last_rank_are_their_part() -> None:
    rows: list[Row] = healthy()
    rows += [(0, i * 10 * SECOND, i, key("saving"), INFO) for i in (3, 6)]
    rows += [(7, i * 10 * SECOND, i, key("lm loss"), INFO) for i in range(ITERATIONS)]
    assert outliers(rows).ranks == []


def test_what_one_rank_says_all_along_is_a_job_that_it_has() -> None:
    rows: list[Row] = [(2, i * 10 * SECOND, i, key("tokens"), INFO) for i in range(ITERATIONS)]
    assert outliers([*healthy(), *rows]).ranks == []


def test_the_peers_of_a_rank_are_those_of_its_stage() -> None:
    def places(rank: int) -> dict[str, int]:
        return {"pp": rank // 4, "tp": rank % 2, "dp": rank // 2 % 2}

    stage: list[Row] = [
        (r, LAST + r, ABSENT, key("embedding gathered"), ERROR) for r in range(4, 8)
    ]
    assert outliers([*healthy(), *stage], places=places).ranks == []
    found = outliers([*healthy(), *stage[:3]], places=places)
    assert [(item.rank, item.evidence[0].kind) for item in found.ranks] == [(7, "delete")]


def test_a_silent_rank_is_odd_and_one_without_a_line_too() -> None:
    found = outliers([row for row in healthy() if row[0] != 2 or row[2] < 5])
    assert odd(found) == [2]
    assert {item.kind for item in found.odd[0].evidence} == {"silent"}
    mute = outliers([row for row in healthy() if row[0] != 2])
    assert odd(mute) == [2]
    assert mute.odd[0].evidence[0].got == 0


def test_who_only_spoke_at_the_start_is_not_silent() -> None:
    rows: list[Row] = [(r, 0, ABSENT, START, INFO) for r in range(8)]
    rows += [(r, 3600 * SECOND, ABSENT, key("bye"), WARNING) for r in range(1, 8)]
    assert odd(outliers(rows)) == []


def test_the_first_to_have_nan_is_odd_not_those_it_spreads_to() -> None:
    nan = key("iteration \x00 loss nan")
    rows = [
        (r, ns, i, nan if i > 7 or (i == 7 and r == 4) else said, level)
        for r, ns, i, said, level in healthy()
    ]
    found = outliers(rows)
    assert odd(found) == [4]
    assert ("change", 7) in [(item.kind, item.iteration) for item in found.odd[0].evidence]


def test_nan_on_every_line_of_every_rank_is_normal() -> None:
    rows = [(r, ns, i, key("accuracy=nan"), level) for r, ns, i, _, level in healthy()]
    assert outliers(rows).ranks == []


def test_all_ranks_of_a_node_are_explained_by_it() -> None:
    rows: list[Row] = [(r, LAST, ABSENT, BROKEN, ERROR) for r in range(4, 8)]
    found = outliers([*healthy(16), *rows], 16)
    assert odd(found) == [4, 5, 6, 7]
    assert found.group is not None
    assert found.group.name == "node gpu-1"


def test_a_rank_whose_own_time_is_high_is_slow_and_one_that_waits_least_too() -> None:
    attempt = attempt_of(healthy())

    def times(rank: int, iteration: int) -> str:
        late = rank == 3 and iteration >= 6
        return f"iteration {iteration} compute_ms {200.5 if late else 100.5 + rank / 10}"

    found = find_outliers(attempt, samples(attempt, times))
    assert [(item.rank, item.evidence[0].kind) for item in found.odd] == [(3, "slow")]
    assert found.odd[0].evidence[0].iteration == 6

    def waits(rank: int, iteration: int) -> str:
        return f"iteration {iteration} allreduce time {1.5 if rank == 3 else 90.5 + rank / 10}"

    found = find_outliers(attempt, samples(attempt, waits))
    assert [(item.rank, item.evidence[0].kind) for item in found.odd] == [(3, "slow")]


def test_stages_of_a_pipeline_are_not_slower_than_each_other() -> None:
    rows = healthy(16)
    shapes = {"places": lambda rank: {"pp": rank // 4}}
    attempt = attempt_of(rows, 16, **shapes)  # type: ignore[arg-type]

    def times(rank: int, iteration: int) -> str:
        return f"iteration {iteration} forward {300.5 if rank >= 12 else 100.5 + rank} ms"

    assert find_outliers(attempt, samples(attempt, times)).ranks == []
    flat = attempt_of(rows, 16)
    assert odd(find_outliers(flat, samples(flat, times))) == [12, 13, 14, 15]


def test_a_value_that_all_peers_share_is_a_change_where_one_has_another() -> None:
    attempt = attempt_of(healthy())
    found = find_outliers(
        attempt, samples(attempt, lambda rank, i: f"seed {7 if rank == 5 else 42} at {i}")
    )
    [outlier] = found.ranks
    evidence = outlier.evidence[0]
    assert (outlier.rank, evidence.kind, evidence.name) == (5, "change", "seed")
    assert (evidence.expected, evidence.got) == (42.0, 7.0)


def test_where_every_rank_has_words_of_its_own_none_is_odd() -> None:
    rows: list[Row] = [
        (r, LAST, ABSENT, Key(None, f"host {name} says {word}"), ERROR)
        for r, name in enumerate("abcdefgh")
        for word in ("one", "two")
    ]
    assert odd(outliers([*healthy(), *rows])) == []


def test_of_two_ranks_and_of_no_line_there_is_no_consensus() -> None:
    assert outliers([*healthy(2), (1, LAST, ABSENT, BROKEN, ERROR)], 2).ranks == []
    assert outliers([], 0).ranks == []
    assert STEP.template


def test_a_progress_bar_that_grows_is_a_job_that_goes_on() -> None:
    rows: list[Row] = [(r, r, ABSENT, START, INFO) for r in range(8)]
    rows += [
        (0, i * 10 * SECOND, ABSENT, key("\x00%|" + "█" * i + "| \x00/\x00", None), ABSENT)
        for i in range(20)
    ]
    rows.append((5, 50 * SECOND, ABSENT, BROKEN, ERROR))
    assert odd(outliers(rows)) == []


def test_an_error_that_was_logged_with_its_traceback_is_not_what_ends_a_rank() -> None:
    traceback, cause = key("Traceback (most recent call last):"), key("ConnectionError: no route")
    logged = [key("failed to push metrics"), traceback, cause]
    rows: list[Row] = [*healthy(), *((5, LAST, ABSENT, said, ERROR) for said in logged)]
    assert odd(outliers(rows)) == []
    assert odd(outliers([*healthy(), *((5, LAST, ABSENT, x, ERROR) for x in logged[1:])])) == [5]


def test_a_traceback_of_who_reports_to_a_dashboard_is_not_what_ends_a_rank() -> None:
    head = key("Traceback (most recent call last):", None)
    lost = key("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='metrics')", None)
    rows: list[Row] = [*healthy(), *((5, LAST, ABSENT, said, ERROR) for said in (head, lost))]
    assert odd(outliers(rows)) == []
    broken: list[Row] = [*healthy(), *((5, LAST, ABSENT, said, ERROR) for said in (head, BROKEN))]
    assert odd(outliers(broken)) == [5]
