"""A process of the job: what it takes of the machine, and what torch's allocator holds on its devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ranklog.hardware.readings import Rates, Reading


class Process:
    """This process: processor, memory, threads, open files; and torch's allocator on its devices."""

    def __init__(self, psutil: Any, torch: Any) -> None:
        """`torch` is a function that gives the module once the job has imported it, else None."""
        self._process = psutil.Process()
        self._torch = torch
        self._rates = Rates()

    def read(self, now_ns: int) -> Iterator[Reading]:
        """The process itself, then each device it has memory on."""
        with self._process.oneshot():
            times, memory = self._process.cpu_times(), self._process.memory_info()
            values: dict[str, float | None] = {
                "process.memory_bytes": memory.rss,
                "process.threads": self._process.num_threads(),
                "process.open_files": self._process.num_fds(),
            }
        used = self._rates.of("cpu", times.user + times.system, now_ns)
        if used is not None:
            values["process.cpu_percent"] = 100 * used
        yield Reading(values)
        yield from self._allocator()

    def _allocator(self) -> Iterator[Reading]:
        """Counters of the allocator alone: nothing here waits for a device or starts one."""
        torch = self._torch()
        cuda = getattr(torch, "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return
        for device in range(cuda.device_count()):
            stats = cuda.memory_stats(device)
            reserved = stats.get("reserved_bytes.all.current", 0)
            if not reserved:
                continue
            allocated = stats.get("allocated_bytes.all.current", 0)
            yield Reading(
                {
                    "gpu.allocated_bytes": allocated,
                    "gpu.reserved_bytes": reserved,
                    "gpu.allocated_peak_bytes": stats.get("allocated_bytes.all.peak", 0),
                    # Reserved and in nobody's use: high while allocations fail is fragmentation.
                    "gpu.fragmentation_percent": 100 * (reserved - allocated) / reserved,
                    "gpu.allocation_retries": stats.get("num_alloc_retries", 0),
                    "gpu.allocator_ooms": stats.get("num_ooms", 0),
                },
                {"gpu": device},
            )
