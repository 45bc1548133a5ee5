"""Who this process is, read from what launchers put into the environment. Pure.

Rank: explicit, torchrun's RANK (a PyTorchJob's pod has one, too), Open MPI, PMI and PMIx, other
launchers' own, SLURM_PROCID (only where Slurm started several tasks), the index of a pod of an indexed
Kubernetes Job. A torchrun launcher has none of them: its workers are the ranks.
Launch: explicit, the id that a launcher gave all its processes, what the ranks agreed on through
their process group's store, of several hosts the address where they meet, else what the processes of
one launcher on one host have in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath

# Launcher: (rank, local rank, world size), in order of trust.
_RANK_VARIABLES = (
    ("RANKLOG_*", "RANKLOG_RANK", "RANKLOG_LOCAL_RANK", "RANKLOG_WORLD_SIZE"),
    ("torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    (
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_SIZE",
    ),
    ("PMI", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("PMIx", "PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS", "PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_SIZE"),
    ("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE"),
    ("Flux", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"),
    ("Horovod", "HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE"),
)
_SLURM = ("Slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS")
_POD_INDEX = "JOB_COMPLETION_INDEX"
# Of several jobs of a JobSet with indexes of their own: which one, and how many pods each has.
_JOB_INDEXES = ("JOB_GLOBAL_INDEX", "JOB_INDEX")
_JOB_PODS = "JOB_PARALLELISM"
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
_RUN_VARIABLES = ("RANKLOG_RUN", "SLURM_JOB_NAME", "JOBSET_NAME", "TRAINJOB_NAME", "JOB_NAME")
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
# Restarts by what restarts all of it, counted beside torchrun's own.
_OUTER_RESTARTS = ("SLURM_RESTART_COUNT", "JOBSET_RESTART_ATTEMPT")
WORKER = "worker"
# Where a launch comes from that is no job's alone.
MEETING_PLACE = "MASTER_ADDR and MASTER_PORT (a later job that meets there shares it)"


@dataclass(frozen=True, slots=True)
class Identity:
    """What names the streams of a process, but for channel and incarnation.

    `role` "worker" is a rank's helper (a data loader's process): of its rank, and not the rank.
    """

    tenant: str
    run: str
    launch: str
    attempt: int
    host: str
    rank: int | None
    local_rank: int | None
    world_size: int | None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the environment variables don't say.

    `launcher` names the process that started the job on this host, and its start; `agreed` is what
    the ranks agreed on, "" where they could not; `started_with` are the variables of a multiprocessing
    child's first moment, `job_started_with` those of the job's first process (None: as now).
    """

    host: str
    script: str
    launcher: str
    in_torchrun_launcher: bool = False
    agreed: str = ""
    started_with: Mapping[str, str] | None = None
    job_started_with: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An identity, and where each part of it comes from, for people."""

    identity: Identity
    sources: dict[str, str] = field(default_factory=dict)


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
    found = find_identity(environ, around).identity
    given = {
        "tenant": tenant or None,
        "run": run or None,
        "launch": launch or None,
        "attempt": attempt,
        "rank": rank,
        "local_rank": local_rank,
        "world_size": world_size,
    }
    if rank is not None:
        found = replace(found, role=None)
    return replace(found, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def find_identity(environ: Mapping[str, str], around: Surroundings) -> Found:
    """Identity from the environment alone, with its sources."""
    sources: dict[str, str] = {}
    rank, local_rank, world_size = _ranks(environ, around, sources)
    identity = Identity(
        tenant=environ.get("RANKLOG_TENANT") or "default",
        run=_run(environ, around, sources),
        launch=_launch(environ, around, world_size, sources),
        attempt=_attempt(environ, sources),
        host=environ.get("RANKLOG_HOST") or around.host,
        rank=rank,
        local_rank=local_rank,
        world_size=world_size,
        role=_role(environ, around, sources),
    )
    return Found(identity, sources)


def _ranks(
    environ: Mapping[str, str], around: Surroundings, sources: dict[str, str]
) -> tuple[int | None, int | None, int | None]:
    # What a launcher of pods or tasks says of a torchrun launcher is not its workers' rank.
    known = _RANK_VARIABLES[:1] if around.in_torchrun_launcher else _RANK_VARIABLES
    for launcher, *names in known:
        if _number(environ, names[0]) is not None:
            if names[0] == "RANK" and "TORCHELASTIC_RUN_ID" not in environ:
                launcher = "PyTorchJob" if "PET_NNODES" in environ else "the environment"
            sources["rank"] = f"{names[0]} ({launcher})"
            return _numbers(environ, names)
    if around.in_torchrun_launcher:
        return None, None, None
    tasks = _number(environ, "SLURM_NTASKS")
    if tasks is not None and tasks > 1 and _number(environ, "SLURM_PROCID") is not None:
        sources["rank"] = "SLURM_PROCID (Slurm)"
        return _numbers(environ, _SLURM[1:])
    return _pod_index(environ, sources), None, None


def _pod_index(environ: Mapping[str, str], sources: dict[str, str]) -> int | None:
    """The rank of a pod of an indexed Job. In a JobSet each of its jobs counts from 0."""
    index = _number(environ, _POD_INDEX)
    if index is None:
        return None
    job = next((n for name in _JOB_INDEXES if (n := _number(environ, name)) is not None), 0)
    pods = _number(environ, _JOB_PODS)
    if job and not pods:
        return None  # which of the jobs' first pods is it?
    sources["rank"] = f"{_POD_INDEX} (Kubernetes)"
    return job * (pods or 0) + index


def _numbers(
    environ: Mapping[str, str], names: list[str] | tuple[str, ...]
) -> tuple[int | None, int | None, int | None]:
    rank, local_rank, world_size = (_number(environ, name) for name in names)
    return rank, local_rank, world_size


def _number(environ: Mapping[str, str], name: str) -> int | None:
    """A rank or count; anything else (the empty string, `-1`) is as good as absent."""
    value = environ.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def _run(environ: Mapping[str, str], around: Surroundings, sources: dict[str, str]) -> str:
    for name in _RUN_VARIABLES:
        if environ.get(name):
            sources["run"] = name
            return environ[name]
    sources["run"] = "the script's name"
    return PurePath(around.script).stem.lstrip("-") or "run"


def _launch(
    environ: Mapping[str, str],
    around: Surroundings,
    world_size: int | None,
    sources: dict[str, str],
) -> str:
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
    return _common_launch(environ, around, world_size, sources)


def _common_launch(
    environ: Mapping[str, str],
    around: Surroundings,
    world_size: int | None,
    sources: dict[str, str],
) -> str:
    """What the processes of one launcher on one host have in common; of several hosts, where they meet."""
    # Processes set these for themselves: all of a job take those that its first one was given.
    given = environ if around.job_started_with is None else around.job_started_with
    master = given.get("MASTER_ADDR", ""), given.get("MASTER_PORT", "")
    launcher = around.launcher
    sources["launch"] = "this host's launcher process"
    far = "KUBERNETES_SERVICE_HOST" in environ or _has_other_hosts(environ, world_size) is not False
    if far and master[0] not in _LOOPBACK:
        # All hosts know it, and so does a later job: better two jobs in one launch than one in several.
        launcher, sources["launch"] = "", MEETING_PLACE
    common = "\n".join((*master, launcher)).encode("utf-8", "replace")
    return hashlib.blake2b(common, digest_size=6).hexdigest()


def _has_other_hosts(environ: Mapping[str, str], world_size: int | None) -> bool | None:
    """Whether the job has ranks on other hosts; None where nothing tells."""
    if (world_size or 0) < 2:
        return False
    local = next((n for name in _LOCAL_SIZES if (n := _number(environ, name)) is not None), None)
    hosts = next((n for name in _HOST_COUNTS if (n := _number(environ, name)) is not None), None)
    if (hosts or 0) > 1 or (local is not None and (world_size or 0) > local):
        return True
    return None if local is None and hosts is None else False


def names_launch(environ: Mapping[str, str]) -> bool:
    """Whether a variable names the launch, so that nothing needs to be agreed on."""
    return any(environ.get(name, "none") not in ("", "none") for name in _LAUNCH_VARIABLES)


def is_host_alone(environ: Mapping[str, str], found: Found) -> bool:
    """Whether the job has other hosts that will name the launch differently."""
    several = _has_other_hosts(environ, found.identity.world_size) is True
    return several and found.sources.get("launch") == "this host's launcher process"


def is_launch_shared(found: Found) -> bool:
    """Whether a later job that meets at the same place would be of the same launch."""
    return found.sources.get("launch") == MEETING_PLACE


def _attempt(environ: Mapping[str, str], sources: dict[str, str]) -> int:
    """torchrun's restarts, within those of what started torchrun anew."""
    if (given := _number(environ, "RANKLOG_ATTEMPT")) is not None:
        sources["attempt"] = "RANKLOG_ATTEMPT"
        return given
    outer_name = next((n for n in _OUTER_RESTARTS if _number(environ, n) is not None), None)
    outer = 0 if outer_name is None else _number(environ, outer_name) or 0
    inner = _number(environ, "TORCHELASTIC_RESTART_COUNT")
    if inner is None:
        if outer_name is not None:
            sources["attempt"] = outer_name
        return outer
    sources["attempt"] = "TORCHELASTIC_RESTART_COUNT"
    most = _number(environ, "TORCHELASTIC_MAX_RESTARTS")
    if most is None or not outer or outer_name is None:
        return inner
    sources["attempt"] += f" within {outer_name}"
    return outer * (most + 1) + inner


def _role(environ: Mapping[str, str], around: Surroundings, sources: dict[str, str]) -> str | None:
    """A multiprocessing child is a rank's worker if the rank's own variables came with it; one that
    sets them itself is a rank (`mp.spawn`)."""
    if environ.get("RANKLOG_ROLE"):
        sources["role"] = "RANKLOG_ROLE"
        return environ["RANKLOG_ROLE"]
    if around.started_with is None:
        return None
    for _, name, *_ in (*_RANK_VARIABLES, _SLURM):
        if _number(environ, name) is not None:
            inherited = around.started_with.get(name) == environ[name]
            sources["role"] = "a child of multiprocessing"
            return WORKER if inherited else None
    return None
