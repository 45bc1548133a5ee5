"""What the launch of a process is called, so that all processes of a job say the same. Pure.

Explicit, the id that a launcher gave all its processes, what the ranks agreed on through their process
group's store, of several hosts the address where they meet, else what the processes of one launcher
on one host have in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranklog.produce.identity import Found, Surroundings

# An id that all processes of a launch were given, and no other launch.
_LAUNCH_VARIABLES = (
    "RANKLOG_LAUNCH",
    "TORCHELASTIC_RUN_ID",
    "PET_RDZV_ID",
    "SLURM_JOB_ID",
    "PMIX_NAMESPACE",
    "PALS_APID",
    "FLUX_JOB_ID",
    "LSB_JOBID",
    "PBS_JOBID",
    "JOBSET_UID",
    "JOB_UID",
    "JOBSET_NAME",
)
# How many ranks a launcher started on this host, and on how many hosts.
_LOCAL_SIZES = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PMIX_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
    "JSM_NAMESPACE_LOCAL_SIZE",
    "HOROVOD_LOCAL_SIZE",
)
_HOST_COUNTS = ("GROUP_WORLD_SIZE", "SLURM_NNODES", "PET_NNODES")
_LOOPBACK = ("", "localhost", "127.0.0.1", "::1", "0.0.0.0")
# Where a launch comes from that is no job's alone.
MEETING_PLACE = "MASTER_ADDR and MASTER_PORT (a later job that meets there shares it)"
LAUNCHER = "this host's launcher process"


def find_launch(
    environ: Mapping[str, str],
    given: Mapping[str, str],
    world_size: int | None,
    around: Surroundings,
    sources: dict[str, str],
) -> str:
    """The launch, and in `sources` where it comes from.

    `given`: the variables that the job's first process on this host began with, and the world's size
    by them.
    """
    for name in _LAUNCH_VARIABLES:
        value = environ.get(name, "")
        if not value or value == "none":  # torchrun's word for no id
            continue
        sources["launch"] = name
        step = environ.get("SLURM_STEP_ID") if name == "SLURM_JOB_ID" else None
        return f"{value}.{step}" if step else value
    if around.agreed:
        sources["launch"] = "agreed by the ranks through their process group's store"
        return around.agreed
    return _common_launch(given, world_size, around, sources)


def _common_launch(
    given: Mapping[str, str],
    world_size: int | None,
    around: Surroundings,
    sources: dict[str, str],
) -> str:
    """What the processes of one launcher on one host have in common; of several hosts, where they meet."""
    master = given.get("MASTER_ADDR", ""), given.get("MASTER_PORT", "")
    launcher = around.launcher
    sources["launch"] = LAUNCHER
    far = "KUBERNETES_SERVICE_HOST" in given or _has_other_hosts(given, world_size) is not False
    if far and master[0] not in _LOOPBACK:
        # All hosts know it, and so does a later job: better two jobs in one launch than one in several.
        launcher, sources["launch"] = "", MEETING_PLACE
    common = "\n".join((*master, launcher)).encode("utf-8", "replace")
    return hashlib.blake2b(common, digest_size=6).hexdigest()


def _has_other_hosts(environ: Mapping[str, str], world_size: int | None) -> bool | None:
    """Whether the job has ranks on other hosts; None where nothing tells."""
    if (world_size or 0) < 2:
        return False
    local = next((n for name in _LOCAL_SIZES if (n := number(environ, name)) is not None), None)
    hosts = next((n for name in _HOST_COUNTS if (n := number(environ, name)) is not None), None)
    if (hosts or 0) > 1 or (local is not None and (world_size or 0) > local):
        return True
    return None if local is None and hosts is None else False


def names_launch(environ: Mapping[str, str]) -> bool:
    """Whether a variable names the launch, so that nothing needs to be agreed on."""
    return any(environ.get(name, "none") not in ("", "none") for name in _LAUNCH_VARIABLES)


def is_host_alone(environ: Mapping[str, str], found: Found) -> bool:
    """Whether the job has other hosts that will name the launch differently."""
    several = _has_other_hosts(environ, found.identity.world_size) is True
    return several and found.sources.get("launch") == LAUNCHER


def is_launch_shared(found: Found) -> bool:
    """Whether a later job that meets at the same place would be of the same launch."""
    return found.sources.get("launch") == MEETING_PLACE


def number(environ: Mapping[str, str], name: str) -> int | None:
    """A rank or count; anything else (the empty string, `-1`) is as good as absent."""
    value = environ.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None
