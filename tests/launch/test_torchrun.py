"""Real launches: every fault, through the plugin, `ranklog run` and `init`; then search finds it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import ranklog
from ranklog.client import Client
from ranklog.ingest.local import ingest_stream
from ranklog.launch import plugin
from ranklog.store.open import open_store
from ranklog.stream.disk import DiskStream

pytestmark = pytest.mark.torch

PACKAGE = str(Path(ranklog.__file__).parents[1])
TRAIN = str(Path(__file__).with_name("train.py"))
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
TWO = ["--nproc-per-node=2"]
RUN = [sys.executable, "-m", "ranklog.cli.main", "run"]
# How torchrun sees it end, of rank 1 and of the launch.
FAULTS = {"ok": 0, "exc": 1, "kill": -9, "oexit": 7, "segv": -11, "hang": -15, "sigterm": -15}
WAYS = ("plugin", "run", "init")


@dataclass
class Launch:
    """One launch and what a store has of it."""

    done: subprocess.CompletedProcess[str]
    client: Client

    def texts(self, query: str) -> list[str]:
        return [line.text for line in self.client.lines(query, run="train@*")]

    def run(self) -> dict[str, Any]:
        [row] = self.client.runs().rows
        return dict(row)

    def exit_codes(self, rank: int | None, attempt: int = 0) -> set[int | None]:
        rows = self.client.streams(run="train").rows
        return {
            row["exit_code"] for row in rows if row["rank"] == rank and row["attempt"] == attempt
        }


class Launches:
    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.spool = tmp_path / "spool"
        self.environ: dict[str, str] = {
            **os.environ,
            "PYTHONPATH": PACKAGE,
            "RANKLOG_SPOOL": str(self.spool),
            "RANKLOG_DESTINATION": str(tmp_path / "stream"),
            "OMP_NUM_THREADS": "1",
            "RANKLOG_MANIFEST": "0",
        }
        # Also where this checkout is not installed.
        plugin._announce_entry_point(tmp_path, self.environ)

    def start(
        self, way: str, fault: str, *options: str, environ: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        specs = ["--logs-specs=ranklog"] if way == "plugin" else []
        command = [*TORCHRUN, *specs, *TWO, *options, TRAIN, fault]
        if way == "run":
            command = [*RUN, "--", *command]
        if way == "init":
            command += ["init"]
        return subprocess.Popen(
            command,
            env=self.environ | (environ or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )

    def run(self, way: str, fault: str, *options: str) -> Launch:
        process = self.start(way, fault, *options)
        out, err = process.communicate(timeout=120)
        return self.stored(subprocess.CompletedProcess(process.args, process.returncode, out, err))

    def stored(self, done: subprocess.CompletedProcess[str]) -> Launch:
        deadline = time.monotonic() + 30
        while list(self.spool.glob("*.process")):
            assert time.monotonic() < deadline, "not delivered"
            time.sleep(0.05)
        store = open_store(str(self.folder / "store"), create=True)
        for _ in ingest_stream(DiskStream(self.folder / "stream"), store):
            pass
        return Launch(done, Client(store=str(self.folder / "store")))


@pytest.fixture
def launches(tmp_path: Path) -> Launches:
    return Launches(tmp_path)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_last_words_and_the_end_of_every_rank_are_found(
    launches: Launches, way: str, fault: str
) -> None:
    launch = launches.run(way, fault)

    assert (launch.done.returncode == 0) == (fault == "ok")
    for rank in (0, 1):
        said = launch.texts(f"rank:{rank} iteration:2")
        assert [text for text in said if f"rank {rank} iteration 2 loss 4.0" in text]
    if fault == "ok":
        assert launch.texts('rank:1 "rank 1 done"')
    else:
        assert len(launch.texts(f'rank:1 "rank 1 meets {fault}"')) == 1
        assert not launch.texts(f'rank:0 "meets {fault}"')
    if fault == "exc":
        assert launch.texts('rank:1 level>=ERROR "ValueError: loss became NaN"')
    code = FAULTS[fault]
    assert launch.exit_codes(1) == {code}
    assert launch.run()["state"] == ("finished" if code == 0 else "failed")
    assert launch.run()["attempts"][0]["exit_code"] is not None
    assert launch.run()["completeness"]["state"] == "complete"


@pytest.mark.parametrize("options", [[], ["-r", "3", "-t", "3"], ["-r", "2"], ["-t", "1"]])
@pytest.mark.parametrize("way", ["plugin", "run"])
def test_console_and_files_are_what_torchrun_was_asked_for(
    launches: Launches, way: str, options: list[str]
) -> None:
    options = [*options, f"--log-dir={launches.folder / 'logs'}"] if options else options
    launch = launches.run(way, "ok", *options)
    tees = 3 if "3" in options else 1 if "-t" in options else 0
    redirected = 3 if "3" in options else 2 if "-r" in options else tees

    for number, (console, what) in enumerate(
        [(launch.done.stdout, "stdout of rank {} of 2"), (launch.done.stderr, "rank {} done")], 1
    ):
        lines = [line for line in console.splitlines() if what.format(1) in line]
        if tees & number:
            assert [line.startswith("[default1]:") for line in lines] == [True]
        elif redirected & number:
            assert lines == []
        else:
            assert [line.startswith("[") for line in lines] == [False]
        name = ("stdout.log", "stderr.log")[number - 1]
        files = list(launches.folder.glob(f"logs/*/attempt_0/1/{name}"))
        assert [what.format(1) in file.read_text() for file in files] == [True] * bool(
            redirected & number
        )
        assert len(launch.texts(f'"{what.format(1)}"')) == 1
        assert len(launch.texts(f'rank:1 "{what.format(1)}"')) == 1


@pytest.mark.parametrize("way", ["plugin", "run"])
def test_a_restart_is_an_attempt_of_the_same_launch(launches: Launches, way: str) -> None:
    launch = launches.run(way, "restart", "--max-restarts=1")

    assert launch.done.returncode == 0
    assert [attempt["exit_code"] for attempt in launch.run()["attempts"]][-1] == 0
    assert launch.exit_codes(1, 0) == {5}
    assert launch.exit_codes(1, 1) == {0}
    assert len(launch.texts('rank:1 attempt:0 "meets restart"')) == 1
    assert launch.texts('rank:1 attempt:1 "rank 1 done"')


def test_a_torchrun_that_a_script_starts_tells_its_ranks_apart(launches: Launches) -> None:
    done = subprocess.run(
        [*RUN, "--run", "train", "--", "sh", "-c", shlex.join([*TORCHRUN, *TWO, TRAIN, "oexit"])],
        env=launches.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    launch = launches.stored(done)

    assert launch.exit_codes(1) == {7}
    assert len(launch.texts('"rank 1 meets oexit"')) == 1
    assert len(launch.texts('rank:1 "rank 1 meets oexit"')) == 1


def test_files_of_a_launch_that_knows_no_ranklog_are_followed(launches: Launches) -> None:
    logs = launches.folder / "logs"
    logs.mkdir()
    agent = subprocess.Popen(
        [sys.executable, "-m", "ranklog.cli.main", "agent", "--tail", str(logs), "--run", "train"],
        env=launches.environ,
    )
    job = launches.start("none", "hang", "--redirects=3", f"--log-dir={logs}")
    job.communicate(timeout=120)
    time.sleep(2)  # the agent looks every second
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(timeout=60) == 0
    launch = launches.stored(subprocess.CompletedProcess([], 1, "", ""))

    assert launch.run()["world_size"] == 2
    assert len(launch.texts('rank:1 "rank 1 meets hang"')) == 1
    assert launch.texts('rank:0 "rank 0 iteration 2"')
    assert launch.exit_codes(1) == {FAULTS["hang"]}


def test_two_nodes_are_one_launch(launches: Launches) -> None:
    meeting = f"--rdzv-endpoint=127.0.0.1:{_free_port()}"
    options = ["--nnodes=2", "--rdzv-backend=c10d", meeting, "--rdzv-id=job9"]
    nodes = [
        launches.start("plugin", "exc", *options, environ={"RANKLOG_HOST": f"n{n}"})
        for n in range(2)
    ]
    for node in nodes:
        node.communicate(timeout=120)
    launch = launches.stored(subprocess.CompletedProcess([], 0, "", ""))

    assert launch.run()["run_id"] == "train@job9"
    for rank in range(4):
        assert launch.texts(f'rank:{rank} "rank {rank} iteration 2"')
    assert launch.texts('rank:1 "ValueError: loss became NaN"')
    hosts = {row["rank"]: row["host"] for row in launch.client.streams(run="train").rows}
    assert {hosts[0], hosts[2]} == {"n0", "n1"}


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
