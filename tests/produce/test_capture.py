"""`init(capture="fd")` in real processes: whoever writes to fd 1 and 2, it is stored and shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ranklog
from tests.agent.reading import Seen, lines_in, streams_in

PACKAGE = str(Path(ranklog.__file__).parents[1])
INIT = "import ranklog, os, sys, logging\nranklog.init(run='r', capture='fd')\n"


class Job:
    """Runs a program that captures its descriptors, until everything of it is delivered."""

    def __init__(self, tmp_path: Path) -> None:
        self.stream = tmp_path / "stream"
        self.spool = tmp_path / "spool"
        drop = ("RANK", "SLURM", "PYTHONUNBUFFERED")
        self.environ = {
            **{key: value for key, value in os.environ.items() if not key.startswith(drop)},
            "PYTHONPATH": PACKAGE,
            "RANKLOG_SPOOL": str(self.spool),
            "RANKLOG_DESTINATION": str(self.stream),
        }

    def run(self, program: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=self.environ | environ,
            capture_output=True,
            timeout=60,
            check=False,
        )
        self.wait_delivered()
        return done

    def wait_delivered(self) -> None:
        deadline = time.monotonic() + 20
        while list(self.spool.glob("*.process")):
            assert time.monotonic() < deadline, "not delivered"
            time.sleep(0.05)

    def lines(self, channel: str) -> list[Seen]:
        return [line for line in lines_in(self.stream) if line.channel == channel]

    def texts(self, channel: str = "stdout") -> list[str]:
        return [line.text for line in self.lines(channel)]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_print_c_code_and_programs_are_captured_and_shown(job: Job) -> None:
    done = job.run(
        INIT + "import ctypes, subprocess\n"
        "libc = ctypes.CDLL(None)\n"
        "print('from print')\n"
        "libc.write(1, b'from write\\n', 11)\n"
        "libc.printf(b'from printf\\n'); libc.fflush(None)\n"
        "subprocess.run(['sh', '-c', 'echo from a shell; echo its stderr >&2'])\n"
        "os.system('echo from system')\n"
        "sys.stderr.write('no line feed')\n"
    )

    texts = [
        "from print",
        "from write",
        "from printf",
        "from a shell",
        "from system",
    ]
    assert done.stdout.decode().splitlines() == texts
    assert done.stderr == b"its stderr\nno line feed"
    assert job.texts() == texts
    assert job.texts("stderr") == ["its stderr", "no line feed"]


def test_two_hundred_kilobytes_from_c_with_the_gil_held_do_not_block(job: Job) -> None:
    # PyDLL keeps the GIL while it writes, as an extension's printf does: a reader thread of this
    # process could not run, and a pipe of 64 KiB would be full.
    done = job.run(
        INIT + "import ctypes\n"
        "libc = ctypes.PyDLL(None)\n"
        "data = b''.join(b'line %06d of C code\\n' % n for n in range(10_000))\n"
        "assert len(data) > 200_000\n"
        "for at in range(0, len(data), 4096): libc.write(1, data[at:at + 4096], len(data[at:at + 4096]))\n"
        "libc.printf(b'the end\\n'); libc.fflush(None)\n"
    )

    texts = [*(f"line {n:06d} of C code" for n in range(10_000)), "the end"]
    assert job.texts() == texts
    assert done.stdout.decode().splitlines() == texts


def test_a_message_whose_arguments_do_not_fit_raises_nothing(job: Job) -> None:
    done = job.run(
        INIT + "logging.getLogger('x').warning('loss %d', 'high')\n"
        "logging.getLogger('x').warning('too few %s %s', 1)\n"
        "class Evil:\n"
        "    def __str__(self): raise RuntimeError('no text')\n"
        "logging.getLogger('x').warning(Evil())\n"
        "logging.getLogger('x').warning('goes on')\n"
    )

    assert done.returncode == 0
    assert b"goes on" in done.stderr
    assert b"Logging error" in done.stderr


def test_partial_lines_progress_bars_and_bytes_that_are_no_text(job: Job) -> None:
    done = job.run(
        INIT + "import time\n"
        "for part in ('one ', 'line ', 'in parts\\n'):\n"
        "    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.15)\n"
        "for n in range(5): sys.stderr.write(f'\\rstep {n}')\n"
        "sys.stderr.write('\\n')\n"
        "os.write(1, b'caf\\xe9\\n')\n"
    )

    assert job.texts() == ["one line in parts", "caf\ufffd"]
    assert job.texts("stderr") == ["step 4"]
    assert done.stdout == b"one line in parts\ncaf\xe9\n"
    assert done.stderr == b"".join(b"\rstep %d" % n for n in range(5)) + b"\n"
    assert sum(d.lines for s in streams_in(job.stream) for d in s.drops) == 5


def test_a_traceback_is_one_group_with_an_error_s_level(job: Job) -> None:
    job.run(
        INIT + "import traceback\n"
        "try: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc()\n"
        "print('after', file=sys.stderr)\n"
    )

    lines = job.lines("stderr")
    assert lines[0].text == "Traceback (most recent call last):"
    assert [line.group for line in lines[:-1]] == [0] * (len(lines) - 1)
    assert {line.level for line in lines[:-1]} == {40}
    assert (lines[-1].text, lines[-1].group, lines[-1].level) == ("after", None, None)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(3)", 3),
        ("os._exit(4)", 4),
        ("os.kill(os.getpid(), 9)", -9),
        ("os.abort()", -6),
        ("import ctypes; ctypes.string_at(0)", -11),
    ],
)
def test_last_words_are_stored_and_shown_however_the_process_ends(
    job: Job, end: str, code: int
) -> None:
    done = job.run(INIT + f"print('last words'); {end}")

    assert done.returncode == code
    assert (done.stdout, job.texts()) == (b"last words\n", ["last words"])


def test_a_fault_tells_where_it_was(job: Job) -> None:
    job.run(INIT + "def deep():\n    import ctypes; ctypes.string_at(0)\ndeep()")

    texts = job.texts("stderr")
    assert texts[0] == "Fatal Python error: Segmentation fault"
    assert any("in deep" in text for text in texts)


def test_a_rank_that_hangs_tells_its_line_when_it_is_told_to_end(job: Job) -> None:
    program = (
        INIT + "import ctypes\n"
        "def collective():\n    print('ready'); ctypes.PyDLL(None).sleep(60)\n"
        "collective()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env=job.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)
    job.wait_delivered()

    assert child.returncode == -signal.SIGTERM
    assert any("in collective" in text for text in job.texts("stderr"))


def test_a_signal_that_is_named_dumps_stacks_and_ends_nothing(job: Job) -> None:
    program = (
        INIT + "import signal, time\n"
        "def collective():\n    os.kill(os.getpid(), signal.SIGUSR1); time.sleep(0.2)\n"
        "collective(); print('goes on')"
    )
    job.environ["RANKLOG_DUMP_STACKS"] = "usr1"
    done = job.run(program)

    assert (done.returncode, done.stdout) == (0, b"goes on\n")
    texts = job.texts("stderr")
    assert any("most recent call first" in text for text in texts)
    assert any("in collective" in text for text in texts)


def test_a_handler_of_the_user_for_sigterm_is_called_still(job: Job) -> None:
    done = job.run(
        "import signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('saved a checkpoint'))\n"
        + INIT
        + "os.kill(os.getpid(), signal.SIGTERM); print('goes on')"
    )

    assert (done.returncode, done.stdout) == (0, b"saved a checkpoint\ngoes on\n")


def test_workers_that_are_ended_with_sigterm_report_no_fault(job: Job) -> None:
    job.run(
        INIT + "import signal, time\n"
        "pid = os.fork()\n"
        "if pid == 0: time.sleep(60)\n"
        "time.sleep(0.1); os.kill(pid, signal.SIGTERM); os.waitpid(pid, 0); print('trained')"
    )

    assert (job.texts(), job.texts("stderr")) == (["trained"], [])


def test_print_does_not_fail_when_the_file_can_grow_no_more(job: Job) -> None:
    done = job.run(
        INIT + "import resource\n"
        "print('captured')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40, -1))\n"
        "for n in range(20): print('line', n)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))\n"
        "logging.info('goes on')\n"
    )

    assert done.returncode == 0
    shown = done.stdout.decode().splitlines()
    assert shown[0] == "captured"
    assert shown[-1] == "line 19"
    assert job.texts()[0] == "captured"
    logged = job.texts("logging")
    assert logged[-1] == "goes on"
    assert any("console alone from here on: disk full" in text for text in logged)


def test_a_console_that_nobody_reads_does_not_hold_up_the_rank(job: Job, tmp_path: Path) -> None:
    read, write = os.pipe()
    program = INIT + (
        "for n in range(40_000): print('line', n)\n"
        f"open({str(tmp_path / 'trained')!r}, 'w').close(); os._exit(0)"
    )
    child = subprocess.Popen([sys.executable, "-c", program], env=job.environ, stdout=write)
    os.close(write)

    assert child.wait(timeout=60) == 0
    assert (tmp_path / "trained").exists()
    with open(read, "rb") as console:
        assert len(console.read().splitlines()) == 40_000
    job.wait_delivered()
    assert len(job.texts()) == 40_000


def test_after_close_the_console_has_the_descriptors_back(job: Job) -> None:
    done = job.run(
        INIT + "print('captured'); ranklog.close(5); print('not captured')\n"
        "ranklog.init(run='r', capture='fd'); print('captured again')"
    )

    assert done.stdout == b"captured\nnot captured\ncaptured again\n"
    assert sorted(job.texts()) == ["captured", "captured again"]


def test_what_was_closed_before_is_captured_all_the_same(job: Job) -> None:
    job.run(
        "import os; os.close(1); os.close(2)\n" + INIT + "os.write(1, b'out\\n')\n"
        "os.write(2, b'err\\n')\n"
        "logging.info('a line')"
    )

    assert job.texts() == ["out"]
    assert [text for text in job.texts("stderr") if not text.startswith("ranklog:")] == ["err"]
    assert job.texts("logging") == ["a line"]


def test_what_is_printed_while_python_ends_is_captured_still(job: Job) -> None:
    job.run(
        "import atexit\n"
        "atexit.register(lambda: print('the last word'))\n" + INIT + "print('nearly')"
    )

    assert job.texts() == ["nearly", "the last word"]
