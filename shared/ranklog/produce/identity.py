"""Who this process is, read from what launchers put into the environment. Pure.

Rank: explicit, torchrun's RANK (a PyTorchJob's pod has one, too), Open MPI, PMI and PMIx, other
launchers' own, SLURM_PROCID (only where Slurm started several tasks), the index of a pod of an indexed
Kubernetes Job. A torchrun launcher has none of them: its workers are the ranks.
Launch: see `launch_name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from ranklog.model.names import fitting
from ranklog.produce.key_tenant import key_tenant
from ranklog.produce.launch_name import find_launch, number

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
_RUN_VARIABLES = ("RANKLOG_RUN", "SLURM_JOB_NAME", "JOBSET_NAME", "TRAINJOB_NAME", "JOB_NAME")
# Restarts by what restarts all of it, counted beside torchrun's own.
_OUTER_RESTARTS = ("SLURM_RESTART_COUNT", "JOBSET_RESTART_ATTEMPT")
WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Identity:
    """What names the streams of a process, but for channel and incarnation, by names that keys take.

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

    def __post_init__(self) -> None:
        for name in ("run", "launch", "host"):
            object.__setattr__(self, name, fitting(getattr(self, name)))


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
    # Processes set variables for themselves: all of a job are launched by those of its first one.
    given = environ if around.job_started_with is None else around.job_started_with
    identity = Identity(
        tenant=tenant_at(environ.get("RANKLOG_DESTINATION"), environ),
        run=_run(environ, around, sources),
        launch=find_launch(environ, given, _ranks(given, around, {})[2], around, sources),
        attempt=_attempt(environ, sources),
        host=environ.get("RANKLOG_HOST") or around.host,
        rank=rank,
        local_rank=local_rank,
        world_size=world_size,
        role=_role(environ, around, sources),
    )
    return Found(identity, sources)


def tenant_at(destination: str | None, environ: Mapping[str, str]) -> str:
    """Whose lines they are: who `RANKLOG_TENANT` says, else who the key is of that they are sent with (to an
    API, or sealed into a stream), which is good for no other's. Else they are those of `default`."""
    return environ.get("RANKLOG_TENANT") or key_tenant(destination, environ) or "default"


def _ranks(
    environ: Mapping[str, str], around: Surroundings, sources: dict[str, str]
) -> tuple[int | None, int | None, int | None]:
    # What a launcher of pods or tasks says of a torchrun launcher is not its workers' rank.
    known = _RANK_VARIABLES[:1] if around.in_torchrun_launcher else _RANK_VARIABLES
    for launcher, *names in known:
        if number(environ, names[0]) is not None:
            if names[0] == "RANK" and "TORCHELASTIC_RUN_ID" not in environ:
                launcher = "PyTorchJob" if "PET_NNODES" in environ else "the environment"
            sources["rank"] = f"{names[0]} ({launcher})"
            return _numbers(environ, names)
    if around.in_torchrun_launcher:
        return None, None, None
    tasks = number(environ, "SLURM_NTASKS")
    if tasks is not None and tasks > 1 and number(environ, "SLURM_PROCID") is not None:
        sources["rank"] = "SLURM_PROCID (Slurm)"
        return _numbers(environ, _SLURM[1:])
    return _pod_index(environ, sources), None, None


def _pod_index(environ: Mapping[str, str], sources: dict[str, str]) -> int | None:
    """The rank of a pod of an indexed Job. In a JobSet each of its jobs counts from 0."""
    index = number(environ, _POD_INDEX)
    if index is None:
        return None
    job = next((n for name in _JOB_INDEXES if (n := number(environ, name)) is not None), 0)
    pods = number(environ, _JOB_PODS)
    if job and not pods:
        return None  # which of the jobs' first pods is it?
    sources["rank"] = f"{_POD_INDEX} (Kubernetes)"
    return job * (pods or 0) + index


def _numbers(
    environ: Mapping[str, str], names: list[str] | tuple[str, ...]
) -> tuple[int | None, int | None, int | None]:
    rank, local_rank, world_size = (number(environ, name) for name in names)
    return rank, local_rank, world_size


def _run(environ: Mapping[str, str], around: Surroundings, sources: dict[str, str]) -> str:
    for name in _RUN_VARIABLES:
        if environ.get(name):
            sources["run"] = name
            return environ[name]
    sources["run"] = "the script's name"
    return PurePath(around.script).stem.lstrip("-") or "run"


def _attempt(environ: Mapping[str, str], sources: dict[str, str]) -> int:
    """torchrun's restarts, within those of what started torchrun anew."""
    if (given := number(environ, "RANKLOG_ATTEMPT")) is not None:
        sources["attempt"] = "RANKLOG_ATTEMPT"
        return given
    outer_name = next((n for n in _OUTER_RESTARTS if number(environ, n) is not None), None)
    outer = 0 if outer_name is None else number(environ, outer_name) or 0
    inner = number(environ, "TORCHELASTIC_RESTART_COUNT")
    if inner is None:
        if outer_name is not None:
            sources["attempt"] = outer_name
        return outer
    sources["attempt"] = "TORCHELASTIC_RESTART_COUNT"
    most = number(environ, "TORCHELASTIC_MAX_RESTARTS")
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
        if number(environ, name) is not None:
            inherited = around.started_with.get(name) == environ[name]
            sources["role"] = "a child of multiprocessing"
            return WORKER if inherited else None
    return None
