"""An actor in a process of its own, which is killed with SIGKILL at a step: nothing of it is left running."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.matrix import machine
from tests.matrix.actors import ACTS, Site
from tests.matrix.boundary import Ages, Boundary
from tests.matrix.faults import ActorPlan, Injection
from tests.matrix.machine import Clock, Machine, Where

# Forked from a process that has imported everything and runs nothing: threads do not survive a fork.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.matrix.schedule"])
CHILD_S = 120.0


@dataclass(frozen=True, slots=True)
class Spec:
    """What a child needs to know."""

    where: Where
    prefix: str
    stream_name: str
    folder: Path
    now_ns: int
    aged: dict[str, int]
    seed: int
    act: str
    arguments: tuple[Any, ...]
    injection: Injection | None


def run_child(
    site: Site, seed: int, act: str, arguments: tuple[Any, ...], injection: Injection | None
) -> tuple[int, Any]:
    """Exit code (negative: the signal), and what the act returned, or the error it raised."""
    there, here = CONTEXT.Pipe(duplex=False)
    spec = Spec(
        site.machine.where,
        site.prefix,
        site.stream_name,
        site.folder,
        site.machine.clock(),
        site.ages.known(),
        seed,
        act,
        arguments,
        injection,
    )
    child = CONTEXT.Process(target=_main, args=(spec, here))
    child.start()
    here.close()
    child.join(CHILD_S)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise TimeoutError(f"{act} did not end")
    try:
        result = there.recv() if there.poll() else None
    except EOFError:
        result = None
    there.close()
    code = child.exitcode
    child.close()
    return code, result


def _main(spec: Spec, pipe: Connection) -> None:
    os.environ["RANKLOG_RING_MIB"] = "1"
    clock = Clock(spec.now_ns)
    machine.install(clock)
    machine.seed_names(spec.seed)
    site = Site(
        Machine(spec.where, clock),
        spec.prefix,
        spec.stream_name,
        spec.folder,
        Ages(clock, spec.aged),
    )
    plan = ActorPlan([] if spec.injection is None else [spec.injection])
    try:
        result = ACTS[spec.act](site, Boundary(plan, in_child=True), *spec.arguments)
    except Exception as error:
        result = error
    pipe.send(result)
