"""Kernel and monitors: Xid, SXid, the kernel's out-of-memory killer, GPU tables."""

from __future__ import annotations

from ranklog.rules.presets.number import floats, ints
from ranklog.rules.rule import Rule

RULES = (
    Rule(
        "xid",
        ("NVRM: Xid (PCI:",),
        r"NVRM: Xid \(PCI:(?P<pci_bus>[0-9a-fA-F:.]+)\): (?P<xid>\d+)"
        r"(?:, pid=(?:(?P<pid>\d+)|[^,]*))?(?:, name=(?P<process>[^,]+))?",
        ints("xid", "pid"),
    ),
    Rule(
        "sxid",
        (" SXid (PCI:",),
        r" SXid \(PCI:(?P<pci_bus>[0-9a-fA-F:.]+)\): (?P<sxid>\d+)",
        ints("sxid"),
    ),
    Rule(
        "kernel_oom",
        ("Killed process ", " total-vm:"),
        r"Killed process (?P<pid>\d+) \((?P<process>[^)]*)\).* total-vm:(?P<total_vm_kib>\d+)kB"
        r"(?:, anon-rss:(?P<anon_rss_kib>\d+)kB)?",
        ints("pid", "total_vm_kib", "anon_rss_kib"),
    ),
    Rule(
        # index,utilization_gpu,memory_total,memory_used,memory_free,timestamp
        "gpu_csv",
        (",", "/"),
        r"^(?P<gpu_index>\d+),(?P<gpu_utilization>\d+),(?P<memory_total_mib>\d+),"
        r"(?P<memory_used_mib>\d+),(?P<memory_free_mib>\d+),\d{4}/\d\d/\d\d [\d:.]+\s*$",
        ints("gpu_index")
        | floats("gpu_utilization", "memory_total_mib", "memory_used_mib", "memory_free_mib"),
        gate=r"^\x00,\x00,\x00,\x00,\x00,\x00/\x00/\x00 ",
    ),
)
