"""Call sites of jobs that never used the SDK: every writer that names a place names it in `callsites`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore

NOW_NS = 4_102_444_800 * 10**9
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/workspace/train.py", line 241, in <module>\n'
    "    main()\n"
    '  File "/opt/venv/lib/model.py", line 88, in forward\n'
    "    y = x @ w\n"
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied"
)
WRITERS = {
    "glog": (
        "I0806 23:20:54.123456 12873 optimizer.cpp:101] parameters are flat",
        "optimizer.cpp:101",
    ),
    "c10d": (
        "[rank7]:[E321 02:07:08.451372 7001 ProcessGroupNCCL.cpp:629] [Rank 7] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=600000) ran "
        "for 600043 milliseconds before timing out.",
        "ProcessGroupNCCL.cpp:629",
    ),
    "c10d_1": (
        "[W socket.cpp:601] [c10d] The client socket has failed to connect to [n]:29500",
        "socket.cpp:601",
    ),
    "nccl": (
        "gpu-01:71234:72001 [2] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to "
        "10.0.0.5<41234> failed : Software caused connection abort",
        "misc/socket.cc:484",
    ),
    "nemo": (
        "[NeMo W 2024-05-01 22:04:12 nemo_logging:349] the tokenizer has no padding",
        "nemo_logging:349",
    ),
    "deepspeed": (
        "[2023-07-05 15:08:30,157] [INFO] [engine.py:138:__init__] RANK=0 STAGES=1 LAYERS=24",
        "engine.py:138",
    ),
    "transformers": (
        "[INFO|trainer.py:1779] 2023-07-05 15:08:30,157 >> ***** Running training *****",
        "trainer.py:1779",
    ),
    "mllog": (
        ':::MLLOG {"namespace": "", "time_ms": 1688569710157, "event_type": "POINT_IN_TIME", "key": '
        '"train_loss", "value": 2.1, "metadata": {"file": "/workspace/train/run.py", "lineno": 88}}',
        "/workspace/train/run.py:88",
    ),
    "traceback": (TRACEBACK, "/opt/venv/lib/model.py:88"),
    "elastic": (
        "W0304 10:01:05.123000 4711 torch/distributed/elastic/agent/server/api.py:704] Received "
        "Signals.SIGTERM death signal, shutting down workers",
        "torch/distributed/elastic/agent/server/api.py:704",
    ),
    "warning": (
        "/opt/venv/lib/python3.11/site-packages/torch/storage.py:414: FutureWarning: You are using it",
        "/opt/venv/lib/python3.11/site-packages/torch/storage.py:414",
    ),
}


def sites_of(text: str, folder: Path) -> dict[str, int]:
    store = MemoryStore()
    (folder / "job.log").write_text((text + "\n") * 3)
    import_paths([str(folder / "job.log")], store=store, tenant="default", run="job", now_ns=NOW_NS)
    with Client(store=store) as client:
        rows = client.callsites(run="job").rows
    return {row["call_site"]: row["count"] for row in rows if row["call_site"] is not None}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_that_names_its_place_has_a_call_site(writer: str, tmp_path: Path) -> None:
    text, site = WRITERS[writer]
    assert sites_of(text, tmp_path).get(site, 0) >= 3


def test_each_frame_of_a_traceback_is_of_its_own_place(tmp_path: Path) -> None:
    assert sites_of(TRACEBACK, tmp_path) == {
        "/workspace/train.py:241": 3,
        "/opt/venv/lib/model.py:88": 3,
    }


def test_frames_divide_no_traceback(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "job.log").write_text("a line before\n" + TRACEBACK + "\n")
    paths = [str(tmp_path / "job.log")]
    import_paths(paths, store=store, tenant="default", run="job", now_ns=NOW_NS)
    with Client(store=store) as client:
        lines = client.search("", run="job", order="oldest", limit=None).lines
    assert [line.group for line in lines] == [None, *[1] * 6]
    assert [line.function for line in lines if line.call_site] == ["<module>", "forward"]
