"""The head of a line is read by the first format that matches, in Python and in RE2 alike."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from ranklog.model.levels import parse_level
from ranklog.rules.heads import HEADS, TIME_KINDS, classify, extract

GROUPS = frozenset(
    [
        "time",
        "level",
        "file",
        "line",
        "function",
        "logger",
        "rank",
        "local_rank",
        "host",
        "pid",
        "tid",
        "device",
    ]
)

# body, head, what it says (absent groups left out)
CASES: list[tuple[str, str | None, dict[str, str]]] = [
    (
        "[E1003 22:26:03.467156987 ProcessGroupNCCL.cpp:633] [Rank 2] Watchdog caught",
        "c10d",
        {
            "level": "E",
            "time": "1003 22:26:03.467156987",
            "file": "ProcessGroupNCCL.cpp",
            "line": "633",
        },
    ),
    (
        "[W430 12:22:23.313053003 ProcessGroupNCCL.cpp:1218] Warning: ...",
        "c10d",
        {
            "level": "W",
            "time": "430 12:22:23.313053003",
            "file": "ProcessGroupNCCL.cpp",
            "line": "1218",
        },
    ),
    (
        "[W ProcessGroupNCCL.cpp:2657] Warning: TORCH_NCCL_AVOID_RECORD_STREAMS=1 ...",
        "c10d_old",
        {"level": "W", "file": "ProcessGroupNCCL.cpp", "line": "2657"},
    ),
    (
        "I0213 23:07:05.692384  4103 nccl_context.cc:74] init nccl context nranks: 4",
        "glog",
        {
            "level": "I",
            "time": "0213 23:07:05.692384",
            "tid": "4103",
            "file": "nccl_context.cc",
            "line": "74",
        },
    ),
    (
        "E20240613 14:02:03.123456 140234 nccl_comm.cc:77] failed",
        "glog_year",
        {
            "level": "E",
            "time": "20240613 14:02:03.123456",
            "tid": "140234",
            "file": "nccl_comm.cc",
            "line": "77",
        },
    ),
    (
        ':::MLLOG {"time_ms": 1714536664883, "key": "a", "metadata": {"step": 1, "file": "a.py", "lineno": 7}}',
        "mllog",
        {"time": "1714536664883", "file": "a.py", "line": "7"},
    ),
    (
        "[NeMo D 2024-05-01 22:04:12 nemo_logging:349 rank:3] text",
        "nemo",
        {
            "level": "D",
            "time": "2024-05-01 22:04:12",
            "file": "nemo_logging",
            "line": "349",
            "rank": "3",
        },
    ),
    (
        "[2024-12-31 12:10:41][INFO][ezpz/train:1774] iter=10",
        "ezpz",
        {"level": "INFO", "time": "2024-12-31 12:10:41", "file": "ezpz/train", "line": "1774"},
    ),
    ("Fatal Python error: Segmentation fault", "python_fatal", {"level": "Fatal"}),
    (
        "WARNING [05/01 10:11:12 d2.engine.defaults]: text",
        "us_month_day",
        {"level": "WARNING", "time": "05/01 10:11:12", "logger": "d2.engine.defaults"},
    ),
    (
        "[2024-05-05 19:15:24,123] [    INFO] - text",
        "time_level",
        {"level": "INFO", "time": "2024-05-05 19:15:24,123"},
    ),
    (
        "W0501 22:04:48.360000 139692391809664 torch/distributed/elastic/api.py:906] Sending",
        "glog",
        {
            "level": "W",
            "time": "0501 22:04:48.360000",
            "tid": "139692391809664",
            "file": "torch/distributed/elastic/api.py",
            "line": "906",
        },
    ),
    (
        "r9i1n5:40815:40897 [2] NCCL INFO Channel 05/32 :    0",
        "nccl_info",
        {"host": "r9i1n5", "pid": "40815", "tid": "40897", "device": "2", "level": "INFO"},
    ),
    (
        "node076:248615:249081 [3] proxy.cc:1458 NCCL WARN [Service thread] Accept failed",
        "nccl_warn",
        {
            "host": "node076",
            "pid": "248615",
            "tid": "249081",
            "device": "3",
            "file": "proxy.cc",
            "line": "1458",
            "level": "WARN",
        },
    ),
    (
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 143",
        "python_basic",
        {"level": "WARNING", "logger": "torch.distributed.elastic.multiprocessing.api"},
    ),
    (
        "[2023-09-27 08:47:19,360] torch.distributed.elastic.api: [WARNING] Sending",
        "torchelastic",
        {
            "time": "2023-09-27 08:47:19,360",
            "logger": "torch.distributed.elastic.api",
            "level": "WARNING",
        },
    ),
    (
        "srun: error: tnasnt5: tasks 1,4: Exited with exit code 134",
        "srun_task",
        {"logger": "srun", "level": "error", "host": "tnasnt5"},
    ),
    (
        "slurmstepd: error: *** STEP 561.17 ON node-25 CANCELLED AT 2024-05-01T04:11:25 DUE TO",
        "slurm_cancelled",
        {
            "logger": "slurmstepd",
            "level": "error",
            "host": "node-25",
            "time": "2024-05-01T04:11:25",
        },
    ),
    ("srun: Force Terminated StepId=3.0", "slurm", {"logger": "srun"}),
    (
        ':::MLLOG {"namespace": "", "time_ms": 1714536664883, "event_type": "POINT_IN_TIME", '
        '"key": "k", "value": {"a": 1}, "metadata": {"file": "/w/fit.py", "lineno": 1001}}',
        "mllog",
        {"time": "1714536664883", "file": "/w/fit.py", "line": "1001"},
    ),
    (
        "DLL 2025-10-03 22:16:01.676767 - Iteration 4031 | train_acc : 0.7227 % ",
        "dllogger",
        {"time": "2025-10-03 22:16:01.676767"},
    ),
    (
        "[NeMo W 2024-05-01 22:04:12 nemo_logging:349] /usr/x.py: UserWarning: ...",
        "nemo",
        {"level": "W", "time": "2024-05-01 22:04:12", "file": "nemo_logging", "line": "349"},
    ),
    (
        " [2024-04-06 02:59:36] iteration       43/     100 | consumed samples: 5504 |",
        "megatron",
        {"time": "2024-04-06 02:59:36"},
    ),
    (
        "[20251202 09:12:08][rank-7/8][INFO ] [--------trainer.py:2560] : iteration 126/ 5000 |",
        "primus",
        {
            "time": "20251202 09:12:08",
            "rank": "7",
            "level": "INFO",
            "file": "trainer.py",
            "line": "2560",
        },
    ),
    (
        "[\x1b[32m20251202 06:56:28\x1b[0m][\x1b[36mrank-7/8\x1b[0m][\x1b[1mINFO \x1b[0m] : x",
        "primus",
        {"time": "20251202 06:56:28", "rank": "7", "level": "INFO"},
    ),
    (
        "[[32m20251202 06:56:28[0m][[36mrank-7/8[0m]",
        "primus",
        {"time": "20251202 06:56:28", "rank": "7"},
    ),
    (
        "[2021-05-27 19:51:55,061] [INFO] [logging.py:60:log_dist] [Rank 0] step=1, skipped=0",
        "deepspeed",
        {
            "time": "2021-05-27 19:51:55,061",
            "level": "INFO",
            "file": "logging.py",
            "line": "60",
            "function": "log_dist",
            "rank": "0",
        },
    ),
    (
        "[INFO|trainer.py:1143] 2021-05-25 06:30:55,249 >> ***** Running training *****",
        "huggingface",
        {"level": "INFO", "file": "trainer.py", "line": "1143", "time": "2021-05-25 06:30:55,249"},
    ),
    (
        "[titan] 2025-12-13 06:45:34,345 - root - INFO - step: 530  loss:  5.9866",
        "torchtitan",
        {"time": "2025-12-13 06:45:34,345", "logger": "root", "level": "INFO"},
    ),
    (
        "[2024-08-18 12:26:53] INFO     [olmo.train:966, rank=0] [step=1/739328,epoch=0]",
        "olmo",
        {
            "time": "2024-08-18 12:26:53",
            "level": "INFO",
            "file": "olmo.train",
            "line": "966",
            "rank": "0",
        },
    ),
    (
        "2024-08-06 09:59:26.181\tintern-studio-160750:0\tolmo.train:908\tINFO\t[step=1/7]",
        "olmo_plain",
        {
            "time": "2024-08-06 09:59:26.181",
            "host": "intern-studio-160750",
            "local_rank": "0",
            "file": "olmo.train",
            "line": "908",
            "level": "INFO",
        },
    ),
    (
        "2023-11-10T15:06:02.978+08:00 INFO [training_internlm.py, line 601, in record] - "
        "pid=78690 : tflops=115.41",
        "internevo",
        {
            "time": "2023-11-10T15:06:02.978+08:00",
            "level": "INFO",
            "file": "training_internlm.py",
            "line": "601",
            "function": "record",
            "pid": "78690",
        },
    ),
    (
        '2021-08-13 14:59:32 | INFO | train_inner | {"epoch": 1}',
        "fairseq",
        {"time": "2021-08-13 14:59:32", "level": "INFO", "logger": "train_inner"},
    ),
    (
        "01/02/2022 23:11:34 - INFO - Epoch: [1], step: [100], lr: 0.000010",
        "us_date",
        {"time": "01/02/2022 23:11:34", "level": "INFO"},
    ),
    (
        "2021-11-24 09:08:13 [INFO]\t[TRAIN] epoch: 105, iter: 38950/80000",
        "paddleseg",
        {"time": "2021-11-24 09:08:13", "level": "INFO"},
    ),
    (
        "[2021/05/05 19:15:24] root INFO: acc:0.2392874337987482",
        "paddleocr",
        {"time": "2021/05/05 19:15:24", "logger": "root", "level": "INFO"},
    ),
    ("[03/06 10:21:53]   \x1b[35mdim\x1b[0m : 1", "us_month_day", {"time": "03/06 10:21:53"}),
    (
        "2022-05-15 22:14:40,334 Node[0] Epoch[1] Batch [320-340]\tSpeed: 11941.69",
        "mxnet",
        {"time": "2022-05-15 22:14:40,334"},
    ),
    (
        "2023-05-05 00:23:25,858 maskrcnn_benchmark.trainer INFO: eta: 0:48:44  iter: 50",
        "python_logger_level",
        {
            "time": "2023-05-05 00:23:25,858",
            "logger": "maskrcnn_benchmark.trainer",
            "level": "INFO",
        },
    ),
    (
        "[1715337972.597315] [C82KF14:2211898:0]     ucc_context.c:906  UCC  WARN  tl ctx cuda",
        "ucx",
        {
            "time": "1715337972.597315",
            "host": "C82KF14",
            "pid": "2211898",
            "tid": "0",
            "file": "ucc_context.c",
            "line": "906",
            "logger": "UCC",
            "level": "WARN",
        },
    ),
    (
        "[gpu04:1:647001 - context.c:276] ERROR failed to open sharp session ...",
        "sharp",
        {"host": "gpu04", "pid": "647001", "file": "context.c", "line": "276", "level": "ERROR"},
    ),
    (
        "[2025-12-31 12:10:41,752870][I][ezpz/dist:1774:setup_torch] ['x1921c0s3b0n0']",
        "ezpz",
        {
            "time": "2025-12-31 12:10:41,752870",
            "level": "I",
            "file": "ezpz/dist",
            "line": "1774",
            "function": "setup_torch",
        },
    ),
    (
        '  File "/usr/x.py", line 12, in <module>',
        "python_frame",
        {"file": "/usr/x.py", "line": "12", "function": "<module>"},
    ),
    (
        "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=1",
        "kernel_ctime",
        {"time": "Sun Feb 23 16:24:18 2025"},
    ),
    ("[ 74889.644138] NVRM: Xid (PCI:0000:9b:00): 119", "kernel", {"time": "74889.644138"}),
    (
        "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 NVRM: Xid",
        "dmesg_iso",
        {"level": "warn", "time": "2025-01-21T04:41:44,283302+00:00"},
    ),
    (
        "Feb 14 05:03:41 host kernel: NVRM: Xid",
        "journald",
        {"time": "Feb 14 05:03:41", "host": "host", "logger": "kernel"},
    ),
    ("6,3964,206764307,-;msg", "kmsg", {"time": "206764307"}),
    (
        "[Feb 25 2025 13:59:45] [INFO] [tid 1803] msg",
        "fabric_manager",
        {"time": "Feb 25 2025 13:59:45", "level": "INFO", "tid": "1803"},
    ),
    (
        "2026-11-29 13:57:59,328 INFO train train_ddp.py:22 initialized rank=0 world=3",
        "python_site",
        {
            "time": "2026-11-29 13:57:59,328",
            "level": "INFO",
            "logger": "train",
            "file": "train_ddp.py",
            "line": "22",
        },
    ),
    (
        "2024-01-01 00:00:00.123 | INFO     | pkg.mod:function:12 - msg",
        "loguru",
        {
            "time": "2024-01-01 00:00:00.123",
            "level": "INFO",
            "file": "pkg.mod",
            "function": "function",
            "line": "12",
        },
    ),
    (
        "2024-01-01 00:00:00,123 - name - INFO - message",
        "python_named",
        {"time": "2024-01-01 00:00:00,123", "logger": "name", "level": "INFO"},
    ),
    (
        "2024-01-01 00:00:00,123 - INFO - message",
        "python_level",
        {"time": "2024-01-01 00:00:00,123", "level": "INFO"},
    ),
    (
        "[2024-01-01 00:00:00,123][root][INFO] - msg",
        "hydra",
        {"time": "2024-01-01 00:00:00,123", "logger": "root", "level": "INFO"},
    ),
    (
        "/srv/train/train_ddp.py:28: UserWarning: this is a python warning from rank 0",
        "python_warning",
        {"file": "/srv/train/train_ddp.py", "line": "28"},
    ),
    (
        "STARTING TIMING RUN AT 2020-06-24 10:18:48 AM",
        "timing_run",
        {"time": "2020-06-24 10:18:48 AM"},
    ),
    ("2024-05-18 02:46:58 AM - started", "ampm", {"time": "2024-05-18 02:46:58 AM"}),
    (
        "2024-11-20T14:37:16Z [warning] msg",
        "time_level",
        {"time": "2024-11-20T14:37:16Z", "level": "warning"},
    ),
    ("2024-11-20 14:37:16 msg", "time", {"time": "2024-11-20 14:37:16"}),
    ("ERROR: no such device", "level", {"level": "ERROR"}),
    ("step:1/2 train_loss:2.0 train_time:1ms step_avg:1ms", None, {}),
    ("", None, {}),
    ("10 20:47:51,886] [INFO] [config.py:904:print]", None, {}),
]


@pytest.mark.parametrize(("body", "name", "groups"), CASES)
def test_a_body_is_read_by_the_head_that_is_meant(
    body: str, name: str | None, groups: dict[str, str]
) -> None:
    head = classify(body)
    assert (head.name if head else None) == name
    if head is not None:
        columns = extract(head, pa.array([body, "no head at all"]))
        assert columns.pop("matched").to_pylist() == [True, False]
        assert {k: v[0].as_py() for k, v in columns.items() if v[0].is_valid} == groups
        assert all(v[1].as_py() is None for v in columns.values())


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.name)
def test_a_head_compiles_in_re2_and_uses_known_names(head) -> None:
    assert set(re2.compile(head.pattern).groupindex) == set(head.groups)
    assert set(head.groups) <= GROUPS
    assert ("time" in head.groups) == (head.time is not None)
    assert head.time is None or head.time in TIME_KINDS


def test_names_of_heads_are_distinct() -> None:
    assert len({head.name for head in HEADS}) == len(HEADS)


def test_every_level_of_the_table_is_a_level() -> None:
    for _, _, groups in CASES:
        if "level" in groups:
            assert parse_level(groups["level"]) is not None, groups


@pytest.mark.parametrize(
    ("word", "level"),
    [("emerg", 50), ("alert", 50), ("crit", 50), ("err", 40), ("warn", 30), ("notice", 20)],
)
def test_levels_of_the_kernel_are_levels(word: str, level: int) -> None:
    body = f"kern  :{word:6}: 2025-01-21T04:41:44,283302+00:00 NVRM: Xid"
    head = classify(body)
    assert head is not None
    assert parse_level(extract(head, pa.array([body]))["level"][0].as_py()) == level


@given(st.sampled_from([c[0] for c in CASES]), st.integers(0, 60), st.text(max_size=4))
def test_a_damaged_head_is_read_the_same_by_python_and_re2(body: str, at: int, insert: str) -> None:
    damaged = (body[:at] + insert + body[at:]).replace("\n", " ")
    if any("\ud800" <= c <= "\udfff" for c in damaged):
        return
    head = classify(damaged)
    expected = next((h for h in HEADS if re2.search(h.pattern, damaged)), None)
    assert head is expected


def test_large_strings_and_chunks_are_read_too() -> None:
    head = classify("[NeMo W 2024-05-01 22:04:12 nemo_logging:349] x")
    assert head is not None
    body = "[NeMo I 2024-05-01 22:04:13 m:1] y"
    for bodies in (
        pa.array([body], pa.large_string()),
        pa.chunked_array([[body], []], pa.string()),
    ):
        assert extract(head, bodies)["level"].to_pylist() == ["I"]


@pytest.mark.data
def test_held_files_have_at_least_the_heads_that_the_survey_counted(data_dir: Path) -> None:
    def count(name: str, head: str) -> int:
        text = (data_dir / "logs" / name).read_bytes().decode("utf-8", "replace")
        bodies = pa.array([line.rstrip("\r") for line in text.split("\n")])
        chosen = next(h for h in HEADS if h.name == head)
        return int(extract(chosen, bodies)["matched"].to_numpy(False).sum())

    assert count("perrank/oscar_paddle/workerlog.0", "us_date") >= 5_300
    assert count("text/dell_resnet_mxnet_accuracy_nan.txt", "mxnet") >= 2_886 - 60
    assert count("megatron/bigscience_meg_ds_3d_n16_64rank_nccl.out", "nccl_info") >= 8_000
    assert count("mllog/nvidia_llama405b_2560gpu_mllog.txt", "mllog") >= 500
