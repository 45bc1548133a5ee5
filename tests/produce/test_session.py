"""`ranklog.init` in real processes: what they log arrives, however they end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

import ranklog
from ranklog.agent.collector import Collector
from ranklog.model.frame import StreamEnd
from ranklog.model.names import fitting
from ranklog.produce import spool
from ranklog.stream.disk import DiskStream
from tests.agent.reading import Seen, lines_in, streams_in
from tests.servers import answering

PACKAGE = str(Path(ranklog.__file__).parents[1])


class Job:
    """Runs programs that log into one spool, and collects what they said."""

    def __init__(self, tmp_path: Path) -> None:
        self.spool = tmp_path / "spool"
        self.stream = tmp_path / "stream"
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("RANK", "SLURM"))},
            "PYTHONPATH": PACKAGE,
            "RANKLOG_SPOOL": str(self.spool),
            **{
                k: v
                for k, v in os.environ.items()
                if k.startswith(("RANKLOG_RING", "RANKLOG_COMPILED"))
            },
        }

    def run(self, program: str, **environ: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        # Most of these jobs send nothing, and are told so: once.
        note = [x for x in done.stderr.splitlines(True) if x.startswith("ranklog: no destination")]
        assert len(note) <= 1
        done.stderr = done.stderr.replace("".join(note), "")
        return done

    def collect(self) -> list[Seen]:
        Collector(self.spool, DiskStream(self.stream, sync=False)).finish(5.0)
        return [line for line in lines_in(self.stream) if line.channel != "agent"]

    def texts(self, channel: str = "logging") -> list[str]:
        return [line.text for line in self.collect() if line.channel == channel]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_importing_and_starting_pulls_in_nothing_heavy(job: Job) -> None:
    done = job.run(
        "import sys, time; start = time.perf_counter(); import ranklog\n"
        "took = time.perf_counter() - start\n"
        "ranklog.init(run='r')\n"
        "import logging; logging.info('x'); ranklog.flush(0)\n"
        "print(sorted({'boto3', 'pyarrow', 'duckdb', 'pydantic', 'numpy', 'urllib.request',"
        " 'argparse'} & set(sys.modules)))\n"
        "print(f'import ranklog: {1000 * took:.1f} ms', file=sys.stderr)"
    )

    assert (done.returncode, done.stdout) == (0, "[]\n")
    print(done.stderr)


def test_importing_alone_pulls_in_next_to_nothing(job: Job) -> None:
    done = job.run(
        "import sys; before = set(sys.modules); import ranklog\n"
        "print(sorted(n for n in set(sys.modules) - before if not n.startswith('importlib')))"
    )

    assert done.stdout == "['__future__', 'ranklog', 'ranklog._version']\n"


def test_the_public_names_are_these() -> None:
    assert sorted(ranklog.__all__) == dir(ranklog)
    assert set(ranklog.__all__) >= {"init", "context", "iteration", "phase", "flush", "Client"}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ranklog.nothing


def test_a_program_that_only_adds_init_is_logged(job: Job) -> None:
    done = job.run(
        "import ranklog, logging, warnings\n"
        "ranklog.init(run='r', metadata={'config': 'c4'})\n"
        "logging.getLogger('lib').info('from a library')\n"
        "ranklog.iteration(3)\n"
        "with ranklog.phase('eval'): ranklog.log('direct', 'warn', loss=2.5)\n"
        "warnings.warn('old')\n"
        "raise RuntimeError('the end')",
        RANK="3",
        WORLD_SIZE="8",
    )

    lines = job.collect()
    assert done.returncode == 1
    assert done.stderr.count("RuntimeError: the end") == 1  # the console is as it was
    assert [(x.text, x.level, x.rank, x.iteration) for x in lines[:3]] == [
        ("from a library", 20, 3, None),
        ("direct", 30, 3, 3),
        ("UserWarning: old", 30, 3, 3),
    ]
    assert lines[1].metadata == (("config", "c4"), ("loss", 2.5), ("phase", "eval"))
    assert lines[1].site == "<string>:5"
    group = [x for x in lines if x.level == 50]
    assert group[0].text == "uncaught exception: RuntimeError: the end"
    assert group[-1].text == "RuntimeError: the end"
    assert {x.group for x in group} == {3}


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(3)", "os.abort()"])
def test_nothing_written_is_lost_however_the_process_ends(job: Job, end: str) -> None:
    job.run(
        "import ranklog, logging, os\n"
        "ranklog.init(run='r', capture='fd')\n"
        "for n in range(500): logging.info('line %d', n)\n"
        f"print('printed'); os.write(1, b'raw'); {end}"
    )

    assert job.texts() == [f"line {n}" for n in range(500)]
    assert [x.text for x in lines_in(job.stream) if x.channel == "stdout"] == ["printed", "raw"]


def test_what_is_logged_while_python_ends_is_taken_still(job: Job) -> None:
    job.run(
        "import atexit, logging\n"
        "log = logging.getLogger('late')\n"
        "atexit.register(lambda: log.info('registered before init'))\n"
        "import ranklog\n"
        "ranklog.init(run='r')\n"
        "class Held:\n"
        "    def __init__(self, name): self.name, self.log = name, log\n"
        "    def __del__(self):\n"
        "        self.log.info('destroyed %s', self.name)\n"
        "        raise ValueError('in a destructor')\n"
        "one = Held('of the program')\n"
        "log.info('the last line')\n"
    )

    lines = [line for line in job.collect() if not line.text.startswith(" ")]
    assert [line.text for line in lines if line.level == 20] == [
        "the last line",
        "registered before init",
        "destroyed of the program",
    ]
    assert lines[-1].text == "ValueError: in a destructor"


def test_a_process_without_descriptors_for_its_output_has_none_of_it_in_our_files(
    job: Job,
) -> None:
    job.run(
        "import os\n"
        "for fd in range(3): os.close(fd)\n"
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "for fd in range(3):\n"
        "    try: os.write(fd, b'stray')\n"
        "    except OSError as error: logging.info('%d: %s', fd, error.strerror)\n"
    )

    assert job.texts() == [f"{fd}: Bad file descriptor" for fd in range(3)]


def test_a_line_whose_words_can_not_be_read_is_a_line_still(job: Job) -> None:
    job.run(
        "import logging, ranklog\n"
        "class Wild:\n"
        "    def __str__(self): raise RuntimeError('no words')\n"
        "    __repr__ = __str__\n"
        "ranklog.init(run='r')\n"
        "logging.info(Wild())\n"
        "logging.info('it is %s', Wild())\n"
        "logging.info('it is %s', Wild(), extra={'at': 1})\n"
        "logging.info(Wild(), extra={'at': 1})\n"
        "ranklog.log(Wild(), at=1)\n"
    )

    wild, unfilled = "<Wild>", "it is %s <tuple> (not formatted: RuntimeError('no words'))"
    assert job.texts() == [wild, unfilled, unfilled, wild, wild]


def test_killed_from_outside_amid_logging_every_line_that_was_confirmed_is_there(job: Job) -> None:
    program = (
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "n = 0\n"
        "while True:\n"
        "    logging.info('line %d', n); print(n, flush=True); n += 1"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], env=job.environ, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    for _ in range(200):
        confirmed = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    child.communicate()

    texts = job.texts()
    assert texts == [f"line {n}" for n in range(len(texts))]
    assert len(texts) > confirmed


def test_threads_that_are_ranks_stamp_their_lines_whatever_library_logs(job: Job) -> None:
    job.run(
        "import ranklog, logging, threading\n"
        "ranklog.init(run='r')\n"
        "def rank(n):\n"
        "    ranklog.context(rank=n)\n"
        "    for i in range(50):\n"
        "        ranklog.iteration(i)\n"
        "        logging.getLogger('lib').info('rank %d iteration %d', n, i)\n"
        "threads = [threading.Thread(target=rank, args=(n,)) for n in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "logging.info('main')",
        RANK="0",
    )

    lines = job.collect()
    assert len(lines) == 401
    assert lines[-1].rank == 0
    for line in lines[:-1]:
        assert line.text == f"rank {line.rank} iteration {line.iteration}"


def test_an_exception_of_a_thread_is_logged_with_its_rank(job: Job) -> None:
    done = job.run(
        "import ranklog, threading\n"
        "ranklog.init(run='r')\n"
        "def work():\n    ranklog.context(rank=5)\n    raise ValueError('bad')\n"
        "t = threading.Thread(target=work, name='loader'); t.start(); t.join()"
    )

    first = job.collect()[0]
    expected = "uncaught exception in thread loader: ValueError: bad"
    assert (first.text, first.rank, first.level) == (expected, 5, 50)
    assert "ValueError: bad" in done.stderr


def test_forked_children_have_streams_of_their_own(job: Job) -> None:
    job.run(
        "import ranklog, logging, os\n"
        "ranklog.init(run='r')\n"
        "ranklog.context(dataset='c4')\n"
        "logging.info('parent')\n"
        "for n in range(3):\n"
        "    if os.fork() == 0:\n"
        "        logging.info('child %d', n); os._exit(0)\n"
        "for n in range(3): os.wait()\n"
        "logging.info('parent again')",
        RANK="2",
    )

    lines = job.collect()
    streams: dict[str, list[str]] = {x.incarnation: [] for x in lines}
    for x in lines:
        streams[x.incarnation].append(x.text)
    assert sorted(streams.values()) == [
        ["child 0"],
        ["child 1"],
        ["child 2"],
        ["parent", "parent again"],
    ]
    said = ("dataset", "c4")
    assert {(x.text.split()[0], x.rank, x.metadata) for x in lines} == {
        ("parent", 2, (said,)),
        ("child", 2, (said, ("role", "worker"))),
    }


def test_a_fork_amid_logging_threads_does_not_hang_the_child(job: Job) -> None:
    done = job.run(
        "import warnings; warnings.simplefilter('ignore')\n"
        "import ranklog, logging, os, threading\n"
        "ranklog.init(run='r')\n"
        "stop = threading.Event()\n"
        "def chat():\n"
        "    while not stop.is_set(): logging.info('chat')\n"
        "threads = [threading.Thread(target=chat) for _ in range(3)]\n"
        "[t.start() for t in threads]\n"
        "for n in range(20):\n"
        "    pid = os.fork()\n"
        "    if pid == 0: logging.info('child'); os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "stop.set(); [t.join() for t in threads]; print('ended')"
    )

    assert done.stdout == "ended\n"
    assert job.texts().count("child") == 20


def test_spawned_children_log_when_they_init(job: Job, tmp_path: Path) -> None:
    script = tmp_path / "spawning.py"
    script.write_text(
        "import ranklog, logging, multiprocessing\n"
        "ranklog.init(run='r')\n"
        "def work(n): logging.info('child %d', n)\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    children = [context.Process(target=work, args=(n,)) for n in range(2)]\n"
        "    [c.start() for c in children]; [c.join() for c in children]\n"
    )
    subprocess.run([sys.executable, str(script)], env=job.environ, check=True, timeout=60)

    assert sorted(job.texts()) == ["child 0", "child 1"]


def test_a_captured_record_is_not_stored_twice_and_is_still_on_the_console(job: Job) -> None:
    done = job.run(
        "import ranklog, logging, sys, warnings\n"
        "logging.basicConfig(level=logging.INFO, format='early %(message)s')\n"
        f"ranklog.init(run='r', capture='fd', destination={str(job.stream)!r})\n"
        "logging.warning('once')\n"
        "logging.getLogger().addHandler(logging.StreamHandler())\n"
        "logging.info('late handler')\n"
        "warnings.warn('a warning')\n"
        "print('printed'); print('to stderr', file=sys.stderr)\n"
        "raise ValueError('end')"
    )
    lines = lines_in(job.stream)

    assert [x.text for x in lines if x.channel == "stdout"] == ["printed"]
    assert [x.text for x in lines if x.channel == "stderr"] == ["to stderr"]
    logged = [x.text for x in lines if x.channel == "logging"]
    assert logged[:3] == ["once", "late handler", "UserWarning: a warning"]
    assert logged[-1] == "ValueError: end"
    assert done.stdout == "printed\n"
    for text in ("early once", "early late handler", "a warning", "to stderr", "ValueError: end"):
        assert text in done.stderr


def test_a_collector_of_its_own_delivers_and_cleans_up(job: Job) -> None:
    done = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "logging.info('a')\n"
        "print(ranklog.flush(10))",
        RANKLOG_DESTINATION=str(job.stream),
    )

    assert (done.stdout, done.stderr) == ("0\n", "")
    _wait_until(lambda: bool(streams_in(job.stream)[-1].end))
    logged = [x.text for x in lines_in(job.stream) if x.channel == "logging"]
    assert logged == ["a"]
    assert streams_in(job.stream)[-1].end == StreamEnd(1, 0)
    _wait_until(lambda: not [*job.spool.glob("*.process"), *job.spool.glob("*.defs")])
    assert [*Path(os.environ["RANKLOG_RINGS"]).glob("*/*.ring")] == []


def test_the_collector_is_no_child_that_a_job_could_meet(job: Job) -> None:
    done = job.run(
        "import ranklog, logging, os\n"
        "ranklog.init(run='r'); logging.info('a'); ranklog.flush(10)\n"
        "try: os.wait()\n"
        "except ChildProcessError: print('no child')",
        RANKLOG_DESTINATION=str(job.stream),
    )

    assert done.stdout == "no child\n"


def end_agents(job: Job) -> None:
    """Those that can deliver nothing would try for hours. A job asks for one up to three times; who comes
    late works when the first is gone."""
    lock, until = job.spool / "collector.lock", time.monotonic() + 4.0
    while time.monotonic() < until:
        if spool.has_collector(job.spool):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(lock.read_text()), signal.SIGKILL)
        time.sleep(0.05)


class Refusing(BaseHTTPRequestHandler):
    """An API that has no such key."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


