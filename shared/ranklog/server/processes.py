"""Processes that are kept running: one that something killed is started again, none is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

# Before a process that ended is started again.
RESTART_S = 1.0

Stopping = Callable[[], bool]
# What a process does until it is told to stop, by SIGTERM or because its parent is gone.
Job = Callable[[Stopping], None]


def keep_running(jobs: Sequence[Job]) -> NoReturn:
    """Run each job in a process of its own, until SystemExit or KeyboardInterrupt is raised here.

    Call it before threads are started: they survive no fork.
    """
    running = {_start(job): job for job in jobs}
    try:
        while True:
            pid, _ = os.wait()
            job = running.pop(pid, None)
            if job is not None:
                time.sleep(RESTART_S)
                running[_start(job)] = job
    finally:
        for pid in running:
            os.kill(pid, signal.SIGTERM)
        for pid in running:
            os.waitpid(pid, 0)


def _start(job: Job) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who ends us
        job(partial(_is_orphan, parent))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _is_orphan(parent: int) -> bool:
    """Looked at between two pieces of work: nobody is left behind by a parent that was killed."""
    return os.getppid() != parent
