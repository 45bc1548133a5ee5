"""Wrappers are peeled where a file has them, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importer.analysed import rows, store
from tests.importer.imported import Imports

# A few lines of a file, and what is left of each.
PEELED: dict[str, list[tuple[str, str]]] = {
    "rank tag": [
        ("[rank3]: Traceback (most recent call last):", "Traceback (most recent call last):"),
        ("[rank3]:   File x", "  File x"),
        ("[rank3]:[E1003 22:26:03.467156987 P.cpp:1] x", "[E1003 22:26:03.467156987 P.cpp:1] x"),
        ("[rank3]:", ""),
        ("[rank: 3] Received SIGTERM: 15", "[rank: 3] Received SIGTERM: 15"),
    ],
    "tee": [("[default0]:  if x:", "  if x:"), ("[default1]:y", "y")],
    "tee of another role": [("[trainer0]:a", "a"), ("[trainer1]:[rank1]: b", "b")],
    "no tee": [("[step12]:a", "[step12]:a")] + [("b", "b")] * 20,
    "srun": [
        ("14: a", "a"),
        (" 3: [rank3]: b", "b"),
        ("3:", ""),
        ("18: 13:4: not a valid test operator", "13:4: not a valid test operator"),
        ("+ srun -l x", "+ srun -l x"),
        ("srun: error: n: task 1: Killed", "srun: error: n: task 1: Killed"),
    ],
    "srun of few lines": [("1: a", "a"), ("0: b", "b")],
    "not srun: the program's own ranks": [("0: TRAIN [0][1/2]", "0: TRAIN [0][1/2]")] * 5
    + [("x", "x")] * 5,
    "not srun: one id, nobody asked": [("0: TRAIN", "0: TRAIN")] * 9,
    "srun -l of one task": [("+ srun -l x", "+ srun -l x"), ("0: a", "a"), ("0: b", "b")],
    "srun after steps of one task": [
        ("+ srun --ntasks=1 clear", "+ srun --ntasks=1 clear"),
        ("+ srun -l --ntasks-per-node=8 x", "+ srun -l --ntasks-per-node=8 x"),
        ("0: a", "a"),
        ("7: b", "b"),
    ],
    "not srun: the time of day": [("10:20:47 a", "10:20:47 a"), ("11:20:48 b", "11:20:48 b")],
    "not srun: line numbers": [(f"{i}: x", f"{i}: x") for i in range(30)],
    "not srun: few line numbers": [(f"{i}: x", f"{i}: x") for i in range(1, 9)],
    "srun of many tasks, each with a line": [(f"{i * 389 % 1024:4d}: x", "x") for i in range(64)],
    "nemo-run": [("retraining/0 [default0]:[NeMo W x", "[NeMo W x")],
    "pdsh": [("gpu250: [2023-07-05 15:08:30,157] [INFO] x", "[2023-07-05 15:08:30,157] [INFO] x")]
    * 5,
    "pdsh of two hosts": [("worker-1: x", "x"), ("worker-2: y", "y")] * 6,
    "pdsh of this machine": [("localhost: x", "x")] * 6,
    "no rank: a number that none can be": [("[rank99999999999]: x", "[rank99999999999]: x")],
    "pdsh of addresses": [("10.0.0.1: x", "x")] * 6,
    "not pdsh": [("RuntimeError2: x", "RuntimeError2: x")] * 2 + [("y", "y")] * 5,
    "ray": [
        ("(RayWorkerWrapper pid=4009) [rank1]:[E ProcessGroupNCCL.cpp:563] x", "[E ProcessGroupNCCL.cpp:563] x"),
        ("\x1b[36m(main pid=1, ip=10.0.0.1)\x1b[0m y", "y"),
    ],
    "compose": [("contrastive_train-1  |     trainer.fit()", "    trainer.fit()")] * 6,
    "cloudwatch": [
        ("  | 2024-08-23T22:22:51.872Z | frame #2: a", "frame #2: a"),
        ("  | 2024-08-23T22:22:51.872Z | [rank1]: b", "b"),
    ],
    "kubectl": [
        ("2024-11-20 14:37:16 [rank3]: torch.OutOfMemoryError", "torch.OutOfMemoryError"),
        ("2024-11-20 14:37:16 Traceback (most recent call last):", "Traceback (most recent call last):"),
    ],
    "kubectl prefix": [("[pod/llama-worker-3/pytorch] x", "x")],
    "not a wrapper: the logger's time": [("2024-11-20 14:37:16 INFO x", "2024-11-20 14:37:16 INFO x")] * 5,
    "counter": [(f"[{i}] [rank0]: x", "x") for i in range(80746, 80756)],
    "milabench": [("dinov2.cn-d003.nolog [stderr] [rank3]:[E909 x", "[E909 x")],
    "mpirun": [("[1,3]<stdout>: x", "x"), ("[1,3]<stderr>:y", "y")],
    "mpirun 5": [("[prterun-n1-4711@1,3]<stdout>: x", "x")],
    "cri": [("2024-05-01T10:00:00.123456789Z stderr F [rank3]: x", "x"), ("y", "y")],
    "colour": [("\x1b[32mgreen\x1b[0m", "green\x1b[0m"), ("[32mlost[0m", "lost[0m")],
}  # fmt: skip


@pytest.mark.parametrize("name", PEELED)
def test_an_envelope_is_peeled_where_it_is_one(name: str, imports: Imports, tmp_path: Path) -> None:
    text = "".join(line + "\n" for line, _ in PEELED[name])
    got = rows(imports, tmp_path, text)
    assert [(r.text.decode(), r.body.decode()) for r in got] == PEELED[name]


def test_ids_beyond_the_number_of_tasks_are_no_labels(imports: Imports, tmp_path: Path) -> None:
    text = "+ srun -l --ntasks=2 x\n" + "0: a\n1: b\n" * 100 + "29: c\n"
    got = rows(imports, tmp_path, text)
    assert [r.body for r in got[-3:]] == [b"a", b"b", b"29: c"]


def test_the_rest_of_a_cut_line_has_no_envelope(imports: Imports, tmp_path: Path) -> None:
    store(imports, tmp_path, "[rank1]: a\n[rank1]: b")
    got = rows(imports, tmp_path, "[rank1]: a\n[rank1]: b[rank2]: c\n")
    assert [(r.text, r.body, r.rank) for r in got] == [
        (b"[rank1]: a", b"a", 1),
        (b"[rank1]: b", b"b", 1),
        (b"[rank2]: c", b"[rank2]: c", 1),
    ]
