"""Who this process is, read from what launchers put into the environment. Pure.

Rank: explicit, torchrun's RANK, Open MPI, PMI and PMIx, SLURM_PROCID (only where Slurm started
several tasks, and not in a torchrun launcher that Slurm started: its workers are the ranks).
Launch: explicit, TORCHELASTIC_RUN_ID unless "none", Slurm job and step, PMIx namespace, else what
the processes of one launcher on one host have in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

# (rank, local rank, world size) of each launcher, in order of trust.
_RANK_VARIABLES = (
    ("RANKLOG_RANK", "RANKLOG_LOCAL_RANK", "RANKLOG_WORLD_SIZE"),
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE"),
)
_SLURM_VARIABLES = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS")


@dataclass(frozen=True, slots=True)
class Identity:
    """What names the streams of a process, but for channel and incarnation."""

    tenant: str
    run: str
    launch: str
    attempt: int
    host: str
    rank: int | None
    local_rank: int | None
    world_size: int | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the environment variables don't say. `launcher` names the parent process and its start."""

    host: str
    script: str
    launcher: str
    in_torchrun_launcher: bool = False


def identify(
    environ: Mapping[str, str],
    around: Surroundings,
    *,
    tenant: str | None = None,
    run: str | None = None,
    launch: str | None = None,
    attempt: int | None = None,
    rank: int | None = None,
    local_rank: int | None = None,
    world_size: int | None = None,
) -> Identity:
    """Explicit values first, then RANKLOG_* variables, then the launchers'."""
    found = _ranks(environ, around)
    return Identity(
        tenant=tenant or environ.get("RANKLOG_TENANT") or "default",
        run=run or _run(environ, around),
        launch=launch or _launch(environ, around),
        attempt=attempt if attempt is not None else _attempt(environ),
        host=environ.get("RANKLOG_HOST") or around.host,
        rank=rank if rank is not None else found[0],
        local_rank=local_rank if local_rank is not None else found[1],
        world_size=world_size if world_size is not None else found[2],
    )


def _ranks(
    environ: Mapping[str, str], around: Surroundings
) -> tuple[int | None, int | None, int | None]:
    for names in _RANK_VARIABLES:
        if _number(environ, names[0]) is not None:
            return _numbers(environ, names)
    tasks = _number(environ, "SLURM_NTASKS")
    if tasks is not None and tasks > 1 and not around.in_torchrun_launcher:
        return _numbers(environ, _SLURM_VARIABLES)
    return None, None, None


def _numbers(
    environ: Mapping[str, str], names: tuple[str, str, str]
) -> tuple[int | None, int | None, int | None]:
    rank, local_rank, world_size = (_number(environ, name) for name in names)
    return rank, local_rank, world_size


def _number(environ: Mapping[str, str], name: str) -> int | None:
    """A rank or count; anything else (the empty string, `-1`) is as good as absent."""
    value = environ.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def _run(environ: Mapping[str, str], around: Surroundings) -> str:
    named = environ.get("RANKLOG_RUN") or environ.get("SLURM_JOB_NAME")
    return named or PurePath(around.script).stem.lstrip("-") or "run"


def _launch(environ: Mapping[str, str], around: Surroundings) -> str:
    if explicit := environ.get("RANKLOG_LAUNCH"):
        return explicit
    if (torchrun := environ.get("TORCHELASTIC_RUN_ID", "none")) != "none":
        return torchrun
    if job := environ.get("SLURM_JOB_ID"):
        step = environ.get("SLURM_STEP_ID")
        return f"{job}.{step}" if step else job
    if namespace := environ.get("PMIX_NAMESPACE"):
        return namespace
    common = (environ.get("MASTER_ADDR", ""), environ.get("MASTER_PORT", ""), around.launcher)
    return hashlib.blake2b("\n".join(common).encode("utf-8", "replace"), digest_size=6).hexdigest()


def _attempt(environ: Mapping[str, str]) -> int:
    for name in ("RANKLOG_ATTEMPT", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"):
        number = _number(environ, name)
        if number is not None:
            return number
    return 0
