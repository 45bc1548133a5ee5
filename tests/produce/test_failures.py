"""The table of what is promised when something fails: which test proves each row, and those of the
process's own side that stand nowhere else.
"""

from __future__ import annotations

import ast
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ranklog
from ranklog.agent.collector import Collector
from ranklog.produce import spool
from ranklog.stream.disk import DiskStream
from tests.agent.reading import Seen, lines_in, streams_in

TESTS = Path(__file__).parents[1]
PACKAGE = str(Path(ranklog.__file__).parents[1])
WAIT_S = 30.0
# What a busy machine takes to start a Python.
START_S = 4.0

# Row of the promise -> tests (file: names) that prove it.
PROVEN = {
    "network or server down": {
        "agent/test_failures.py": [
            "test_a_server_that_is_busy_for_minutes_is_asked_seldom_and_then_gets_everything_once",
            "test_while_nothing_can_be_sent_reading_goes_on_and_rings_are_freed",
            "test_a_reset_connection_is_tried_again",
            "test_sigterm_ends_an_agent_whose_destination_is_a_black_hole",
        ],
        "produce/test_session.py": [
            "test_a_destination_that_is_down_costs_the_job_five_seconds_at_most"
        ],
    },
    "a frame is refused for good": {
        "agent/test_refused.py": [
            "test_a_refused_frame_is_kept_with_its_reason_and_holds_up_nothing",
            "test_who_waits_is_told_how_many_of_his_lines_were_refused",
            "test_a_reader_sees_that_lines_are_missing_until_they_are_replayed",
            "test_what_can_not_be_kept_is_told_as_dropped_by_its_stream",
        ],
    },
    "much at once": {
        "produce/test_load.py": [
            "test_a_burst_of_a_hundred_thousand_lines_is_all_there_in_order",
            "test_sixty_four_threads_at_once_lose_nothing_and_keep_their_order",
            "test_eight_ranks_share_the_tmpfs_of_a_container_and_none_dies_of_it",
        ],
    },
    "rank killed in any way": {
        "produce/test_session.py": [
            "test_nothing_written_is_lost_however_the_process_ends",
            "test_killed_from_outside_amid_logging_every_line_that_was_confirmed_is_there",
        ],
        "produce/test_capture.py": ["test_last_words_are_stored_and_shown_however_the_process_ends"],
        "produce/test_ring.py": [
            "test_a_writer_killed_amid_a_record_leaves_every_one_it_had_put"
        ],
        "agent/test_endings.py": ["test_all_that_a_process_announced_ends_as_its_parent_told"],
    },
    "agent dies": {
        "agent/test_failures.py": [
            "test_an_agent_that_is_killed_again_and_again_loses_nothing_and_doubles_nothing",
            "test_killed_between_any_two_writes_the_next_agent_sends_the_same_lines",
            "test_a_stopped_agent_holds_nobody_up_and_goes_on",
        ],
        "launch/test_run.py": ["test_the_console_lives_on_when_the_agent_is_killed"],
        "produce/test_failures.py": [
            "test_a_killed_agent_has_a_successor_in_two_seconds_though_ranks_start_none",
            "test_under_ranklog_run_a_killed_agent_has_a_successor_in_two_seconds",
            "test_a_rank_whose_agent_was_killed_delivers_all_with_the_next",
        ],
    },
    "agent killed together with the job, spool left": {
        "agent/test_failures.py": ["test_a_left_over_spool_is_replayed_frame_by_frame"],
        "produce/test_failures.py": ["test_what_a_killed_node_s_spool_holds_the_next_job_s_agent_sends"],
    },
    "node, pod or spool lost before sending": {
        "answer/test_completeness.py": [
            "test_ranks_of_the_world_that_never_appeared_are_absent"
        ],
        "client/test_manifests.py": ["test_a_declared_rank_that_never_logged_is_absent"],
    },
    "ring full": {
        "produce/test_ring.py": ["test_a_full_ring_refuses_and_keeps_a_reserve_for_warnings"],
        "produce/test_failures.py": ["test_a_full_ring_drops_new_lines_counts_them_and_keeps_warnings"],
        "produce/test_walk.py": ["test_with_the_ring_full_and_nobody_to_read_it"],
    },
    "disk full or quota": {
        "agent/test_failures.py": [
            "test_on_a_full_disk_what_is_there_is_sent_and_the_log_goes_on_in_its_room",
            "test_without_room_and_without_network_the_least_missed_goes_and_is_told",
        ],
        "produce/test_session.py": ["test_nothing_raises_when_there_is_room_for_nothing"],
        "produce/test_capture.py": ["test_print_does_not_fail_when_the_file_can_grow_no_more"],
        "produce/test_failures.py": ["test_on_a_full_disk_the_rank_lives_and_prints_and_nothing_is_a_bus_error"],
        "produce/test_walk.py": ["test_with_the_disk_full"],
    },
    "SIGTERM": {
        "agent/test_failures.py": [
            "test_a_termination_sends_errors_and_ends_first_and_is_done_in_time"
        ],
        "produce/test_capture.py": ["test_a_rank_that_hangs_tells_its_line_when_it_is_told_to_end"],
    },
    "exit": {
        "produce/test_failures.py": ["test_an_exit_waits_for_a_stopped_agent_five_seconds_at_most"],
    },
    "fork": {
        "produce/test_session.py": [
            "test_forked_children_have_streams_of_their_own",
            "test_a_fork_amid_logging_threads_does_not_hang_the_child",
        ],
        "produce/test_failures.py": ["test_a_storm_of_forks_loses_no_line_and_hangs_nobody"],
        "produce/test_surroundings.py": ["test_a_data_loaders_child_is_a_worker_of_its_rank"],
    },
    "a bug of ours": {
        "produce/test_failures.py": ["test_a_bug_of_ours_is_told_once_and_never_an_exception_in_training"],
    },
}  # fmt: skip


