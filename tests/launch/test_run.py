"""`ranklog run` from outside: the command's console, signals and end are what they were without it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ranklog
from ranklog.client import Client
from tests.agent.reading import Seen, lines_in, streams_in

PACKAGE = str(Path(ranklog.__file__).parents[1])
RUN = [sys.executable, "-m", "ranklog.cli.main", "run"]
NOISY = (
    "import os, sys, subprocess, time\n"
    "print('out 1'); print('err 1', file=sys.stderr)\n"
    "sys.stdout.write('no line feed'); sys.stdout.flush(); time.sleep(0.1)\n"
    "sys.stderr.write('\\r10%'); sys.stderr.write('\\r20%\\n')\n"
    "os.write(1, b'\\n\\xff\\xfe not UTF-8\\n')\n"
    "subprocess.run(['sh', '-c', 'echo from a shell; echo its stderr >&2'])\n"
    "print('the end', end='')\n"
)


class Jobs:
    """Commands under `ranklog run`, into one folder."""

    def __init__(self, tmp_path: Path) -> None:
        self.stream = tmp_path / "stream"
        self.spool = tmp_path / "spool"
        names = ("RANK", "SLURM", "WORLD_SIZE", "LOCAL_RANK", "MASTER_")
        self.environ = {
            **{key: value for key, value in os.environ.items() if not key.startswith(names)},
            "PYTHONPATH": PACKAGE,
            "RANKLOG_SPOOL": str(self.spool),
            "PYTHONUNBUFFERED": "1",
            "RANKLOG_MANIFEST": "0",
        }

    def command(self, *words: str, options: tuple[str, ...] = ()) -> list[str]:
        return [*RUN, "--destination", str(self.stream), *options, "--", *words]

    def run(
        self, *words: str, options: tuple[str, ...] = (), **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.command(*words, options=options),
            env=self.environ | environ,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def python(
        self, program: str, *, options: tuple[str, ...] = (), **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        return self.run(sys.executable, "-c", program, options=options, **environ)

    def lines(self, channel: str) -> list[Seen]:
        return [line for line in lines_in(self.stream) if line.channel == channel]

    def texts(self, channel: str) -> list[str]:
        return [line.text for line in self.lines(channel)]

    def exit_codes(self) -> set[int | None]:
        return {entry.end.exit_code for entry in streams_in(self.stream) if entry.end}


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


def test_what_goes_to_the_console_still_goes_there_byte_for_byte(jobs: Jobs) -> None:
    plain = subprocess.run(
        [sys.executable, "-c", NOISY], env=jobs.environ, capture_output=True, check=True
    )
    done = jobs.python(NOISY)

    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr)
    assert jobs.texts("stdout") == [
        "out 1",
        "no line feed",
        "\ufffd\ufffd not UTF-8",
        "from a shell",
        "the end",
    ]
    assert jobs.texts("stderr") == ["err 1", "20%", "its stderr"]


@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit(3)", 3), ("1 / 0", 1), ("os.kill(os.getpid(), 9)", -9), ("os.abort()", -6)],
)
def test_the_end_of_the_command_is_our_end_and_the_streams(jobs: Jobs, end: str, code: int) -> None:
    done = jobs.python(f"import os, sys\nprint('last words')\n{end}")

    assert done.returncode == code
    assert jobs.texts("stdout") == ["last words"]
    assert jobs.exit_codes() == {code}


def test_a_command_that_is_not_there_fails_as_in_a_shell(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    missing = jobs.run("no-such-program-here")
    not_executable = jobs.run(str(tmp_path / "text"))

    assert (missing.returncode, not_executable.returncode) == (127, 126)
    assert b"no-such-program-here" in missing.stderr


WAITING = (
    "import signal, sys, time\n"
    "def told(number, frame):\n    print('told', signal.Signals(number).name)\n"
    "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1): signal.signal(number, told)\n"
    "print('ready')\n"
    "while True:\n"
    "    time.sleep(0.01)\n"
    "    if input() == 'end': break\n"
)


def test_a_job_of_no_processes_is_refused(jobs: Jobs) -> None:
    done = subprocess.run(
        [*RUN, "--nproc", "0", "--", "echo", "x"], env=jobs.environ, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "--nproc 0 starts nothing" in done.stderr


def test_a_destination_that_can_not_be_is_told(jobs: Jobs) -> None:
    words = [*RUN, "--destination"]
    wrong = subprocess.run(
        [*words, "ftp://host", "--", "echo", "x"], env=jobs.environ, capture_output=True, text=True
    )
    shut = subprocess.run(
        [*words, "/proc/none", "--", "echo", "x"], env=jobs.environ, capture_output=True, text=True
    )

    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "of no known kind" in wrong.stderr
    assert (shut.returncode, shut.stdout) == (0, "x\n")
    assert "nothing is sent" in shut.stderr
    assert "goes on" not in shut.stderr


def test_signals_are_passed_on_once(jobs: Jobs) -> None:
    command = jobs.command(
        sys.executable, "-c", WAITING.replace("    if input() == 'end': break\n", "")
    )
    job = subprocess.Popen(command, env=jobs.environ, stdout=subprocess.PIPE, bufsize=0)
    assert job.stdout is not None
    assert job.stdout.readline() == b"ready\n"
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        job.send_signal(number)
        assert job.stdout.readline() == f"told {number.name}\n".encode()
    os.kill(_children(job.pid)[0], signal.SIGKILL)
    rest, _ = job.communicate(timeout=30)

    assert (rest, job.returncode) == (b"", -9)


def test_a_signal_that_ends_the_command_ends_us(jobs: Jobs) -> None:
    command = jobs.command(sys.executable, "-c", "import time; print('ready'); time.sleep(60)")
    job = subprocess.Popen(command, env=jobs.environ, stdout=subprocess.PIPE)
    assert job.stdout is not None
    job.stdout.readline()
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=30)

    assert job.returncode == -signal.SIGTERM
    assert jobs.exit_codes() == {-signal.SIGTERM}


def test_the_command_is_in_our_process_group_and_reads_our_input(jobs: Jobs) -> None:
    done = subprocess.run(
        jobs.command(
            sys.executable,
            "-c",
            "import os; print(input(), os.getpgrp() == os.getpgid(os.getppid()))",
        ),
        env=jobs.environ,
        input=b"typed\n",
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.stdout == b"typed True\n"


def test_what_a_grandchild_writes_after_the_command_has_ended_is_captured(jobs: Jobs) -> None:
    done = jobs.run("sh", "-c", "(sleep 1.5; echo late words) & echo early words")

    assert done.returncode == 0
    _wait_until(lambda: jobs.texts("stdout") == ["early words", "late words"])
    _wait_until(lambda: jobs.exit_codes() == {0})


def test_ranks_of_this_host_are_told_apart_and_end_together(jobs: Jobs) -> None:
    done = jobs.python(
        "import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])",
        options=("--nproc", "3", "--run", "r", "--launch", "l"),
    )

    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [b"rank 0 of 3", b"rank 1 of 3", b"rank 2 of 3"]
    assert sorted((x.rank, x.text) for x in jobs.lines("stdout")) == [
        (rank, f"rank {rank} of 3") for rank in range(3)
    ]
    streams = [entry.stream for entry in streams_in(jobs.stream)]
    assert {(x.run, x.launch, x.world_size) for x in streams} == {("r", "l", 3)}


@pytest.mark.parametrize(
    "environ",
    [
        {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"},
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "RANKLOG_LAUNCH": "77.0"},
        {"PMI_RANK": "3", "PMI_SIZE": "8", "RANKLOG_LAUNCH": "77.0"},
    ],
)
def test_started_by_srun_or_mpirun_it_is_the_rank_they_say(
    jobs: Jobs, environ: dict[str, str]
) -> None:
    jobs.python("print('here')", **environ)

    streams = [entry.stream for entry in streams_in(jobs.stream)]
    assert {(x.rank, x.world_size, x.launch) for x in streams} == {(3, 8, "77.0")}


def test_a_job_that_inits_inside_is_stored_once_and_shown_in_its_order(jobs: Jobs) -> None:
    program = (
        "import logging, sys, warnings\n"
        "logging.basicConfig(level=logging.INFO, format='console %(message)s')\n"
        "INIT"
        "for n in range(3):\n"
        "    logging.info('logged %d', n); print('printed', n, file=sys.stderr)\n"
        "raise ValueError('end')\n"
    )
    plain = subprocess.run(
        [sys.executable, "-c", program.replace("INIT", "")], capture_output=True, check=False
    )
    done = jobs.python(program.replace("INIT", "import ranklog; ranklog.init()\n"))

    assert done.returncode == 1
    assert done.stderr.splitlines()[:6] == plain.stderr.splitlines()[:6]
    assert done.stderr.splitlines()[-1] == b"ValueError: end"
    assert jobs.texts("stderr") == ["printed 0", "printed 1", "printed 2"]
    assert jobs.texts("logging")[:3] == ["logged 0", "logged 1", "logged 2"]
    assert jobs.texts("logging")[-1] == "ValueError: end"
    assert jobs.exit_codes() == {1}


def test_a_disabled_ranklog_is_the_command_alone(jobs: Jobs) -> None:
    done = jobs.python("print('alone')", RANKLOG_DISABLED="1")

    assert (done.returncode, done.stdout) == (0, b"alone\n")
    assert not jobs.spool.exists()


def test_with_a_store_one_command_ends_with_everything_searchable(
    jobs: Jobs, tmp_path: Path
) -> None:
    store = str(tmp_path / "store")
    command = [*RUN, "--store", store, "--run", "r", "--", sys.executable, "-c"]
    done = subprocess.run(
        [*command, "print('last words'); raise SystemExit(3)"],
        env=jobs.environ,
        capture_output=True,
        timeout=100,
        check=False,
    )
    client = Client(store=store)

    assert (done.returncode, done.stdout) == (3, b"last words\n")
    assert [line.text for line in client.lines("channel:stdout", run="r")] == ["last words"]
    [run] = client.runs().rows
    assert (run["state"], run["attempts"][0]["exit_code"]) == ("failed", 3)
    assert run["completeness"]["state"] == "complete"


def test_a_job_runs_where_no_spool_can_be(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = jobs.python("print('trained')", RANKLOG_SPOOL=str(tmp_path / "file" / "spool"))

    assert (done.returncode, done.stdout) == (0, b"trained\n")
    assert done.stderr.startswith(b"ranklog: not captured")


def test_the_console_lives_on_when_the_agent_is_killed(jobs: Jobs) -> None:
    program = "import sys\nfor n in range(3):\n    print('line', n); input()\n"
    job = subprocess.Popen(
        jobs.command(sys.executable, "-c", program),
        env=jobs.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    assert job.stdin is not None and job.stdout is not None
    for n in range(3):
        assert job.stdout.readline() == f"line {n}\n".encode()
        with contextlib.suppress(ValueError, OSError):
            os.kill(int((jobs.spool / "collector.lock").read_text()), signal.SIGKILL)
        job.stdin.write(b"\n")
    job.communicate(timeout=30)

    assert job.returncode == 0
    _wait_until(lambda: list(dict.fromkeys(jobs.texts("stdout"))) == ["line 0", "line 1", "line 2"])


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _wait_until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "did not come to pass"
        time.sleep(0.05)


def test_a_python_of_the_job_starts_as_it_would_without_us(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys\nsys.mine = 'ran'\n")
    show = (
        "import sys\n"
        "print(sys.mine, sys.modules['sitecustomize'].__file__)\n"
        "print(sorted({'ranklog', 'torch', 'importlib.metadata', 'logging'} & set(sys.modules)))"
    )
    environ = {"PYTHONPATH": f"{PACKAGE}{os.pathsep}{tmp_path / 'site'}"}
    done = jobs.python(show, **environ)

    expected = f"ran {tmp_path / 'site' / 'sitecustomize.py'}\n[]\n"
    assert (done.stdout.decode(), done.stderr) == (expected, b"")


def test_when_we_are_killed_the_command_goes_on_and_is_captured_to_its_end(jobs: Jobs) -> None:
    program = "import time\nprint('begins')\ntime.sleep(1.5)\nprint('ends'); raise SystemExit(4)"
    job = subprocess.Popen(
        jobs.command(sys.executable, "-c", program), env=jobs.environ, stdout=subprocess.PIPE
    )
    assert job.stdout is not None
    job.stdout.readline()
    job.kill()
    job.communicate()

    _wait_until(lambda: jobs.exit_codes() == {4})
    assert jobs.texts("stdout") == ["begins", "ends"]
