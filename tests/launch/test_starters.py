"""srun and mpirun below one `ranklog run`: whose a line is, and what the user is told."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ranklog.launch.starters import starter_of
from tests.agent.reading import lines_in, streams_in
from tests.launch.test_run import Jobs


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


@pytest.mark.parametrize(
    ("command", "program", "labels"),
    [
        ("srun python train.py", "python train.py", ""),
        ("srun -n 4 -l python train.py -l", "python train.py -l", "slurm"),
        ("srun -n4 --label ./a.out", "./a.out", "slurm"),
        ("srun -ul -N 2 python a.py", "python a.py", "slurm"),
        ("srun -J label -D /l python -l", "python -l", ""),
        ("srun -pl python a.py", "python a.py", ""),  # the partition l
        ("srun --ntasks 4 --mem=4G --exclusive python a.py", "python a.py", ""),
        ("srun --export ALL,X=1 -- python a.py", "python a.py", ""),
        ("srun --pty", None, ""),
        ("/usr/bin/mpirun -np 4 python a.py", "python a.py", ""),
        ("mpirun -n 4 --tag-output python a.py", "python a.py", "mpi"),
        ("mpirun --output tag,timestamp -n 4 a.out", "a.out", "mpi"),
        ("mpirun --output=rank -n 4 a.out", "a.out", "mpi"),
        ("mpirun --output dir=/x -n 4 a.out --tag-output", "a.out --tag-output", ""),
        ("mpirun --mca btl tcp,self -x PATH -H a:4,b:4 python a.py", "python a.py", ""),
        ("mpiexec -l -n 4 -genv X 1 python a.py", "python a.py", "hydra"),
        ("mpiexec.hydra -prepend-rank -hosts a,b python a.py -l", "python a.py -l", "hydra"),
    ],
)
def test_a_starter_is_read(command: str, program: str | None, labels: str) -> None:
    starter = starter_of(command.split(), {})

    assert starter is not None
    at = starter.program_at
    assert (None if at is None else " ".join(starter.words[at:])) == program
    assert starter.labels == labels


def test_slurm_labels_by_its_variable_too() -> None:
    for value, labels in (("1", "slurm"), ("0", ""), ("", "")):
        starter = starter_of(["srun", "a.out"], {"SLURM_LABELIO": value})
        assert starter is not None
        assert starter.labels == labels


@pytest.mark.parametrize("command", ["", "python train.py", "torchrun a.py", "sbatch job.sh"])
def test_other_commands_are_none(command: str) -> None:
    assert starter_of(command.split(), {}) is None


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (
            "srun -n 4 python train.py",
            "srun: all its ranks are one stream, and no line says which; for a stream each: "
            "srun -n 4 ranklog run -- python train.py",
        ),
        (
            "mpirun --tag-output python train.py",
            "mpirun: lines have the rank that its labels say, and all ranks are one stream; for a "
            "stream each: mpirun --tag-output ranklog run -- python train.py",
        ),
        (
            "srun --pty",
            "srun: all its ranks are one stream, and no line says which; for a stream each: "
            "srun … ranklog run -- python train.py",
        ),
        (
            "srun python a.py 1 2 3 4 5 6 7 8 9",
            "srun: all its ranks are one stream, and no line says which; for a stream each: "
            "srun ranklog run -- python a.py 1 2 3 4 5 6 …",
        ),
        ("srun ranklog run -- python train.py", ""),
    ],
)
def test_the_user_is_told_in_one_line(command: str, advice: str) -> None:
    starter = starter_of(command.split(), {})

    assert starter is not None
    assert starter.advice() == advice


FAKE_SRUN = """#!/bin/sh
# srun, of three tasks on this host: `srun [-l] CMD…`
label=; if [ "$1" = -l ]; then label=1; shift; fi
for task in 0 1 2; do
  if [ $label ]; then
    SLURM_PROCID=$task SLURM_NTASKS=3 "$@" 2>&1 | sed "s/^/$task: /"
  else
    SLURM_PROCID=$task SLURM_NTASKS=3 "$@"
  fi
