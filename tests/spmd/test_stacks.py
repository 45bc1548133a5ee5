"""Stack dumps: what Python and py-spy print is read, and ranks that stand elsewhere are found."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ranklog.model.answer import Line
from ranklog.spmd.stacks import (
    group_stacks,
    newest_dumps,
    read_dumps,
    stack_evidence,
)

JOB = """
import faulthandler, sys, threading, time
def load():
    time.sleep(5)
def all_reduce():
    faulthandler.dump_traceback(file=sys.stdout)
    faulthandler.dump_traceback_later(0.05, file=sys.stdout)
    time.sleep(0.4)
def train():
    threading.Thread(target=load, daemon=True).start()
    time.sleep(0.1)
    all_reduce()
train()
"""
SPY = """\
Process 16540: /opt/bin/python train.py
Python v3.11.7 (/opt/bin/python3.11)

Thread 16540 (idle): "MainThread"
    clock_nanosleep (libc.so.6)
    wait (torch/distributed/distributed_c10d.py:3145)
        Arguments:
            self: <Work at 0x7f4c0919e350>
            timeout: (1, 2)
    step (train.py:88)
    <module> (train.py:120)
    0x7f4c0944524a (libc.so.6)
Thread 16550 (active+gil): "loader"
    fetch (loader.py:7)
    Thread._bootstrap (threading.py:1002)
