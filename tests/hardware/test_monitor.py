"""`ranklog.monitor` in a process, and `ranklog run --monitor` beside one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ranklog
from ranklog.client import Client
from ranklog.hardware import monitor as monitoring
from ranklog.hardware.monitor import Monitor
from ranklog.hardware.readings import Reading
from ranklog.produce import context, trouble
from tests.produce.test_session import Job


class Fixed:
    def __init__(self, *readings: Reading) -> None:
        self.readings = readings
        self.read_once = threading.Event()

    def read(self, now_ns: int) -> Iterator[Reading]:
        self.read_once.set()
        yield from self.readings


class Broken:
    def read(self, now_ns: int) -> Iterator[Reading]:
        raise OSError("sensor gone")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Any:
    found: list[tuple[dict[str, Any], dict[str, Any], int | None]] = []

    def telemetry(values: Any, /, **dims: Any) -> None:
        found.append((dict(values), dims, context.current().rank))

    monkeypatch.setattr(monitoring, "telemetry", telemetry)
    context.reset()
    trouble.counts.clear()
    return found


def test_readings_of_the_host_are_nobodys_rank_and_those_of_the_process_its_own(
    written: list[Any],
) -> None:
    own, hosts = Reading({"process.threads": 3}), Reading({"host.load_1m": 1.0}, {"disk": "sda"})

    Monitor([Fixed(own)], [Fixed(hosts)], 1).look(0)

    assert written == [
        ({"process.threads": 3}, {}, context.STREAM_RANK),
        ({"host.load_1m": 1.0}, {"disk": "sda"}, None),
    ]


def test_a_source_that_fails_is_told_once_and_the_others_go_on(
    written: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    monitor = Monitor([Broken(), Fixed(Reading({"x": 1}))], [], 1)
    monitor.look(0)
    monitor.look(1)

    assert [values for values, *_ in written] == [{"x": 1}, {"x": 1}]
    assert capfd.readouterr().err.count("sensor gone") == 1


def test_it_reads_at_once_and_ends_when_it_is_closed(written: list[Any]) -> None:
    source = Fixed(Reading({"x": 1}))
    with Monitor([source], [], 3600) as monitor:
        monitor.start()
        assert source.read_once.wait(10)

    assert not monitor._thread.is_alive()


def test_without_psutil_it_says_so_and_the_job_goes_on(tmp_path: Path) -> None:
    job = Job(tmp_path)
    done = job.run(
        "import ranklog, sys\n"
        "sys.modules['psutil'] = None\n"
        "ranklog.init(run='r')\n"
        "ranklog.monitor().close()\n"
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert any("ranklog[monitor]" in line.text for line in job.collect())


def test_before_init_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "sources", None)  # calling it would be told

    monitoring.monitor().close()

    assert monitoring._running is None


def test_a_process_that_is_monitored_has_its_points(tmp_path: Path) -> None:
    job = Job(tmp_path)
    done = job.run(
        "import ranklog, time\n"
        "ranklog.init(run='r')\n"
        "with ranklog.monitor(every_s=0.1) as first:\n"
        "    assert ranklog.monitor() is first\n"
        "    time.sleep(0.5)\n",
        RANK="1",
        LOCAL_RANK="1",
    )

    assert (done.returncode, done.stderr) == (0, "")
    text = "\n".join(f"{x.rank} {x.text}" for x in job.collect() if x.channel == "telemetry")
    assert "1 process.memory_bytes=" in text
    assert "process.cpu_percent=" in text
    assert "host." not in text  # local rank 0's to tell


def test_a_command_is_monitored_from_beside_it(tmp_path: Path) -> None:
    store = tmp_path / "store"
    command = [sys.executable, "-m", "ranklog.cli.main", "run", "--monitor", "--store", str(store)]
    environ = {key: value for key, value in os.environ.items() if "RANK" not in key}
    environ["PYTHONPATH"] = str(Path(ranklog.__file__).parents[1])
    done = subprocess.run(
        [*command, "--run", "r", "--spool", str(tmp_path / "spool"), "--", "sleep", "1"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    with Client(store=str(store)) as client:
        answer = client.series("host.*", run="r")
        (run,) = client.runs(run="r").rows
    assert "host.memory_used_bytes" in {one.name for one in answer}
    assert {one.rank for one in answer} == {None}
    assert (run["state"], run["ranks"]) == ("finished", [])
