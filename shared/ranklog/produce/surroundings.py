"""What of a process's identity is not in its variables: host, parent, and what its ranks agreed on."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranklog.produce import trouble
from ranklog.produce.identity import (
    Surroundings,
    find_identity,
    is_host_alone,
    names_launch,
)
from ranklog.produce.spool import process_start

_STORE_KEY = "ranklog/launch"


def here(environ: Mapping[str, str] = os.environ) -> Surroundings:
    """This process's surroundings. Imports nothing of the job's, waits for nobody."""
    parent = os.getppid()
    host = socket.gethostname()
    return Surroundings(
        host=host,
        script=sys.argv[0] if sys.argv else "",
        launcher=f"{host}:{parent}:{process_start(parent)}",
        in_torchrun_launcher=(
            "torch.distributed.run" in sys.modules and "TORCHELASTIC_RUN_ID" not in environ
        ),
        agreed="" if names_launch(environ) else agreed_launch(sys.modules.get("torch.distributed")),
        started_with=_first_variables(),
    )


def tell_if_alone(environ: Mapping[str, str], around: Surroundings) -> None:
    """One line on stderr where the job has other hosts that would name the launch differently."""
    found = find_identity(environ, around)
    if found.identity.local_rank in (None, 0) and is_host_alone(environ, found):
        trouble.once(
            "launch",
            "nothing names this job's launch on all its hosts, so each host is a launch of its own; "
            "set RANKLOG_LAUNCH, or call init after init_process_group",
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


def _first_variables() -> dict[str, str] | None:
    """The variables that a child of multiprocessing began with (a forked one: its parent's)."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return None
    # A child of spawn imports the main module, which may call `init`, before it knows its parent.
    begins = getattr(process.current_process(), "_inheriting", False)
    if process.parent_process() is None and not begins:
        return None
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for pair in Path("/proc/self/environ").read_bytes().split(b"\0"):
            name, equals, value = os.fsdecode(pair).partition("=")
            if equals:
                found[name] = value
    return found
