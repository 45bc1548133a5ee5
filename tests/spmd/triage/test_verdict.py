"""Who is to blame, case by case: the smallest that shows each rule."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.model.answer import Line
from ranklog.model.frame import TS_INHERITED
from ranklog.spmd.triage.rules import CLASSES, FAULT_OF
from ranklog.spmd.triage.steps import next_steps
from ranklog.spmd.triage.verdict import Verdict, judge
from tests.spmd.triage.cases import case, said, table, training

RANKS = range(8)
LOST = "[rank{0}]: torch.distributed.DistBackendError: NCCL error, remote process exited"
TIMEOUT = (
    "[rank{0}]:[E1003 22:26:03.467156987 ProcessGroupNCCL.cpp:633] [Rank {0}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn=8, NumelOut=8, "
    "Timeout(ms)=600000) ran for 600008 milliseconds before timing out."
)


def blamed(verdict: Verdict) -> list[object]:
    """Each suspect as a rank, a host, a set or "all"."""
    return [
        s.host if s.node else s.rank if s.rank is not None else s.ranks for s in verdict.suspects
    ]


def lost(*ranks: int, at_s: float = 51.0) -> list[Line]:
    return [said(r, at_s + r / 1000, LOST.format(r), level=40) for r in ranks]


def waits(*ranks: int, seq: int = 77, op: str = "ALLREDUCE", at_s: float = 650.0) -> list[Line]:
    return [said(r, at_s + r / 1000, TIMEOUT.format(r, seq, op), level=40) for r in ranks]


OOM = (
    "[rank{0}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has "
    "a total capacity of 79.15 GiB of which 401.40 MiB is free."
)


@pytest.mark.parametrize(
    ("said_last", "fault", "who"),
    [
        ([said(3, 52, OOM.format(3), level=40), *lost(0, 1, 2, 4, 5, 6, 7)], "oom_device", 3),
        ([said(r, 52, OOM.format(r), level=40) for r in RANKS], "oom_device", "all"),
        (
            [
                said(
                    5, 52, "RuntimeError: CUDA error: uncorrectable ECC error encountered", level=40
                ),
                *lost(0, 1, 2),
            ],
            "hardware",
            5,
        ),
        (
            [
                said(
                    None,
                    51,
                    "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.",
                    stream="dmesg",
                    host="node-1",
                ),
                *waits(0, 1, 2, 3),
            ],
            "hardware",
            "node-1",
        ),
        (
            [
                said(
                    6,
                    52,
                    "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed. ",
                    level=40,
                ),
                *lost(0, 1),
            ],
            "data_loader",
            6,
        ),
        (
            [
                said(r, 52, f"OSError: [Errno 28] No space left on device: '/ckpt/{r}'", level=40)
                for r in (4, 5, 6, 7)
            ]
            + lost(0, 1, 2),
            "storage",
            "node-1",
        ),
        ([*table({2: -11, 0: -15, 1: -15})], "crash_signal", 2),
        ([*table({2: 7, 0: -15, 1: -15, 3: -15})], "unknown", 2),
        ([*table({2: -9, 0: -15, 1: -15, 3: -15})], "external_kill", 2),
        (
            [
                said(2, 52, "[rank2]: ZeroDivisionError: division by zero", level=40),
                *lost(0, 1, 3, 4, 5, 6, 7),
            ],
            "unknown",
            2,
        ),
        ([*waits(0, 1, 2, 3, 5, 6, 7)], "collective_timeout", 4),
        (
            [*waits(0, 1, 2, 3, 5, 6, 7), *waits(4, op="ALLGATHER")],
            "collective_mismatch",
            4,
        ),
        (
            [said(None, 700, "missing ranks: {6}", stream="trace"), *waits(0, 1, 2)],
            "collective_timeout",
            6,
        ),
    ],
)
def test_a_cause_is_told_from_what_follows_from_it(
    said_last: list[Line], fault: str, who: object
) -> None:
    verdict = judge(case([*training(RANKS), *said_last]))
    assert (verdict.fault, blamed(verdict)[0], verdict.undecidable) == (fault, who, False)


def test_a_suspect_is_named_once_and_nobody_beside_all_ranks() -> None:
    own = [said(3, 52, OOM.format(3), level=40), *table({3: 1, 0: -15, 1: -15, 2: -15})]
    assert blamed(judge(case([*training(RANKS), *own]))) == [3]
    everybody = [said(r, 52, OOM.format(r), level=40) for r in RANKS]
    assert blamed(judge(case([*training(RANKS), *everybody, *table({4: -9, 0: -15})]))) == ["all"]


def test_a_frozen_rank_that_only_sigkill_ended_is_the_suspect() -> None:
    codes = {0: -6, 1: -6, 2: -15, 3: -9, 4: -15, 5: -15, 6: -15, 7: -15}
    verdict = judge(case([*training(RANKS), *waits(0, 1, 4), *table(codes, 660)]))
    assert (verdict.fault, blamed(verdict)) == ("collective_timeout", [3])


@pytest.mark.parametrize(
    "said_last",
    [
        [*waits(*RANKS)],
        [*waits(0, 1, 2)],
        [*table({0: 1, 1: 1, 2: 1, 3: 1})],
    ],
)
def test_what_the_logs_leave_open_is_undecidable(said_last: list[Line]) -> None:
    verdict = judge(case([*training(RANKS), *said_last]))
    assert (verdict.suspects, verdict.undecidable) == ([], True)


@pytest.mark.parametrize(
    "text",
    [
        "slurmstepd: error: *** STEP 561.17 ON node-0 CANCELLED AT 2024-05-01T04:11:25 DUE TO TIME "
        "LIMIT ***",
        "W1129 14:00:07.109000 23230 torch/distributed/elastic/agent/server/api.py:753] Received 15 "
        "death signal, shutting down workers",
    ],
)
def test_an_end_from_outside_has_no_suspect(text: str) -> None:
    after = [said(r, 53, LOST.format(r), level=40) for r in (0, 1)]
    verdict = judge(case([*training(RANKS), said(None, 52, text, level=40), *after]))
    assert (verdict.fault, verdict.suspects, verdict.undecidable) == ("external_kill", [], False)


def test_a_time_limit_long_after_the_last_iteration_is_a_hang() -> None:
    limit = (
        "slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2024-05-01T04:11:25 DUE TO TIME LIMIT ***"
    )
    ahead = said(3, 50.0, "iteration 10 loss 3.0", level=20, iteration=10)
    others = [
        said(r, 50.1, "iteration 10 loss 3.0", level=20, iteration=10) for r in RANKS if r != 5
    ]
    lines = [*training(RANKS), ahead, *others, said(None, 3600, limit, level=40)]
    verdict = judge(case(lines))
    assert (verdict.fault, blamed(verdict)) == ("hang", [5])


def test_the_odd_stack_is_the_suspect_of_a_hang() -> None:
    stacks = []
    for rank in RANKS:
        name = "wait" if rank != 6 else "read"
        stacks += [
            said(rank, 900, "Thread 0x00002691f972f9a6 (most recent call first):"),
            said(rank, 900.001, f'  File "/opt/x.py", line 8 in {name}'),
        ]
    verdict = judge(case([*training(RANKS), *stacks]))
    assert (verdict.fault, blamed(verdict)) == ("hang", [6])


def test_a_loss_that_becomes_nan_on_one_rank_first_is_that_ranks() -> None:
    lines = training(RANKS)
    lines += [
        said(
            r,
            50 + 5 * k + r / 1000,
            f"iteration {10 + k} loss {'nan' if k or r == 2 else 3.0}",
            level=20,
            iteration=10 + k,
        )
        for k in range(4)
        for r in RANKS
    ]
    verdict = judge(case(lines))
    assert (verdict.fault, blamed(verdict)) == ("numeric", [2])


def test_nan_on_every_line_from_the_start_is_normal() -> None:
    assert judge(case(training(RANKS, loss="nan"))).fault == "none"


def test_a_loss_that_jumps_is_everybodys() -> None:
    lines = training(RANKS)
    lines += [
        said(r, 50 + 5 * k, f"iteration {10 + k} loss 40.0", level=20, iteration=10 + k)
        for k in range(4)
        for r in RANKS
    ]
    verdict = judge(case(lines))
    assert (verdict.fault, blamed(verdict)) == ("numeric", ["all"])


@pytest.mark.parametrize(("slow", "who"), [((3,), 3), ((4, 5, 6, 7), "node-1")])
def test_ranks_whose_own_time_is_longer_are_slow(slow: tuple[int, ...], who: object) -> None:
    fast = [r for r in RANKS if r not in slow]
    verdict = judge(case([*training(fast), *training(slow, time_ms=9000.0)]))
    assert (verdict.fault, blamed(verdict)) == ("slow", [who])


def test_a_writer_that_never_ends_is_the_suspect() -> None:
    lines = training(RANKS)
    lines += [said(r, 51, "saving checkpoint at iteration 9", iteration=9) for r in RANKS]
    lines += [said(r, 53, "saved checkpoint at iteration 9", iteration=9) for r in RANKS if r != 4]
    verdict = judge(case([*lines, *waits(0, 1, 2)]))
    assert (verdict.fault, blamed(verdict)) == ("storage", [4])


def test_an_error_after_which_iterations_went_on_is_none() -> None:
    refused = said(3, 12, "[rank3]: RuntimeError: could not push, CUDA out of memory", level=40)
    assert judge(case([*training(RANKS), refused])).fault == "none"


def test_what_comes_after_the_run_says_that_it_is_done_is_none() -> None:
    done = said(0, 51, "training completed: 10 iterations", level=20)
    late = [
        said(r, 53, "FileNotFoundError: [Errno 2] No such file or directory", level=40)
        for r in RANKS
    ]
    assert judge(case([*training(RANKS), done, *late])).fault == "none"


def test_a_finalizers_traceback_is_none() -> None:
    lines = training(RANKS)
    for rank in (0, 3):
        trace = [
            said(rank, 51.0, "Traceback (most recent call last):", level=40),
            said(
                rank,
                51.001,
                '  File "multiprocessing/util.py", line 300, in _run_finalizers',
                level=40,
            ),
            said(rank, 51.002, "FileNotFoundError: [Errno 2] No such file or directory", level=40),
        ]
        for item in trace:
            item.group = trace[0].seq
        lines += trace
    assert judge(case(lines)).fault == "none"


def test_a_line_without_a_time_may_be_as_late_as_what_follows_it() -> None:
    early = said(3, 1, OOM.format(3), level=40, stream="rank-3-stderr", flags=TS_INHERITED)
    verdict = judge(case([*training(RANKS), early, *waits(0, 1, 2, 4, 5, 6, 7)]))
    assert (verdict.fault, blamed(verdict)[0]) == ("oom_device", 3)


def test_only_the_last_attempt_counts() -> None:
    first = [*training(RANKS, 6), said(2, 30, OOM.format(2), level=40)]
    again = training(RANKS, 9)
    for item in again:
        item.ts_ns += 100 * 10**9
        item.seq += 100_000
    assert judge(case([*first, *again])).fault == "none"


def test_a_live_run_stands_still_when_it_is_silent_for_long() -> None:
    lines = training(RANKS)
    assert judge(case(lines, live=True, now_s=60)).fault == "none"
    assert judge(case(lines, live=True, now_s=600)).fault == "hang"


def test_a_rank_whose_process_is_gone_is_the_suspect_of_a_live_hang() -> None:
    told = case(training(RANKS), live=True, now_s=600)
    for rank, state in told.ranks.items():
        state.alive_ns = (45 if rank == 6 else 599) * 10**9
    assert blamed(judge(told)) == [6]


def test_a_live_run_without_any_process_left_is_no_hang() -> None:
    told = case(training(RANKS), live=True, now_s=600)
    for state in told.ranks.values():
        state.alive_ns = 45 * 10**9
    verdict = judge(told)
    assert (verdict.fault, verdict.suspects, verdict.undecidable) == ("unknown", [], True)


def test_an_exception_in_the_middle_of_a_console_ended_nothing() -> None:
    refused = said(None, 1, "ValueError: no such metric", level=40, stream="console")
    told = case([refused])
    assert blamed(judge(told)) != []
    told.stream_lines = {"console": refused.seq + 5000}
    assert judge(told).fault == "none"


def test_nobody_said_anything() -> None:
    assert judge(case([], ranks=0)).fault == "none"


def test_every_class_of_a_rule_is_one() -> None:
    assert set(FAULT_OF.values()) <= set(CLASSES)


@pytest.mark.parametrize(
    ("codes", "fault"),
    [
        ([-10] * 4, "external_kill"),
        ([138] * 4, "external_kill"),
        ([-10, -10, -10, 1], "unknown"),
        ([-10, -10, -10, None], "unknown"),
    ],
)
def test_all_ended_by_one_signal_from_outside_is_nobodys_fault(
    codes: list[int | None], fault: str
) -> None:
    found = case(training(range(4)), ranks=4)
    for rank, code in enumerate(codes):
        found.ranks[rank].exit_code = code
    verdict = judge(found)
    assert verdict.fault == fault
    if fault == "external_kill":
        assert (verdict.suspects, verdict.why) == ([], "every process was ended by SIGUSR1")


@pytest.mark.parametrize("fault", [name for name in CLASSES if name != "none"])
def test_every_class_has_a_next_step_and_a_page(fault: str) -> None:
    steps = next_steps(fault, "job@1", [])
    assert {step.runbook for step in steps} == {f"docs/runbooks/{fault}.md"}
    assert "--run job@1" in (steps[-1].command or "")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 7), st.integers(0, 2**32))
def test_hosts_clocks_and_the_order_of_reports_do_not_change_who_is_missing(
    missing: int, seed: int
) -> None:
    shuffled = random.Random(seed)
    at = {r: 650 + shuffled.random() * 20 for r in RANKS}
    lines = [w for r in RANKS if r != missing for w in waits(r, at_s=at[r])]
    shuffled.shuffle(lines)
    assert blamed(judge(case([*training(RANKS), *lines]))) == [missing]
