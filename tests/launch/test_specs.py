"""The torchrun plugin without a launch: what torchrun is told, and what the spool has."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from torch.distributed.elastic.multiprocessing.api import LogsDest, Std

from ranklog.launch import torchrun
from ranklog.launch.torchrun import RanklogLogsSpecs
from ranklog.launch.watch import context_of_caller
from ranklog.produce import spool
from ranklog.produce.exits import read_exit
from ranklog.produce.spool import ProcessFiles

pytestmark = pytest.mark.torch


class Context:
    """What calls the plugin, as torchrun's PContext does."""

    def __init__(self, specs: RanklogLogsSpecs, envs: dict[int, dict[str, str]]) -> None:
        self.dest: LogsDest = specs.reify(envs)
        self.envs = envs
        self.subprocess_handlers: dict[int, Any] = {}

    def start(self) -> None:
        for rank in self.envs:
            proc = SimpleNamespace(pid=os.getpid(), returncode=None)
            self.subprocess_handlers[rank] = SimpleNamespace(proc=proc)
            for path in (self.dest.stdouts[rank], self.dest.stderrs[rank]):
                with open(path, "w") as file:  # as torchrun opens it
                    file.write(f"of {rank}\n")

    def end(self, *codes: int) -> None:
        for rank, code in enumerate(codes):
            self.subprocess_handlers[rank].proc.returncode = code

    def pids(self) -> dict[int, int]:
        return {rank: handler.proc.pid for rank, handler in self.subprocess_handlers.items()}

    def wait(self) -> None: ...


def variables(rank: int, restart: int = 0, run_id: str = "job7") -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % 2),
        "WORLD_SIZE": "4",
        "ROLE_NAME": "default",
        "TORCHELASTIC_RUN_ID": run_id,
        "TORCHELASTIC_RESTART_COUNT": str(restart),
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("RANKLOG_", "SLURM_", "PET_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RANKLOG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("RANKLOG_MANIFEST", "0")
    monkeypatch.setattr("sys.argv", ["torchrun", "--nproc-per-node=2", "train.py"])
    return tmp_path / "spool"


def announced(folder: Path, count: int) -> list[ProcessFiles]:
    deadline = time.monotonic() + 10
    while len(found := list(spool.announced(folder))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return sorted(found, key=lambda one: (one.identity.attempt, one.identity.rank or 0))


def test_ranks_write_into_the_spool_and_are_announced_when_they_have_started(folder: Path) -> None:
    specs = RanklogLogsSpecs(log_dir=None, redirects=Std.NONE, tee=Std.NONE)
    context = Context(specs, {0: variables(2), 1: variables(3)})
    assert not list(folder.glob("*.process"))
    context.start()
    first, second = announced(folder, 2)

    assert (first.identity.rank, second.identity.rank) == (2, 3)
    assert (first.identity.run, first.identity.launch) == ("train", "job7")
    assert (first.pid, first.launched) == (os.getpid(), True)
    assert context.dest.stdouts[0] == str(folder / first.files["stdout"])
    assert context.dest.tee_stdouts == {}
    assert context.envs[0]["RANKLOG_CAPTURED"] == str(folder / first.incarnation)
    assert context.envs[1]["RANKLOG_LAUNCH"] == "job7"
    assert (folder / first.files["stderr"]).read_text() == "of 0\n"


def test_files_that_torchrun_was_asked_for_stay_the_user_s(folder: Path, tmp_path: Path) -> None:
    specs = RanklogLogsSpecs(log_dir=str(tmp_path / "logs"), redirects=Std.ALL, tee={0: Std.ERR})
    context = Context(specs, {0: variables(0), 1: variables(1)})
    context.start()
    first, _ = announced(folder, 2)

    asked = context.dest.stdouts[0]
    assert asked.startswith(str(tmp_path / "logs"))
    assert (folder / first.files["stdout"]).readlink() == Path(asked)
    assert context.dest.tee_stderrs == {0: context.dest.stderrs[0]}


def test_a_rank_s_end_and_error_file_are_told(folder: Path) -> None:
    context = Context(RanklogLogsSpecs(), {0: variables(0), 1: variables(1)})
    context.start()
    first, second = announced(folder, 2)
    error = {"message": {"message": "ValueError: bad", "extraInfo": {}}}
    Path(context.dest.error_files[1]).write_text(json.dumps(error))
    context.end(0, 1)
    [told] = [one for one in announced(folder, 3) if "error.json" in one.files]

    assert told.identity == second.identity
    assert json.loads((folder / told.files["error.json"]).read_text()) == error
    deadline = time.monotonic() + 10
    while read_exit(folder, second.incarnation) is None:
        assert time.monotonic() < deadline
    assert (read_exit(folder, first.incarnation), read_exit(folder, second.incarnation)) == (0, 1)


def test_a_restart_is_another_attempt_of_one_launch(folder: Path) -> None:
    specs = RanklogLogsSpecs()
    for restart in range(2):
        context = Context(specs, {0: variables(0, restart, "none")})
        context.start()
        announced(folder, restart + 1)
        context.end(1)
    first, second = (one.identity for one in announced(folder, 2))

    assert (first.attempt, second.attempt) == (0, 1)
    assert first.launch == second.launch != "none"


def test_a_rank_that_was_filtered_from_the_console_is_captured(folder: Path) -> None:
    specs = RanklogLogsSpecs(local_ranks_filter={0})
    context = Context(specs, {0: variables(0), 1: variables(1)})
    context.start()
    _, filtered = announced(folder, 2)

    assert (folder / filtered.files["stdout"]).read_text() == "of 1\n"


def test_a_failure_of_ours_leaves_torchrun_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(torchrun, "_rank", fail)
    context = Context(RanklogLogsSpecs(), {0: variables(0)})

    assert context.dest.stdouts == {0: ""}
    assert "RANKLOG_CAPTURED" not in context.envs[0]


def test_disabled_it_is_the_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKLOG_DISABLED", "1")

    assert Context(RanklogLogsSpecs(), {0: variables(0)}).dest.stdouts == {0: ""}
    assert not folder.exists()


def test_without_a_context_nobody_is_found() -> None:
    assert context_of_caller() is None
