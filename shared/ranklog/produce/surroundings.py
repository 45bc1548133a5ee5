"""What of a process's identity is not in its variables: host, parent, and what its ranks agreed on."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from ranklog.produce import trouble
from ranklog.produce.identity import Surroundings, find_identity
from ranklog.produce.launch_name import is_host_alone, is_launch_shared, names_launch
from ranklog.produce.spool import process_start

_STORE_KEY = "ranklog/launch"
# Programs that only start children of another: what stands in their command line.
_HELPERS = (b"multiprocessing.spawn", b"multiprocessing.forkserver", b"--multiprocessing-fork")
ANCESTORS_MAX = 16
# What a launcher of ours says of the host that it is on, and of nothing else.
_OF_HOST = ("RANKLOG_LAUNCHED", "RANKLOG_LAUNCHED_ON", "RANKLOG_HOST", "RANKLOG_CAPTURED")


def here(environ: Mapping[str, str] = os.environ) -> Surroundings:
    """This process's surroundings. Imports nothing of the job's, waits for nobody."""
    host = socket.gethostname()
    launcher, first = launcher_of(os.getpid(), host, is_child=_is_child())
    return Surroundings(
        host=host,
        script=sys.argv[0] if sys.argv else "",
        launcher=launcher,
        in_torchrun_launcher=(
            "torch.distributed.run" in sys.modules and "TORCHELASTIC_RUN_ID" not in environ
        ),
        agreed="" if names_launch(environ) else agreed_launch(sys.modules.get("torch.distributed")),
        started_with=_first_variables(),
        job_started_with=_variables(first),
    )


def launcher_of(
    pid: int, host: str, *, is_child: bool = False, proc: Path = Path("/proc")
) -> tuple[str, int]:
    """Names the process that started the job a process is of, and the pid of the job's first.

    A fork has its parent's command line, and so have ranks that rank 0 starts by its own words; what
    multiprocessing starts says so (`is_child`: it is known to be of its parent's job). All of them
    agree, whoever logs first, and whether the one that started them does at all.
    """
    words, parent = _words(proc, pid), _parent(proc, pid)
    for _ in range(ANCESTORS_MAX):
        above = _words(proc, parent)
        is_of_job = is_child or words == above or any(helper in words for helper in _HELPERS)
        if not (words and above and is_of_job):
            break
        pid, words, parent, is_child = parent, above, _parent(proc, parent), False
    top = parent or pid  # the first process of a container has no parent
    return f"{host}:{top}:{process_start(top)}", pid


def _words(proc: Path, pid: int) -> bytes:
    try:
        return (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def _parent(proc: Path, pid: int) -> int:
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
    except OSError:  # no Linux: we know of ourselves alone
        return os.getppid() if pid == os.getpid() else 0
    return int(stat.rpartition(b")")[2].split()[1])


def forget_other_host(environ: MutableMapping[str, str]) -> None:
    """Drop what a launcher of ours said of its host, where another took its variables elsewhere.

    `ranklog run -- srun …`: the tasks have its variables, and on other nodes no agent and no spool of
    its; they are of its run and launch.
    """
    if environ.get("RANKLOG_LAUNCHED_ON") not in (None, socket.gethostname()):
        for name in _OF_HOST:
            environ.pop(name, None)


def tell_if_alone(environ: Mapping[str, str], around: Surroundings) -> None:
    """One line on stderr where a launch is not the whole job, or may be more than the job."""
    found = find_identity(environ, around)
    if found.identity.local_rank in (None, 0) and is_host_alone(environ, found):
        trouble.once(
            "launch",
            "nothing names this job's launch on all its hosts, so each host is a launch of its own; "
            "set RANKLOG_LAUNCH, or call init after init_process_group",
        )
    elif found.identity.rank == 0 and is_launch_shared(found):
        trouble.once(
            "launch",
            f"the launch {found.identity.launch} is named after MASTER_ADDR and MASTER_PORT, which a "
            "later job may have too; set RANKLOG_LAUNCH, or call init after init_process_group",
        )


def agreed_launch(distributed: Any) -> str:
    """One id for all ranks of a process group that is there already, else "".

    Whoever comes first to the group's store publishes its own, and the others take that one: one
    round trip, and no rank waits for another.
    """
    if distributed is None:
        return ""
    try:
        if not (distributed.is_available() and distributed.is_initialized()):
            return ""
        store = distributed.distributed_c10d._get_default_store()
        published = store.compare_set(_STORE_KEY, "", secrets.token_hex(6))
        return published.decode() if isinstance(published, bytes) else str(published)
    except Exception:  # another torch, another backend: then without
        return ""


def _is_child() -> bool:
    """Whether multiprocessing made this process, as far as this process knows by now."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return False
    known = process.parent_process()
    return known is not None and known.pid == os.getppid()


def _first_variables() -> dict[str, str] | None:
    """The variables that a child of multiprocessing began with (a forked one: its parent's)."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return None
    # A child of spawn imports the main module, which may call `init`, before it knows its parent.
    begins = getattr(process.current_process(), "_inheriting", False)
    if process.parent_process() is None and not begins:
        return None
    return _variables(os.getpid())


def _variables(pid: int) -> dict[str, str]:
    """What a process began with; {} where nobody may know."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for pair in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, equals, value = os.fsdecode(pair).partition("=")
            if equals:
                found[name] = value
    return found
