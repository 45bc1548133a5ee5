"""Readings of the host and of the process, from files like the kernel's and from this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from ranklog.hardware.host import Host
from ranklog.hardware.process import Process
from ranklog.hardware.readings import Rates, Reading

SECOND = 1_000_000_000


class Machine:
    """psutil of a machine whose counters we turn."""

    def __init__(self) -> None:
        self.user, self.idle, self.iowait = 0.0, 0.0, 0.0
        self.read_bytes = self.received = 0

    def cpu_times(self) -> Any:
        fields = {"user": self.user, "idle": self.idle, "iowait": self.iowait, "guest": self.user}
        return SimpleNamespace(_fields=tuple(fields), **fields)

    def getloadavg(self) -> tuple[float, float, float]:
        return 1.5, 1.0, 0.5

    def virtual_memory(self) -> Any:
        return SimpleNamespace(total=100, available=25, percent=75.0)

    def swap_memory(self) -> Any:
        return SimpleNamespace(used=7)

    def disk_io_counters(self, perdisk: bool) -> Any:
        counters = SimpleNamespace(
            read_bytes=self.read_bytes, write_bytes=0, read_count=0, write_count=0
        )
        return {"sda": counters, "loop0": counters}

    def disk_partitions(self) -> Any:
        return [SimpleNamespace(mountpoint="/"), SimpleNamespace(mountpoint="/gone")]

    def disk_usage(self, mount: str) -> Any:
        if mount == "/gone":
            raise OSError(mount)
        return SimpleNamespace(percent=40.0)

    def net_io_counters(self, pernic: bool) -> Any:
        counters = SimpleNamespace(
            bytes_recv=self.received, bytes_sent=0, errin=0, errout=0, dropin=0, dropout=0
        )
        return {"eth0": counters, "lo": counters}


def _flat(readings: Iterable[Reading]) -> dict[str, float | None]:
    return {
        name + "".join(f" {key}={word}" for key, word in reading.dims.items()): value
        for reading in readings
        for name, value in reading.values.items()
    }


def test_rates_are_per_second_since_the_last_look(tmp_path: Path) -> None:
    machine = Machine()
    host = Host(machine, tmp_path)
    list(host.read(0))
    machine.user, machine.idle, machine.iowait = 3.0, 6.0, 1.0
    machine.read_bytes, machine.received = 4096, 1000

    found = _flat(host.read(2 * SECOND))

    assert found["host.cpu_percent"] == pytest.approx(30.0)
    assert found["host.io_wait_percent"] == pytest.approx(10.0)
    assert found["host.disk_read_bytes_per_s disk=sda"] == 2048
    assert found["host.net_receive_bytes_per_s device=eth0"] == 500
    assert found["host.memory_used_bytes"] == 75
    assert found["host.disk_used_percent mount=/"] == 40
    assert not any("loop0" in name or "=lo" in name or "/gone" in name for name in found)


def test_the_first_look_says_no_rate(tmp_path: Path) -> None:
    found = _flat(Host(Machine(), tmp_path).read(0))

    assert not any("per_s" in name or "cpu" in name for name in found)
    assert found["host.load_1m"] == 1.5


def test_a_counter_that_went_back_is_no_rate() -> None:
    rates = Rates()
    rates.of("x", 100, 0)

    assert rates.of("x", 40, SECOND) is None
    assert rates.of("x", 50, 2 * SECOND) == 10


def test_pressure_and_infiniband_are_read_where_the_kernel_has_them(tmp_path: Path) -> None:
    pressure = tmp_path / "proc/pressure"
    pressure.mkdir(parents=True)
    (pressure / "io").write_text(
        "some avg10=12.50 avg60=3.00 avg300=1.00 total=99\n"
        "full avg10=2.25 avg60=0.00 avg300=0.00 total=9\n"
    )
    counters = tmp_path / "sys/class/infiniband/mlx5_0/ports/1/counters"
    counters.mkdir(parents=True)
    (counters / "port_rcv_data").write_text("1000\n")
    (counters / "symbol_error").write_text("0\n")
    (counters / "link_downed").write_text("not a number\n")
    host = Host(Machine(), tmp_path)
    list(host.read(0))
    (counters / "port_rcv_data").write_text("1500\n")
    (counters / "symbol_error").write_text("4\n")

    found = _flat(host.read(2 * SECOND))

    assert found["host.pressure_some_percent resource=io"] == 12.5
    assert found["host.pressure_full_percent resource=io"] == 2.25
    assert found["host.ib_receive_bytes_per_s device=mlx5_0 port=1"] == 1000
    assert found["host.ib_symbol_errors_per_s device=mlx5_0 port=1"] == 2
    assert not any("link_downs" in name for name in found)


def test_this_machine_is_read() -> None:
    host = Host(psutil)
    list(host.read(0))
    found = _flat(host.read(SECOND))

    available = found["host.memory_available_bytes"]
    assert available is not None
    assert 0 < available <= psutil.virtual_memory().total
    assert "host.load_1m" in found


def test_the_process_is_read_and_a_torch_that_has_no_device_is_left_alone() -> None:
    torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))
    process = Process(psutil, lambda: torch)
    list(process.read(0))
    found = _flat(process.read(SECOND))

    assert set(found) == {
        "process.memory_bytes",
        "process.threads",
        "process.open_files",
        "process.cpu_percent",
    }
    open_files = found["process.open_files"]
    assert open_files is not None
    assert abs(open_files - len(os.listdir("/proc/self/fd"))) <= 2


def test_torchs_allocator_is_read_on_devices_it_has_memory_on() -> None:
    stats = [
        {
            "reserved_bytes.all.current": 200,
            "allocated_bytes.all.current": 50,
            "allocated_bytes.all.peak": 150,
            "num_alloc_retries": 3,
            "num_ooms": 1,
        },
        {},
    ]
    cuda = SimpleNamespace(
        is_initialized=lambda: True, device_count=lambda: 2, memory_stats=lambda n: stats[n]
    )

    found = _flat(Process(psutil, lambda: SimpleNamespace(cuda=cuda)).read(0))

    assert found["gpu.fragmentation_percent gpu=0"] == 75
    assert found["gpu.allocated_peak_bytes gpu=0"] == 150
    assert found["gpu.allocation_retries gpu=0"] == 3
    assert not any("gpu=1" in name for name in found)