def test_a_job_whose_destination_refuses_says_so_once(job: Job) -> None:
    with answering(Refusing) as url:
        done = job.run(
            "import ranklog, logging\n"
            "from ranklog.produce import trouble\n"
            "ranklog.init(run='r')\n"
            "for n in range(40):\n"
            "    logging.info('a')\n"
            "    ranklog.flush(0.5)\n"
            "    if trouble.counts['denied'] > 1: break\n"
            "ranklog.close(0)",
            RANKLOG_DESTINATION=url,
        )
    end_agents(job)

    [told] = done.stderr.splitlines()
    assert told.startswith("ranklog: the destination refuses, lines wait in ")
    assert "answered 403" in told


def test_a_destination_that_is_down_costs_the_job_five_seconds_at_most(job: Job) -> None:
    start = time.monotonic()
    done = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "logging.info('a')\n"
        "print(ranklog.flush(0.2), ranklog.close(0.2))",
        RANKLOG_DESTINATION="http://127.0.0.1:9",
    )
    took = time.monotonic() - start

    assert (done.returncode, done.stdout) == (0, "1 1\n")
    assert took < 20  # starts of two interpreters on a busy machine included
    end_agents(job)


@pytest.mark.parametrize(
    ("destination", "told"),
    [
        ("ftp://host", "of no known kind"),
        ("store:/proc/none", "/proc/none"),
        ("kinesis://", "named"),
    ],
)
def test_a_destination_that_can_not_be_is_told_and_not_waited_for(
    job: Job, destination: str, told: str
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import ranklog, logging, time\n"
            "ranklog.init(run='r'); logging.getLogger('x').info('x')\n"
            "began = time.monotonic(); print(ranklog.flush(30), time.monotonic() - began < 25)\n",
        ],
        env={**os.environ, **job.environ, "RANKLOG_DESTINATION": destination},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "1 True\n"
    assert told in done.stderr


