"""All checks, in the order in which a line travels: who, what, where it waits, the way out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ranklog.doctor.check import PROBLEM, Check
from ranklog.doctor.place import check_limits, check_shm, check_spool
from ranklog.doctor.python import check_python
from ranklog.doctor.way import check_agent, check_clock, check_destination, check_host_logs
from ranklog.doctor.who import check_identity, check_launcher
from ranklog.launch.command import launch_id, run_name, torchrun_of
from ranklog.launch.job import spool_for
from ranklog.produce.surroundings import here


def examine(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    destination: str | None = None,
    spool_dir: Path | None = None,
) -> list[Check]:
    """`words`: the command that would be run; none: this place alone. Changes nothing."""
    around = here(environ)
    if words:
        launcher = torchrun_of(words) is not None
        around = replace(around, script=run_name(words), in_torchrun_launcher=launcher)
        if named := launch_id(words, environ):
            environ = {"RANKLOG_LAUNCH": named, **environ}
    folder = (spool_dir or spool_for(destination, environ)).absolute()
    return [
        *check_identity(environ, around),
        check_launcher(words, environ),
        *check_python(words),
        *check_spool(folder, environ),
        check_shm(environ),
        check_limits(),
        check_agent(folder),
        *check_destination(environ, destination),
        check_clock(),
        *check_host_logs(environ),
    ]


def has_problem(checks: Sequence[Check]) -> bool:
    """Whether lines will be missing."""
    return any(check.state == PROBLEM for check in checks)
