"""Lines of a host's own logs: level, time and call site of what kernel, Slurm, kubelet and NCCL write.

Pure but for the zone of times without one, which is the host's. A line that is none of these is a
line all the same, without a level.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.model.frame import CallSite
from ranklog.model.levels import CRITICAL, DEBUG, ERROR, INFO, WARNING

# By syslog priority: emergency, alert, critical, error, warning, notice, info, debug.
PRIORITIES = (CRITICAL, CRITICAL, CRITICAL, ERROR, WARNING, INFO, INFO, DEBUG)
_KMSG = re.compile(rb"(\d+),(\d+),(-?\d+),([^;]*);")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_RAW = re.compile(rb"<(\d+)>\[\s*(\d+)\.(\d{6})\] ?")
_SLURM = re.compile(
    rb"\[(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?\]\s+"
    rb"(?:\[[^\]]*\]\s+)?(fatal|error|warning|verbose|debug\d?)?"
)
_SLURM_LEVELS = {b"fatal": CRITICAL, b"error": ERROR, b"warning": WARNING}
_KLOG = re.compile(
    rb"(?:.*? kubelet(?:\[\d+\])?: )?([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})\s+\d+ "
    rb"([^\s:\]]+:\d+)\]"
)
_KLOG_LEVELS = {b"I": INFO, b"W": WARNING, b"E": ERROR, b"F": CRITICAL}
_NCCL = re.compile(rb"NCCL (WARN|INFO|TRACE|ABORT|VERSION)\b")
_NCCL_LEVELS = {b"WARN": WARNING, b"ABORT": ERROR, b"TRACE": DEBUG}


@dataclass(frozen=True, slots=True)
class HostLine:
    """What a line says of itself; `ts_ns` None where it has no time."""

    text: bytes
    ts_ns: int | None = None
    level: int | None = None
    site: CallSite | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


ParseLine = Callable[[bytes, int], HostLine]  # the line, and the time now in ns


def parse_kmsg(record: bytes, boot_ns: int) -> tuple[int, HostLine] | None:
    """(sequence number, line) of a record of /dev/kmsg; `boot_ns`: when its clock was 0."""
    head = _KMSG.match(record)
    if head is None:
        return None
    priority, sequence, micros = int(head[1]), int(head[2]), int(head[3])
    text, _, more = record[head.end() :].partition(b"\n")
    metadata: dict[str, Any] = {}
    for line in more.split(b"\n"):
        key, equals, value = line.strip().partition(b"=")
        if equals and key in (b"SUBSYSTEM", b"DEVICE"):
            metadata[key.decode().lower()] = _unescaped(value).decode("utf-8", "replace")
    if priority >> 3:  # from a program that writes to the kernel's log
        metadata["facility"] = priority >> 3
    ts_ns = boot_ns + micros * 1_000
    return sequence, HostLine(_unescaped(text), ts_ns, PRIORITIES[priority & 7], None, metadata)


def _unescaped(text: bytes) -> bytes:
    """Bytes that the kernel wrote as `\\x1b`; a line feed among them is a blank."""
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text).replace(b"\n", b" ")


def parse_raw_kernel(line: bytes, boot_ns: int) -> HostLine:
    """A line of `dmesg --raw`: `<4>[   12.345678] text`."""
    head = _RAW.match(line)
    if head is None:
        return HostLine(line)
    ts_ns = boot_ns + int(head[2]) * SECOND_NS + int(head[3]) * 1_000
    return HostLine(line[head.end() :], ts_ns, PRIORITIES[int(head[1]) & 7])


def parse_slurm(line: bytes, now_ns: int) -> HostLine:
    """A line of slurmd: `[2026-03-01T07:00:00.123] error: …`, in the host's zone."""
    head = _SLURM.match(line)
    if head is None:
        return HostLine(line)
    numbers = [int(head[at]) for at in range(1, 7)]
    ts_ns = _local_ns(*numbers) + int(head[7] or 0) * 1_000_000
    word = head[8] or b""
    level = DEBUG if word.startswith(b"debug") else _SLURM_LEVELS.get(word, INFO)
    return HostLine(line, ts_ns, level)


def parse_klog(line: bytes, now_ns: int) -> HostLine:
    """A line of kubelet and its kind: `E0301 07:00:00.123456  1234 pod.go:51] …`: it names no year."""
    head = _KLOG.match(line)
    if head is None:
        return HostLine(line)
    month, day, hour, minute, second, micros = (int(head[at]) for at in range(2, 8))
    year = time.localtime(now_ns // SECOND_NS).tm_year
    ts_ns = _local_ns(year, month, day, hour, minute, second) + micros * 1_000
    if ts_ns > now_ns + 86_400 * SECOND_NS:  # of last December, read in January
        ts_ns = _local_ns(year - 1, month, day, hour, minute, second) + micros * 1_000
    site = CallSite(head[8].decode("utf-8", "replace"))
    return HostLine(line, ts_ns, _KLOG_LEVELS[head[1]], site)


def parse_nccl(line: bytes, now_ns: int) -> HostLine:
    """A line of an NCCL debug file: level by its word; it has no time."""
    found = _NCCL.search(line[:200])
    return HostLine(line, None, _NCCL_LEVELS.get(found[1], INFO) if found else None)


def _local_ns(*numbers: int) -> int:
    year, month, day, hour, minute, second = numbers
    try:
        return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1))) * SECOND_NS
    except (OverflowError, ValueError):
        return 0
