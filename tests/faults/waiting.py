"""Ranks that wait in a collective for some that do not come, until the watchdog ends it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.faults.endings import Exits
from tests.faults.stamps import MS, SECOND
from tests.faults.text_c10d import Work, desync_report, dump_signal, flight_analysis, watchdog
from tests.faults.text_nccl import gloo_timeout
from tests.faults.text_python import BACKWARD, script_frames, tagged, traceback_lines
from tests.faults.world import World

_OPS = (
    ("ALLREDUCE", 26_214_400, 26_214_400),
    ("_REDUCE_SCATTER_BASE", 544_997_376, 68_124_672),
    ("_ALLGATHER_BASE", 19_008, 152_064),
    ("BROADCAST", 1, 1),
)
# Tables and reports of thousands of ranks: the rest is killed before it has printed its frames.
_WHOLE_REPORTS_MAX = 64


@dataclass(frozen=True, slots=True)
class Wait:
    """What the reports show. `decided`: they leave only the lagging ranks."""

    exits: Exits
    work: Work
    decided: bool
    end_ns: int


def draw_work(w: World) -> Work:
    op, numel_in, numel_out = _OPS[int(w.rng.integers(len(_OPS)))]
    seq = int(w.rng.integers(300, 90_000))
    return Work(
        seq, op, numel_in, numel_out, w.scene.timeout_s * 1000, seq + int(w.rng.integers(0, 4))
    )


def time_out(
    w: World,
    t: int,
    lagging: set[int],
    *,
    speaks: bool,
    share: float | None = None,
    named: bool | None = None,
) -> Wait:
    """Everyone else waits from t on and reports.

    `speaks`: the lagging ranks' own threads still answer a dump signal, with the number of the last
    collective they came to. `share` of the waiting ranks report before all is killed. `named`: a
    desync report or a flight recorder's analysis says who is missing.
    """
    if w.scene.gloo:
        return _gloo(w, t, lagging)
    speaks &= w.scene.torch >= "2.4"  # older ones know no dump signal
    work = draw_work(w)
    due = t + w.scene.timeout_s * SECOND
    if share is None:
        share = 1.0 if w.chance(0.65) else float(w.rng.uniform(0.3, 0.9))
    inner, works = _groups(w, lagging, work)
    waiting = [rank for rank in range(w.topo.ranks) if rank not in lagging]
    reporters = waiting if share == 1.0 else w.some(waiting, share) or waiting[:1]
    exits: Exits = {}
    ats = due + (w.rng.uniform(0, 1.6, len(reporters)) * SECOND).astype("int64")
    for place, (rank, at) in enumerate(zip(reporters, ats.tolist(), strict=True)):
        whole = place < _WHOLE_REPORTS_MAX
        end = w.say_all(rank, at, watchdog(w, rank, at, works[rank], whole=whole))
        exits[rank] = (max(end, due + 2 * SECOND) + int(w.rng.uniform(10, 900) * MS), -6)
    if speaks:
        _answer(w, due + SECOND, lagging, work, min(reporters))
    if named is None:
        named = w.chance(0.35)
    if named:
        _name(w, due, lagging, work, reporters, exits)
    silent = set(inner) - set(reporters)
    return Wait(exits, work, speaks or named or silent <= lagging, due + 4 * SECOND)


def _groups(w: World, lagging: set[int], work: Work) -> tuple[list[int], dict[int, Work]]:
    """Who waits for the lagging ranks themselves, and what each rank waits in.

    With model parallelism the data parallel group waits; the rest waits for that group, in the
    default group, where the whole group is missing.
    """
    topo, lag = w.topo, min(lagging)
    everyone = list(range(topo.ranks))
    if len(lagging) > 1 or topo.dp in (1, topo.ranks) or w.chance(0.4):
        return everyone, dict.fromkeys(everyone, work)
    inner = list(topo.dp_group(lag))
    own = replace(work, group_id=5, group="mesh_dp")
    seq = work.seq // 4 + 17
    rest = Work(seq, "ALLREDUCE", 1, 1, work.timeout_ms, seq)
    return inner, {rank: own if rank in inner else rest for rank in everyone}


def _answer(w: World, t: int, lagging: set[int], work: Work, source: int) -> None:
    """The lagging ranks' monitor threads: they have not come to this collective."""
    behind = replace(work, enqueued=work.seq - 1)
    for rank in lagging:
        w.say_all(rank, t, dump_signal(w, rank, t, work.seq - 1, behind, source))


def _name(
    w: World, due: int, lagging: set[int], work: Work, reporters: list[int], exits: Exits
) -> None:
    if w.chance(0.5):
        for rank in reporters[:3]:
            w.say_all(rank, due + 1500 * MS, desync_report(w, rank, due + 1500 * MS, work, lagging))
    else:
        for text in flight_analysis(w, work, lagging):
            w.extra["torchfrtrace.txt"].append((due + 300 * SECOND, text, None, "analysis"))


def _gloo(w: World, t: int, lagging: set[int]) -> Wait:
    """gloo waits 15 s or so; each waiting rank raises."""
    timeout_ms = int(w.rng.choice([15_000, 30_000, 300_000]))
    exits: Exits = {}
    for rank in range(w.topo.ranks):
        if rank in lagging:
            continue
        at = t + timeout_ms * MS + int(w.rng.uniform(0, 400) * MS)
        error = gloo_timeout(w, timeout_ms)
        lines = tagged(w, rank, list(traceback_lines(script_frames(w, *BACKWARD), error)))
        at = w.say_all(rank, at, lines)
        exits[rank] = (at + int(w.rng.uniform(300, 900) * MS), 1)
    work = Work(0, "ALLREDUCE", 1, 1, timeout_ms, 0)
    end = t + timeout_ms * MS + 2 * SECOND
    return Wait(exits, work, True, end)
