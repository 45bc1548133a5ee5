"""`ranklog run`: a command with its output captured, an agent beside it, and its end as its own."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from ranklog.launch import console, plugin
from ranklog.launch.command import launch_id, run_name, torchrun_of
from ranklog.launch.host_monitor import monitored
from ranklog.launch.keeper import AgentKeeper
from ranklog.launch.parent import NOT_EXECUTABLE, NOT_FOUND, Parent, Program
from ranklog.launch.starters import MPI, starter_of
from ranklog.produce import spool
from ranklog.produce.identity import Identity, identify
from ranklog.produce.launch_name import names_launch
from ranklog.produce.starting import resolved, spool_of
from ranklog.produce.surroundings import here, tell_if_alone

# How long the agent has, after the job, to deliver where the command promises it.
DELIVER_S = 120.0
LOOK_S = 0.05
# What Pythons of the job run first: so that a torchrun inside takes our plugin.
STARTUP = Path(__file__).with_name("startup")


@dataclass(frozen=True, slots=True)
class Job:
    """What to run and where its lines go. `destination` None: they stay in the spool."""

    words: Sequence[str]
    folder: Path
    destination: str | None
    identity: Identity
    processes: int | None = None  # start so many, as ranks of one job on this host
    config: Path | None = None
    monitor: bool = False  # read this host beside it


def identity_of(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    run: str | None = None,
    launch: str | None = None,
    tenant: str | None = None,
) -> Identity:
    """Who the command is: explicit, what launchers around us say, else a launch of its own.

    torchrun is the launcher of ranks and none itself, also in a Slurm task.
    """
    around = replace(
        here(environ),
        script=run_name(words),
        in_torchrun_launcher=torchrun_of(words) is not None,
    )
    if launch is None and not environ.get("RANKLOG_LAUNCH"):
        launch = launch_id(words, environ)
    if launch is None and (identify(environ, around).world_size or 0) > 1:
        tell_if_alone(environ, around)  # one of several, whose launch is that of the others
    elif launch is None and not names_launch(environ):
        # Nothing around us names the launch: one that people can read and sort.
        started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        launch = f"{started}-{secrets.token_hex(2)}"
    return identify(environ, around, tenant=tenant, run=run, launch=launch)


def spool_for(
    destination: str | None,
    environ: Mapping[str, str],
    choose: Callable[[str | None, Mapping[str, str]], Path] = spool_of,
) -> Path:
    """The folder to spool in: an agent has one destination, so one that is given has its own folder.

    `choose`: `take_spool` where a job will log into it.
    """
    usual = environ.get("RANKLOG_DESTINATION")
    named = "RANKLOG_SPOOL" in environ and not usual
    if named or destination is None or (usual and destination == resolved(usual)):
        return choose(destination, environ)
    return spool.beside(spool.default_spool(environ), destination)


def run_job(job: Job) -> int:
    """Run it to its end; the exit code, negative for a signal. Never fails for a reason of ours."""
    try:
        spool.make_spool(job.folder)
    except OSError as error:
        print(f"ranklog: not captured, no spool: {error}", file=sys.stderr)
        os.execvpe(job.words[0], list(job.words), os.environ)
    if job.destination is None:
        print(f"ranklog: no destination, lines stay in {job.folder}", file=sys.stderr)
    starter = starter_of(job.words, os.environ) if job.processes is None else None
    if starter is not None and (advice := starter.advice()):
        print(f"ranklog: {advice}", file=sys.stderr)
    keeper = AgentKeeper(job.folder, job.destination)
    keeper.look()
    read_here = job.monitor and job.identity.local_rank in (None, 0)
    around = {**os.environ, **_environment(job)}
    with (
        monitored(around) if read_here else nullcontext(),
        console.handed_down() as handed,
        Parent(job.folder, look=keeper.look) as parent,
    ):
        try:
            for program in _programs(job, {**around, **handed}):
                parent.start(program)
        except OSError as error:
            print(f"ranklog: {job.words[0]}: {error.strerror}", file=sys.stderr)
            return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        codes = parent.wait()
    return next((code for code in codes if code), 0)


def wait_delivered(job: Job, timeout_s: float = DELIVER_S) -> bool:
    """Wait until all of the launch that this spool holds is delivered; False where it is not yet.

    What a process that outlived the command still writes is not waited for.
    """
    deadline, began_s = time.monotonic() + timeout_s, time.time()
    keeper = AgentKeeper(job.folder, job.destination)
    while _is_pending(job):
        if time.monotonic() > deadline or spool.agent_error(job.folder, began_s):
            return False
        keeper.look()
        time.sleep(LOOK_S)
    return True


def _is_pending(job: Job) -> bool:
    who = (job.identity.tenant, job.identity.run, job.identity.launch)
    return any(
        (other.identity.tenant, other.identity.run, other.identity.launch) == who
        and not spool.is_alive(other.pid, other.start)
        for other in spool.announced(job.folder)
    )


def _programs(job: Job, environ: dict[str, str]) -> list[Program]:
    words = list(job.words)
    torchrun = torchrun_of(words)
    if torchrun is not None:
        words = plugin.enabled(torchrun, environ, job.folder)
    if job.processes is None:
        starter = starter_of(words, environ)
        labels = starter.labels if starter else ""
        if labels == MPI and "PYTHONUNBUFFERED" not in os.environ:
            # Open MPI labels writes, and an unbuffered print is two: text, line feed.
            environ = {k: value for k, value in environ.items() if k != "PYTHONUNBUFFERED"}
        return [Program(words, environ, job.identity, labels)]
    port = environ.get("MASTER_PORT") or str(_free_port())
    return [
        Program(
            words,
            environ
            | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(job.processes)}
            | {"MASTER_ADDR": environ.get("MASTER_ADDR", "127.0.0.1"), "MASTER_PORT": port},
            replace(job.identity, rank=rank, local_rank=rank, world_size=job.processes),
        )
        for rank in range(job.processes)
    ]


def _environment(job: Job) -> dict[str, str]:
    who = job.identity
    made = {
        "RANKLOG_SPOOL": str(job.folder),
        "RANKLOG_LAUNCHED": "1",
        "RANKLOG_LAUNCHED_ON": socket.gethostname(),
        "RANKLOG_TENANT": who.tenant,
        "RANKLOG_RUN": who.run,
        "RANKLOG_LAUNCH": who.launch,
        "RANKLOG_HOST": who.host,
        # Their output goes to a file: without this a killed rank's last lines die in its buffer.
        "PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED") or "1",
    }
    if os.environ.get("RANKLOG_STARTUP") != "0":
        paths = [str(STARTUP), *filter(None, [os.environ.get("PYTHONPATH")])]
        made["PYTHONPATH"] = os.pathsep.join(paths)
    if job.destination is not None:
        made["RANKLOG_DESTINATION"] = job.destination
    if job.config is not None:
        made["RANKLOG_CONFIG"] = str(job.config.absolute())
    return made


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
