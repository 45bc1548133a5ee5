"""Lines that are one record say so, also where ranks interleave."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.importer import analysis, lines
from ranklog.model.frame import LEVEL_INFERRED, LEVEL_INHERITED
from ranklog.model.levels import ERROR, INFO, WARNING
from tests.importer.analysed import rows
from tests.importer.imported import Imports

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    x()\n     ^^^\nValueError: bad\n'

# text -> group of each line
CASES: dict[str, tuple[str, list[int | None]]] = {
    "single lines": ("a\nb\n", [None, None]),
    "traceback": ("a\n" + TRACEBACK + "b\n", [None, 1, 1, 1, 1, 1, None]),
    "two tracebacks": (TRACEBACK * 2, [0] * 5 + [5] * 5),
    "chained": (
        TRACEBACK + "\nDuring handling of the above exception, another exception occurred:\n\n" + TRACEBACK,
        [0] * 13,
    ),
    "logger.exception": ("2024-01-01 00:00:00 ERROR x\n" + TRACEBACK, [0] * 6),
    "a traceback after another record": ("2024-01-01 00:00:00 INFO x\n" + TRACEBACK, [None] + [1] * 5),
    "nemo": ("[NeMo W 2024-05-01 22:04:12 a:349] x\n      y\n    \n[NeMo W 2024-05-01 22:04:12 a:3] z\n", [0, 0, None, None]),
    "olmo": ("[2024-08-18 12:26:53] INFO     [olmo.train:966, rank=0] [step=1/7]\n    a=1\n    b=2\nc\n", [0, 0, 0, None]),
    "composer": ("[batch=366/48000]:\n\t Train a: 1\n         Train b: 2\n[batch=367/48000]:\n", [0, 0, 0, None]),
    "c10d frames": (
        "[rank1]:[E1003 22:26:03.467156987 P.cpp:633] x\nException raised from f at a.cpp:5 (most recent call first):\n"
        "frame #0: a\nframe #1: b\n\nx\n",
        [None, 1, 1, 1, None, None],
    ),
    "megatron iterations are no continuation": (
        "2024-01-01 00:00:00 INFO x\n iteration       30/    1000 | a: 1 |\n  0%|          | 0/40\n 18%|#8\n",
        [None] * 4,
    ),
    "indented lines after no record": ("config:\n  a: 1\n  b: 2\n", [None] * 3),
    "python warning": ("/a/b.py:28: UserWarning: x\n  warnings.warn(x)\n", [0, 0]),
    "torchelastic": (
        "Traceback (most recent call last):\n  File x\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        + "=" * 60 + "\na FAILED\n" + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n"
        "  time      : 2023-09-27_08:47:19\n  rank      : 2 (local_rank: 2)\n" + "=" * 60 + "\nb\n",
        [0] * 11 + [None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_record_of_several_lines_is_a_group(name: str, imports: Imports, tmp_path: Path) -> None:
    text, groups = CASES[name]
    assert [row.group for row in rows(imports, tmp_path, text)] == groups


def test_tracebacks_of_labelled_ranks_do_not_mix(imports: Imports, tmp_path: Path) -> None:
    parts = TRACEBACK.splitlines()
    text = "".join(f"[rank{rank}]: {line}\n" for line in parts for rank in range(3))
    got = rows(imports, tmp_path, text)
    assert [row.group for row in got] == [row.rank for row in got] == [0, 1, 2] * 5


def test_a_lost_tag_does_not_split_a_labelled_record(imports: Imports, tmp_path: Path) -> None:
    chain = "During handling of the above exception, another exception occurred:"
    parts = [*TRACEBACK.splitlines(), "", chain, "", *TRACEBACK.splitlines()]
    text = "".join(
        f"{task}: {f'[rank{task}]: {line}' if line else ''}\n"
        for line in parts
        for task in range(2)
    )
    assert [row.group for row in rows(imports, tmp_path, text)] == [0, 1] * len(parts)


def test_a_bare_traceback_is_an_error(imports: Imports, tmp_path: Path) -> None:
    got = rows(imports, tmp_path, TRACEBACK)
    assert {row.level for row in got} == {ERROR}
    assert [row.flags & (LEVEL_INFERRED | LEVEL_INHERITED) for row in got] == [LEVEL_INFERRED] + [
        LEVEL_INFERRED | LEVEL_INHERITED
    ] * 4


def test_continuations_have_level_time_and_call_site_of_their_record(
    imports: Imports, tmp_path: Path
) -> None:
    text = "[NeMo W 2024-05-01 22:04:12 nemo_logging:349] x\n      y\n"
    first, second = rows(imports, tmp_path, text)
    assert (first.level, first.flags & LEVEL_INHERITED) == (WARNING, 0)
    assert (second.level, second.flags & LEVEL_INHERITED) == (WARNING, LEVEL_INHERITED)
    assert first.ts_ns == second.ts_ns
    assert first.site == second.site is not None
    assert first.site.site == "nemo_logging:349"


def test_a_call_site_has_its_function_and_logger(imports: Imports, tmp_path: Path) -> None:
    text = (
        "[2021-05-27 19:51:55,061] [INFO] [logging.py:60:log_dist] x\n"
        "2024-01-01 00:00:00,000 - a.b - WARNING - y\n"
    )
    first, second = rows(imports, tmp_path, text)
    assert first.site is not None and second.site is not None
    assert (first.site.site, first.site.function, first.level) == (
        "logging.py:60",
        "log_dist",
        INFO,
    )
    assert (second.site.site, second.site.logger, second.level) == (None, "a.b", WARNING)


def test_a_record_that_straddles_chunks_is_one_group(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHUNK_BYTES", 64)
    monkeypatch.setattr("ranklog.importer.sources.BLOCK_BYTES", 16)
    monkeypatch.setattr(analysis, "WARM_BYTES", 4096)
    got = rows(imports, tmp_path, TRACEBACK * 3)
    assert len(imports.frames) > 4
    assert [row.group for row in got] == [0] * 5 + [5] * 5 + [10] * 5
    assert {row.level for row in got} == {ERROR}


def test_a_record_that_a_later_import_goes_on_is_one_group(
    imports: Imports, tmp_path: Path
) -> None:
    cut = TRACEBACK.index("    x()")
    rows(imports, tmp_path, TRACEBACK[:cut])
    got = rows(imports, tmp_path, TRACEBACK)
    assert [row.group for row in got] == [0] * 5
    assert len(imports.streams) == 1
