"""A rank is taken from evidence; a local rank or a task id alone is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.errors import BadInput
from tests.importer.analysed import rows, write
from tests.importer.imported import Imports

INIT = "2024-01-01 00:00:00,000 INFO train a.py:22 initialized rank={} world={} local_rank={}"


def _nccl(dev: int, rank: int, size: int, nodes: int) -> str:
    """What a process says of a communicator that it joins."""
    head = f"n1:{300 + dev}:{400 + dev} [{dev}] NCCL INFO"
    return (
        f"{head} ncclCommInitRank comm 0x3d rank {rank} nranks {size} cudaDev {dev} - Init START\n"
        f"{head} comm 0x3d rank {rank} nRanks {size} nNodes {nodes} localRanks 2 localRank {dev}\n"
    )


CASES: dict[str, tuple[str, list[int | None]]] = {
    "nccl: the job's communicator": (_nccl(0, 2, 4, 2) + _nccl(1, 3, 4, 2), [2, 2, 3, 3]),
    "nccl: a group's, the job is larger": (
        "WORLD_SIZE=4\n" + _nccl(0, 0, 2, 1) + _nccl(1, 1, 2, 1),
        [None] * 5,
    ),
    "nccl: a group's, another spans nodes": (
        _nccl(0, 0, 3, 1) + _nccl(1, 1, 3, 1) + _nccl(0, 1, 2, 2) + _nccl(1, 1, 2, 2),
        [None] * 8,
    ),
    "local ranks of which one is another node's": (
        "[default0]:[rank0]: a\n[default1]:[rank1]: b\n[default0]:c\n[rank9]: d\n",
        [0, 1, None, 9],
    ),
    "tags": ("[rank3]: a\nb\n", [3, None]),
    "tasks that agree with tags": ("0: [rank0]: a\n1: [rank1]: b\n1: c\n", [0, 1, 1]),
    "tasks that are nodes: tags disagree": ("0: [rank0]: a\n1: [rank8]: b\n1: c\n", [0, 8, None]),
    "tasks that are nodes: torchrun": ("+ srun -l torchrun x\n0: a\n1: b\n", [None] * 3),
    "tasks that are nodes: a larger world": ("0: WORLD_SIZE=16\n1: b\n", [None, None]),
    "tasks that fill the world": ("0: world_size=2\n1: b\n", [0, 1]),
    "tasks and nothing against it": ("0: a\n1: b\n", [0, 1]),
    "tasks times local ranks": (
        "0: [default0]:[rank0]: a\n0: [default1]:[rank1]: b\n1: [default0]:[rank2]: c\n"
        "1: [default1]:d\n",
        [0, 1, 2, 3],
    ),
    "local ranks without evidence": ("[default0]:a\n[default1]:b\n", [None, None]),
    "local ranks of one node": ("[default0]:world_size=2\n[default1]:b\n", [0, 1]),
    "local ranks of a larger world": ("[default0]:world_size=4\n[default1]:b\n", [None, None]),
    "tasks and only the first speaks": (
        "+ srun -l torchrun\n0: [Rank 0] a\n1: b\n",
        [None, 0, None],
    ),
    "tasks and only the first speaks, of as many ranks": (
        "0: [Rank 0] world_size=2\n1: b\n",
        [0, 1],
    ),
    "one task per node": ("+ srun -l --ntasks-per-node=1 x\n0: a\n1: b\n", [None] * 3),
    "local ranks with tags": (
        "[default0]:[rank2]: a\n[default1]:[rank3]: b\n[default2]:c\n",
        [2, 3, 4],
    ),
    "local ranks with words": (
        f"[default1]:{INIT.format(5, 8, 1)}\n[default0]:{INIT.format(4, 8, 0)}\n[default1]:b\n",
        [5, 4, 5],
    ),
    "local ranks of many nodes of which one speaks": (
        "[default0]:[Rank 0] world_size=384\n[default7]: iteration 3/ 7 |\n[default0]:c\n",
        [0, None, None],
    ),
    "local ranks of two nodes in one file": (
        f"[default0]:{INIT.format(0, 4, 0)}\n[default0]:{INIT.format(2, 4, 0)}\n[default0]:c\n",
        [0, 2, None],
    ),
    "local ranks with a failure summary": (
        "[default0]:a\n  rank      : 6 (local_rank: 2)\n  rank      : 4 (local_rank: 0)\n",
        [4, None, None],
    ),
    "lightning": ("Initializing distributed: GLOBAL_RANK: 103, MEMBER: 104/1024\n", [103]),
    "an environment": ("RANK=7, LOCAL_RANK=1, WORLD_SIZE=16\nx\n", [7, None]),
    "deepspeed": ("[2021-05-27 19:51:55,061] [INFO] [a.py:6:f] [Rank 5] step=1\n", [5]),
    "watchdog": ("[E1003 22:26:03.467156987 P.cpp:633] [Rank 2] Watchdog caught\n", [2]),
    "olmo": ("[2024-08-18 12:26:53] INFO     [olmo.train:966, rank=4] x\n", [4]),
    "primus": ("[20251202 09:12:08][rank-7/8][INFO ] [--a.py:2560] : x\n", [7]),
    "another's rank": ("New proxy from local rank 3\nFailed to execute Close from rank 4\n", [None] * 2),
    "nccl": (
        "n1:10:11 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 - Init COMPLETE\n"
        "n2:20:21 [0] NCCL INFO comm 0x1 rank 1 nranks 2 cudaDev 0 busId 1 - Init COMPLETE\n"
        "n2:20:99 [0] NCCL INFO Channel 00\n",
        [0, 1, 1],
    ),
    "nccl of groups only": (
        "n1:10:11 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 - Init COMPLETE\n"
        "n2:20:21 [0] NCCL INFO comm 0x2 rank 0 nranks 2 cudaDev 0 busId 1 - Init COMPLETE\n"
        "n2:20:99 [0] NCCL INFO Channel 00\n",
        [None] * 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_line_has_the_rank_that_the_evidence_allows(
    name: str, imports: Imports, tmp_path: Path
) -> None:
    text, ranks = CASES[name]
    assert [row.rank for row in rows(imports, tmp_path, text)] == ranks


# --- per-rank files -----------------------------------------------------------------------------
def _streams(imports: Imports) -> dict[str, tuple[int | None, int | None, int, str | None, str]]:
    """source's end -> rank, local rank, attempt, host, channel"""
    return {
        "/".join((stored.stream.source or "").rsplit("/", 4)[1:]): (
            stored.stream.rank,
            stored.stream.local_rank,
            stored.stream.attempt,
            stored.stream.host,
            stored.stream.channel,
        )
        for stored in imports.streams
    }