def test_disabled_makes_every_call_a_no_op(job: Job) -> None:
    done = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r', capture='fd', destination='/nowhere')\n"
        "ranklog.context(rank=1); ranklog.iteration(2); ranklog.log('x')\n"
        "with ranklog.phase('p'): logging.getLogger('x').info('y')\n"
        "print(ranklog.flush(), ranklog.close(), logging.getLogger().handlers)",
        RANKLOG_DISABLED="1",
    )

    assert (done.stdout, done.stderr) == ("0 0 []\n", "")
    assert not job.spool.exists()


def test_init_twice_is_one_init_and_after_close_another(job: Job) -> None:
    job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r'); ranklog.init(run='other')\n"
        "logging.info('a'); ranklog.close(0); logging.getLogger('x').info('lost')\n"
        "ranklog.init(run='r')\n"
        "logging.info('b')"
    )

    lines = job.collect()
    assert sorted(x.text for x in lines) == ["a", "b"]
    assert len({x.incarnation for x in lines}) == 2
    assert {entry.stream.run for entry in streams_in(job.stream)} == {"r"}


def test_nothing_raises_when_the_spool_can_not_be(job: Job, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r'); logging.info('a'); ranklog.log('b'); ranklog.context(c=1)\n"
        "print(ranklog.flush(0), ranklog.close(0))",
        RANKLOG_SPOOL=str(tmp_path / "file" / "spool"),
    )

    assert (done.returncode, done.stdout) == (0, "0 0\n")
    assert done.stderr.count("ranklog: ") == 1


