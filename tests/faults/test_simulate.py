"""Jobs are what their arguments say, the same each time, and look like what ran."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults.frameworks import FRAMEWORKS
from tests.faults.job import LAYOUTS, Job
from tests.faults.simulate import FAULTS, STORIES, main, simulate
from tests.faults.truth import CLASSES

_WORDS = ("all", "none", "undecidable")
_ITERATION = re.compile(rb"iteration (\d+) loss")


def text_of(job: Job) -> bytes:
    """All that is written, stream after stream."""
    return b"\n".join(text for stream in job.streams for _, text, _ in stream.lines)


@given(seed=st.integers(0, 2**31), other=st.integers(0, 2**31))
@settings(max_examples=15)
def test_a_seed_gives_the_same_job_each_time_and_another_one_another(seed: int, other: int) -> None:
    job = simulate(seed)
    again = simulate(seed)
    assert (job.truth, job.scene, job.streams) == (again.truth, again.scene, again.streams)
    assert seed == other or simulate(other).streams != job.streams


def test_there_are_more_than_sixteen_faults_and_each_class_has_one() -> None:
    seen = {
        simulate(seed, fault=fault, ranks=16).truth.fault_class
        for fault in STORIES
        for seed in (1, 2)
    }
    assert len(FAULTS) >= 16
    assert seen == set(CLASSES)


@pytest.mark.parametrize("fault", STORIES)
@pytest.mark.parametrize("seed", range(4))
def test_a_truth_speaks_of_what_the_job_has(fault: str, seed: int) -> None:
    job = simulate(seed, fault=fault)
    truth, topology = job.truth, job.topology
    assert truth.fault == fault
    assert truth.ranks <= set(range(topology.ranks))
    if isinstance(truth.culprit, str):
        assert truth.culprit in (*topology.hosts, *_WORDS)
        assert bool(truth.ranks) == (truth.culprit not in _WORDS)
    if truth.first_ns is not None:
        times = [ns for stream in job.streams for ns, _, _ in stream.lines]
        assert min(times) - 10**10 < truth.first_ns < max(times) + 10**10


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_is_written_in_every_layout(layout: str, framework: str) -> None:
    if "sdk" in (layout, framework) and layout != framework:
        with pytest.raises(ValueError, match="sdk"):
            simulate(3, layout=layout, framework=framework)
        return
    for fault in ("healthy", "oom_rank"):
        job = simulate(3, layout=layout, framework=framework, fault=fault, ranks=8)
        assert (job.scene.layout, job.scene.framework) == (layout, framework)
        assert len(text_of(job)) > 1000


@pytest.mark.parametrize("ranks", [4, 8, 12, 64, 512, 4096])
def test_a_job_has_as_many_ranks_as_are_asked_for(ranks: int) -> None:
    job = simulate(5, ranks=ranks, fault="hang_timeout", framework="plain", layout="rank_files")
    topology = job.topology
    assert topology.tp * topology.pp * topology.dp == topology.ranks == ranks
    assert (
        len(topology.pids)
        == ranks
        == len({(topology.host(r), topology.pids[r]) for r in range(ranks)})
    )
    assert {stream.rank for stream in job.streams} - {None} == set(range(ranks))


@pytest.mark.parametrize(
    "arguments",
    [
        {"ranks": 3},
        {"ranks": 5000},
        {"fault": "gremlins"},
        {"framework": "keras"},
        {"layout": "tape"},
        {"fault": "slow_rank", "layout": "bare"},
        {"fault": "nan_replica", "framework": "megatron"},
    ],
)
def test_what_no_job_can_be_is_refused(arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(arguments.values())))):
        simulate(1, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_given_faults_that_it_shows(layout: str) -> None:
    jobs = [simulate(seed, layout=layout, ranks=16) for seed in range(60)]
    assert {job.scene.layout for job in jobs} == {layout}
    assert all(STORIES[job.truth.fault].bare for job in jobs) or layout != "bare"


def test_lines_of_a_process_are_in_the_order_of_its_clock() -> None:
    for seed in range(20):
        for process in simulate(seed).processes:
            times = [ns for ns, _, _ in process.lines]
            assert times == sorted(times)


def test_a_later_attempt_does_iterations_again() -> None:
    job = next(
        job
        for seed in range(99)
        if (job := simulate(seed, fault="healthy", framework="plain", layout="torchrun_dir"))
        and any(process.attempt for process in job.processes)
    )
    done = {
        attempt: [
            int(n)
            for p in job.processes
            if p.attempt == attempt and p.rank == 0
            for _, t, _ in p.lines
            for n in _ITERATION.findall(t)
        ]
        for attempt in (0, 1)
    }
    assert 0 < min(done[1]) <= max(done[0]) < max(done[1])


def test_megatrons_loss_is_the_last_ranks_and_nemos_rank_zeros() -> None:
    for framework, words, rank in (
        ("megatron", b"lm loss:", 15),
        ("nemo", b"reduced_train_loss", 0),
    ):
        job = simulate(2, fault="healthy", framework=framework, layout="rank_files", ranks=16)
        said = {p.rank for p in job.processes for _, text, _ in p.lines if words in text}
        assert said == {rank}


def test_only_messages_of_the_sdk_carry_their_iteration() -> None:
    for layout in LAYOUTS:
        job = simulate(4, fault="healthy", layout=layout)
        carried = {it for stream in job.streams for _, _, it in stream.lines} - {None}
        assert bool(carried) == (layout == "sdk")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_hold_the_streams_and_nothing_of_the_truth(layout: str, tmp_path: Path) -> None:
    job = simulate(6, fault="oom_rank", layout=layout, ranks=8)
    paths = job.write(tmp_path / "job")
    assert [p for p in sorted((tmp_path / "job").rglob("*")) if p.is_file()] == paths
    lines = sum(path.read_bytes().count(b"\n") for path in paths)
    assert lines == sum(len(stream.lines) for stream in job.streams)
    assert b"oom_rank" not in b"".join(path.read_bytes() for path in paths)


def test_a_launchers_empty_files_are_there_too(tmp_path: Path) -> None:
    job = simulate(2, fault="healthy", framework="megatron", layout="torchrun_dir", ranks=8)
    paths = job.write(tmp_path)
    assert sum(path.name == "stdout.log" for path in paths) >= 8


def test_the_command_writes_files_and_the_truth_beside_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "job"
    assert main(["--seed", "3", "--fault", "node_lost", "--ranks", "16", "--out", str(out)]) == 0
    truth = json.loads((tmp_path / "job.truth.json").read_text())
    assert truth == json.loads(json.dumps(simulate(3, fault="node_lost", ranks=16).truth.as_dict()))
    assert truth["class"] == "hardware" and any(out.iterdir())
    assert "files in" in capsys.readouterr().out
