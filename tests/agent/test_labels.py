from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.agent.labels import FORMS, Labels, body_at, places
from ranklog.model.frame import STREAM_RANK


@pytest.mark.parametrize(
    ("form", "line", "rank", "text"),
    [
        ("slurm", b"3: loss 2.5", 3, b"loss 2.5"),
        ("slurm", b" 3: loss 2.5", 3, b"loss 2.5"),
        ("slurm", b"0013: ", 13, b""),
        ("mpi", b"[1,3]<stdout>: loss 2.5", 3, b"loss 2.5"),
        ("mpi", b"[1,3]<stdout>:loss 2.5", 3, b"loss 2.5"),
        ("mpi", b"[1,12][node-7:4711]<stderr>: x", 12, b"x"),
        ("mpi", b"[1,12][unknown:unknown]<stderr>: x", 12, b"x"),
        ("mpi", b"[prterun-node-7-99@1,3]<stdout>: x", 3, b"x"),
        ("mpi", b"[3]<stdout>:   x", 3, b"  x"),
        ("mpi", b"[Sun Nov 29 22:10:06 2026][1,1]<stdout>: x", 1, b"x"),
        ("mpi", b"[Sun Nov  9 02:10:06 2026][1]<stdout>: x", 1, b"x"),
        ("hydra", b"[7] x", 7, b"x"),
    ],
)
def test_a_label_says_the_rank(form: str, line: bytes, rank: int, text: bytes) -> None:
    found, at = Labels(form).of(line)

    assert (found, line[at:]) == (rank, text)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("slurm", b"srun: error: node3: task 7: Killed"),
        ("slurm", b"12:30:05 loss 2.5"),
        ("slurm", b"loss 3: 5"),
        ("slurm", b"7:"),
        ("mpi", b"[1,3] loss"),
        ("mpi", b"[node:1234] *** Process received signal ***"),
        ("mpi", b"prterun noticed that process rank 3 exited"),
        ("hydra", b"[rank7] x"),
        ("hydra", b"[mpiexec@node] x"),
        ("hydra", b""),
    ],
)
def test_a_line_without_a_label_is_the_stream_s(form: str, line: bytes) -> None:
    assert Labels(form).of(line) == (STREAM_RANK, 0)


@given(st.sampled_from(sorted(FORMS)), st.lists(st.binary(max_size=12)))
def test_many_lines_are_read_as_each_is(form: str, lines: list[bytes]) -> None:
    labels = Labels(form)
    ranks, starts = labels.of_all(lines)

    assert list(zip(ranks, starts, strict=True)) == [labels.of(line) for line in lines]


@pytest.mark.parametrize(
    ("prefix", "body"),
    [
        (b"2026-03-01T07:00:00.123456789Z stdout F ", b"iteration 12"),
        (b"2026-03-01T07:00:00.1+01:00 stderr P ", b"half a line"),
        (b"2026-03-01T07:00:00.123456789Z stderr F [rank3]: ", b"RuntimeError"),
        (b"", b"2026-03-01 stdout F is written here"),
        (b"", b"to stderr F as well"),
    ],
)
def test_a_body_begins_behind_what_a_containers_runtime_writes(prefix: bytes, body: bytes) -> None:
    line = prefix + body
    assert body_at(line) == len(prefix)
    _, starts = places([b"plain", line], b"plain\n" + line, None)
    assert list(starts) == [0, len(prefix)]