def test_a_full_disk_takes_nothing_from_a_process_that_has_a_ring(job: Job) -> None:
    done = job.run(
        "import ranklog, logging, resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "ranklog.init(run='r'); logging.info('before')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "for n in range(100): logging.info('line %d', n)\n"
        "ranklog.context(shard=3); logging.info('told'); logging.info('with', extra={'a': 'x' * 900})\n"
        "print('trained')"
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")
    lines = job.collect()
    assert [x.text for x in lines] == ["before", *(f"line {n}" for n in range(100)), "told", "with"]
    assert dict(lines[-1].metadata)["a"] == "x" * 900


@pytest.mark.parametrize("mib", [0.5, 1.5, 3])
def test_without_room_for_a_ring_a_smaller_one_is_made_and_at_last_a_file(
    job: Job, mib: float
) -> None:
    done = job.run(
        "import ranklog, logging, resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (int({mib} * 2**20),) * 2)\n"
        "ranklog.init(run='r')\n"
        "ranklog.context(shard=3)\n"
        "for n in range(100): logging.info('line %d', n)\n"
        "from ranklog.produce import session\n"
        "ring = session._session.producer.ring\n"
        "print(ring and ring.path.stat().st_size - 4096)",
        RANKLOG_RING_MIB="8",
    )

    sizes = {0.5: "None\n", 1.5: f"{2**20}\n", 3: f"{2 * 2**20}\n"}
    assert (done.returncode, done.stdout) == (0, sizes[mib])
    assert done.stderr.count("ranklog: no room for a ring") == (mib < 1)
    lines = job.collect()
    assert [x.text for x in lines] == [f"line {n}" for n in range(100)]
    assert {x.metadata for x in lines} == {(("shard", 3),)}


def test_nothing_raises_when_there_is_room_for_nothing(job: Job) -> None:
    done = job.run(
        "import ranklog, logging, resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "ranklog.init(run='r'); logging.info('before')\n"
        "for n in range(400): logging.info('line %d', n)\n"
        "ranklog.telemetry({'loss': 1.5})\n"
        "print('trained')"
    )

    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert done.stderr.count("ranklog: lines are dropped and counted: disk full") == 1
    texts = job.texts()
    assert texts == ["before", *(f"line {n}" for n in range(len(texts) - 1))]


def test_handlers_of_the_user_and_basicconfig_work_as_without_ranklog(job: Job) -> None:
    done = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "logging.basicConfig(level=logging.INFO, format='console %(message)s')\n"
        "logging.info('a')"
    )

    assert done.stderr == "console a\n"
    assert job.texts() == ["a"]


