"""Every kind of time that logs are known to write, and what lines without one get."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.model.frame import TS_ARRIVAL, TS_CLAIMED, TS_INHERITED
from tests.importer.analysed import WRITTEN_NS, iso, rows, write
from tests.importer.imported import Imports

# line -> its time; year-less ones are in the last year before the file was written (June 2025)
KINDS = [
    ("2024-05-01 22:04:12,345 - m - INFO - x", "2024-05-01T22:04:12.345"),
    ("2024-05-01 22:04:12.345678 INFO x", "2024-05-01T22:04:12.345678"),
    ("2023-11-10T15:06:02.978+08:00 INFO [a.py, line 6, in f] - pid=7 : x", "2023-11-10T07:06:02.978"),
    ("01/02/2022 23:11:34 - INFO - Epoch: [1]", "2022-01-02T23:11:34"),
    ("[2021/05/05 19:15:24] root INFO: acc:0.2", "2021-05-05T19:15:24"),
    ("[20251202 09:12:08][rank-7/8][INFO ] [--------trainer.py:2560] : x", "2025-12-02T09:12:08"),
    ("[[32m20251202 06:56:28[0m][[36mrank-7/8[0m] x", "2025-12-02T06:56:28"),
    ("I0213 23:07:05.692384  4103 nccl_context.cc:74] x", "2025-02-13T23:07:05.692384"),
    ("I1213 23:07:05.692384  4103 nccl_context.cc:74] x", "2024-12-13T23:07:05.692384"),
    ("[W430 12:22:23.313053003 ProcessGroupNCCL.cpp:1218] W", "2025-04-30T12:22:23.313053003"),
    ("[E1003 22:26:03.467156987 ProcessGroupNCCL.cpp:633] x", "2024-10-03T22:26:03.467156987"),
    ('\n:::MLLOG {"namespace": "", "time_ms": 1714536664883, "key": 1}', "2024-05-01T04:11:04.883"),
    ("[1715337972.597315] [C82:22:0]     ucc_context.c:906  UCC  WARN  x", "2024-05-10T10:46:12.597315"),
    ("2024-05-18 02:46:58 AM", "2024-05-18T02:46:58"),
    ("STARTING TIMING RUN AT 2024-05-18 12:46:58 PM", "2024-05-18T12:46:58"),
    ("[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119", "2025-02-23T16:24:18"),
    ("Thu May  1 22:04:12 2025       ", "2025-05-01T22:04:12"),
    ("Thu May  1 22:04:12 UTC 2025", "2025-05-01T22:04:12"),
    ("E20240613 14:02:03.123456 140234 nccl_comm.cc:77] x", "2024-06-13T14:02:03.123456"),
    ("[05/01 22:04:12 d2.utils.events]:  eta: 0:48:44", "2025-05-01T22:04:12"),
    ("[Feb 25 2025 13:59:45] [INFO] [tid 1803] x", "2025-02-25T13:59:45"),
    ("Feb 14 05:03:41 gpu-1 kernel: NVRM: Xid", "2025-02-14T05:03:41"),
    ("kern  :warn  : 2025-01-21T04:41:44,283302+00:00 x", "2025-01-21T04:41:44.283302"),
    ("[03/06 10:21:53] MODEL : ", "2025-03-06T10:21:53"),
    ("  time      : 2023-09-27_08:47:19", "2023-09-27T08:47:19"),
    ("slurmstepd: error: *** STEP 1.0 ON n CANCELLED AT 2024-05-01T04:11:25 DUE TO TIME LIMIT ***", "2024-05-01T04:11:25"),
    ("{'step': 7, 'timestamp': 1593153746.7}", "2020-06-26T06:42:26.7"),
    ("2,95,24564,9104,15107,2025/06/05 21:31:36.264", "2025-06-05T21:31:36.264"),
    ("  [TimeInfo: *** Aborted at 1649739461 (unix time) try \"date\" ***]", "2022-04-12T04:57:41"),
    ("DLL 2025-10-03 22:16:01.676767 - Iteration 4031 | x : 1", "2025-10-03T22:16:01.676767"),
    ("[after megatron is initialized] datetime: 2021-05-23 08:41:04 ", "2021-05-23T08:41:04"),
    ("[2024-04-06 02:59:36] iteration       43/     100 | x", "2024-04-06T02:59:36"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "time"), KINDS, ids=[line[:30] for line, _ in KINDS])
def test_a_time_is_read_however_it_is_written(
    line: str, time: str, imports: Imports, tmp_path: Path
) -> None:
    row = rows(imports, tmp_path, line + "\n")[-1]
    assert (iso(row.ts_ns), row.flags & (TS_INHERITED | TS_ARRIVAL)) == (time, 0)


@pytest.mark.parametrize(
    "line",
    [
        "no time at all",
        "[ 74889.644138] NVRM: uptime is no wall clock",
        "2024-13-01 22:04:12 INFO there is no month 13",
        "2023-02-29 22:04:12 INFO nor such a day",
        "[22:12:24] src/a.cc:5: a clock without a day",
        "loss 2024-05",
    ],
)
def test_what_is_no_time_is_none(line: str, imports: Imports, tmp_path: Path) -> None:
    (row,) = rows(imports, tmp_path, line + "\n")
    assert (row.ts_ns, row.flags) == (WRITTEN_NS, TS_ARRIVAL)


def test_a_line_without_a_time_has_the_one_before(imports: Imports, tmp_path: Path) -> None:
    text = "first\n2024-01-01 00:00:01 INFO a\nb\n2024-01-01 00:00:02 INFO c\nd\n"
    got = [(iso(r.ts_ns)[-2:], r.flags & TS_INHERITED) for r in rows(imports, tmp_path, text)]
    assert got == [("01", 1), ("01", 0), ("01", 1), ("02", 0), ("02", 1)]


def test_a_labelled_line_has_its_ranks_time_and_the_launchers_the_files(
    imports: Imports, tmp_path: Path
) -> None:
    text = (
        "[rank0]: 2024-01-01 00:00:01 INFO a\n"
        "[rank1]: 2024-01-01 00:00:09 INFO b\n"
        "[rank0]: c\n"
        "[rank2]: d\n"
        "srun: error: n: task 1: Killed\n"
    )
    assert [iso(r.ts_ns)[-2:] for r in rows(imports, tmp_path, text)] == [
        "01",
        "09",
        "01",
        "09",
        "09",
    ]


def test_a_zone_is_the_users_where_the_line_has_none(imports: Imports, tmp_path: Path) -> None:
    text = "2024-07-01 12:00:00 INFO a\n2024-01-01 12:00:00 INFO b\n2024-01-01T12:00:00Z INFO c\n"
    got = [iso(r.ts_ns) for r in rows(imports, tmp_path, text, tz="America/New_York")]
    assert got == ["2024-07-01T16:00:00", "2024-01-01T17:00:00", "2024-01-01T12:00:00"]


def test_a_year_comes_from_the_user_then_dated_lines_then_the_file(
    imports: Imports, tmp_path: Path
) -> None:
    glog = "I0213 23:07:05.692384  4103 a.cc:74] x\n"
    assert iso(rows(imports, tmp_path, glog)[0].ts_ns)[:4] == "2025"
    dated = glog + "01/02/2022 23:11:34 - INFO - x\n"
    assert iso(rows(imports, tmp_path, dated, name="b")[0].ts_ns)[:4] == "2022"
    assert iso(rows(imports, tmp_path, dated, name="c", date="2019-01-01")[0].ts_ns)[:4] == "2019"


def test_a_year_comes_from_a_file_beside_it(imports: Imports, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.log": "I0213 23:07:05.692384  4103 a.cc:74] x\n",
            "b.log": "2021-02-13 23:00:00 INFO x\n",
        },
    )
    imports.run(tmp_path)
    assert iso(imports.by_channel()["a.log"].rows[0].ts_ns)[:4] == "2021"


def test_a_year_changes_inside_a_file(imports: Imports, tmp_path: Path) -> None:
    text = "2023-12-31 23:00:00 INFO a\n[W1231 23:59:59.000000000 a.cpp:1] b\n[W101 00:00:01.000000000 a.cpp:1] c\n"
    assert [iso(r.ts_ns)[:10] for r in rows(imports, tmp_path, text)] == [
        "2023-12-31",
        "2023-12-31",
        "2024-01-01",
    ]


def test_a_clock_without_a_day_is_near_the_line_before(imports: Imports, tmp_path: Path) -> None:
    text = (
        "2024-01-01 23:59:50 INFO a\n[23:59:55] src/a.cc:5: b\n[00:00:05] src/a.cc:5: c\n"
        "[11:00:00] src/a.cc:5: another zone, no time\n"
    )
    got = rows(imports, tmp_path, text)
    assert [iso(r.ts_ns)[8:] for r in got] == [
        "01T23:59:50",
        "01T23:59:55",
        "02T00:00:05",
        "02T00:00:05",
    ]
    assert got[3].flags & TS_INHERITED


def test_the_users_day_dates_clocks(imports: Imports, tmp_path: Path) -> None:
    (row,) = rows(imports, tmp_path, "[22:12:24] src/a.cc:5: x\n", date="2024-05-01")
    assert iso(row.ts_ns) == "2024-05-01T22:12:24"


def test_the_programs_time_beats_its_wrappers_in_the_wrappers_zone(
    imports: Imports, tmp_path: Path
) -> None:
    text = "".join(
        f"2024-08-23T22:22:5{i}.872Z {body}\n"
        for i, body in enumerate(
            [
                "2024-08-24 06:22:49,123 INFO eight hours ahead",
                "2024-08-23 22:22:50,500 INFO in UTC",
                "2024-08-23 11:11:11,500 INFO a broken clock",
                "Traceback (most recent call last):",
                "  File x",
            ]
        )
    )
    got = [(iso(r.ts_ns)[11:], r.flags & TS_INHERITED) for r in rows(imports, tmp_path, text)]
    assert got == [
        ("22:22:49.123", 0),
        ("22:22:50.5", 0),
        ("22:22:52.872", 0),
        ("22:22:53.872", 0),
        ("22:22:54.872", 0),
    ]


def test_a_time_far_in_the_future_is_kept_aside(imports: Imports, tmp_path: Path) -> None:
    now_ns = 1_700_000_000 * 10**9
    text = "2023-11-14 00:00:00 INFO a\n2099-01-01 00:00:00 INFO b\n"
    first, second = rows(imports, tmp_path, text, now_ns=now_ns)
    assert second.ts_ns == first.ts_ns
    assert second.flags & TS_CLAIMED
    (column,) = imports.frames[0].metadata
    assert (column.key, column.type, len(column.rows)) == ("ts_claimed", "int", 4)


def test_a_first_time_in_the_future_is_no_other_lines_time(
    imports: Imports, tmp_path: Path
) -> None:
    text = "2099-01-01 00:00:00 INFO a\nb\n"
    now_ns = WRITTEN_NS + 10**9
    assert [
        (row.ts_ns, row.flags & TS_CLAIMED) for row in rows(imports, tmp_path, text, now_ns=now_ns)
    ] == [
        (WRITTEN_NS, TS_CLAIMED),
        (WRITTEN_NS, 0),
    ]


def test_two_clocks_in_one_file_are_said_and_not_shifted(imports: Imports, tmp_path: Path) -> None:
    epoch_ms = 1_714_536_660_000  # 2024-05-01T04:11:00Z
    text = "".join(
        f"2024-04-30 23:11:0{i},500 INFO local time, five hours behind\n"
        f':::MLLOG {{"namespace": "", "time_ms": {epoch_ms + 1000 * i}}}\n'
        for i in range(5)
    )
    got = rows(imports, tmp_path, text)
    assert [iso(r.ts_ns)[8:16] for r in got[:2]] == ["30T23:11", "01T04:11"]
    notes = imports.run(tmp_path, run="again").files[0].notes
    assert notes == [
        "times without a zone are -5 h from those with one in this file: give their zone with --tz"
    ]
