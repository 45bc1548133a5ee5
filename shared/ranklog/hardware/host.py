"""The host: processors, memory, pressure, disks, network and InfiniBand.

psutil reads what it knows; pressure stall information and InfiniBand counters are files of the kernel.
Container-aware only as far as the kernel is: /proc shows the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ranklog.hardware.readings import Rates, Reading

# Counters of an InfiniBand port whose growth matters; those of data count words of four bytes.
_IB_DATA = {"port_rcv_data": "receive_bytes_per_s", "port_xmit_data": "send_bytes_per_s"}
_IB_EVENTS = {
    "symbol_error": "symbol_errors_per_s",
    "link_downed": "link_downs_per_s",
    "port_rcv_errors": "receive_errors_per_s",
    "port_xmit_discards": "send_discards_per_s",
    "port_xmit_wait": "send_wait_ticks_per_s",
}
_PRESSURES = ("cpu", "memory", "io")
# Network devices that are not the machine's own way out.
_QUIET_DEVICES = ("lo", "veth", "docker", "br-", "virbr", "cali", "flannel", "cni")


class Host:
    """Use: `Host(psutil)`, then `read` every few seconds. `root` is for tests."""

    def __init__(self, psutil: Any, root: Path = Path("/")) -> None:
        self._psutil = psutil
        self._pressure = root / "proc/pressure"
        self._infiniband = root / "sys/class/infiniband"
        self._rates = Rates()
        self._times: Any = None

    def read(self, now_ns: int) -> Iterator[Reading]:
        """All of it; what this machine has not is left out."""
        yield from self._processors()
        yield self._memory()
        yield from self._pressures()
        yield from self._disks(now_ns)
        yield from self._network(now_ns)
        yield from self._infiniband_ports(now_ns)

    def _processors(self) -> Iterator[Reading]:
        times, before = self._psutil.cpu_times(), self._times
        self._times = times
        values = {"host.load_1m": self._psutil.getloadavg()[0]}
        if before is not None:
            gained = {name: getattr(times, name) - getattr(before, name) for name in times._fields}
            # A guest's time is counted in user's too.
            whole = sum(gained.values()) - gained.get("guest", 0.0) - gained.get("guest_nice", 0.0)
            if whole > 0:
                waiting = gained.get("iowait", 0.0)
                busy = whole - gained["idle"] - waiting
                values["host.cpu_percent"] = 100 * busy / whole
                values["host.io_wait_percent"] = 100 * waiting / whole
        yield Reading(values)

    def _memory(self) -> Reading:
        memory, swap = self._psutil.virtual_memory(), self._psutil.swap_memory()
        return Reading(
            {
                "host.memory_used_bytes": memory.total - memory.available,
                "host.memory_available_bytes": memory.available,
                "host.memory_percent": memory.percent,
                "host.swap_used_bytes": swap.used,
            }
        )

    def _pressures(self) -> Iterator[Reading]:
        """The share of time in which some tasks, or all of them, waited (the kernel's average of 10 s)."""
        for resource in _PRESSURES:
            try:
                text = (self._pressure / resource).read_text()
            except OSError:
                continue
            values: dict[str, float | None] = {}
            for line in text.splitlines():
                kind, _, rest = line.partition(" ")
                average = dict(part.split("=", 1) for part in rest.split() if "=" in part)
                if "avg10" in average:
                    values[f"host.pressure_{kind}_percent"] = float(average["avg10"])
            if values:
                yield Reading(values, {"resource": resource})

    def _disks(self, now_ns: int) -> Iterator[Reading]:
        for disk, seen in (self._psutil.disk_io_counters(perdisk=True) or {}).items():
            if disk.startswith(("loop", "ram")):
                continue
            counts = {
                "read_bytes_per_s": seen.read_bytes,
                "write_bytes_per_s": seen.write_bytes,
                "reads_per_s": seen.read_count,
                "writes_per_s": seen.write_count,
            }
            yield from self._rates.reading("host.disk_", counts, now_ns, disk=disk)
        for mount in sorted({part.mountpoint for part in self._psutil.disk_partitions()}):
            try:
                usage = self._psutil.disk_usage(mount)
            except OSError:
                continue
            yield Reading({"host.disk_used_percent": usage.percent}, {"mount": mount})

    def _network(self, now_ns: int) -> Iterator[Reading]:
        for device, seen in self._psutil.net_io_counters(pernic=True).items():
            if device.startswith(_QUIET_DEVICES):
                continue
            counts = {
                "receive_bytes_per_s": seen.bytes_recv,
                "send_bytes_per_s": seen.bytes_sent,
                "errors_per_s": seen.errin + seen.errout,
                "drops_per_s": seen.dropin + seen.dropout,
            }
            yield from self._rates.reading("host.net_", counts, now_ns, device=device)

    def _infiniband_ports(self, now_ns: int) -> Iterator[Reading]:
        for counters in sorted(self._infiniband.glob("*/ports/*/counters")):
            port = counters.parent.name
            counts: dict[str, float] = {}
            for names, factor in ((_IB_DATA, 4), (_IB_EVENTS, 1)):
                for file, name in names.items():
                    try:
                        counts[name] = factor * int((counters / file).read_text())
                    except (OSError, ValueError):
                        continue
            device = counters.parents[2].name
            yield from self._rates.reading("host.ib_", counts, now_ns, device=device, port=port)
