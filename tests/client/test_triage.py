"""Triage of runs in a store: imported files, frames of ranks that still go, simulated faults."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from ranklog.cli.main import main
from ranklog.client import Client
from ranklog.errors import BadInput, NotFound
from ranklog.importer import import_paths
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import SECOND_NS
from ranklog.model.frame import CallSite, StreamEnd
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.store.memory import MemoryStore
from ranklog.store.open import open_store
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame
from tests.faults.score import names_class, names_culprit
from tests.faults.simulate import FAULTS, simulate
from tests.faults.triage import imported, named

NOW_NS = 4_102_444_800 * SECOND_NS
LOSS = (
    "2026-05-01 10:00:{0:02d},000 INFO train train.py:41 iteration {0} loss 2.5 step_time 900.0 ms"
)
OOM = (
    "[rank{0}]: Traceback (most recent call last):\n"
    '[rank{0}]:   File "/srv/train.py", line 9, in <module>\n'
    "[rank{0}]:     main()\n"
    "[rank{0}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
    "total capacity of 79.15 GiB of which 401.40 MiB is free.\n"
)
LOST = (
    "[rank{0}]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:328, remote process "
    "exited or there was a network error\n"
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Four ranks train; rank 2 runs out of memory, the others lose it."""
    for rank in range(4):
        text = "".join(LOSS.format(k) + "\n" for k in range(8))
        text += OOM.format(rank) if rank == 2 else LOST.format(rank)
        (tmp_path / f"rank-{rank}.log").write_text(text)
    return tmp_path


def client_of(folder: Path, store: MemoryStore | None = None) -> Client:
    store = store or MemoryStore()
    import_paths([str(folder)], store=store, tenant="default", run="job", now_ns=NOW_NS)
    return Client(store=store)


def test_the_answer_has_every_member_of_the_interfaces(files: Path) -> None:
    found = client_of(files).triage(run="job").to_json()
    assert {
        "run",
        "attempt",
        "class",
        "undecidable",
        "suspects",
        "timeline",
        "last_iteration",
        "last_checkpoint",
        "next_steps",
        "completeness",
    } <= found.keys()
    assert (found["class"], found["attempt"], found["last_iteration"]) == ("oom_device", 0, 7)
    suspect = found["suspects"][0]
    assert (suspect["rank"], suspect["ranks"], found["undecidable"]) == (2, None, False)
    assert "out of memory" in suspect["evidence"][0]["text"]
    assert found["next_steps"][0]["runbook"] == "docs/runbooks/oom_device.md"
    events = {event["event"] for event in found["timeline"]}
    assert {"first_error", "last_line"} <= events


def test_the_query_of_the_next_step_shows_the_evidence(files: Path) -> None:
    import shlex

    client = client_of(files)
    [_, _, query, *_] = shlex.split(client.triage(run="job")["next_steps"][0]["command"])
    assert [line.rank for line in client.search(query, run="job", groups=False)] == [2]


def test_a_healthy_run_has_no_suspect(tmp_path: Path) -> None:
    for rank in range(4):
        text = "".join(LOSS.format(k) + "\n" for k in range(8))
        (tmp_path / f"rank-{rank}.log").write_text(text)
    found = client_of(tmp_path).triage(run="job")
    assert (found.fault, found.suspects, found["next_steps"]) == ("none", [], [])


def test_an_earlier_attempt_can_be_asked_for(tmp_path: Path) -> None:
    for attempt in range(2):
        for rank in range(4):
            folder = tmp_path / "none_abcdefgh" / f"attempt_{attempt}" / str(rank)
            folder.mkdir(parents=True)
            lines = [LOSS.format(k + 20 * attempt) for k in range(8)]
            (folder / "stdout.log").write_text("\n".join(lines) + "\n")
            own = OOM.format(rank) if rank == 2 else LOST.format(rank)
            (folder / "stderr.log").write_text(own if attempt == 0 else "")
    client = client_of(tmp_path)
    assert client.triage(run="job").fault == "none"
    earlier = client.triage(run="job", attempt=0)
    assert (earlier.fault, earlier.suspects[0]["rank"], earlier["attempt"]) == ("oom_device", 2, 0)
    with pytest.raises(NotFound, match="no attempt 7"):
        client.triage(run="job", attempt=7)
    with pytest.raises(BadInput, match="attempt"):
        client.triage(run="job", attempt="0-1")


def test_a_run_has_to_be_named(files: Path) -> None:
    with pytest.raises(BadInput, match="which run"):
        client_of(files).triage()


def test_of_several_launches_one_is_asked_for(files: Path) -> None:
    store = MemoryStore()
    for launch in ("a", "b"):
        import_paths(
            [str(files)], store=store, tenant="default", run="job", launch=launch, now_ns=NOW_NS
        )
    with pytest.raises(BadInput, match="2 launches"):
        Client(store=store).triage(run="job@*")


