"""Words of launchers and schedulers, and of how far a job came."""

from __future__ import annotations

from ranklog.spmd.triage.rule import make_rule as _rule

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
        "mpi_signal",
        "noticed that process rank|APPLICATION TERMINATED WITH",
        r"noticed that process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) exited on"
        r" signal (?P<signal>\d+)",
    ),
    _rule(
        "mpi_abort",
        "MPI_ABORT was invoked|Abort(",
        r"MPI_ABORT was invoked on rank (?P<rank>\d+) in communicator",
    ),
    _rule(
        "left_with",
        "exits with return code|EXIT CODE: | Killed |exited with code",
        r"exits with return code = (?P<code>-?\d+)|^=? *EXIT CODE: (?P<code2>\d+)"
        r"|: line \d+: +\d+ (?P<word>Killed) ",
    ),
    _rule(
        "sigterm",
        "SIGTERM|SIGUSR|reempt|interruption notice|srun: interrupt|ending Ctrl-C|forcing job term",
        r"[Rr]eceived SIGTERM|[Cc]aught SIGTERM|[Gg]ot SIGTERM|[Rr]eceived SIGUSR|\b[Pp]reempted\b"
        r"|due to preemption|[Pp]reemption (?:signal|notice|request)|\bis being preempted"
        r"|(?i:spot|instance) (?:instance )?interruption notice|srun: (?:interrupt|sending Ctrl-C)",
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
