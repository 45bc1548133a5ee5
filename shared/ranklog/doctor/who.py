"""Who this process or command would be: identity with its sources, and the launcher."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import PurePath

from ranklog.doctor.check import NOTE, OK, PROBLEM, Check
from ranklog.launch.command import PLUGIN, run_name, torchrun_of
from ranklog.launch.starters import Starter, starter_of
from ranklog.produce.identity import Found, Surroundings, find_identity
from ranklog.produce.launch_name import is_host_alone, is_launch_shared

# Programs beside srun and mpirun that start ranks, on this host or others; each rank tells who it is
# by their variables.
_STARTERS = {
    "jsrun": "jsrun",
    "flux": "Flux",
    "deepspeed": "DeepSpeed",
    "accelerate": "Accelerate",
    "horovodrun": "Horovod",
    "ray": "Ray",
}


def check_identity(environ: Mapping[str, str], around: Surroundings) -> list[Check]:
    """Run, launch, attempt, rank, as `ranklog.init` would find them here."""
    found = find_identity(environ, around)
    who, sources = found.identity, found.sources
    facts = (
        ("run", who.run),
        ("launch", who.launch),
        ("attempt", who.attempt),
        ("host", who.host),
        ("rank", who.rank),
        ("local_rank", who.local_rank),
        ("world_size", who.world_size),
        ("sources", sources),
    )
    if environ.get("RANKLOG_DISABLED") == "1":
        says = "RANKLOG_DISABLED=1: every call of ranklog does nothing"
        return [Check("identity", PROBLEM, says, "unset RANKLOG_DISABLED", facts)]
    place = f"run {who.run}@{who.launch}, attempt {who.attempt}, host {who.host}"
    origin = f"run from {sources['run']}, launch from {sources['launch']}"
    return [_check_rank(found, facts), _check_launch(environ, found, f"{place} ({origin})")]


def _check_rank(found: Found, facts: tuple[tuple[str, object], ...]) -> Check:
    who = found.identity
    if who.rank is None:
        return Check(
            "identity",
            NOTE,
            "no rank: no variable of torchrun, MPI, PMI, Slurm or Kubernetes is set in this shell",
            "right for one process, and for the shell that starts torchrun, srun or mpirun (their "
            "ranks find it); else set RANKLOG_RANK and RANKLOG_WORLD_SIZE for each process",
            facts,
        )
    size = "" if who.world_size is None else f" of {who.world_size}"
    says = f"rank {who.rank}{size}, from {found.sources['rank']}"
    if who.world_size is None:
        do = "set RANKLOG_WORLD_SIZE, so that ranks that never log are known to be missing"
        return Check("identity", NOTE, says, do, facts)
    return Check("identity", OK, says, facts=facts)


def _check_launch(environ: Mapping[str, str], found: Found, says: str) -> Check:
    if is_host_alone(environ, found):
        return Check(
            "launch",
            PROBLEM,
            f"{says}; the job has other hosts, and each would be a launch of its own",
            "set RANKLOG_LAUNCH to the same id on all hosts (torchrun: --rdzv-id), or call "
            "ranklog.init after init_process_group, so that the ranks agree on one",
        )
    if is_launch_shared(found):
        do = "set RANKLOG_LAUNCH to an id of this job (torchrun: --rdzv-id)"
        if "KUBERNETES_SERVICE_HOST" in environ:
            do = "set RANKLOG_LAUNCH from the label batch.kubernetes.io/controller-uid of the pod"
        return Check("launch", NOTE, says, do)
    return Check("launch", OK, says)


def check_launcher(words: Sequence[str], environ: Mapping[str, str]) -> Check:
    """What the command starts, and how its ranks would be told apart."""
    if not words:
        known = {"TORCHELASTIC_RUN_ID": "torchrun", "SLURM_JOB_ID": "Slurm"} | {
            "OMPI_COMM_WORLD_SIZE": "Open MPI",
            "PMI_SIZE": "PMI",
            "KUBERNETES_SERVICE_HOST": "Kubernetes",
        }
        here = [name for variable, name in known.items() if variable in environ]
        says = f"inside of {' and '.join(here)}" if here else "no launcher around this shell"
        do = "give the command to look at: ranklog doctor -- torchrun train.py"
        return Check("launcher", OK, says, do, (("launchers", here),))
    if shutil.which(words[0]) is None:
        do = "give its path, or activate its environment"
        return Check("launcher", PROBLEM, f"no program {words[0]} on PATH", do)
    facts = (("command", list(words)), ("run", run_name(words)))
    if torchrun_of(words) is not None:
        return _check_torchrun(words, facts)
    if (passes_on := starter_of(words, environ)) is not None:
        return _check_starter(passes_on, facts)
    starter = _STARTERS.get(PurePath(words[0]).name)
    if starter:
        return Check(
            "launcher",
            OK,
            f"{starter} starts the ranks; who each is stands in its variables",
            f"put ranklog between: {words[0]} … ranklog run -- python train.py, or call "
            "ranklog.init() in the script",
            facts,
        )
    says = f"one program, {run_name(words)}: its output is one stream, its children's with it"
    do = "if it starts ranks itself, call ranklog.init() in each, or start it by torchrun"
    return Check("launcher", NOTE, says, do, facts)


def _check_starter(starter: Starter, facts: tuple[tuple[str, object], ...]) -> Check:
    """srun, mpirun: above ranks or below `ranklog run`, which makes all the difference."""
    advice = starter.advice()
    if not advice:
        says = f"{starter.name} starts ranklog run once a rank: each is a stream of its own"
        return Check(
            "launcher", OK, says, "start it as it is, without ranklog run before it", facts
        )
    says, _, do = advice.partition("; ")
    return Check("launcher", NOTE, f"below one ranklog run {says}", do, facts)


def _check_torchrun(words: Sequence[str], facts: tuple[tuple[str, object], ...]) -> Check:
    torchrun = torchrun_of(words)
    assert torchrun is not None
    given = torchrun.option("--logs-specs")
    if given not in (None, PLUGIN):
        return Check(
            "launcher",
            NOTE,
            f"torchrun with --logs-specs {given}: ranks' output goes where that plugin says",
            f"use --logs-specs {PLUGIN}, or call ranklog.init(capture='fd') in the script",
            facts,
        )
    if torchrun.interpreter is None and not _has_plugin():
        return Check(
            "launcher",
            PROBLEM,
            f"torchrun, but the plugin {PLUGIN} is not installed beside it",
            "pip install ranklog in the environment that torchrun is of",
            facts,
        )
    says = (
        "torchrun with our plugin: each rank's output is a stream of its own, restarts are attempts"
    )
    return Check("launcher", OK, says, "start it by ranklog run, which adds --logs-specs", facts)


def _has_plugin() -> bool:
    return any(point.name == PLUGIN for point in entry_points(group="torchrun.logs_specs"))
