"""The host of a run as its files tell: processors, memory, accelerators, drivers, network links."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NVIDIA_SMI_SECONDS_MAX = 10.0
_NVIDIA_FIELDS = ("index", "name", "uuid", "pci.bus_id", "memory.total", "driver_version")


def host_facts(root: Path = Path("/")) -> dict[str, Any]:
    """Kernel, processors, memory, NUMA nodes."""
    system = os.uname()
    facts: dict[str, Any] = {
        "kernel": system.release,
        "machine": system.machine,
        "system": _release_name(root) or system.sysname,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
    }
    with contextlib.suppress(AttributeError):  # not on every system
        facts["cpus_allowed"] = len(os.sched_getaffinity(0))
    text = _text(root / "proc/cpuinfo")
    if found := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
        facts["cpu"] = found[1]
    if found := re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE):
        facts["memory_bytes"] = int(found[1]) * 1024
    nodes = [p for p in _entries(root / "sys/devices/system/node") if re.match(r"node\d", p.name)]
    if nodes:
        facts["numa_nodes"] = len(nodes)
    return facts


def accelerators(root: Path = Path("/")) -> list[dict[str, Any]]:
    """GPUs by the driver's files, else as nvidia-smi lists them; with their NUMA node."""
    found = [
        _nvidia_gpu(folder, root) for folder in _entries(root / "proc/driver/nvidia/gpus")
    ] or _ask_nvidia_smi()
    for folder in _entries(root / "sys/class/kfd/kfd/topology/nodes"):
        properties = dict(
            line.partition(" ")[::2] for line in _text(folder / "properties").splitlines()
        )
        if properties.get("simd_count", "0") != "0":  # the others are processors
            found.append({"name": _text(folder / "name").strip() or "amd", "node": folder.name})
    for gpu in found:
        bus = str(gpu.get("bus", "")).lower()
        # nvidia-smi writes the PCI domain with eight digits, the kernel with four.
        bus = re.sub(r"^0000(?=[0-9a-f]{4}:)", "", bus)
        numa = _text(root / "sys/bus/pci/devices" / bus / "numa_node").strip() if bus else ""
        if numa and numa != "-1":
            gpu["numa_node"] = int(numa)
    return found


def _nvidia_gpu(folder: Path, root: Path) -> dict[str, Any]:
    lines = _text(folder / "information").splitlines()
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return {"name": said.get("Model", "nvidia"), "uuid": said.get("GPU UUID"), "bus": folder.name}


def _ask_nvidia_smi() -> list[dict[str, Any]]:
    query = f"--query-gpu={','.join(_NVIDIA_FIELDS)}"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=NVIDIA_SMI_SECONDS_MAX,
            stdin=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return [
        {"name": row[1], "uuid": row[2], "bus": row[3], "memory_mib": row[4], "driver": row[5]}
        for row in rows
        if len(row) == len(_NVIDIA_FIELDS)
    ]


def drivers(root: Path = Path("/")) -> dict[str, str]:
    """Versions of the kernel modules that drive accelerators and fabrics."""
    found = {}
    for name in ("nvidia", "amdgpu", "mlx5_core", "efa", "habanalabs", "gdrdrv"):
        version = _text(root / "sys/module" / name / "version").strip()
        if version:
            found[name] = version
    if "nvidia" not in found:
        text = _text(root / "proc/driver/nvidia/version")
        if match := re.search(r"Kernel Module[^\n]*?\s(\d+(?:\.\d+)+)", text):
            found["nvidia"] = match[1]
    return found


def networks(root: Path = Path("/")) -> list[dict[str, Any]]:
    """InfiniBand and RoCE ports, and network interfaces that are up, with their rates."""
    found: list[dict[str, Any]] = []
    for device in _entries(root / "sys/class/infiniband"):
        for port in _entries(device / "ports"):
            state = _text(port / "state").partition(":")[2].strip()
            rate = _text(port / "rate").strip()
            found.append({"name": f"{device.name}:{port.name}", "state": state, "rate": rate})
    for interface in _entries(root / "sys/class/net"):
        state = _text(interface / "operstate").strip()
        if interface.name == "lo" or state == "down":
            continue
        speed = _text(interface / "speed").strip()
        entry = {"name": interface.name, "state": state}
        if speed.isdecimal():  # -1 where the kernel can't know
            entry["rate"] = f"{speed} Mb/s"
        found.append(entry)
    return found


def _release_name(root: Path) -> str | None:
    text = _text(root / "etc/os-release")
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)"?', text, re.MULTILINE)
    return found[1] if found else None


def _entries(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(folder.iterdir())
    except OSError:
        return


def _text(path: Path) -> str:
    """A kernel file's text; "" where it is not there, or the kernel has no answer."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
