"""Words of devices, hosts and links: memory, hardware, networks."""

from __future__ import annotations

from ranklog.spmd.triage.rule import make_rule as _rule

# Xids after which a GPU, its link or its memory needs attention; what a program's own bug or a
# recovery prints (13, 31, 43, 45, 63, 68, 92) is none of them. NVIDIA, "Xid Errors".
SEVERE_XIDS = frozenset(
    [
        *(38, 46, 48, 54, 56, 57, 58, 61, 62, 64, 65, 74, 79, 81, 94, 95, 109, 110, 116, 119, 120),
        *(121, 122, 123, 124, 125, 136, 137, 140, 143, 144, 145, 146, 147, 148, 149, 150, 151, 154),
    ]
)

DEVICE_RULES = (
    _rule(
        "oom_device",
        "out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation"
        "|hipErrorOutOfMemory|RESOURCE_EXHAUSTED|ResourceExhaustedError|Out of memory"
        "|OUT_OF_DEVICE_MEMORY",
        r"(?:CUDA|HIP|NPU|XPU|MPS|GPU)\b[^.]{0,60}\b[Oo]ut of memory|OutOfMemoryError"
        r"|(?:Cuda|HIP|hip|Hip) failure (?:\d+ )?'out of memory'"
        r"|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation|hipErrorOutOfMemory"
        r"|RESOURCE_EXHAUSTED: .*(?:[Oo]ut of memory|[Aa]lloc)|ResourceExhaustedError"
        r"|Out of memory error on GPU|OUT_OF_DEVICE_MEMORY",
        "oom_device",
    ),
    _rule(
        "oom_host",
        "invoked oom-killer|oom-kill:|Killed process|oom_kill event|OOM Killed|Out Of Memory"
        "|OUT_OF_MEMORY|OOMKilled|bad_alloc|Cannot allocate memory|MemoryError|low on resource: memory"
        "|can't allocate memory",
        r"invoked oom-killer|oom-kill:constraint|[Oo]ut of memory: Killed process (?P<pid>\d+)"
        r"|Killed process (?P<pid2>\d+)|oom_kill event|OOM Killed|OUT_OF_MEMORY|OOMKilled"
        r"|tasks? [\d,-]+: Out Of Memory|std::bad_alloc|\b12[\])]? \(?Cannot allocate memory"
        r"|(?:^|[\s.])_?(?:Array)?MemoryError\b|low on resource: memory"
        r"|DefaultCPUAllocator: (?:can't|not enough) ",
        "oom_host",
    ),
    _rule(
        "xid",
        "NVRM: Xid (",
        r"NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (?P<xid>\d+)(?:, pid='?(?P<pid>\d+))?",
        "hardware",
    ),
    _rule(
        "gpu_fault",
        "ECC error|ecc error|fallen off the bus|RmInitAdapter failed|CUDA-capable device|NVLink"
        "|GPU reset|cudaErrorDevicesUnavailable|cudaErrorECCUncorrectable|cudaErrorHardwareStackError"
        "|GPU is lost|GPU has been lost|HW Exception by GPU|HSA_STATUS_ERROR_EXCEPTION"
        "|halted prematurely|halted unexpectedly|hardware errors detected",
        r"(?i:uncorrectable (?:\w+ )?ecc error)|(?i:uncorrectable nvlink error)|fallen off the bus"
        r"|RmInitAdapter failed|CUDA-capable devices? (?:is|are) (?:busy|detected)"
        r"|cudaErrorDevicesUnavailable|cudaErrorECCUncorrectable|cudaErrorHardwareStackError"
        r"|amdgpu.*GPU reset|GPU (?:is|has been) lost|HW Exception by GPU|HSA_STATUS_ERROR_EXCEPTION"
        r"|(?:device|[Cc]ore|[Nn]ode \d+) halted (?:prematurely|unexpectedly)"
        r"|uncorrectable hardware errors detected",
        "hardware",
    ),
    _rule(
        "machine",
        "Kernel panic|[Hardware Error]|Uncorrected|UE memory|soft lockup|hard LOCKUP",
        r"Kernel panic|Hardware Error\]:.*(?:Uncorrected|Fatal|fatal|PANIC)"
        r"|AER: (?:Multiple )?Uncorrect\w+ \(Fatal\)|EDAC .*\bUE\b|hard LOCKUP|soft lockup - CPU",
        "hardware",
    ),
    _rule(
        "node_failure",
        "Node failure|NODE FAILURE|NODE_FAIL|node failure|NodeNotReady|NodeLost",
        r"[Nn]ode failure on (?P<host>[\w.-]+)|DUE TO NODE[ _]FAIL|NODE_FAIL|NodeNotReady|NodeLost",
        "hardware",
    ),
    _rule(
        "link_down",
        "Link down|Link is Down|link is down|link down|port error|PORT_ERR|Port module event",
        r"[Ll]ink (?:is )?[Dd]own|async event ?: ?port error|IBV_EVENT_PORT_ERR"
        r"|Port module event.*(?:unplugged|error)",
        "network",
    ),
    _rule(
        "ib_error",
        "Got completion from peer|Got completion with error|IBV_WC_RETRY_EXC_ERR"
        "|transport retry counter exceeded|ransport retry count exceeded",
        r"Got completion from peer (?P<peer>[\w.:-]+?)(?:<\d+>)? with "
        r"(?:status=|error )(?P<status>\d+|IBV_WC_RETRY_EXC_ERR)"
        r"|IBV_WC_RETRY_EXC_ERR|transport retry counter exceeded|ransport retry count exceeded"
        r"|Got completion with error 12",
        "network",
    ),
    _rule(
        "unreachable",
        "No route to host|Network is unreachable",
        r"No route to host|Network is unreachable",
        "network",
    ),
)
