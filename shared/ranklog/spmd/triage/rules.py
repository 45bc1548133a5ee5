"""What lines say of faults, as data: the words of frameworks, launchers, kernels and schedulers.

A rule holds where one of its literals is in the line and its expression is found in it. The union of
all literals is the query that fetches evidence, so that a rule costs nothing where nobody says its
words. `fault` is the class that it proves; rules without one are symptoms or belong to the launcher.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CLASSES = (
    *("none", "oom_device", "oom_host", "collective_timeout", "collective_mismatch", "hardware"),
    *("network", "numeric", "data_loader", "storage", "import_or_config", "external_kill"),
    *("crash_signal", "hang", "slow", "unknown"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` is searched in the line's text; its groups become the sign's data."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    fault: str | None = None


def _rule(kind: str, literals: str, pattern: str, fault: str | None = None) -> Rule:
    return Rule(kind, tuple(literals.split("|")), re.compile(pattern), fault)


# Xids after which a GPU, its link or its memory needs attention; what a program's own bug or a
# recovery prints (13, 31, 43, 45, 63, 68, 92) is none of them. NVIDIA, "Xid Errors".
SEVERE_XIDS = frozenset(
    [
        *(38, 46, 48, 54, 56, 57, 58, 61, 62, 64, 65, 74, 79, 81, 94, 95, 109, 110, 116, 119, 120),
        *(121, 122, 123, 124, 125, 136, 137, 140, 143, 144, 145, 146, 147, 148, 149, 150, 151, 154),
    ]
)

FAULT_RULES = (
    _rule(
        "data_loader",
        "DataLoader worker|DataLoader timed out|Critical error in pipeline|[/opt/dali",
        r"DataLoader worker ?\(pid(?:\(s\))?[^)]*\) (?:exited|is killed)|in DataLoader worker process"
        r"|DataLoader timed out after|Critical error in pipeline|DataLoader worker .*killed by signal",
        "data_loader",
    ),
    _rule(
        "mismatch",
        "Detected mismatch between collectives|is running collective:",
        r"Detected mismatch between collectives on ranks|is running collective: ",
        "collective_mismatch",
    ),
    _rule(
        "oom_device",
        "out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation"
        "|hipErrorOutOfMemory|RESOURCE_EXHAUSTED|ResourceExhaustedError|Out of memory",
        r"(?:CUDA|HIP|NPU|XPU|MPS|GPU)\b[^.]{0,60}\b[Oo]ut of memory|OutOfMemoryError"
        r"|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation|hipErrorOutOfMemory"
        r"|RESOURCE_EXHAUSTED: .*(?:[Oo]ut of memory|alloc)|ResourceExhaustedError"
        r"|Out of memory error on GPU",
        "oom_device",
    ),
    _rule(
        "oom_host",
        "invoked oom-killer|oom-kill:|Killed process|oom_kill event|OOM Killed|Out Of Memory"
        "|OUT_OF_MEMORY|OOMKilled|bad_alloc|Cannot allocate memory|MemoryError",
        r"invoked oom-killer|oom-kill:constraint|[Oo]ut of memory: Killed process (?P<pid>\d+)"
        r"|Killed process (?P<pid2>\d+)|oom_kill event|OOM Killed|OUT_OF_MEMORY|OOMKilled"
        r"|tasks? [\d,-]+: Out Of Memory|std::bad_alloc|Errno 12\] Cannot allocate memory"
        r"|(?:^|[\s.])MemoryError\b",
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
        "ECC error|fallen off the bus|RmInitAdapter failed|CUDA-capable device|NVLink|GPU reset"
        "|cudaErrorDevicesUnavailable|cudaErrorECCUncorrectable|cudaErrorHardwareStackError",
        r"(?i:uncorrectable (?:\w+ )?ecc error)|(?i:uncorrectable nvlink error)|fallen off the bus"
        r"|RmInitAdapter failed|CUDA-capable devices? (?:is|are) (?:busy|detected)"
        r"|cudaErrorDevicesUnavailable|cudaErrorECCUncorrectable|cudaErrorHardwareStackError"
        r"|amdgpu.*GPU reset",
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
        "Node failure|NODE FAILURE|NODE_FAIL|node failure",
        r"[Nn]ode failure on (?P<host>[\w.-]+)|DUE TO NODE[ _]FAIL|NODE_FAIL",
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
        "|transport retry counter exceeded",
        r"Got completion from peer (?P<peer>[\w.:-]+?)(?:<\d+>)? with (?:status=|error )(?P<status>\d+)"
        r"|IBV_WC_RETRY_EXC_ERR|transport retry counter exceeded|Got completion with error 12",
        "network",
    ),
    _rule(
        "unreachable",
        "No route to host|Network is unreachable",
        r"No route to host|Network is unreachable",
        "network",
    ),
    _rule(
        "nan_check",
        # the rest of what it knows stands on lines of level ERROR, which are all fetched
        "found NaN|Unexpected result|oss is nan|oss is NaN|oss is inf",
        r"found NaN in local|Unexpected result (?:nan|inf)|(?:NaN|Inf)s? (?:or \w+ )?(?:in|found|detected)"
        r"|(?i:\b(?:loss|grad(?:ient)?s?|grad[ _]norm|output|activations?)\b.{0,40}"
        r"\b(?:nan|inf|infinite|non-finite|not finite)\b)|(?:nan|NaN) (?:loss|gradient)"
        r"|FloatingPointError",
        "numeric",
    ),
    _rule(
        "file_system",
        "No space left|Input/output error|Stale file handle|Stale NFS|Read-only file system"
        "|Disk quota exceeded|Remote I/O error|Transport endpoint is not connected|not responding"
        "|LustreError|PytorchStreamWriter failed|inline_container.cc|iostream error|I/O error",
        r"No space left on device|Input/output error|Stale (?:NFS )?file handle|Read-only file system"
        r"|Disk quota exceeded|Remote I/O error|Transport endpoint is not connected"
        r"|nfs: server \S+ not responding|LustreError|PytorchStreamWriter failed writing"
        r"|inline_container\.cc.*(?:unexpected pos|fwrite|write)|iostream error|(?:dev|sector).*I/O error",
        "storage",
    ),
    _rule(
        "no_file",
        "No such file or directory|FileNotFoundError|does not exist|Could not open file",
        r"No such file or directory|FileNotFoundError|Could not open file"
        r"|(?:[Ff]ile|[Dd]irectory|[Pp]ath|[Dd]ataset|[Cc]heckpoint) .{0,200}does not exist",
        "import_or_config",
    ),
    _rule(
        "no_module",
        "ModuleNotFoundError|ImportError|cannot open shared object|undefined symbol",
        r"ModuleNotFoundError|ImportError|cannot open shared object file|undefined symbol",
        "import_or_config",
    ),
    _rule(
        "bad_argument",
        "unrecognized arguments|error: argument|the following arguments are required"
        "|invalid choice|is not divisible|must be divisible",
        r"error: (?:unrecognized arguments|argument |the following arguments are required)"
        r"|is not divisible by|must be divisible by",
        "import_or_config",
    ),
    _rule(
        "crash",
        "Segmentation fault|Caught signal|Fatal Python error|Bus error|Illegal instruction"
        "|segfault at|double free|free(): invalid|core dumped|general protection",
        r"Segmentation fault|Caught signal (?P<signal>\d+)|Fatal Python error: [^A]"
        r"|\bBus error|Illegal instruction|\]: segfault at|double free or corruption"
        r"|free\(\): invalid|general protection fault",
        "crash_signal",
    ),
)

COLLECTIVE_RULES = (
    _rule(
        "watchdog",
        "Watchdog caught collective operation timeout|ran for ",
        r"Watchdog caught collective operation timeout: Work\w*\((?:SeqNum=(?P<seq>\d+), )?"
        r"OpType=(?P<op>\w+)(?P<shape>.*?), Timeout\(ms\)=\d+\) ran for",
    ),
    _rule(
        "gloo_timeout",
        "Timed out waiting|Application timeout caused pair closure",
        r"Timed out waiting (?P<wait_ms>\d+)ms for (?:recv|send) operation"
        r"|Application timeout caused pair closure",
    ),
    _rule(
        "barrier",
        "monitoredBarrier",
        r"[Rr]anks? (?P<ranks>\d[\d, ]*) failed to pass monitoredBarrier",
    ),
    _rule(
        "status",
        "ast enqueued",
        r"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), "
        r"last completed (?:NCCL )?work: (?P<completed>-?\d+)",
    ),
    _rule(
        "desync_absent",
        "join collective #",
        r"\[(?P<ranks>[\d, ]+)\] finished collective #(?P<done>\d+), but didn't join collective "
        r"#(?P<seq>\d+)",
    ),
    _rule(
        "desync_timeout",
        "Timeout at collective",
        r"\[(?P<ranks>[\d, ]+)\] (?:Timeout at collective|joined but didn't finish collective): "
        r"?(?P<op>\w+), #(?P<seq>\d+)",
    ),
    _rule("trace_absent", "missing ranks", r"[Mm]issing ranks:? ?[{\[](?P<ranks>[\d, ]+)[}\]]"),
    _rule(
        "trace_culprit",
        "ulprit rank|MISMATCH",
        r"[Cc]ulprit ranks?:? ?[{\[]?(?P<ranks>\d[\d, ]*)|(?P<error>\w*MISMATCH\w*)",
    ),
    _rule(
        "peer_gone",
        "Connection closed by|Connection reset by peer|remote process exited|communicator was aborted"
        "|ncclRemoteError|ncclSystemError|Broken pipe|recvValue failed|ncclUnhandledCudaError",
        r"Connection closed by|Connection reset by peer|remote process exited"
        r"|communicator was aborted|ncclRemoteError|ncclSystemError|Broken pipe|recvValue failed",
    ),
)

LAUNCHER_RULES = (
    _rule("elastic_host", "  host  ", r"^\s*host {2,}: (?P<host>\S+)"),
    _rule(
        "elastic_rank",
        "(local_rank: ",
        r"^\s*rank {2,}: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\)",
    ),
    _rule(
        "elastic_code",
        "exitcode",
        r"^\s*exitcode {2,}: (?P<code>-?\d+) ?\(pid: (?P<pid>\d+)\)",
    ),
    _rule(
        "elastic_failed",
        "failed (exitcode: ",
        r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)",
    ),
    _rule(
        "forced",
        "Unable to shutdown process",
        r"Unable to shutdown process (?P<pid>\d+) via .*SIGTERM",
    ),
    _rule(
        "agent_killed",
        "death signal|got signal: ",
        r"Received (?P<signal>\S+) death signal, shutting down|Process \d+ got signal: (?P<signal2>\w+)",
    ),
    _rule(
        "restart",
        "will restart worker group|Restarting worker group|JOB REQUEUE",
        r"will restart worker group|Restarting worker group|DUE TO JOB REQUEUE",
    ),
    _rule(
        "srun_tasks",
        "srun: error: ",
        r"srun: error: (?P<host>\S+): tasks? (?P<tasks>[\d,-]+): (?P<what>.*)$",
    ),
    _rule(
        "cancelled",
        "CANCELLED AT",
        r"\*\*\* (?:STEP|JOB) \S+ ON (?P<host>\S+) CANCELLED AT \S+?(?: DUE TO (?P<why>[A-Z _]+))?"
        r"(?:[,*]| \*|$)",
    ),
    _rule(
        "sigterm",
        "SIGTERM|SIGUSR|reempt",
        r"[Rr]eceived SIGTERM|[Cc]aught SIGTERM|[Gg]ot SIGTERM|[Rr]eceived SIGUSR|\b[Pp]reempted\b"
        r"|due to preemption|[Pp]reemption (?:signal|notice|request)",
    ),
)

STATE_RULES = (
    _rule(
        "success",
        "run_stop|ENDING TIMING RUN|RUNANDTIME_STOP|raining|train_runtime|rainer.fit",
        r'"run_stop".*"status": "success"|ENDING TIMING RUN|RUNANDTIME_STOP'
        r"|(?i:\btraining (?:is |was )?(?:complete[d]?|finished|done)\b)|after training is done"
        r"|'train_runtime'|Trainer\.fit` stopped",
    ),
    _rule(
        "save_begun",
        "heckpoint",
        r"(?i:\b(?:saving|writing|start(?:ed|ing)? (?:to )?sav\w+)\b.{0,60}checkpoint)",
    ),
    _rule(
        "save_ended",
        "heckpoint",
        r"(?i:\b(?:saved|wrote|written|successfully saved|finished saving|done saving)\b.{0,60}checkpoint"
        r"|checkpoint.{0,80}\b(?:saved|written|complete[d]?|finished)\b)",
    ),
    _rule(
        "address",
        "Bootstrap|NET/Socket|OOB ",
        r"(?P<host>[\w.-]+):\d+:\d+ \[\d+\] NCCL INFO .*?(?P<ip>\d+\.\d+\.\d+\.\d+)<\d+>",
    ),
    _rule(
        "teardown",
        "_run_finalizers|_exit_function|in __del__|sem_unlink|resource_tracker|Exception ignored in",
        r"in _run_finalizers|in _exit_function|in __del__|sem_unlink|resource_tracker"
        r"|Exception ignored in",
    ),
    _rule("stack_head", "most recent call first", r"(?:Thread|Current thread) 0x\w+"),
    _rule(
        "stack_frame", '", line ', r'^\s*File "(?P<file>[^"]+)", line (?P<at>\d+) in (?P<name>\S+)'
    ),
    _rule(
        "rank_time",
        "ank ",
        r"^\s*[Rr]ank +(?P<rank>\d+) ?: *(?P<value>\d+(?:\.\d+)?)(?: ?ms| ?s)?\s*$",
    ),
)

RULES = (*FAULT_RULES, *COLLECTIVE_RULES, *LAUNCHER_RULES, *STATE_RULES)
FAULT_OF = {rule.kind: rule.fault for rule in RULES if rule.fault}
