"""A rare literal in the corpus of tests/bench, asked through api, root and scan workers.

Answers are kept for who asks the same again, so that each question here has another limit and is new; indexes,
clients and processes are warm. `first` is the one before: it reads all indexes, and starts what was not started.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranklog.store.disk import DiskStore
from tests.artefacts.s3_proxy import Seen, tally
from tests.artefacts.stack import Stack
from tests.bench.building import ingest_frames
from tests.bench.corpus import NEEDLE, corpus
from tests.bench.suite import RUN

TENANT, WORKERS, REPEAT = "bench", 8, 40
LIST_KEYS_MAX = 1_000


@dataclass
class Asked:
    """What the questions took: wall seconds, the root's own stages in ms, CPU seconds of all workers."""

    hits: int = 0
    first_s: float = 0.0
    first_cpu_s: float = 0.0  # of the api function
    wall_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    stages_ms: dict[str, float] = field(default_factory=dict)
    first_requests: list[Seen] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    scan_tasks: float = 0.0
    index_objects: int = 0
    runs: int = 0  # of row groups that follow one another and might match

    @property
    def requests_max(self) -> int:
        """Of one warm query, by the mark: a LIST is one for each prefix that is listed."""
        return lists_max(self.requests) + 2 * self.runs


def lists_max(seen: list[Seen]) -> int:
    """LIST calls that what they named asks for: a page a thousand keys, one for an empty prefix."""
    prefixes: dict[str, int] = {}
    for one in seen:
        if one.kind == "LIST":
            prefixes[one.key] = prefixes.get(one.key, 0) + one.keys
    return sum(max(1, -(-keys // LIST_KEYS_MAX)) for keys in prefixes.values())


def fill(stack: Stack, folder: Path, lines: int) -> dict[str, int]:
    """The corpus, ingested into `folder` if it is not there, copied into the stack's bucket."""
    if not (folder / "done").is_file():
        ingest_frames(corpus(lines), folder / "store")
        (folder / "done").touch()
    source, target = DiskStore(folder / "store"), stack.store
    objects = size = 0
    for found in source.list(""):
        target.put(found.key, source.get(found.key))
        objects, size = objects + 1, size + found.length
    return {"objects": objects, "bytes": size}


def measure(stack: Stack, repeat: int = REPEAT) -> Asked:
    """Ask once for the first time, a few times to warm all workers, then `repeat` times."""
    asked = Asked()
    stack.proxy.take()
    cpu_s, started = stack["Api"].cpu_s, time.perf_counter()
    answer = _ask(stack, limit=990)
    asked.first_s = time.perf_counter() - started
    asked.first_cpu_s = stack["Api"].cpu_s - cpu_s
    asked.first_requests = stack.proxy.take()
    asked.hits = len(answer["lines"])
    for limit in range(991, 999):
        _ask(stack, limit=limit)
    before, stages = _cpu_s(stack), []
    tasks = stack["Scan"].counts.invocations
    for limit in range(1_000, 1_000 + repeat):
        stack.proxy.take()
        started = time.perf_counter()
        answer = _ask(stack, limit=limit)
        asked.wall_s.append(time.perf_counter() - started)
        stages.append(answer["report"]["ms"])
        if len(answer["lines"]) != asked.hits:
            raise RuntimeError(f"{len(answer['lines'])} lines, {asked.hits} before")
    asked.requests = stack.proxy.take()
    asked.scan_tasks = (stack["Scan"].counts.invocations - tasks) / repeat
    asked.cpu_s = (_cpu_s(stack) - before) / repeat
    asked.stages_ms = {name: statistics.median(s[name] for s in stages) for name in stages[0]}
    _explain(stack, asked)
    return asked


def _ask(stack: Stack, **members: Any) -> dict[str, Any]:
    body = {"query": f'"{NEEDLE}"', "run": RUN, **members}
    status, answer = stack.ask("/v1/search", body)
    if status != 200 or answer.get("completeness", {}).get("skipped_tasks"):
        raise RuntimeError(f"{status}: {answer}")
    found: dict[str, Any] = answer
    return found


def _explain(stack: Stack, asked: Asked) -> None:
    """Runs of row groups that the plan keeps, from its own words."""
    segments = _ask(stack, explain=True)["explain"]["segments"]
    asked.index_objects = sum("/index/" in found.key for found in stack.store.list(f"{TENANT}/"))
    asked.runs = sum(_runs(segment) for segment in segments)


def _runs(segment: dict[str, Any]) -> int:
    excluded = {at for why in segment["excluded_by"] for at in why["row_groups"]}
    kept = [at for at in range(segment["row_groups"]["total"]) if at not in excluded]
    return len({at - order for order, at in enumerate(kept)})


def _cpu_s(stack: Stack) -> float:
    return sum(function.cpu_s for function in stack.lambdas.functions.values())


def describe(asked: Asked) -> dict[str, Any]:
    """For programs."""
    return {
        "hits": asked.hits,
        "first_s": asked.first_s,
        "wall_s": asked.wall_s,
        "cpu_s": asked.cpu_s,
        "stages_ms": asked.stages_ms,
        "first_requests": tally(asked.first_requests),
        "requests": tally(asked.requests),
        "bytes_read": sum(one.bytes for one in asked.requests if one.kind == "GET"),
        "index_objects": asked.index_objects,
        "runs_of_row_groups": asked.runs,
    }