def live_store(silent: int, *, silent_s: int, ended: bool = False) -> Client:
    """Eight ranks; `silent` stops after iteration 20, the others wait from there on and say nothing."""
    store, now = MemoryStore(), time.time_ns()
    start = now - (silent_s + 5 * 21) * SECOND_NS
    builder = FrameBuilder("default", "a" * 32, 0, "")
    for rank in range(8):
        stream = Stream(
            "default", "job", "l", 0, f"gpu-{rank // 4}", rank, rank % 4, "logging", "i"
        )
        last = 20 if rank == silent else 21
        for k in range(last + 1):
            builder.add(
                stream,
                k,
                start + 5 * k * SECOND_NS + rank,
                20,
                CallSite("train.py:7", "step"),
                f"iteration {k} loss 2.5",
                iteration=k,
                metadata={"loss": 2.5},
            )
        if ended:
            builder.end(stream, StreamEnd(last + 1, 0))
    data = encode_frame(builder.build())
    sent = [Record(data, now, "1")]
    ingest_batch(sent, store=store, source="test", first="1", last="1")
    return Client(store=store)


def test_a_live_run_that_goes_is_none() -> None:
    found = live_store(3, silent_s=2).triage(run="job")
    assert (found.fault, found["live"]) == ("none", True)


def test_a_live_run_that_stands_still_is_a_hang_of_who_stopped_first() -> None:
    found = live_store(3, silent_s=900).triage(run="job")
    assert (found.fault, found["live"], found.suspects[0]["rank"]) == ("hang", True, 3)
    silent = [event["rank"] for event in found["timeline"] if event["event"] == "silent"]
    assert silent[0] == 3
    assert sorted(silent) == list(range(8))


def test_a_run_that_ended_is_not_silent() -> None:
    found = live_store(3, silent_s=900, ended=True).triage(run="job")
    assert (found.fault, found["live"]) == ("none", False)


@pytest.fixture(scope="module")
def simulated() -> list[tuple[Any, str, list[Any]]]:
    """One small job of each kind of fault, and as many healthy ones."""
    found = []
    jobs = [simulate(seed, fault=fault, ranks=8) for seed, fault in enumerate(FAULTS, 40_000)]
    jobs += [simulate(50_000 + seed, fault="healthy", ranks=8) for seed in range(len(FAULTS))]
    for job in jobs:
        with imported(job) as client:
            found.append((job.truth, *named(client.triage(run="job"))))
    return found


def test_simulated_faults_are_told_apart(simulated: list[tuple[Any, str, list[Any]]]) -> None:
    faults = [item for item in simulated if item[0].fault_class != "none"]
    wrong = [
        (truth.fault, truth.culprit, fault, who)
        for truth, fault, who in faults
        if not (names_culprit(truth, who) and names_class(truth, fault))
    ]
    assert len(wrong) <= len(faults) // 20 + 1, wrong


def test_simulated_healthy_runs_have_no_suspect(
    simulated: list[tuple[Any, str, list[Any]]],
) -> None:
    healthy = [item for item in simulated if item[0].fault_class == "none"]
    assert [(fault, who) for _, fault, who in healthy if who] == []


def staged(tmp_path: Path, slow: set[int]) -> Path:
    """16 ranks of four pipeline stages as Megatron-LM places them; some take twice as long."""
    for rank in range(16):
        start = (
            "using world size: 16, data-parallel-size: 2, tensor-model-parallel size: 2, "
            "pipeline-model-parallel size: 4\n"
        )
        times = 1800.0 if rank in slow else 900.0
        text = start if rank == 0 else ""
        text += "".join(LOSS.format(k).replace("900.0", str(times)) + "\n" for k in range(12))
        (tmp_path / f"rank-{rank}.log").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("slow", "group", "name"),
    [
        ({4, 5, 6, 7}, "pp=1", "pp=1: ranks 4-7"),
        ({10, 11}, "tp group at dp=1, pp=2", "tp group at dp=1, pp=2: ranks 10-11"),
        ({1, 6}, None, "ranks 1,6"),
    ],
)
def test_several_suspects_are_named_by_their_group(
    slow: set[int], group: str | None, name: str, tmp_path: Path
) -> None:
    found = client_of(staged(tmp_path, slow)).triage(run="job")
    [suspect] = found.suspects
    assert (found.fault, suspect["ranks"]) == ("slow", sorted(slow))
    assert (suspect["group"], suspect["name"]) == (group, name)


@pytest.mark.parametrize("fault", ["nan_rank", "loss_spike", "xid_host", "slow_rank", "link_flap"])
def test_next_steps_find_something(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(7, fault=fault, ranks=8).write(str(tmp_path / "job"))
    url = str(tmp_path / "store")
    store = open_store(url, create=True)
    import_paths([str(tmp_path / "job")], store=store, tenant="default", run="job", now_ns=NOW_NS)
    commands = [step["command"] for step in Client(store=store).triage(run="job")["next_steps"]]
    assert commands
    for command in filter(None, commands):
        assert main([*shlex.split(command)[1:], "--store", url]) == 0, command
        assert capsys.readouterr().out
