"""torchelastic's failure summary and agent lines, Slurm's task ends, Lightning's start."""

from __future__ import annotations

from ranklog.rules.presets.number import ints
from ranklog.rules.rule import Rule

RULES = (
    Rule(
        "elastic_rank",
        (" (local_rank: ",),
        r"^\s*rank\s*: (?P<failed_rank>\d+) \(local_rank: (?P<failed_local_rank>\d+)\)",
        ints("failed_rank", "failed_local_rank"),
    ),
    Rule(
        "elastic_exitcode",
        ("exitcode  : ", "(pid: "),
        r"^\s*exitcode\s*: (?P<exit_code>-?\d+) ?\(pid: (?P<pid>\d+)\)"
        r"(?:\s+\((?P<signal>SIG\w+)\))?",
        ints("exit_code", "pid"),
    ),
    Rule(
        "elastic_host",
        ("  host      : ",),
        r"^\s*host {2,}: (?P<failed_host>\S+)",
    ),
    Rule(
        "elastic_time",
        ("  time      : ",),
        r"^\s*time {2,}: (?P<failed_time>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)",
    ),
    Rule(
        "elastic_error_file",
        ("  error_file: ",),
        r"^\s*error_file: (?P<error_file>[^<\s]\S*)",
    ),
    Rule(
        "elastic_signal",
        ("Signal ", " received by PID "),
        r"Signal (?P<signal_number>\d+) \((?P<signal>SIG\w+)\) received by PID (?P<pid>\d+)",
        ints("signal_number", "pid"),
    ),
    Rule(
        "elastic_closing",
        ("Sending process ", " closing signal "),
        r"Sending process (?P<pid>\d+) closing signal (?P<signal>SIG\w+)",
        ints("pid"),
    ),
    Rule(
        "elastic_failed",
        ("failed (exitcode: ", " local_rank: "),
        r"failed \(exitcode: (?P<exit_code>-?\d+)\) local_rank: (?P<failed_local_rank>\d+) "
        r"\(pid: (?P<pid>\d+)\)",
        ints("exit_code", "failed_local_rank", "pid"),
    ),
    Rule(
        "srun_tasks",
        ("srun: error: ", ": task"),
        r"srun: error: (?P<failed_host>\S+): tasks? (?P<tasks>[\d,-]+): "
        r"(?P<task_state>Exited with exit code (?P<exit_code>\d+)|.+)",
        ints("exit_code") | {"tasks": "ranges"},
    ),
    Rule(
        "slurm_cancelled",
        ("error: *** ", " CANCELLED AT "),
        r"\*\*\* (?:STEP|JOB) (?P<slurm_step>\S+) ON (?P<slurm_host>\S+) "
        r"CANCELLED AT (?P<cancelled_at>[\dT:-]+)(?: DUE TO (?P<cancel_reason>[A-Z -]+))?",
    ),
    Rule(
        "slurm_oom",
        ("Detected ", " oom_kill event"),
        r"Detected (?P<oom_kills>\d+) oom_kill events? in "
        r"(?:StepId=|step )?(?P<slurm_step>\d+(?:\.\w+)?)",
        ints("oom_kills"),
    ),
    Rule(
        "lightning_start",
        ("GLOBAL_RANK: ", "MEMBER: "),
        r"GLOBAL_RANK: (?P<global_rank>\d+), MEMBER: \d+/(?P<world_size>\d+)",
        ints("global_rank", "world_size"),
    ),
    Rule(
        "caught_signal",
        ("Caught signal ", " ("),
        r"Caught signal (?P<signal_number>\d+) \((?P<signal_text>[^:)]+)",
        ints("signal_number"),
    ),
)