def test_a_torchrun_tree_gives_attempt_local_rank_and_proven_ranks(
    imports: Imports, tmp_path: Path
) -> None:
    write(
        tmp_path,
        {
            "node1/job_abc/attempt_1/0/stderr.log": INIT.format(2, 4, 0) + "\n",
            "node1/job_abc/attempt_1/0/stdout.log": "",
            "node1/job_abc/attempt_1/1/stderr.log": "nothing of ranks\n",
        },
    )
    imports.run(tmp_path)
    assert _streams(imports) == {
        "job_abc/attempt_1/0/stderr.log": (2, 0, 1, "node1", "stderr"),
        "job_abc/attempt_1/0/stdout.log": (2, 0, 1, "node1", "stdout"),
        "job_abc/attempt_1/1/stderr.log": (3, 1, 1, "node1", "stderr"),
    }
    assert len({stored.stream.stream_id for stored in imports.streams}) == 3


def test_a_torchrun_tree_without_evidence_has_no_ranks(imports: Imports, tmp_path: Path) -> None:
    write(
        tmp_path,
        {f"none_x/attempt_0/{local}/stdout.log": "hello\n" for local in range(2)},
    )
    imports.run(tmp_path)
    assert [stored.stream.rank for stored in imports.streams] == [None, None]
    assert [stored.stream.local_rank for stored in imports.streams] == [0, 1]


def test_a_torchrun_tree_that_is_the_whole_world_is_one_node(
    imports: Imports, tmp_path: Path
) -> None:
    texts = {f"none_x/attempt_0/{local}/stdout.log": "hello\n" for local in range(2)}
    texts["none_x/attempt_0/0/stderr.log"] = "world_size: 2\n"
    write(tmp_path, texts)
    imports.run(tmp_path)
    assert sorted(stored.stream.rank or 0 for stored in imports.streams) == [0, 0, 1]


def test_a_single_file_of_a_tree_is_known_by_its_whole_path(
    imports: Imports, tmp_path: Path
) -> None:
    write(tmp_path, {"none_x/attempt_2/1/stderr.log": "[rank5]: a\n"})
    imports.run(tmp_path / "none_x/attempt_2/1/stderr.log")
    stream = imports.only().stream
    assert (stream.attempt, stream.local_rank, stream.rank, stream.channel) == (2, 1, 5, "stderr")