"""


def lines_of(text: str, rank: int | None = 0, *, first: int = 0) -> list[Line]:
    """Lines of one stream of a rank."""
    rows = enumerate(text.splitlines())
    return [_line(f"s{rank}", first + seq, rank, row) for seq, row in rows]


def _line(stream: str, seq: int, rank: int | None, text: str) -> Line:
    return Line(
        stream_id=stream,
        seq=seq,
        ts_ns=1_000 + seq,
        run="r",
        launch="l",
        attempt=0,
        rank=rank,
        local_rank=None,
        host=None,
        channel="stderr",
        group=None,
        level=None,
        call_site=None,
        function=None,
        logger=None,
        text=text,
        iteration=None,
    )


def fault_dump(*functions: str, line: int = 7, site: str = "/srv") -> str:
    """What faulthandler prints of one thread."""
    frames = "".join(f'  File "{site}/train.py", line {line} in {name}\n' for name in functions)
    return f"Timeout (0:05:00)!\nThread 0x00007f56b31b76c0 (most recent call first):\n{frames}"


def dumps_of(texts: Sequence[str]) -> list[Line]:
    return [line for rank, text in enumerate(texts) for line in lines_of(text, rank)]


def test_what_faulthandler_really_prints_is_read() -> None:
    out = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, check=True)
    asked, timed = read_dumps(lines_of(out.stdout))
    for dump in (asked, timed):
        assert len(dump.threads) == 2
        assert dump.main is not None
        assert [frame.function for frame in dump.main.frames][-2:] == ["train", "<module>"]
        assert dump.threads[0].frames[0].function == "load"
    assert (asked.reason, asked.threads[-1].current) == (None, True)
    assert timed.reason is not None
    assert timed.reason.startswith("Timeout (0:00:00.05")
    assert newest_dumps([asked, timed]) == {0: timed}


def test_a_fatal_error_is_a_reason() -> None:
    text = (
        "Fatal Python error: Segmentation fault\n\n"
        "Current thread 0x00007fd8e125bb80 [python] (most recent call first):\n"
        '  File "<string>", line 2 in <module>\n'
    )
    [dump] = read_dumps(lines_of(text))
    assert dump.reason == "Fatal Python error: Segmentation fault"
    assert (dump.threads[0].name, dump.threads[0].frames[0].line) == ("python", 2)


def test_what_pyspy_prints_is_read_with_native_frames_and_locals() -> None:
    [dump] = read_dumps(lines_of(SPY))
    assert dump.reason == "Process 16540: /opt/bin/python train.py"
    assert dump.main is not None
    assert [(frame.function, frame.file, frame.line) for frame in dump.main.frames] == [
        ("clock_nanosleep", "libc.so.6", None),
        ("wait", "torch/distributed/distributed_c10d.py", 3145),
        ("step", "train.py", 88),
        ("<module>", "train.py", 120),
        ("0x7f4c0944524a", "libc.so.6", None),
    ]
    assert [thread.name for thread in dump.threads] == ["MainThread", "loader"]


def test_a_traceback_is_no_dump() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/srv/train.py", line 9, in main\nKeyError: 3\n'
    )
    assert read_dumps(lines_of(text)) == []


def test_the_odd_ranks_come_first() -> None:
    waiting = fault_dump("all_reduce", "step", "<module>")
    lines = dumps_of([waiting, waiting, fault_dump("load_batch", "step", "<module>"), waiting])
    groups = group_stacks(newest_dumps(read_dumps(lines)))
    assert [(group.ranks, group.odd, group.waits) for group in groups] == [
        ((2,), True, False),
        ((0, 1, 3), False, True),
    ]


def test_where_python_is_installed_does_not_tell_ranks_apart() -> None:
    texts = [
        fault_dump("wait", site=f"{home}/lib/python3.11/site-packages/torch")
        for home in ("/opt/venv", "/usr", "/home/ada/env")
    ]
    [group] = group_stacks(newest_dumps(read_dumps(dumps_of(texts))))
    assert group.ranks == (0, 1, 2)


def test_of_halves_nobody_is_odd() -> None:
    texts = [fault_dump("a"), fault_dump("a"), fault_dump("b"), fault_dump("b")]
    groups = group_stacks(newest_dumps(read_dumps(dumps_of(texts))))
    assert [group.odd for group in groups] == [False, False]


def test_all_threads_are_compared_whatever_their_order() -> None:
    one = "Thread 0x1 (most recent call first):\n" + '  File "a.py", line 1 in f\n'
    two = "Thread 0x2 (most recent call first):\n" + '  File "b.py", line 2 in g\n'
    other = "Thread 0x2 (most recent call first):\n" + '  File "c.py", line 3 in h\n'
    dumps = newest_dumps(read_dumps(dumps_of([one + two, two + one, other + one])))
    groups = group_stacks(dumps, every_thread=True)
    assert sorted(group.ranks for group in groups) == [(0, 1), (2,)]


def test_interleaved_ranks_of_one_console_are_told_apart_by_their_lines() -> None:
    a, b = lines_of(fault_dump("f", "main"), 0), lines_of(fault_dump("g", "main"), 1)
    mixed = [line for pair in zip(a, b, strict=True) for line in pair]
    for seq, line in enumerate(mixed):
        line.stream_id, line.seq = "console", seq
    dumps = newest_dumps(read_dumps(mixed))
    first = {rank: dump.threads[0].frames[0].function for rank, dump in dumps.items()}
    assert first == {0: "f", 1: "g"}


def test_evidence_names_who_is_outside_of_the_collective_its_peers_wait_in() -> None:
    waiting = fault_dump("all_reduce", "step", "<module>")
    texts = [waiting] * 5 + [fault_dump("read_shard", "<module>"), fault_dump("barrier", "save")]
    found = stack_evidence(dumps_of(texts))
    assert found is not None
    assert found.odd == {5}
    assert "read_shard" in found.why
    assert [line.rank for line in found.lines] == [5]


def test_a_loop_that_polls_is_one_place_to_evidence() -> None:
    texts = [fault_dump("wait", line=n) for n in (7, 8)]
    texts = [text.replace("line 8 in wait", "line 9 in wait") for text in texts]
    found = stack_evidence(dumps_of([*texts, texts[0]]))
    assert found is not None
    assert found.odd == frozenset()


def test_one_rank_is_no_evidence() -> None:
    assert stack_evidence(dumps_of([fault_dump("f")])) is None


@given(st.lists(st.sampled_from(["f", "g", "h"]), min_size=2, max_size=12))
def test_groups_part_the_ranks_and_equal_stacks_are_together(places: list[str]) -> None:
    groups = group_stacks(newest_dumps(read_dumps(dumps_of([fault_dump(p) for p in places]))))
    assert sorted(rank for group in groups for rank in group.ranks) == list(range(len(places)))
    for group in groups:
        assert {places[rank] for rank in group.ranks} == {group.threads[0].frames[0].function}
    assert len(groups) == len(set(places))
