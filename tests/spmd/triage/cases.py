"""Cases for triage, small: what some ranks said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.triage.case import Case, RankState
from tests.spmd.lines import line

STEP_NS = 5 * SECOND_NS


def said(
    rank: int | None,
    at_s: float,
    text: str,
    *,
    level: int | None = None,
    iteration: int | None = None,
    stream: str | None = None,
    host: str | None = None,
    flags: int = 0,
) -> Line:
    """A line at a second of the run; its place in the stream follows the time."""
    made = line(
        text,
        rank=rank,
        seq=round(at_s * 1000),
        ts_ns=round(at_s * SECOND_NS),
        iteration=iteration,
        level=level,
    )
    made.stream_id = stream or ("launcher" if rank is None else f"rank-{rank}")
    made.host = host or (None if rank is None else f"node-{rank // 4}")
    made.flags = flags
    return made


def training(
    ranks: Iterable[int], iterations: int = 10, *, loss: float | str = 3.0, time_ms: float = 5000.0
) -> list[Line]:
    """Every rank says a loss and its own time in each iteration, one every five seconds."""
    return [
        said(
            rank,
            5.0 * k + rank / 1000,
            f"iteration {k} loss {loss} step_time {time_ms} ms",
            level=20,
            iteration=k,
        )
        for k in range(iterations)
        for rank in ranks
    ]


def case(lines: Sequence[Line], *, ranks: int = 8, live: bool = False, now_s: float = 0) -> Case:
    """A case of everything that was said."""
    ordered = sorted(lines, key=lambda item: (item.ts_ns, item.stream_id, item.seq))
    states = {rank: RankState(rank, f"node-{rank // 4}") for rank in range(ranks)}
    for item in ordered:
        if item.rank is None:
            continue
        state = states.setdefault(item.rank, RankState(item.rank, item.host))
        state.last_ns = item.ts_ns
        state.lines += 1
        if item.iteration is not None:
            state.last_iteration, state.last_line = item.iteration, item
    last = max((item.ts_ns for item in ordered), default=0)
    return Case(
        evidence=ordered,
        steps=[item for item in ordered if item.iteration is not None],
        ranks=states,
        last_ns=last,
        now_ns=round(now_s * SECOND_NS) or last,
        live=live,
        own_streams=frozenset(f"rank-{rank}" for rank in range(ranks)),
    )


def table(codes: dict[int, int], at_s: float = 60.0, host: str | None = None) -> list[Line]:
    """torchelastic's failure table of these ranks."""
    lines: list[Line] = []
    for rank, code in codes.items():
        for text in (
            f"  host      : {host or f'node-{rank // 4}'}",
            f"  rank      : {rank} (local_rank: {rank % 4})",
            f"  exitcode  : {code} (pid: {9000 + rank})",
        ):
            at = at_s + len(lines) / 1000
            lines.append(said(None, at, text, level=40))
    return lines