@pytest.mark.parametrize("row", PROVEN)
def test_every_row_has_tests_that_are_there(row: str) -> None:
    for file, names in PROVEN[row].items():
        tree = ast.parse((TESTS / file).read_text())
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert set(names) <= defined, file


class Job:
    """Programs that log into one spool."""

    def __init__(self, tmp_path: Path) -> None:
        self.spool = tmp_path / "spool"
        self.stream = tmp_path / "stream"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "SLURM"))}
        self.environ = kept | {"PYTHONPATH": PACKAGE, "RANKLOG_SPOOL": str(self.spool)}

    def start(self, program: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-u", "-c", program],
            env=self.environ | environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, **environ: str) -> tuple[int, str, str]:
        process = self.start(program, **environ)
        out, errors = process.communicate(timeout=2 * WAIT_S)
        return process.returncode, out, errors

    def collect(self) -> list[Seen]:
        Collector(self.spool, DiskStream(self.stream, sync=False)).finish(10.0)
        return [line for line in lines_in(self.stream) if line.channel != "agent"]

    def agent_pid(self, but: int = 0) -> int:
        """The agent that works on the spool, other than one that was."""

        def found() -> int:
            with contextlib.suppress(OSError, ValueError):
                pid = int((self.spool / "collector.lock").read_text())
                if pid > 1 and pid != but and spool.has_collector(self.spool):
                    return pid
            return 0

        wait_until(lambda: found() != 0)
        return found()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    one = Job(tmp_path)
    yield one
    if one.spool.is_dir() and spool.has_collector(one.spool):  # stopped, maybe
        os.kill(one.agent_pid(), signal.SIGKILL)


def wait_until(met: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    ends = time.monotonic() + timeout_s
    while not met():
        assert time.monotonic() < ends, "did not come to pass"
        time.sleep(0.02)


# --- ring and disk --------------------------------------------------------------------------------
def test_a_full_ring_drops_new_lines_counts_them_and_keeps_warnings(job: Job) -> None:
    code, out, _ = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "for n in range(10_000): logging.info('info %d %s', n, 'x' * 150)\n"
        "for n in range(50): logging.warning('warning %d', n)\n"
        "print('trained')",
        RANKLOG_RING_MIB="1",
        RANKLOG_LAUNCHED="1",
    )
    texts = [line.text for line in job.collect()]
    infos = [text for text in texts if text.startswith("info")]
    dropped = Counter[str]()
    for entry in streams_in(job.stream):
        for drop in entry.drops:
            dropped[drop.reason] += drop.lines

    assert (code, out) == (0, "trained\n")
    assert [text.split()[1] for text in infos] == [str(n) for n in range(len(infos))]
    assert 0 < len(infos) < 10_000
    assert [text for text in texts if text.startswith("warning")] == [
        f"warning {n}" for n in range(50)
    ]
    assert sum(dropped.values()) == 10_000 - len(infos)
    assert all(reason.startswith("ring full") for reason in dropped)


