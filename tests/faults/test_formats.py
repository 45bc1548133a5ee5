"""`ranklog import` reads what is simulated as it reads what ran: ranks, times, levels."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from ranklog.model.levels import ERROR, INFO, WARNING
from tests.faults.job import Job
from tests.faults.simulate import simulate
from tests.importer.imported import Imports

_LABEL = re.compile(rb"^(?:\[(?:default|trainer)\d+\]:| *\d+: )")
_SDK_HEAD = re.compile(rb"^\d{4}-\d\d-\d\d \S+ INFO (?:iteration=\d+ )?")
# a line that has a time of its own, of torch's or of Python's logging
_TIMED = re.compile(
    rb"\[[EW]\d{3,4} \d\d:|^\d{4}-\d\d-\d\d |^\[titan\] \d|^\[\d{4}-\d\d-\d\d |NeMo [IW] "
)
CASES = [
    ("rank_files", "plain"),
    ("torchrun_dir", "plain"),
    ("torchrun_dir", "titan"),
    ("torchrun_dir", "nemo"),
    ("tee", "plain"),
    ("tee", "titan"),
    ("tee", "deepspeed"),
    ("srun", "megatron"),
    ("srun", "nemo"),
    ("sdk", "sdk"),
]


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Imports:
    return Imports(monkeypatch)


def own_lines(job: Job) -> dict[bytes, list[tuple[int, int]]]:
    """text -> (rank, ns) of those who wrote it."""
    found: dict[bytes, list[tuple[int, int]]] = {}
    for process in job.processes:
        for ns, text, _ in process.lines:
            found.setdefault(text, []).append((process.rank or 0, ns))
    return found


def bare(text: bytes, layout: str) -> bytes:
    return (_SDK_HEAD if layout == "sdk" else _LABEL).sub(b"", text, count=1)


@pytest.mark.parametrize("fault", ["oom_rank", "healthy", "hang_timeout"])
@pytest.mark.parametrize(("layout", "framework"), CASES)
def test_an_import_finds_ranks_and_times(
    layout: str, framework: str, fault: str, imports: Imports, tmp_path: Path
) -> None:
    job = simulate(11, fault=fault, layout=layout, framework=framework, ranks=8)
    job.write(tmp_path)
    report = imports.run(tmp_path)
    assert [file.error for file in report.files] == [None] * len(report.files)
    written, ranks, off = own_lines(job), Counter[str](), 0
    for stored in imports.streams:
        for row in stored.rows:
            text = bare(row.text, layout)
            if len(written.get(text, ())) != 1:
                continue
            ((rank, ns),) = written[text]
            found = stored.stream.rank if row.rank is None else row.rank
            ranks["none" if found is None else "right" if found == rank else "wrong"] += 1
            if _TIMED.search(text) or (layout == "sdk" and row.text.startswith(b"20")):
                off += abs(row.ts_ns - ns) > 2 * 10**9
    assert ranks["wrong"] == 0 and off == 0
    assert ranks["right"] > 20 and ranks["none"] <= 0.05 * ranks["right"]


def test_an_import_finds_levels_and_restarts(imports: Imports, tmp_path: Path) -> None:
    job = next(
        job
        for seed in range(200)
        if (
            job := simulate(
                seed, fault="oom_rank", layout="torchrun_dir", framework="plain", ranks=8
            )
        )
        and job.scene.torch > "2.4"
        and any(process.attempt for process in job.processes)
    )
    job.write(tmp_path)
    imports.run(tmp_path)
    levels = {
        pattern: {
            row.level for s in imports.streams for row in s.rows if re.search(pattern, row.text)
        }
        for pattern in (
            rb"INFO train ",
            rb"WARNING train ",
            rb"^\[rank\d\]:\[E\d",
            rb"^(?:\[rank\d\]: )?Traceback \(most",
        )
    }
    assert levels[rb"INFO train "] == {INFO}
    assert levels[rb"WARNING train "] <= {WARNING}
    assert levels[rb"^\[rank\d\]:\[E\d"] <= {ERROR}
    assert levels[rb"^(?:\[rank\d\]: )?Traceback \(most"] == {ERROR}
    assert {stored.stream.attempt for stored in imports.streams} == {0, 1}