def test_warnings_still_reach_a_console_that_nobody_configured(job: Job) -> None:
    done = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "logging.info('quiet'); logging.warning('loud')"
    )

    assert done.stderr == "loud\n"
    assert job.texts() == ["quiet", "loud"]


def test_a_log_in_a_signal_handler_amid_a_log_does_not_hang(job: Job) -> None:
    done = job.run(
        "import ranklog, logging, signal, time\n"
        "ranklog.init(run='r')\n"
        "signal.signal(signal.SIGALRM, lambda *_: logging.info('alarm'))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\n"
        "end = time.monotonic() + 0.5\n"
        "while time.monotonic() < end: logging.info('main')\n"
        "signal.setitimer(signal.ITIMER_REAL, 0); print('ended')"
    )

    assert done.stdout == "ended\n"
    assert {"alarm", "main"} == set(job.texts())


def _wait_until(condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "did not come to pass"
        time.sleep(0.05)


def test_a_run_whose_name_is_too_long_is_told_by_which_name_to_ask_for_it(job: Job) -> None:
    name = "lr=1e-4," * 40
    done = job.run(f"import logging, ranklog; ranklog.init(run={name!r}); logging.warning('said')")
    assert "ranklog: no key takes the run's name, so it is called" in done.stderr
    assert [line.text for line in job.collect()] == ["said"]
    assert {entry.stream.run for entry in streams_in(job.stream)} == {fitting(name)}