def test_on_a_full_disk_the_rank_lives_and_prints_and_nothing_is_a_bus_error(
    job: Job, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting is not for us")
    job.spool = small
    try:
        code, out, errors = job.run(
            "import ranklog, logging, os\n"
            "ranklog.init(run='r', capture='fd')\n"
            "logging.info('before')\n"
            "for n in range(200): print('x' * 100_000)\n"
            "for n in range(2000): logging.info('line %d %s', n, 'x' * 1000)\n"
            "ranklog.context(shard=3); ranklog.log('after'); ranklog.attach('/etc/hostname')\n"
            "print('trained')\n",
            RANKLOG_SPOOL=str(small),
            RANKLOG_RINGS=str(small / "rings"),
            RANKLOG_LAUNCHED="1",
        )
        # An agent would need room for its log: it gets some elsewhere.
        job.spool = shutil.copytree(small, tmp_path / "spool")
        texts = [line.text for line in job.collect() if line.channel == "logging"]
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)

    assert code == 0, errors
    assert out.endswith("trained\n")
    assert texts[0] == "before"
    assert [text for text in texts if text.startswith("output goes to the console alone")]
    assert "line 0 " + "x" * 1000 in texts
    assert "Traceback" not in errors


# --- the agent ------------------------------------------------------------------------------------
def test_a_rank_whose_agent_was_killed_delivers_all_with_the_next(job: Job) -> None:
    process = job.start(
        "import ranklog, logging, sys\n"
        "ranklog.init(run='r')\n"
        "for n in range(3):\n"
        "    for k in range(100): logging.info('line %d', 100 * n + k)\n"
        "    print('ready'); input()\n"
        "print(ranklog.flush(20))\n",
        RANKLOG_DESTINATION=str(job.stream),
    )
    assert process.stdin is not None and process.stdout is not None
    for _ in range(3):
        assert process.stdout.readline() == "ready\n"
        if spool.has_collector(job.spool):  # nobody starts another before `flush`
            os.kill(job.agent_pid(), signal.SIGKILL)
        process.stdin.write("\n")
        process.stdin.flush()
    out, errors = process.communicate(timeout=60)

    assert (process.returncode, out) == (0, "0\n"), errors
    seen = Counter(
        (line.seq, line.text) for line in lines_in(job.stream) if line.channel == "logging"
    )
    assert [text for _, text in sorted(seen)] == [f"line {n}" for n in range(300)]


