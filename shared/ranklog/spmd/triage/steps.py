"""What to do next, by class: a question that shows the evidence, and the page that says more."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ranklog.spmd.triage.suspects import Suspect


@dataclass(frozen=True, slots=True)
class Step:
    """`command` None: nothing to type. `runbook`: a page below docs/runbooks."""

    text: str
    command: str | None
    runbook: str


# Queries that show the evidence of a class; its runbook explains them.
QUERIES = {
    "oom_device": '"out of memory" OR OutOfMemoryError OR RESOURCE_EXHAUSTED',
    "oom_host": '"oom-killer" OR "Killed process" OR oom_kill OR "Out Of Memory"',
    "collective_timeout": '"Watchdog caught collective" OR "Timed out waiting" OR "last enqueued"',
    "collective_mismatch": '"running collective" OR "Watchdog caught collective" OR MISMATCH',
    "hardware": '"NVRM: Xid" OR "ECC error" OR "Hardware Error" OR "Node failure" OR "CUDA error"',
    "network": '"Got completion from peer" OR "Link down" OR "No route to host"',
    "numeric": "loss:NaN,Inf OR grad_norm:NaN,Inf OR /(?i:nan|non-finite)/ level>=ERROR",
    "data_loader": '"DataLoader worker" OR "DataLoader timed out"',
    "storage": '"No space left" OR "Input/output error" OR "Stale file handle" OR heckpoint',
    "import_or_config": "level>=ERROR /Error: /",
    "external_kill": '"CANCELLED AT" OR SIGTERM OR "death signal" OR SIGKILL',
    "crash_signal": '"Segmentation fault" OR "Caught signal" OR "Fatal Python error" OR SIGSEGV',
    "hang": '"most recent call first" OR /File .*, line \\d+ in /',
    "slow": "/(?i:step_time|elapsed time|Straggler|tps)/",
    "unknown": "level>=ERROR",
}
_ADVICE = {
    "oom_device": "see who allocates, and what the iteration before it held",
    "oom_host": "see which host and which process the kernel took",
    "collective_timeout": "see who does not report, and what it last did",
    "collective_mismatch": "compare what the suspect runs with a peer, iteration by iteration",
    "hardware": "drain the host, then read what its kernel says",
    "network": "look at the link's counters on the host that others name",
    "numeric": "find the first iteration, then what changed before it",
    "data_loader": "see which worker and which shard",
    "storage": "look at the file system, then at who else writes to it",
    "import_or_config": "every rank says the same: look at the job, not at a rank",
    "external_kill": "nobody's fault: see when it was ended, and the last checkpoint",
    "crash_signal": "see the stack of the signal's handler",
    "hang": "dump the stacks of all ranks and group the equal ones",
    "slow": "compare the suspect's own times with its peers'",
    "unknown": "read the errors from the first one on",
}
_KILLED = "see when it was killed, and ask its host and scheduler who did"


def next_steps(fault: str, run: str, suspects: list[Suspect]) -> list[Step]:
    """None for a healthy run."""
    if fault == "none":
        return []
    page = f"docs/runbooks/{fault}.md"
    name = shlex.quote(run)
    killed = fault == "external_kill" and any(s.is_named for s in suspects)
    found = [
        Step(
            _KILLED if killed else _ADVICE[fault],
            f"ranklog search {shlex.quote(QUERIES[fault])} --run {name}",
            page,
        )
    ]
    rank = next((s.rank for s in suspects if s.rank is not None), None)
    if rank is not None:
        found.append(
            Step(
                f"read the last lines of rank {rank}",
                f"ranklog search rank:{rank} --run {name} --limit 50",
                page,
            )
        )
        found.append(
            Step(
                f"set rank {rank} beside a peer",
                f"ranklog compare --run {name} --ranks {rank},{1 if rank == 0 else 0}",
                page,
            )
        )
    host = next((s.host for s in suspects if s.node and s.host), None)
    if host is not None:
        text = f"read what host {host} says"
        found.append(Step(text, f"ranklog search {shlex.quote(f'host:{host}')} --run {name}", page))
    return found