done
"""


@pytest.fixture
def srun(jobs: Jobs, tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "srun"
    path.parent.mkdir()
    path.write_text(FAKE_SRUN)
    path.chmod(0o755)
    jobs.environ["PATH"] = f"{path.parent}:{os.environ['PATH']}"
    return path


SAY = "import os; print('task', os.environ['SLURM_PROCID'], 'here')"


def test_labels_of_srun_are_ranks_of_lines_and_the_console_is_as_it_was(
    jobs: Jobs, srun: Path
) -> None:
    done = jobs.run("srun", "-l", sys.executable, "-c", SAY)

    assert done.returncode == 0
    assert done.stdout == b"0: task 0 here\n1: task 1 here\n2: task 2 here\n"
    assert [(line.rank, line.text) for line in jobs.lines("stdout")] == [
        (n, f"{n}: task {n} here") for n in range(3)
    ]
    assert done.stderr.decode().startswith("ranklog: srun: lines have the rank that its labels say")
    assert done.stderr.count(b"\n") == 1


def test_without_labels_it_is_said_that_nobody_knows_whose_a_line_is(
    jobs: Jobs, srun: Path
) -> None:
    done = jobs.run("srun", sys.executable, "-c", SAY)

    assert [line.rank for line in jobs.lines("stdout")] == [None, None, None]
    assert done.stderr.decode().startswith("ranklog: srun: all its ranks are one stream")


def test_ranklog_run_below_srun_has_a_stream_for_each_rank(jobs: Jobs, srun: Path) -> None:
    words = jobs.command(sys.executable, "-c", SAY)
    done = subprocess.run(
        ["srun", *words], env=jobs.environ, capture_output=True, timeout=60, check=True
    )

    assert done.stderr == b""
    assert {(line.rank, line.text) for line in jobs.lines("stdout")} == {
        (n, f"task {n} here") for n in range(3)
    }
    assert {entry.stream.rank for entry in streams_in(jobs.stream)} == {0, 1, 2}


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no MPI is installed")
@pytest.mark.parametrize("way", ["below", "labels"])
def test_a_real_mpirun_has_its_ranks_told_apart(jobs: Jobs, tmp_path: Path, way: str) -> None:
    """Open MPI or MPICH, whichever is there."""
    say = (
        "import os; e = os.environ; r = e.get('OMPI_COMM_WORLD_RANK', e.get('PMI_RANK'));"
        "os.write(1, f'rank {r} here\\n'.encode())"
    )
    jobs.environ |= dict.fromkeys(
        [f"{who}_ALLOW_RUN_AS_ROOT{sure}" for who in ("OMPI", "PRTE") for sure in ("", "_CONFIRM")],
        "1",
    )
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True)
    is_open = "Open MPI" in version.stdout
    option = ("--tag-output", "--oversubscribe") if is_open else ("-prepend-rank",)
    program = [sys.executable, "-c", say]
    if way == "below":
        words = ["mpirun", *option[1:], "-n", "2", *jobs.command(*program)]
    else:
        words = jobs.command("mpirun", *option, "-n", "2", *program)
    subprocess.run(words, env=jobs.environ, capture_output=True, timeout=60, check=True)

    said = {(line.rank, line.text[-11:]) for line in lines_in(jobs.stream) if "here" in line.text}
    assert said == {(0, "rank 0 here"), (1, "rank 1 here")}
    if way == "below":
        streams = [entry.stream for entry in streams_in(jobs.stream)]
        assert {(one.rank, one.world_size) for one in streams} == {(0, 2), (1, 2)}
        assert len({one.launch for one in streams}) == 1


def test_a_task_on_another_node_than_ranklog_run_s_delivers_by_itself(jobs: Jobs) -> None:
    """`ranklog run -- srun python train.py`: its variables are there, its agent and host are not."""
    program = (
        "import logging, ranklog\n"
        "ranklog.init()\n"
        "logging.warning('from far')\n"
        "assert ranklog.flush(20) == 0\n"
    )
    far = {
        "RANKLOG_LAUNCHED": "1",
        "RANKLOG_LAUNCHED_ON": "login.cluster",
        "RANKLOG_HOST": "login.cluster",
        "RANKLOG_RUN": "llama",
        "RANKLOG_LAUNCH": "l7",
        "RANKLOG_CAPTURED": str(jobs.spool / "0123"),
        "RANKLOG_DESTINATION": str(jobs.stream),
        "SLURM_PROCID": "3",
        "SLURM_NTASKS": "8",
    }
    words = [sys.executable, "-c", program]
    subprocess.run(words, env=jobs.environ | far, timeout=60, check=True)

    assert [(line.rank, line.text) for line in jobs.lines("logging")] == [(3, "from far")]
    [stream] = {e.stream for e in streams_in(jobs.stream) if e.stream.channel == "logging"}
    assert (stream.run, stream.launch, stream.host) == ("llama", "l7", socket.gethostname())


FAKE_MPIRUN = """#!/bin/sh
echo "unbuffered: $PYTHONUNBUFFERED"
"""


@pytest.mark.parametrize(
    ("options", "given", "said"),
    [
        ((), {}, "1"),
        (("--tag-output",), {}, ""),
        (("--tag-output",), {"PYTHONUNBUFFERED": "yes"}, "yes"),
    ],
)
def test_where_open_mpi_labels_writes_python_keeps_its_lines_whole(
    jobs: Jobs, tmp_path: Path, options: tuple[str, ...], given: dict[str, str], said: str
) -> None:
    mpirun = tmp_path / "bin" / "mpirun"
    mpirun.parent.mkdir()
    mpirun.write_text(FAKE_MPIRUN)
    mpirun.chmod(0o755)
    jobs.environ.pop("PYTHONUNBUFFERED", None)
    jobs.environ |= given
    done = jobs.run(str(mpirun), *options, "program")

    assert done.stdout == f"unbuffered: {said}\n".encode()