@pytest.mark.parametrize(
    ("path", "rank", "local_rank"),
    [
        ("logs/rank-7/info.log", 7, None),
        ("rank_3.log", 3, None),
        ("out.rank12.txt", 12, None),
        ("global_rank_2.log", 2, None),
        ("train.local_rank_2.log", None, 2),
        ("node_rank_1.log", None, None),
        ("group_rank_1/out.log", None, None),
        ("tp_rank_1.log", None, None),
        ("pp_rank_1/dp-rank-3/rank_5.log", 5, None),
        ("expert_parallel_rank_1.log", None, None),
        ("train_rank16_2024.log", 16, None),
        ("workerlog.3", None, 3),
        ("frank3.log", None, None),
        ("ranked.log", None, None),
    ],
)
def test_a_path_says_a_rank_or_a_local_rank(
    path: str, rank: int | None, local_rank: int | None, imports: Imports, tmp_path: Path
) -> None:
    write(tmp_path / "x", {path: "a\n"})
    imports.run(tmp_path / "x")
    stream = imports.only().stream
    assert (stream.rank, stream.local_rank, stream.channel) == (rank, local_rank, path)


def test_a_rank_in_the_path_that_two_nodes_have_is_local(imports: Imports, tmp_path: Path) -> None:
    write(tmp_path, {f"node{n}/rank{r}/out.log": "a\n" for n in range(2) for r in range(2)})
    imports.run(tmp_path)
    assert {(s.stream.rank, s.stream.local_rank) for s in imports.streams} == {(None, 0), (None, 1)}
    assert {s.stream.host for s in imports.streams} == {"node0", "node1"}


def test_paddle_workers_that_are_the_whole_world_are_ranks(
    imports: Imports, tmp_path: Path
) -> None:
    line = "I0102 23:10:20.207690 29359 nccl_context.cc:74] init nccl context nranks: 2 local rank: {}\n"
    write(tmp_path, {f"workerlog.{n}": line.format(n) for n in range(2)})
    imports.run(tmp_path)
    assert [stored.stream.rank for stored in imports.streams] == [0, 1]


def test_the_users_rank_is_the_streams(imports: Imports, tmp_path: Path) -> None:
    write(tmp_path, {"a.log": "x\n[rank3]: y\n"})
    imports.run(tmp_path, rank=5)
    assert imports.only().stream.rank == 5
    assert [row.rank for row in imports.only().rows] == [None, 3]


@pytest.mark.parametrize("pattern", [r"gpu-(\d+)", r"(?P<node>n\d)/gpu-(?P<rank>\d+)"])
def test_the_users_expression_finds_the_rank_in_the_path(
    pattern: str, imports: Imports, tmp_path: Path
) -> None:
    write(tmp_path, {"n1/gpu-12.log": "x\n", "other.log": "y\n"})
    imports.run(tmp_path, rank_from=pattern)
    assert {s.stream.channel: s.stream.rank for s in imports.streams} == {
        "n1/gpu-12.log": 12,
        "other.log": None,
    }


def test_an_expression_that_finds_no_number_is_an_error_of_the_file(
    imports: Imports, tmp_path: Path
) -> None:
    write(tmp_path, {"gpu-x.log": "x\n"})
    assert "no number" in str(imports.run(tmp_path, rank_from=r"gpu-(\w+)").files[0].error)
    with pytest.raises(BadInput):
        imports.run(tmp_path, rank_from="(")


# --- copies -------------------------------------------------------------------------------------
def test_a_console_whose_lines_are_in_the_ranks_files_is_a_copy(
    imports: Imports, tmp_path: Path
) -> None:
    write(
        tmp_path,
        {
            "console.txt": "W: agent\n[default0]:a\n[default1]:[rank1]: b\n",
            "other.txt": "[default0]:x\n[default1]:y\n",
            "logs/none_x/attempt_0/0/stdout.log": "a\n",
            "logs/none_x/attempt_0/1/stderr.log": "[rank1]: b\n",
        },
    )
    imports.run(tmp_path)
    assert {s.stream.channel: s.stream.copy for s in imports.streams} == {
        "console.txt": True,
        "other.txt": False,
        "stdout": False,
        "stderr": False,
    }
