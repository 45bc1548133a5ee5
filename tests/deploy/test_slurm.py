"""docs/deploy/slurm: a node of a job, from its prolog to its epilog."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ranklog.produce import spool
from ranklog.produce.identity import Identity
from ranklog.produce.spool import ProcessFiles
from tests.agent.reading import lines_in

SCRIPTS = Path(__file__).parents[2] / "docs" / "deploy" / "slurm"
JOB = "4711"

pytestmark = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0 or shutil.which("setpriv") is None,
    reason="Slurm runs these as root",
)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    command = tmp_path / "ranklog"
    python = shlex.quote(sys.executable)
    command.write_text(f'#!/bin/sh\nexec {python} -m ranklog.cli.main "$@"\n')
    command.chmod(0o755)
    (tmp_path / "agent.env").write_text(f"RANKLOG_DESTINATION={tmp_path / 'out'}\n")
    return os.environ | {
        "SLURM_JOB_ID": JOB,
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_PARTITION": "gpu",
        "RANKLOG_SPOOLS": str(tmp_path / "spools"),
        "RANKLOG_COMMAND": str(command),
        "RANKLOG_ENVIRONMENT": str(tmp_path / "agent.env"),
    }


def script(name: str, environ: dict[str, str]) -> str:
    done = subprocess.run(
        ["sh", str(SCRIPTS / name)], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def task_environment(environ: dict[str, str]) -> dict[str, str]:
    """As slurmstepd reads what a TaskProlog prints."""
    lines = script("task-prolog.sh", environ).splitlines()
    words = [line.removeprefix("export ").partition("=") for line in lines]
    return {name: value for name, _, value in words}


def left_behind(folder: Path) -> None:
    """What a rank wrote whose agent died with the node's job."""
    spool.make_spool(folder)
    (folder / "a.stdout").write_bytes(b"one\ntwo\n")
    who = Identity("default", "demo", JOB, 0, "n0", 3, 3, 8)
    spool.announce(folder, ProcessFiles(who, "a", 2**22 - 1, "1", {"stdout": "a.stdout"}))


def texts(out: Path) -> list[str]:
    return [line.text for line in lines_in(out) if line.channel == "stdout"]


def test_what_a_job_could_not_send_any_more_its_epilog_sends(
    environ: dict[str, str], tmp_path: Path
) -> None:
    script("prolog.sh", environ)
    task = task_environment(environ)
    folder = Path(task["RANKLOG_SPOOL"])
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert task["RANKLOG_TAGS"] == "partition=gpu"
    left_behind(folder)
    script("epilog.sh", environ)
    assert texts(tmp_path / "out") == ["one", "two"]
    assert not folder.parent.exists()


def test_what_can_not_be_sent_waits_for_the_next_epilog_on_the_node(
    environ: dict[str, str], tmp_path: Path
) -> None:
    script("prolog.sh", environ)
    folder = Path(task_environment(environ)["RANKLOG_SPOOL"])
    left_behind(folder)
    (tmp_path / "agent.env").write_text("RANKLOG_DESTINATION=http://127.0.0.1:9\n")
    script("epilog.sh", environ | {"RANKLOG_EPILOG_SECONDS": "3"})
    assert folder.exists()
    (tmp_path / "agent.env").write_text(f"RANKLOG_DESTINATION={tmp_path / 'out'}\n")
    script("epilog.sh", environ | {"SLURM_JOB_ID": "4712"})
    assert texts(tmp_path / "out") == ["one", "two"]
    assert not folder.exists()


def test_another_job_that_runs_still_keeps_its_spool(
    environ: dict[str, str], tmp_path: Path
) -> None:
    script("prolog.sh", environ)
    folder = Path(task_environment(environ)["RANKLOG_SPOOL"])
    left_behind(folder)
    script("epilog.sh", environ | {"SLURM_JOB_ID": "4712"})
    assert folder.exists() and not (tmp_path / "out").exists()
