"""Schedules in processes: servers once, a proxy before each, a bucket, and workers that take seeds in turn."""

from __future__ import annotations

import contextlib
import os
import queue
import tempfile
import traceback
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranklog.errors import RanklogError
from tests.matrix import machine
from tests.matrix.boundary import Killed
from tests.matrix.children import CONTEXT
from tests.matrix.faults import Injection
from tests.matrix.machine import Clock, Machine, Where
from tests.matrix.proxy import Proxy
from tests.matrix.schedule import Result, run_schedule
from tests.matrix.truth import KINDS
from tests.servers import Server, running_moto, running_seaweedfs

BUCKET = "matrix"
_LOOK_S = 0.5


@contextlib.contextmanager
def running_servers() -> Iterator[Where]:
    """SeaweedFS and moto on loopback, and a proxy before each."""
    with (
        tempfile.TemporaryDirectory(prefix="ranklog-matrix-", ignore_cleanup_errors=True) as folder,
        running_seaweedfs(_made(Path(folder) / "weed")) as s3,
        running_moto(_made(Path(folder) / "moto")) as kinesis,
        behind_proxies(s3, kinesis) as where,
    ):
        yield where


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@contextlib.contextmanager
def behind_proxies(s3: Server, kinesis: Server) -> Iterator[Where]:
    """Proxies before servers that run, and the bucket; workers have proxies of their own."""
    client = s3.client("s3")
    with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
        client.create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
    client.close()
    yield Where(s3.url, "", kinesis.url, "", BUCKET)


def run_seeds(
    where: Where,
    seeds: Sequence[int],
    workers: int,
    mutation: str | None = None,
    *,
    is_broken: bool = True,
) -> Generator[Result, None, None]:
    """Results as they come. `mutation`: with what its rule is for, and the rule broken, unless it is not.
    Raises where the workers die."""
    waiting: Any = CONTEXT.Queue()
    results: Any = CONTEXT.Queue()
    for seed in seeds:
        waiting.put(seed)
    started = [
        CONTEXT.Process(target=_work, args=(where, waiting, results, mutation, is_broken))
        for _ in range(min(workers, len(seeds)))
    ]
    for process in started:
        process.start()
    try:
        for _ in seeds:
            yield _next(results, started)
    finally:
        for process in started:
            process.kill()
            process.join()


def shows(result: Result) -> bool:
    """Whether something is wrong that is no mistake of the matrix."""
    return any(result.wrong[kind] for kind in KINDS)


@dataclass(slots=True)
class Verdict:
    """Of a broken rule. `what`: the kinds of what was wrong, or why it is not caught; `seed`: of the schedule
    that showed it. `cpu_s`: of the workers, for all that were tried."""

    what: str
    seed: int | None = None
    cpu_s: float = 0.0
    notes: list[str] = field(default_factory=list)


class Verdicts:
    """Whether schedules show broken rules. A schedule in which no rule is broken is played once for all."""

    def __init__(self, where: Where) -> None:
        self.caught = 0
        self._where = where
        self._sound: dict[tuple[int, Injection | None], Result] = {}

    def of(self, mutation: str, seeds: Sequence[int]) -> Verdict:
        """Of the first of these schedules that shows it, and nothing while the rule holds."""
        verdict = Verdict("NOT CAUGHT")
        for seed in seeds:
            [result] = run_seeds(self._where, [seed], 1, mutation)
            verdict.cpu_s += result.cpu_s
            if not shows(result):
                if result.notes:  # it may be that nothing was broken
                    verdict.what, verdict.notes = "MISTAKE", [_last_line(result.notes[0])]
                continue
            sound = self._held(seed, mutation)
            if not sound.notes:
                self.caught += 1
                kinds = ", ".join(f"{kind} {count}" for kind, count in result.wrong.items())
                return Verdict(kinds, seed, verdict.cpu_s, [_last_line(result.notes[0])])
            verdict.what = f"NOT CLEAN while the rule holds: {dict(sound.wrong)}"
            verdict.notes = [_last_line(note) for note in sound.notes[:1]]
            break
        return verdict

    def _held(self, seed: int, mutation: str) -> Result:
        from tests.matrix.mutations import MUTATIONS

        place = (seed, MUTATIONS[mutation].at)
        if place not in self._sound:
            [self._sound[place]] = run_seeds(self._where, [seed], 1, mutation, is_broken=False)
        return self._sound[place]


def _last_line(note: str) -> str:
    return note.strip().splitlines()[-1]


def _next(results: Any, started: Sequence[Any]) -> Result:
    while True:
        try:
            found: Result = results.get(timeout=_LOOK_S)
            return found
        except queue.Empty:
            if not any(process.is_alive() for process in started):
                raise RuntimeError("the workers are gone") from None


def _note_unused(result: Result, names: Sequence[str]) -> None:
    """Nothing was broken: the product has another function in that place now, or nothing asked for it."""
    for name in names:
        result.wrong["mistake"] += 1
        result.notes.append(f"mistake: nobody calls {name}")


def _work(where: Where, waiting: Any, results: Any, mutation: str | None, is_broken: bool) -> None:
    """Take seeds until there are none."""
    from tests.matrix.breaking import CALLS
    from tests.matrix.mutations import MUTATIONS

    os.environ |= {"RANKLOG_RING_MIB": "1", "XDG_CACHE_HOME": tempfile.gettempdir()}
    proxies = Proxy(where.s3), Proxy(where.kinesis)
    here = Where(where.s3, proxies[0].url, where.kinesis, proxies[1].url, where.bucket)
    clock = Clock()
    machine.install(clock)
    besides = None
    if mutation is not None:
        besides = MUTATIONS[mutation].at
        if is_broken:
            MUTATIONS[mutation].apply()
    own = Machine(here, clock)
    while True:
        try:
            seed = waiting.get(timeout=_LOOK_S)
        except queue.Empty:
            return
        try:
            result = run_schedule(own, seed, besides, until_wrong=bool(CALLS))
            if CALLS and not shows(result):
                _note_unused(result, [name for name, calls in CALLS.items() if not calls])
        except (Exception, Killed) as error:
            kind = "broken" if isinstance(error, RanklogError) else "mistake"
            text = "".join(traceback.format_exception(error))
            result = Result(seed, 0, [], Counter({kind: 1}), [text], Counter())
        results.put(result)
