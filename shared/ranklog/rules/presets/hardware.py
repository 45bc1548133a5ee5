"""Kernel and monitors: Xid, SXid, ECC, PCIe, links, lockups, the out-of-memory killer, GPU tables."""

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
        "kernel_oom_victim",
        ("oom-kill:constraint=", "task="),
        r"oom-kill:constraint=(?P<oom_constraint>\w+),.*?(?:oom_memcg=(?P<oom_cgroup>[^,]+),.*)?"
        r"task=(?P<process>[^,]+),pid=(?P<pid>\d+)",
        ints("pid"),
    ),
    Rule(
        "kernel_oom_invoked",
        (" invoked oom-killer: ",),
        r"(?P<process>\S+) invoked oom-killer: gfp_mask=(?P<gfp_mask>0x[0-9a-f]+)",
    ),
    Rule(
        "machine_check",
        ("[Hardware Error]: ", "Machine Check", "Bank "),
        r"CPU (?P<cpu>\d+): Machine Check(?: Exception)?: \w+ Bank (?P<mce_bank>\d+): "
        r"(?P<mce_status>[0-9a-f]+)",
        ints("cpu", "mce_bank"),
    ),
    Rule(
        "memory_ecc",
        ("EDAC MC", " error on "),
        r"EDAC MC(?P<edac_controller>\d+): (?P<edac_errors>\d+) (?P<edac_kind>CE|UE) .*? ?error on "
        r"(?P<dimm>\S+)",
        ints("edac_controller", "edac_errors"),
    ),
    Rule(
        "pcie_error",
        (" AER: ", " error "),
        r" AER: (?:Multiple )?(?P<pcie_severity>(?:Corrected|Uncorrected|Correctable|Uncorrectable)"
        r"(?: \((?:Fatal|Non-Fatal)\))?) error (?:message )?received(?: from|:) (?P<pci_bus>[0-9a-f:.]+)",
    ),
    Rule(
        # mlx5_core 0000:29:00.0 eth2: Link down
        "network_link",
        (": Link ",),
        r"(?P<interface>[\w.@-]+): Link (?P<link>up|down)\b",
    ),
    Rule(
        # ice 0000:31:00.0 eth0: NIC Link is Down
        "network_nic_link",
        ("NIC Link is ",),
        r"(?P<interface>[\w.@-]+):? NIC Link is (?P<link>Up|Down)\b",
    ),
    Rule(
        "port_module",
        ("Port module event", ": module "),
        r"Port module event(?:\[error\])?: module (?P<port_module>\d+), (?P<port_event>[^,]+)",
        ints("port_module"),
    ),
    Rule(
        "hung_task",
        ("INFO: task ", " blocked for more than "),
        r"INFO: task (?P<process>\S+):(?P<pid>\d+) blocked for more than (?P<blocked_s>\d+) seconds",
        ints("pid", "blocked_s"),
    ),
    Rule(
        "soft_lockup",
        ("soft lockup - CPU#", " stuck for "),
        r"soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<stuck_s>\d+)s! \[(?P<process>[^\]]+):(?P<pid>\d+)\]",
        ints("cpu", "stuck_s", "pid"),
    ),
    Rule(
        "segfault",
        ("]: segfault at ", " ip "),
        r"(?P<process>[^\s\[]+)\[(?P<pid>\d+)\]: segfault at (?P<segfault_at>[0-9a-f]+) ip \S+ sp \S+ "
        r"error \d+(?: in (?P<segfault_in>[^\[\s]+))?",
        ints("pid") | {"segfault_at": "str"},
    ),
    Rule(
        "nfs_server",
        ("nfs: server ", " not responding"),
        r"nfs: server (?P<nfs_server>\S+) not responding",
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
