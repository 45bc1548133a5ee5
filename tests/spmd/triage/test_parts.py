"""Exits, waiting, links, numbers, checkpoints, timelines: each by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.model.frame import TS_INHERITED
from ranklog.spmd.triage.case import Case
from ranklog.spmd.triage.collectives import judge_waiting
from ranklog.spmd.triage.exits import expand, read_exits, signal_code
from ranklog.spmd.triage.facts import gather
from ranklog.spmd.triage.heat import Heat, anomaly_heat
from ranklog.spmd.triage.links import judge_links
from ranklog.spmd.triage.saves import last_checkpoint
from ranklog.spmd.triage.series import find_nan, find_slowdown, find_spike, read_values
from ranklog.spmd.triage.timeline import make_timeline
from ranklog.spmd.triage.timing import Timing
from tests.spmd.triage.cases import case, said, table, training


# --- exits ----------------------------------------------------------------------------------------
def test_a_failure_table_tells_codes_hosts_and_processes() -> None:
    found = read_exits(table({3: -9, 0: 1}, host="gpu-1"))
    assert [(e.rank, e.code, e.host, e.pid, e.task) for e in found] == [
        (3, -9, "gpu-1", 9003, False),
        (0, 1, "gpu-1", 9000, False),
    ]


def test_a_log_that_ends_before_the_table_still_tells_who_was_reaped() -> None:
    text = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 8) of binary: python"
    one = said(None, 1, text, level=40)
    assert [(e.rank, e.code) for e in read_exits([one])] == [(3, -9)]
    other = said(None, 1, text, level=40, stream="another node")
    assert read_exits([one, other]) == []
    assert [e.rank for e in read_exits([one, *table({5: 1})])] == [5]


@pytest.mark.parametrize(
    ("what", "codes"),
    [
        ("tasks 0,2-3: Exited with exit code 1", {0: 1, 2: 1, 3: 1}),
        ("task 7: Exited with exit code 137", {7: -9}),
        ("task 1: Killed", {1: -9}),
        ("task 4: Segmentation fault (core dumped)", {4: -11}),
        ("tasks 1-2: Terminated", {1: -15, 2: -15}),
        ("task 5: Out Of Memory", {5: -9}),
        ("task 5: something new", {}),
    ],
)
def test_srun_tells_tasks_and_codes(what: str, codes: dict[int, int]) -> None:
    found = read_exits([said(None, 1, f"srun: error: node-1: {what}")])
    assert {e.rank: e.code for e in found} == codes


@given(st.sets(st.integers(0, 5000), min_size=1))
def test_ranges_of_tasks_come_back(tasks: set[int]) -> None:
    assert expand(",".join(map(str, sorted(tasks)))) == sorted(tasks)


@pytest.mark.parametrize(
    ("code", "signal"), [(0, 0), (1, 1), (134, -6), (139, -11), (255, 255), (-9, -9)]
)
def test_a_shells_code_is_a_signal(code: int, signal: int) -> None:
    assert signal_code(code) == signal


# --- waiting --------------------------------------------------------------------------------------
def _waiting(*texts: tuple[int | None, str], ranks: int = 4) -> tuple[str, set[int]] | None:
    facts = gather(
        case([said(r, 10 + i, text, level=40) for i, (r, text) in enumerate(texts)], ranks=ranks)
    )
    found = judge_waiting(facts.signs, facts.ranks, facts.exits)
    return None if found is None else (found.fault, set(found.ranks))


def _watchdog(rank: int, seq: int, op: str = "ALLREDUCE", numel: int = 8) -> tuple[int, str]:
    work = f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000)"
    return rank, (
        f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Watchdog caught collective operation timeout: "
        f"{work} ran for 600001 milliseconds before timing out."
    )


def test_nobody_waits() -> None:
    assert _waiting((0, "iteration 5")) is None


def test_another_size_under_the_same_number_is_a_mismatch() -> None:
    told = [_watchdog(0, 5), _watchdog(1, 5), _watchdog(2, 5, numel=9), _watchdog(3, 5)]
    assert _waiting(*told) == ("collective_mismatch", {2})


def test_communicators_are_not_compared_with_each_other() -> None:
    told = [
        _watchdog(0, 5),
        _watchdog(1, 5),
        (2, _watchdog(2, 90, "BROADCAST")[1].replace("PG ID 0", "PG ID 5")),
    ]
    assert _waiting(*told) == ("collective_timeout", {3})


def test_a_rank_that_enqueued_less_is_behind() -> None:
    dump = (
        "[PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from "
        "rank 0. Last enqueued NCCL work: 4, last completed NCCL work: 4."
    )
    told = [_watchdog(0, 5), _watchdog(1, 5), (3, dump)]
    assert _waiting(*told) == ("collective_timeout", {3})


def test_a_desync_report_names_who_did_not_join_first() -> None:
    told = [
        _watchdog(0, 5),
        (0, "  - [1] finished collective #4, but didn't join collective #5 (count from 1)"),
        (0, "  - [2] finished collective #3, but didn't join collective #4 (count from 1)"),
    ]
    assert _waiting(*told) == ("collective_timeout", {2})


def test_fingerprints_that_differ_name_the_minority() -> None:
    one = "CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[8])"
    two = "CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[8])"
    told = [
        (r, f"RuntimeError: Detected mismatch between collectives on ranks. Rank {r} is running "
            f"collective: {two if r == 1 else one}, but Rank {(r + 1) % 4} is running collective: "
            f"{two if (r + 1) % 4 == 1 else one}.")
        for r in range(4)
    ]  # fmt: skip
    assert _waiting(*told) == ("collective_mismatch", {1})


# --- links ----------------------------------------------------------------------------------------
def _links(*texts: tuple[int | None, str], ranks: int = 12) -> str | None:
    facts = gather(
        case([said(r, 10 + i, text, level=30) for i, (r, text) in enumerate(texts)], ranks=ranks)
    )
    found = judge_links(facts.of("link_down"), facts.of("ib_error"), facts.places)
    return None if found is None else found.host


def _completion(peer: str) -> str:
    return f"NCCL WARN NET/IB: Got completion from peer {peer}<123> with status=12 opcode=0 len=0"


def test_the_host_that_others_name_is_the_suspect() -> None:
    told = [(0, _completion("node-1")), (8, _completion("node-1")), (4, _completion("node-0"))]
    assert _links(*told) == "node-1"


def test_an_address_is_the_host_that_does_not_name_it() -> None:
    told = [
        (0, _completion("10.0.0.9")),
        (8, _completion("10.0.0.9")),
        (4, _completion("10.0.0.7")),
    ]
    assert _links(*told) == "node-1"


def test_two_hosts_that_name_each_other_are_undecidable() -> None:
    assert _links((0, _completion("node-1")), (4, _completion("node-0")), ranks=8) is None


# --- numbers --------------------------------------------------------------------------------------
def _losses(*values: float | str) -> object:
    return read_values(
        [said(0, k, f"iteration {k} loss {v}", iteration=k) for k, v in enumerate(values)]
    )


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ((3, 2, "nan", "nan"), 2),
        ((3, 2, "nan", 2, 2), None),
        (("nan", "nan", "nan"), None),
        ((3, 2, "inf"), 2),
        ((3, 2, 1), None),
    ],
)
def test_a_loss_that_is_not_finite_to_the_end(
    values: tuple[object, ...], since: int | None
) -> None:
    found = find_nan(_losses(*values))  # type: ignore[arg-type]
    assert (None if found is None else found.iteration) == since


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ((3.0, 2.9, 2.8, 2.9, 2.7, 2.8, 2.7, 30.0, 25.0, 20.0), 7),
        ((3.0, 2.9, 2.8, 2.9, 2.7, 2.8, 2.7, 30.0, 2.7, 2.6), None),
        ((3.0, 2.9, 2.8, 2.9, 2.7, 2.8, 2.7, 2.9, 2.7, 2.6), None),
        ((10.0, 8.0, 6.0, 5.0, 4.0, 3.5, 3.2, 3.1, 3.0, 2.9), None),
    ],
)
def test_a_jump_counts_where_it_lasts(values: tuple[float, ...], since: int | None) -> None:
    found = find_spike(_losses(*values))  # type: ignore[arg-type]
    assert (None if found is None else found.iteration) == since


def test_iterations_that_take_longer_than_they_did_are_a_slowdown() -> None:
    def firsts(paces: list[float]) -> list[tuple[int, int]]:
        at, found = 0.0, []
        for k, pace in enumerate(paces):
            at += pace
            found.append((round(at * 1e9), k))
        return found

    assert find_slowdown({}, firsts([2.0] * 40)) is None
    assert find_slowdown({}, firsts([2.0] * 15 + [4.0] * 25)) is not None
    assert find_slowdown({}, firsts([2.0] * 20 + [300.0] + [4.0] * 20)) is None


# --- checkpoints, times, timelines ----------------------------------------------------------------
@pytest.mark.parametrize(("ended", "complete"), [((0, 1), True), ((0,), False), ((), False)])
def test_a_checkpoint_is_complete_when_everybody_ended_it(
    ended: tuple[int, ...], complete: bool
) -> None:
    lines = [said(r, 1, "saving checkpoint at iteration 500 to /ckpt") for r in (0, 1)]
    lines += [said(r, 2, "saved checkpoint at iteration 500 in 2 s") for r in ended]
    found = last_checkpoint(gather(case(lines, ranks=2)).signs)
    assert found is not None
    assert (found.iteration, found.complete) == (500, complete)


def test_without_checkpoints_there_is_no_last_one() -> None:
    assert last_checkpoint(gather(case(training(range(2)))).signs) is None


def test_a_line_without_a_time_is_bounded_by_the_next_one_of_its_stream() -> None:
    untimed = said(0, 1, "x", flags=TS_INHERITED)
    timing = Timing([untimed, said(0, 9, "y"), said(1, 5, "z")])
    assert timing.latest(untimed) == 9 * 10**9
    assert timing.latest(said(0, 10, "w", flags=TS_INHERITED)) > 10**18


def test_a_timeline_has_first_errors_ends_and_silences_in_order() -> None:
    lines = [*training(range(8)), *table({2: -9, 0: -15}, at_s=900.0)]
    lines += [said(r, 890, "RuntimeError: lost", level=40) for r in range(8) if r != 5]
    facts = gather(case(lines))
    events = make_timeline(facts, {2}, gaps=())
    assert [e.ts_ns for e in events] == sorted(e.ts_ns for e in events)
    assert {(e.event, e.rank) for e in events} >= {
        ("first_error", 0), ("exit", 2), ("exit", 0), ("silent", 5), ("last_line", 2)
    }  # fmt: skip
    late = make_timeline(facts, {2}, gaps={5})
    assert ("late", 5) in {(e.event, e.rank) for e in late}


def test_a_rank_whose_heartbeats_stopped_is_gone() -> None:
    told = case(training(range(8)), live=True, now_s=900)
    told.ranks[3].alive_ns = 40 * 10**9
    told.ranks[4].alive_ns = 899 * 10**9
    events = {(e.event, e.rank) for e in make_timeline(gather(told), (), ())}
    assert {("gone", 3), ("silent", 4)} <= events


def heat_of(told: Case, suspects: set[int]) -> Heat | None:
    facts = gather(told)
    return anomaly_heat(facts, read_values(facts.progress.steps), suspects)


def test_errors_by_rank_and_time_add_up() -> None:
    lines = [said(r, at, "ValueError: x", level=40) for r, at in ((1, 10), (1, 20), (3, 50))]
    heat = heat_of(case([*training(range(4)), *lines], ranks=4), {1})
    assert heat is not None
    assert [(row.ranks, row.suspect, sum(row.errors)) for row in heat.rows] == [
        ((0, 0), False, 0),
        ((1, 1), True, 2),
        ((2, 2), False, 0),
        ((3, 3), False, 1),
    ]
    assert heat.rows[3].errors[-1] == 1
    assert heat_of(case(training(range(4)), ranks=4), set()) is None


def test_times_over_the_peers_and_losses_that_are_not_finite_are_odd() -> None:
    slow = [*training(range(3)), *training([3], time_ms=9000.0)]
    heat = heat_of(case(slow, ranks=4), {3})
    assert heat is not None
    assert [sum(row.odd) for row in heat.rows] == [0, 0, 0, 10]
    lost = [*training(range(3)), *training([3], loss="nan")]
    heat = heat_of(case(lost, ranks=4), {3})
    assert heat is not None
    assert [sum(row.odd) for row in heat.rows] == [0, 0, 0, 10]


def test_who_falls_silent_is_so_from_its_last_line_on() -> None:
    lines = [*training([0, 1, 3]), *training([2], 3), said(0, 60, "ValueError: x", level=40)]
    heat = heat_of(case(lines, ranks=4), {2})
    assert heat is not None
    silent = heat.rows[2].silent_from
    assert silent is not None and 0 < silent < 15
    assert heat.rows[0].silent_from is None


def test_many_ranks_are_blocks_below_the_suspects() -> None:
    lines = [*training(range(512), 2), said(37, 30, "ValueError: x", level=40)]
    heat = heat_of(case(lines, ranks=512), {37})
    assert heat is not None
    assert len(heat.rows) == 65
    assert (heat.rows[0].ranks, heat.rows[0].suspect) == ((37, 37), True)
    assert (heat.rows[5].ranks, sum(heat.rows[5].errors)) == ((32, 39), 1)