def test_a_killed_agent_has_a_successor_in_two_seconds_though_ranks_start_none(job: Job) -> None:
    process = job.start(
        "import ranklog\nranklog.init(run='r'); ranklog.log('a'); print('ready'); input()",
        RANKLOG_DESTINATION=str(job.stream),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    first = job.agent_pid()
    os.kill(first, signal.SIGKILL)
    killed = time.monotonic()
    job.agent_pid(but=first)
    took_s = time.monotonic() - killed
    process.communicate("\n", timeout=60)

    assert took_s < 2.0 + START_S


def test_under_ranklog_run_a_killed_agent_has_a_successor_in_two_seconds(job: Job) -> None:
    command = [sys.executable, "-m", "ranklog.cli.main", "run", "--destination", str(job.stream)]
    program = "print('one'); input(); print('two')"
    process = subprocess.Popen(
        [*command, "--spool", str(job.spool), "--", sys.executable, "-u", "-c", program],
        env=job.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    first = job.agent_pid()
    os.kill(first, signal.SIGKILL)
    killed = time.monotonic()
    job.agent_pid(but=first)
    took_s = time.monotonic() - killed
    out, _ = process.communicate("\n", timeout=60)

    assert (process.returncode, out) == (0, "one\ntwo\n")
    assert took_s < 2.0 + START_S
    wait_until(lambda: len([x for x in lines_in(job.stream) if x.channel == "stdout"]) == 2)


def test_what_a_killed_node_s_spool_holds_the_next_job_s_agent_sends(job: Job) -> None:
    process = job.start(
        "import ranklog, logging\n"
        "ranklog.init(run='first')\n"
        "for n in range(500): logging.info('line %d', n)\n"
        "print('ready'); input()\n",
        RANKLOG_DESTINATION=str(job.stream),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(job.agent_pid(), signal.SIGKILL)
    process.kill()
    process.communicate(timeout=30)
    code, out, _ = job.run(
        "import ranklog\nranklog.init(run='second'); ranklog.log('b'); print(ranklog.flush(20))",
        RANKLOG_DESTINATION=str(job.stream),
    )

    assert (code, out) == (0, "0\n")

    def texts() -> set[str]:
        return {line.text for line in lines_in(job.stream) if line.channel == "logging"}

    wait_until(lambda: texts() == {"b", *(f"line {n}" for n in range(500))})


def test_an_exit_waits_for_a_stopped_agent_five_seconds_at_most(job: Job) -> None:
    process = job.start(
        "import ranklog, time\n"
        "ranklog.init(run='r'); ranklog.log('a')\n"
        "print('ready'); input()\n"
        "start = time.monotonic()\n"
        "import atexit; atexit.register(lambda: None)\n",
        RANKLOG_DESTINATION=str(job.stream),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(job.agent_pid(), signal.SIGSTOP)
    start = time.monotonic()
    process.communicate("\n", timeout=60)

    assert process.returncode == 0
    assert time.monotonic() - start < 5.0 + 5.0  # and what a busy machine adds


# --- fork -----------------------------------------------------------------------------------------
def test_a_storm_of_forks_loses_no_line_and_hangs_nobody(job: Job) -> None:
    code, out, errors = job.run(
        "import ranklog, logging, os, threading\n"
        "ranklog.init(run='r', rank=0)\n"
        "stop = threading.Event()\n"
        "def busy():\n"
        "    while not stop.wait(0.001): logging.debug('never'); ranklog.context(a=1).close()\n"
        "threads = [threading.Thread(target=busy) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for n in range(40):\n"
        "    if not os.fork():\n"
        "        logging.info('child %d', n); os._exit(0)\n"
        "for _ in range(40): os.wait()\n"
        "stop.set()\n"
        "for thread in threads: thread.join()\n"
        "logging.info('parent'); print('trained')",
        PYTHONWARNINGS="ignore",
        RANKLOG_LAUNCHED="1",
    )
    lines = job.collect()

    assert (code, out) == (0, "trained\n"), errors
    assert Counter(line.text for line in lines) == Counter(
        ["parent", *(f"child {n}" for n in range(40))]
    )
    children = [line for line in lines if line.text.startswith("child")]
    assert len({line.incarnation for line in children}) == 40
    assert {line.rank for line in lines} == {0}
    assert {dict(line.metadata).get("role") for line in children} == {"worker"}


# --- bugs of ours ---------------------------------------------------------------------------------
def test_a_bug_of_ours_is_told_once_and_never_an_exception_in_training(job: Job) -> None:
    code, out, errors = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "from ranklog.produce import session, producer, trouble\n"
        "def broken(*words, **more): raise RuntimeError('ours')\n"
        "for name in ('emit', 'line', 'call', 'call_at', 'site_number', 'telemetry'):\n"
        "    if hasattr(producer.Producer, name): setattr(producer.Producer, name, broken)\n"
        "for n in range(5):\n"
        "    ranklog.log('a'); ranklog.log('b', loss=1.5); ranklog.telemetry({'loss': 1.0})\n"
        "    ranklog.attach('/x'); logging.error('c', extra={'k': 1})\n"
        "print('trained', trouble.counts['internal'] >= 5)",
        RANKLOG_LAUNCHED="1",
    )

    assert (code, out) == (0, "trained True\n"), errors
    assert errors.count("ranklog: error while") == 1
    assert "Traceback" not in errors
