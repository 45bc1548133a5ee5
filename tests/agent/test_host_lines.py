"""Lines as kernel, Slurm, kubelet and NCCL write them."""

from __future__ import annotations

import time

import pytest

from ranklog.agent.host_lines import (
    HostLine,
    parse_klog,
    parse_kmsg,
    parse_nccl,
    parse_raw_kernel,
    parse_slurm,
)
from ranklog.model.frame import CallSite
from ranklog.model.levels import CRITICAL, DEBUG, ERROR, INFO, WARNING

BOOT = 1_700_000_000_000_000_000


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.parametrize(
    ("record", "sequence", "line"),
    [
        (
            b"4,812,5000001,-;NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n",
            812,
            HostLine(
                b"NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.",
                BOOT + 5_000_001_000,
                WARNING,
            ),
        ),
        (
            b"3,9,7,-;mlx5_core 0000:29:00.0 eth2: Link down\n SUBSYSTEM=pci\n DEVICE=+pci:0000:29:00.0\n",
            9,
            HostLine(
                b"mlx5_core 0000:29:00.0 eth2: Link down",
                BOOT + 7_000,
                ERROR,
                None,
                {"subsystem": "pci", "device": "+pci:0000:29:00.0"},
            ),
        ),
        (
            b"30,10,8,c;systemd[1]: a\\x1bb\\x0ac\n",
            10,
            HostLine(b"systemd[1]: a\x1bb c", BOOT + 8_000, INFO, None, {"facility": 3}),
        ),
        (b"0,1,0,-;panic\n", 1, HostLine(b"panic", BOOT, CRITICAL)),
        (b"7,1,0,-;\n", 1, HostLine(b"", BOOT, DEBUG)),
    ],
)
def test_a_record_of_the_kernel_has_level_and_time(
    record: bytes, sequence: int, line: HostLine
) -> None:
    assert parse_kmsg(record, BOOT) == (sequence, line)


def test_what_is_no_record_of_the_kernel_is_none() -> None:
    assert parse_kmsg(b"hello", BOOT) is None


def test_raw_lines_of_dmesg() -> None:
    assert parse_raw_kernel(b"<2>[   12.000345] Out of memory", BOOT) == HostLine(
        b"Out of memory", BOOT + 12_000_345_000, CRITICAL
    )
    assert parse_raw_kernel(b"plain", BOOT) == HostLine(b"plain")


MARCH = 1_772_348_400_000_000_000  # 2026-03-01T07:00:00Z


@pytest.mark.parametrize(
    ("line", "ts_ns", "level"),
    [
        (b"[2026-03-01T07:00:00.123] error: Node rebooted", MARCH + 123_000_000, ERROR),
        (b"[2026-03-01T07:00:00.000] [88.0] fatal: out", MARCH, CRITICAL),
        (b"[2026-03-01T07:00:00] launch task StepId=88.0", MARCH, INFO),
        (b"[2026-03-01T07:00:00.000] debug2: x", MARCH, DEBUG),
        (b"  continued", None, None),
    ],
)
def test_lines_of_slurm(line: bytes, ts_ns: int | None, level: int | None) -> None:
    assert parse_slurm(line, MARCH) == HostLine(line, ts_ns, level)


def test_lines_of_kubelet() -> None:
    line = b"E0301 07:00:00.000005    1234 pod_workers.go:951] Error syncing pod"
    site = CallSite("pod_workers.go:951")

    assert parse_klog(line, MARCH) == HostLine(line, MARCH + 5_000, ERROR, site)
    syslog = b"Mar  1 07:00:00 n0 kubelet[12]: " + line
    assert parse_klog(syslog, MARCH) == HostLine(syslog, MARCH + 5_000, ERROR, site)


def test_a_line_of_last_december_is_of_last_year() -> None:
    january = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
    line = parse_klog(b"W1231 23:59:59.000000 1 a.go:1] x", january)

    assert line.ts_ns == january - 1_000_000_000


@pytest.mark.parametrize(
    ("line", "level"),
    [
        (b"n0:12:34 [0] NCCL WARN Cuda failure 'out of memory'", WARNING),
        (b"n0:12:34 [0] NCCL INFO Bootstrap : Using eth0", INFO),
        (b"\n", None),
    ],
)
def test_lines_of_nccl(line: bytes, level: int | None) -> None:
    assert parse_nccl(line, 0) == HostLine(line, None, level)
